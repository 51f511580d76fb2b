//! Origin of a run for the history of a stack: account, host, commit, build and message, under the keys of Pulumi's history files
//! (docs/spec/state-and-secrets.md#7).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provisioner::operation::{OriginCollection, Stacks};
use state::format::UpdateOrigin;
use state::store::LockHolder;

use super::ci_systems;
use super::git::Git;

/// Limit on the time that git takes, such as on a slow file system. The history lacks what git says then.
const LIMIT: Duration = Duration::from_secs(2);
/// Separator of the fields of a commit.
const SEPARATOR: char = '\u{1f}';
/// Hosts of repositories whose owner and name are recorded, as Pulumi records them.
const HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "dev.azure.com"];

/// Returns the collection of the origin of a run on these stacks. `message` is that of the user; without one it is the title of the
/// commit, as in Pulumi.
pub(crate) fn collection(stacks: &Stacks, message: Option<String>) -> OriginCollection {
    // The owner of the repository was checked when the stacks were read: git obeys its configuration.
    let root = stacks.repository.git.is_some().then(|| stacks.repository.root.clone());
    OriginCollection::new(collect(stacks.holder(), stacks.process_context.environment.clone(), root, message))
}

async fn collect(
    holder: LockHolder,
    environment: BTreeMap<String, String>,
    root: Option<PathBuf>,
    message: Option<String>,
) -> UpdateOrigin {
    let mut details: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            details.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    };
    add("sc.user", &holder.username);
    add("sc.host", &holder.hostname);
    let found = match root.as_deref().and_then(Git::find) {
        Some(git) => tokio::time::timeout(LIMIT, commit(&git)).await.unwrap_or_default(),
        None => Commit::default(),
    };
    found.details.iter().for_each(|(key, value)| add(key, value));
    ci_systems::details(&environment).iter().for_each(|(key, value)| add(key, value));
    let message = message.unwrap_or(found.title);
    UpdateOrigin { message, environment: details }
}

/// Commit of a work tree.
#[derive(Default)]
struct Commit {
    title: String,
    details: Vec<(&'static str, String)>,
}

/// Returns the commit of the work tree; nothing if there is none.
async fn commit(git: &Git) -> Commit {
    // No command of the configuration is run for the output.
    let log = [
        "-c",
        "log.showSignature=false",
        "log",
        "-1",
        "--no-color",
        "--decorate=full",
        "--format=%H%x1f%D%x1f%cn%x1f%ce%x1f%an%x1f%ae%x1f%s",
    ];
    let status = ["-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"];
    let remote = ["config", "--get", "remote.origin.url"];
    let (log, status, remote) = tokio::join!(git.inspect(&log), git.inspect(&status), git.inspect(&remote));
    let Some(log) = log else { return Commit::default() };
    let mut found = of_log(&log);
    found.details.extend(status.map(|changes| ("git.dirty", (!changes.trim().is_empty()).to_string())));
    found.details.extend(remote.iter().flat_map(|url| of_remote(url.trim())));
    found
}

fn of_log(text: &str) -> Commit {
    let fields: Vec<&str> = text.trim_end().split(SEPARATOR).collect();
    let [head, decorations, committer, committer_email, author, author_email, title] = fields[..] else {
        return Commit::default();
    };
    let branch = decorations.split(", ").find_map(|name| name.strip_prefix("HEAD -> "));
    let details = [
        ("git.head", head),
        ("git.headName", branch.unwrap_or_default()),
        ("git.committer", committer),
        ("git.committer.email", committer_email),
        ("git.author", author),
        ("git.author.email", author_email),
    ];
    Commit { title: title.to_owned(), details: details.map(|(key, value)| (key, value.to_owned())).into() }
}

/// Returns the owner and the name of a repository on a known host. Credentials in the address are left out.
fn of_remote(url: &str) -> Vec<(&'static str, String)> {
    // `scheme://user:password@host:port/path`, or `user@host:path`.
    let parts = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/'),
        None => url.split_once(':'),
    };
    let Some((authority, path)) = parts else { return Vec::new() };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split(':').next().unwrap_or_default();
    let path = path.trim_end_matches('/').trim_end_matches(".git");
    let Some((owner, name)) = path.rsplit_once('/').filter(|_| HOSTS.contains(&host)) else { return Vec::new() };
    let owner = owner.trim_start_matches('/');
    let name = Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    vec![("vcs.kind", host.to_owned()), ("vcs.owner", owner.to_owned()), ("vcs.repo", name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_is_read_from_the_log() {
        let text = "1f2e\u{1f}HEAD -> refs/heads/main, tag: refs/tags/v1\u{1f}Bea\u{1f}bea@reef\u{1f}Ada\u{1f}\u{1f}Add a crab, at last\n";
        let found = of_log(text);
        assert_eq!(found.title, "Add a crab, at last");
        let details: Vec<String> = found.details.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = "git.head=1f2e git.headName=refs/heads/main git.committer=Bea git.committer.email=bea@reef git.author=Ada git.author.email=";
        assert_eq!(details.join(" "), expected);
        // A detached head has no branch, and an error of git no commit.
        let detached = of_log("1f2e\u{1f}HEAD, tag: refs/tags/v1\u{1f}\u{1f}\u{1f}\u{1f}\u{1f}x");
        assert_eq!(detached.details[1], ("git.headName", String::new()));
        assert!(of_log("fatal: no commits").details.is_empty());
    }

    #[test]
    fn repository_on_a_known_host_is_recorded_without_credentials() {
        let found = |url| of_remote(url).into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(" ");
        let table = [
            ("https://github.com/reef/tank.git", "github.com reef tank"),
            ("https://user:hush@github.com/reef/tank", "github.com reef tank"),
            ("git@gitlab.com:reef/deep/tank.git", "gitlab.com reef/deep tank"),
            ("ssh://git@bitbucket.org:22/reef/tank/", "bitbucket.org reef tank"),
            ("https://git.example.com/reef/tank", ""),
            ("../tank", ""),
            ("", ""),
        ];
        for (url, expected) in table {
            assert_eq!(found(url), expected, "{url}");
        }
    }
}

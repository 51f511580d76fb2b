//! Git repositories, read with the `git` program, which uses the user's keys, credential helpers and proxies.
//! Submodules are not fetched.
//!
//! A token is passed in the environment and is sent to the repository's own host only. No secret is an argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::error::FetchError;
use super::remote::Remote;
use super::tree_limits::{TreeCounter, TreeLimits};
use crate::error::{Hint as _, chain};
use crate::fs::Access;
use crate::health::HealthCheck;
use crate::plugin::Transport;
use crate::process::{
    FirstLine, HostEnvironment, OutputSink, OutputStream, Process, ProcessSandbox, ProcessSpec, Spawner, describe_exit,
};
use crate::speed::{MIN_SPEED, WINDOW};

/// Time limit of a command. Large repositories on slow connections take minutes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Environment variables from which the credential helper reads user and password.
const USER_VARIABLE: &str = "SC_GIT_USER";
const PASSWORD_VARIABLE: &str = "SC_GIT_PASSWORD";
/// Environment variables that git inherits: locations of its settings, proxies and authentication. Variables that
/// select a repository, such as `GIT_DIR`, are not inherited.
const INHERITED_VARIABLES: [&str; 30] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "KRB5CCNAME",
    "GNUPGHOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
    "GIT_PROXY_SSL_CAINFO",
];
/// First version of git that reads settings from the environment.
const MIN_GIT_VERSION: (u32, u32) = (2, 31);
/// Attributes that disable filters, keyword expansion, and conversions of encodings and line ends at checkout.
const ATTRIBUTES: &str = "* -filter -text -ident -working-tree-encoding -eol\n";

/// Commit that a revision resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full id of the commit. `None` for a shortened id, which is resolved only after the repository is fetched.
    id: Option<String>,
    /// Requested revision.
    revision: String,
    /// Kind of the revision.
    pub kind: RevisionKind,
}

/// Kind of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionKind {
    /// Tag, which should not move.
    Tag,
    /// Branch, which may lead to another commit later.
    Branch,
    /// Full or shortened id of a commit.
    Id,
}

impl Commit {
    /// Returns the commit of a full id, without a request. `None` for any other revision.
    pub fn of_id(revision: &str) -> Option<Self> {
        let id = is_hex(revision) && matches!(revision.len(), 40 | 64);
        id.then(|| Self {
            id: Some(revision.to_ascii_lowercase()),
            revision: revision.to_owned(),
            kind: RevisionKind::Id,
        })
    }

    /// Returns the commit of a full or shortened id that was resolved before.
    pub fn resolved(id: &str) -> Self {
        Self::of_id(id).unwrap_or_else(|| Self { id: None, revision: id.to_owned(), kind: RevisionKind::Id })
    }

    /// Returns the immutable name of the commit: its full id, or the requested shortened id.
    pub fn name(&self) -> &str {
        self.id.as_ref().unwrap_or(&self.revision)
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Runner of `git` commands.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    environment: HostEnvironment,
    spawner: Spawner,
    has_custom_ssh: OnceLock<bool>,
}

impl Git {
    /// Finds `git` on PATH.
    ///
    /// # Errors
    /// [`FetchError::ProgramMissing`].
    pub fn find(environment: &HostEnvironment, spawner: &Spawner) -> Result<Self, FetchError> {
        let program = environment.find_program("git").ok_or(FetchError::ProgramMissing { program: "git" })?;
        Ok(Self {
            program,
            environment: environment.clone(),
            spawner: spawner.clone(),
            has_custom_ssh: OnceLock::new(),
        })
    }

    /// Resolves a tag, a branch or a full or shortened commit id. A tag takes precedence over a branch.
    ///
    /// # Errors
    /// [`FetchError`]: [`FetchError::NotFound`] if the revision does not exist.
    pub async fn resolve(&self, remote: &Remote, revision: &str) -> Result<Commit, FetchError> {
        if let Some(commit) = Commit::of_id(revision) {
            return Ok(commit);
        }
        self.detect_configuration(remote).await?;
        let not_found = || FetchError::NotFound {
            item: format!("revision {revision:?}"),
            host: remote.display_url(),
            credential: remote.login.as_ref().map(|login| login.name.to_owned()),
        };
        let (tag, branch) = (format!("refs/tags/{revision}"), format!("refs/heads/{revision}"));
        let peeled = format!("{tag}^{{}}");
        let listed = self
            .run(
                "ls-remote",
                remote,
                Path::new("/"),
                ["ls-remote", "--quiet", "--", &remote.url, &tag, &peeled, &branch],
            )
            .await?;
        let found = |name: &str| {
            let line = listed.iter().find_map(|line| line.split_once('\t').filter(|(_, found)| *found == name));
            line.map(|(id, _)| id.to_owned())
        };
        if let Some(id) = found(&peeled).or_else(|| found(&tag)) {
            return Ok(Commit { id: Some(id), revision: revision.to_owned(), kind: RevisionKind::Tag });
        }
        if let Some(id) = found(&branch) {
            return Ok(Commit { id: Some(id), revision: revision.to_owned(), kind: RevisionKind::Branch });
        }
        // Servers do not list commits: a shortened id is resolved after the fetch.
        let shortened = is_hex(revision) && revision.len() >= 7;
        if !shortened {
            return Err(not_found());
        }
        Ok(Commit { id: None, revision: revision.to_owned(), kind: RevisionKind::Id })
    }

    /// Returns the tags of a repository.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn tags(&self, remote: &Remote) -> Result<Vec<String>, FetchError> {
        self.detect_configuration(remote).await?;
        let arguments = ["ls-remote", "--quiet", "--refs", "--tags", "--", &remote.url];
        let listed = self.run("ls-remote", remote, Path::new("/"), arguments).await?;
        let tag = |line: &String| Some(line.split_once("\trefs/tags/")?.1.to_owned());
        Ok(listed.iter().filter_map(tag).collect())
    }

    /// Checks out a commit into an existing empty folder, without the `.git` folder, and returns the full id of the
    /// commit.
    ///
    /// # Errors
    /// [`FetchError`]: [`FetchError::TooLarge`] before any file is written.
    pub async fn checkout(
        &self,
        remote: &Remote,
        commit: &Commit,
        limits: TreeLimits,
        folder: &Path,
    ) -> Result<String, FetchError> {
        self.detect_configuration(remote).await?;
        let format = if commit.id.as_ref().is_some_and(|id| id.len() == 64) {
            "--object-format=sha256"
        } else {
            "--object-format=sha1"
        };
        self.run("init", remote, folder, ["init", "--quiet", "--template=", format, "."]).await?;
        let info = folder.join(".git/info");
        crate::fs::create_folders(&info)?;
        crate::fs::write_atomically(&info.join("attributes"), ATTRIBUTES.as_bytes(), Access::Private)?;
        if let Some(id) = &commit.id {
            let by_id =
                ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", &remote.url, id];
            // Some servers refuse to serve commits that are not the tip of a branch or tag.
            match self.run("fetch", remote, folder, by_id).await {
                Err(error) if error.is_refused_commit() => self.fetch_all(remote, folder).await?,
                other => drop(other?),
            }
        } else {
            self.fetch_all(remote, folder).await?;
        }
        let wanted = format!("{}^{{commit}}", commit.name());
        let found = self
            .run("rev-parse", remote, folder, ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])
            .await;
        let id = match found {
            Ok(lines) => lines.into_iter().next().unwrap_or_default(),
            Err(FetchError::Git { .. }) => {
                return Err(FetchError::NotFound {
                    item: format!("commit {:?}", commit.name()),
                    host: remote.display_url(),
                    credential: remote.login.as_ref().map(|login| login.name.to_owned()),
                });
            }
            Err(error) => return Err(error),
        };
        self.check_tree_size(remote, &id, limits, folder).await?;
        self.run("checkout", remote, folder, ["checkout", "--quiet", "--detach", "--force", &id]).await?;
        let history = folder.join(".git");
        std::fs::remove_dir_all(&history).map_err(crate::fs::FileError::of("remove", &history))?;
        Ok(id)
    }

    /// Returns an error if the tree of a commit exceeds the limits. A few bytes can encode an extremely large tree, so
    /// the listing stops at the first exceeded limit.
    async fn check_tree_size(
        &self,
        remote: &Remote,
        id: &str,
        limits: TreeLimits,
        folder: &Path,
    ) -> Result<(), FetchError> {
        let counter = Arc::new(TreeCounter::new(limits));
        let process = self.spawn(remote, folder, ["ls-tree", "-r", "-t", "-l", "--full-tree", id], counter.clone())?;
        tokio::select! {
            ended = wait_for_success("ls-tree", &process) => ended?,
            () = counter.limit_exceeded.notified() => {}
        }
        if let FirstLine::Line(line) = process.first_line().await {
            counter.line(OutputStream::Stdout, &line);
        }
        match counter.exceeded_limit() {
            None => Ok(()),
            Some(reason) => {
                Err(FetchError::TooLarge { item: format!("commit {id:?}"), host: remote.display_url(), reason })
            }
        }
    }

    async fn fetch_all(&self, remote: &Remote, folder: &Path) -> Result<(), FetchError> {
        // Branches and tags only, not `refs/pull/*`: a shortened id must not resolve to a commit of a third party.
        let (heads, tags) = ("+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*");
        let arguments = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", &remote.url, heads, tags];
        self.run("fetch", remote, folder, arguments).await.map(drop)
    }

    /// Checks the version of git and whether the user has configured its ssh command. Runs once.
    async fn detect_configuration(&self, remote: &Remote) -> Result<(), FetchError> {
        if self.has_custom_ssh.get().is_some() {
            return Ok(());
        }
        self.supported_version(remote).await?;
        let named = ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(|name| self.environment.get(name).is_some());
        let configured = self.run("config", remote, Path::new("/"), ["config", "--get", "core.sshCommand"]).await;
        self.has_custom_ssh.get_or_init(|| named || configured.is_ok());
        Ok(())
    }

    /// Returns the version of git, which must not be too old.
    async fn supported_version(&self, remote: &Remote) -> Result<String, FetchError> {
        let version =
            self.run("version", remote, Path::new("/"), ["version"]).await?.into_iter().next().unwrap_or_default();
        let mut numbers =
            version.trim_start_matches("git version ").split('.').map(|number| number.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) < MIN_GIT_VERSION => {
                Err(FetchError::ProgramTooOld { version })
            }
            _ => Ok(version),
        }
    }

    /// Checks that git is on PATH and not too old. If no plugin needs it, that is only worth to know.
    pub async fn check(environment: &HostEnvironment, spawner: &Spawner, is_needed: bool) -> HealthCheck {
        const NAME: &str = "git";
        let version = async {
            let remote = Remote::new("/", Path::new("/"), None)?;
            Self::find(environment, spawner)?.supported_version(&remote).await
        };
        match version.await {
            Ok(version) => HealthCheck::good(NAME, version),
            Err(error) => {
                let advice = error.hint().unwrap_or_default();
                match is_needed {
                    true => HealthCheck::bad(NAME, chain(&error), advice),
                    false => HealthCheck::notable(NAME, chain(&error), advice),
                }
            }
        }
    }

    /// Runs a command and returns the lines of its standard output.
    async fn run<const N: usize>(
        &self,
        action: &'static str,
        remote: &Remote,
        directory: &Path,
        arguments: [&str; N],
    ) -> Result<Vec<String>, FetchError> {
        let lines = Arc::new(Lines::default());
        let process = self.spawn(remote, directory, arguments, lines.clone())?;
        wait_for_success(action, &process).await?;
        let rest = std::mem::take(&mut lines.0.lock().unwrap_or_else(PoisonError::into_inner).lines);
        let first = match process.first_line().await {
            FirstLine::Line(line) => Some(line),
            FirstLine::Incomplete(_) | FirstLine::ExecFailed(_) => None,
        };
        Ok(first.into_iter().chain(rest).collect())
    }

    fn spawn<const N: usize>(
        &self,
        remote: &Remote,
        directory: &Path,
        arguments: [&str; N],
        sink: Arc<dyn OutputSink>,
    ) -> Result<Process, FetchError> {
        let spec = ProcessSpec {
            program: self.program.clone(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: directory.to_owned(),
            environment: self.variables(remote),
            sandbox: ProcessSandbox::None,
        };
        Ok(self.spawner.spawn(&spec, sink)?)
    }

    /// Returns the environment of a command. Prompts for passwords are disabled, and so are settings that could run
    /// code from the repository.
    fn variables(&self, remote: &Remote) -> Vec<(OsString, OsString)> {
        let mut settings = vec![
            ("core.hooksPath".to_owned(), "/dev/null".to_owned()),
            ("core.attributesFile".to_owned(), "/dev/null".to_owned()),
            ("core.fsmonitor".to_owned(), "false".to_owned()),
            ("core.autocrlf".to_owned(), "false".to_owned()),
            ("core.symlinks".to_owned(), "true".to_owned()),
            ("gc.auto".to_owned(), "0".to_owned()),
            ("maintenance.auto".to_owned(), "false".to_owned()),
            ("advice.detachedHead".to_owned(), "false".to_owned()),
            ("http.lowSpeedLimit".to_owned(), MIN_SPEED.to_string()),
            ("http.lowSpeedTime".to_owned(), WINDOW.as_secs().to_string()),
        ];
        let mut variables: Vec<(OsString, OsString)> = self.environment.select(INHERITED_VARIABLES).collect();
        if let Some((login, origin)) = remote.login.as_ref().zip(remote.origin()) {
            // git calls the helper for this host only. The user's own helpers are reset: they would store the token.
            let key = format!("credential.{origin}.helper");
            let print = format!("printf 'username=%s\\npassword=%s\\n' \"${USER_VARIABLE}\" \"${PASSWORD_VARIABLE}\"");
            let helper = format!("!f() {{ test \"$1\" = get && {print}; }}; f");
            settings.extend([(key.clone(), String::new()), (key, helper)]);
            variables.push((USER_VARIABLE.into(), login.user.clone().into()));
            variables.push((PASSWORD_VARIABLE.into(), login.password.expose().into()));
        }
        variables.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
        for (at, (name, value)) in settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{at}").into(), name.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        // ssh must not prompt: the process has no terminal.
        if self.has_custom_ssh.get() == Some(&false) {
            variables.push(("GIT_SSH_COMMAND".into(), "ssh -oBatchMode=yes".into()));
        }
        // For redirects, and for addresses that the user's settings rewrite (`insteadOf`). A plain-text transport is used
        // only if it was declared.
        let allowed = match remote.transport {
            Transport::Https | Transport::Ssh | Transport::File => "https:ssh:file",
            Transport::Http => "https:ssh:file:http",
            Transport::Git => "https:ssh:file:git",
        };
        variables.push(("GIT_ALLOW_PROTOCOL".into(), allowed.into()));
        variables.push(("GIT_ATTR_NOSYSTEM".into(), "1".into()));
        variables.push(("GIT_LFS_SKIP_SMUDGE".into(), "1".into()));
        variables.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        variables.push(("GIT_ASKPASS".into(), "true".into()));
        variables.push(("LC_ALL".into(), "C".into()));
        variables
    }
}

/// Waits for a command to exit, and returns an error if it failed or exceeded its time limit.
async fn wait_for_success(action: &'static str, process: &Process) -> Result<(), FetchError> {
    let exited = tokio::time::timeout(COMMAND_TIMEOUT, process.wait_for_exit()).await;
    process.wait_for_output_end().await;
    let status = match exited {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => describe_exit(status),
        Err(_) => format!("not done within {} minutes", COMMAND_TIMEOUT.as_secs() / 60),
    };
    let output = process.last_lines(OutputStream::Stderr).join("\n");
    Err(FetchError::Git { action, status, output })
}

/// Maximum length of the lines that are kept of a command's output, in bytes: a repository may have thousands of tags.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// Lines of a command's standard output after the first line, up to [`MAX_OUTPUT_BYTES`].
#[derive(Debug, Default)]
struct Lines(Mutex<KeptLines>);

#[derive(Debug, Default)]
struct KeptLines {
    lines: Vec<String>,
    bytes: usize,
}

impl OutputSink for Lines {
    fn line(&self, stream: OutputStream, line: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stream == OutputStream::Stdout && kept.bytes + line.len() < MAX_OUTPUT_BYTES {
            kept.bytes += line.len();
            kept.lines.push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_command_does_not_fill_the_memory() {
        let (lines, line) = (Lines::default(), "x".repeat(1 << 20));
        (0..32).for_each(|_| lines.line(OutputStream::Stdout, &line));
        let kept = lines.0.lock().unwrap();
        assert_eq!((kept.lines.len(), kept.bytes), (15, 15 << 20));
    }

    #[test]
    fn full_commit_id_is_resolved_without_a_request() {
        let id = "A".repeat(40);
        assert_eq!(Commit::of_id(&id).unwrap().name(), "a".repeat(40));
        for other in ["main", "v1.0.0", "abcdef0", ""] {
            assert_eq!(Commit::of_id(other), None);
        }
    }
}

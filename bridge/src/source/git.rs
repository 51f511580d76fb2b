//! Git repositories, by the `git` program: it knows the user's keys, helpers and proxies. Submodules are not followed.
//!
//! A token reaches it in the environment and is given to the repository's own host alone; nothing secret is an argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::error::FetchError;
use super::remote::Remote;
use super::tree::{Tally, TreeLimits};
use crate::fs::Access;
use crate::process::{
    FirstLine, HostEnvironment, OutputSink, OutputStream, Process, ProcessSpec, Spawner, describe_exit,
};

/// How long a command may take: large repositories come through thin lines.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Where the helper finds what it says.
const USER: &str = "SC_GIT_USER";
const PASSWORD: &str = "SC_GIT_PASSWORD";
/// What git may know of our environment: where its settings are, how to reach hosts and to authenticate there. Not where
/// the repository is that we may be run from.
const ENVIRONMENT: [&str; 30] = [
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
/// The first version that takes settings from the environment.
const OLDEST: (u32, u32) = (2, 31);
/// What the files of a tree may not ask for: programs that change them on their way out, other line ends.
const ATTRIBUTES: &str = "* -filter -text -ident -working-tree-encoding -eol\n";

/// A commit that a revision means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Whole id of the commit; `None` for a shortened id, which only a fetched repository resolves.
    id: Option<String>,
    /// The revision that was asked for.
    revision: String,
    /// Whether the revision may mean another one tomorrow: a branch.
    pub moves: bool,
}

impl Commit {
    /// The commit of a whole id: nobody needs to be asked. `None` for any other revision.
    pub fn of_id(revision: &str) -> Option<Self> {
        let id = is_hex(revision) && matches!(revision.len(), 40 | 64);
        id.then(|| Self { id: Some(revision.to_ascii_lowercase()), revision: revision.to_owned(), moves: false })
    }

    /// What names it for good: its id, or the shortened id that was asked for.
    pub fn name(&self) -> &str {
        self.id.as_ref().unwrap_or(&self.revision)
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Runs `git`.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    environment: HostEnvironment,
    spawner: Spawner,
    has_own_ssh: OnceLock<bool>,
}

impl Git {
    /// The `git` on PATH.
    ///
    /// # Errors
    /// [`FetchError::NoProgram`].
    pub fn find(environment: &HostEnvironment, spawner: &Spawner) -> Result<Self, FetchError> {
        let program = environment.find_program("git").ok_or(FetchError::NoProgram { program: "git" })?;
        Ok(Self { program, environment: environment.clone(), spawner: spawner.clone(), has_own_ssh: OnceLock::new() })
    }

    /// The commit that a tag, a branch or the (shortened) id of a commit means now. A tag goes before a branch.
    ///
    /// # Errors
    /// [`FetchError`]: [`FetchError::NotFound`] where there is no such revision.
    pub async fn resolve(&self, remote: &Remote, revision: &str) -> Result<Commit, FetchError> {
        if let Some(commit) = Commit::of_id(revision) {
            return Ok(commit);
        }
        self.prepare(remote).await?;
        let not_found = || FetchError::NotFound {
            what: format!("revision {revision:?}"),
            host: remote.shown(),
            authenticated: remote.login.is_some(),
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
            return Ok(Commit { id: Some(id), revision: revision.to_owned(), moves: false });
        }
        if let Some(id) = found(&branch) {
            return Ok(Commit { id: Some(id), revision: revision.to_owned(), moves: true });
        }
        // Servers list no commits: whether there is one shows when everything is there.
        let shortened = is_hex(revision) && revision.len() >= 7;
        if !shortened {
            return Err(not_found());
        }
        Ok(Commit { id: None, revision: revision.to_owned(), moves: false })
    }

    /// Puts the files of a commit into a folder, which must exist and be empty, and says the commit's whole id. Of the
    /// history nothing is left.
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
        self.prepare(remote).await?;
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
            // Some servers give no commit that they do not list.
            match self.run("fetch", remote, folder, by_id).await {
                Err(error) if error.is_answer_of_git() => self.fetch_all(remote, folder).await?,
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
                    what: format!("commit {:?}", commit.name()),
                    host: remote.shown(),
                    authenticated: remote.login.is_some(),
                });
            }
            Err(error) => return Err(error),
        };
        self.measure(remote, &id, limits, folder).await?;
        self.run("checkout", remote, folder, ["checkout", "--quiet", "--detach", "--force", &id]).await?;
        let history = folder.join(".git");
        std::fs::remove_dir_all(&history).map_err(crate::fs::PathError::of("remove", &history))?;
        Ok(id)
    }

    /// Refuses a tree that is too large. A few bytes can stand for a tree without end, so its listing is left as soon as
    /// it has gone too far.
    async fn measure(&self, remote: &Remote, id: &str, limits: TreeLimits, folder: &Path) -> Result<(), FetchError> {
        let tally = Arc::new(Tally::new(limits));
        let process = self.spawn(remote, folder, ["ls-tree", "-r", "-t", "-l", "--full-tree", id], tally.clone())?;
        tokio::select! {
            ended = success("ls-tree", &process) => ended?,
            () = tally.over.notified() => {}
        }
        if let FirstLine::Line(line) = process.first_line().await {
            tally.line(OutputStream::Stdout, &line);
        }
        match tally.excess() {
            None => Ok(()),
            Some(reason) => Err(FetchError::TooLarge { what: format!("commit {id:?}"), host: remote.shown(), reason }),
        }
    }

    async fn fetch_all(&self, remote: &Remote, folder: &Path) -> Result<(), FetchError> {
        // Not what strangers proposed: a shortened id must mean one of the repository's own commits.
        let (heads, tags) = ("+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*");
        let arguments = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", &remote.url, heads, tags];
        self.run("fetch", remote, folder, arguments).await.map(drop)
    }

    /// Finds out which git this is, and whether the user has said how it runs ssh.
    async fn prepare(&self, remote: &Remote) -> Result<(), FetchError> {
        if self.has_own_ssh.get().is_some() {
            return Ok(());
        }
        let said =
            self.run("version", remote, Path::new("/"), ["version"]).await?.into_iter().next().unwrap_or_default();
        let mut numbers = said.trim_start_matches("git version ").split('.').map(|number| number.parse::<u32>().ok());
        if let (Some(major), Some(minor)) = (numbers.next().flatten(), numbers.next().flatten())
            && (major, minor) < OLDEST
        {
            return Err(FetchError::OldProgram { said });
        }
        let named = ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(|name| self.environment.get(name).is_some());
        let configured = self.run("config", remote, Path::new("/"), ["config", "--get", "core.sshCommand"]).await;
        self.has_own_ssh.get_or_init(|| named || configured.is_ok());
        Ok(())
    }

    /// Runs a command and returns the lines that it wrote.
    async fn run<const N: usize>(
        &self,
        action: &'static str,
        remote: &Remote,
        directory: &Path,
        arguments: [&str; N],
    ) -> Result<Vec<String>, FetchError> {
        let lines = Arc::new(Lines::default());
        let process = self.spawn(remote, directory, arguments, lines.clone())?;
        success(action, &process).await?;
        let rest = std::mem::take(&mut *lines.0.lock().unwrap_or_else(PoisonError::into_inner));
        let first = match process.first_line().await {
            FirstLine::Line(line) => Some(line),
            FirstLine::Ended(_) | FirstLine::NotRun(_) => None,
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
        };
        Ok(self.spawner.spawn(&spec, sink)?)
    }

    /// The environment of a command: nobody is asked for a password, and settings that could run something of the
    /// repository's are off.
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
        ];
        let mut variables: Vec<(OsString, OsString)> = self.environment.select(ENVIRONMENT).collect();
        if let Some((login, origin)) = remote.login.as_ref().zip(remote.origin()) {
            // The helper says it when git asks on behalf of this host; one of the user's own would keep it.
            let key = format!("credential.{origin}.helper");
            let say = format!("printf 'username=%s\\npassword=%s\\n' \"${USER}\" \"${PASSWORD}\"");
            let say = format!("!f() {{ test \"$1\" = get && {say}; }}; f");
            settings.extend([(key.clone(), String::new()), (key, say)]);
            variables.push((USER.into(), login.user.clone().into()));
            variables.push((PASSWORD.into(), login.password.expose().into()));
        }
        variables.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
        for (at, (name, value)) in settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{at}").into(), name.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        // Nobody is there to answer what ssh asks.
        if self.has_own_ssh.get() == Some(&false) {
            variables.push(("GIT_SSH_COMMAND".into(), "ssh -oBatchMode=yes".into()));
        }
        variables.push(("GIT_ATTR_NOSYSTEM".into(), "1".into()));
        variables.push(("GIT_LFS_SKIP_SMUDGE".into(), "1".into()));
        variables.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        variables.push(("GIT_ASKPASS".into(), "true".into()));
        variables.push(("LC_ALL".into(), "C".into()));
        variables
    }
}

/// Waits for a command to end well.
async fn success(action: &'static str, process: &Process) -> Result<(), FetchError> {
    let exited = tokio::time::timeout(LIMIT, process.exited()).await;
    process.drained().await;
    let status = match exited {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => describe_exit(status),
        Err(_) => format!("not done within {} minutes", LIMIT.as_secs() / 60),
    };
    let output = process.last_lines(OutputStream::Stderr).join("\n");
    Err(FetchError::Git { action, status, output })
}

/// What a command writes on its output after the first line.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl OutputSink for Lines {
    fn line(&self, stream: OutputStream, line: &str) {
        if stream == OutputStream::Stdout {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_id_is_a_commit_without_asking() {
        let id = "A".repeat(40);
        assert_eq!(Commit::of_id(&id).unwrap().name(), "a".repeat(40));
        for other in ["main", "v1.0.0", "abcdef0", ""] {
            assert_eq!(Commit::of_id(other), None);
        }
    }
}

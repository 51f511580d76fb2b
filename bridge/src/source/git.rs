//! Git repositories, by the `git` program: it knows the user's keys, helpers and proxies. Submodules are not followed.
//!
//! A token reaches it in the environment and is given to the repository's own host alone; nothing secret is an argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{FetchError, is_loopback, without_credentials};
use crate::fs::Access;
use crate::plugin::SourceToken;
use crate::process::{
    FirstLine, HostEnvironment, OutputSink, OutputStream, Process, ProcessSpec, Spawner, describe_exit,
};

/// How long a command may take: large repositories come through thin lines.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Where the helper finds what it says.
const USER: &str = "SC_GIT_USER";
const PASSWORD: &str = "SC_GIT_PASSWORD";
/// The user that goes with a token: what GitHub and GitLab take, and others ignore.
const TOKEN_USER: &str = "x-access-token";
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

/// A repository, and what authenticates us there.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Without credentials, unless they are a user's name for ssh.
    url: String,
    login: Option<Login>,
}

#[derive(Clone, Debug)]
struct Login {
    user: String,
    password: SourceToken,
}

impl Remote {
    /// The repository at a URL, or at a path that is relative to `root`.
    ///
    /// # Errors
    /// [`FetchError::Address`], [`FetchError::Token`] where a token would travel in plain text.
    pub fn new(url: &str, root: &Path, token: Option<SourceToken>) -> Result<Self, FetchError> {
        let address =
            |reason: &str| FetchError::Address { address: without_credentials(url), reason: reason.to_owned() };
        if let Some(reason) = unusable_login(url) {
            return Err(address(reason));
        }
        if url.starts_with('-') {
            return Err(address("it looks like an option"));
        }
        if url.contains("::") && !url.contains("://") {
            return Err(address("remote helpers are not used"));
        }
        let host_comes_first = url.split('/').next().is_some_and(|first| first.contains(':'));
        let url = if host_comes_first { url.to_owned() } else { root.join(url).to_string_lossy().into_owned() };
        // What is in the address would be on the command line, where every user of the machine can read it.
        let by_http = is_http(&url);
        let written = by_http.then(|| login_in(&url)).flatten();
        let url = if written.is_some() { without_credentials(&url) } else { url };
        let login = token.map(|password| Login { user: TOKEN_USER.to_owned(), password }).or(written);
        // They are said to git in lines.
        if login.as_ref().is_some_and(|login| (login.user.clone() + login.password.expose()).contains(char::is_control))
        {
            let host = without_credentials(&url);
            return Err(FetchError::Token { host, reason: "it holds characters that no token has" });
        }
        let remote = Self { url, login };
        if remote.login.is_some() {
            match remote.url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase()).as_deref() {
                Some("https") => {}
                Some("http") if is_loopback(&remote.host()) => {}
                _ => return Err(FetchError::Token { host: remote.host(), reason: "it would not go by https" }),
            }
        }
        Ok(remote)
    }

    /// The address without credentials: for messages, and as the name of the repository.
    pub fn shown(&self) -> String {
        without_credentials(&self.url)
    }

    /// The host, without user and port; empty for a path.
    fn host(&self) -> String {
        let shown = self.shown();
        let Some((_, rest)) = shown.split_once("://") else { return String::new() };
        let authority = rest.split('/').next().unwrap_or_default();
        let port = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
        authority[..port.unwrap_or(authority.len())].to_owned()
    }

    /// `https://host:port`, for settings that hold there only.
    fn origin(&self) -> String {
        let shown = self.shown();
        shown.match_indices('/').nth(2).map_or(shown.clone(), |(at, _)| shown[..at].to_owned())
    }
}

/// Whether a URL is one of a web server, whatever case its scheme is in.
fn is_http(url: &str) -> bool {
    url.split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http)))
}

/// Why the credentials in a URL cannot be taken out of it.
fn unusable_login(url: &str) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((login, _)) if !is_http(url) && login.contains(':') => Some("a password in it goes by https only"),
        Some(_) => None,
        None if without_credentials(url) != url => Some("write / and @ in a user or password as %2F and %40"),
        None => None,
    }
}

/// User and password in a URL. A user alone may be a token, and goes as one.
fn login_in(url: &str) -> Option<Login> {
    let (_, rest) = url.split_once("://")?;
    let (login, _) = rest.split('/').next()?.rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (user, password) = (decoded(user), decoded(password));
    match SourceToken::new(password) {
        Some(password) => Some(Login { user, password }),
        None => Some(Login { user: TOKEN_USER.to_owned(), password: SourceToken::new(user)? }),
    }
}

/// Text with `%40` and the like put back.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let code = others.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A commit that a revision means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id; empty where it is known only once the repository has been fetched (a shortened id).
    id: String,
    /// The revision that was asked for.
    revision: String,
    /// Whether the revision may mean another one tomorrow: a branch.
    pub moves: bool,
}

impl Commit {
    /// The commit of a whole id: nobody needs to be asked. `None` for any other revision.
    pub fn of_id(revision: &str) -> Option<Self> {
        let id = is_hex(revision) && matches!(revision.len(), 40 | 64);
        id.then(|| Self { id: revision.to_ascii_lowercase(), revision: revision.to_owned(), moves: false })
    }

    /// What names it for good: its id, or the shortened id that was asked for.
    pub fn name(&self) -> &str {
        if self.id.is_empty() { &self.revision } else { &self.id }
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
            return Ok(Commit { id, revision: revision.to_owned(), moves: false });
        }
        if let Some(id) = found(&branch) {
            return Ok(Commit { id, revision: revision.to_owned(), moves: true });
        }
        // Servers list no commits: whether there is one shows when everything is there.
        let shortened = is_hex(revision) && revision.len() >= 7;
        if !shortened {
            return Err(not_found());
        }
        Ok(Commit { id: String::new(), revision: revision.to_owned(), moves: false })
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
        let format = if commit.id.len() == 64 { "--object-format=sha256" } else { "--object-format=sha1" };
        self.run("init", remote, folder, ["init", "--quiet", "--template=", format, "."]).await?;
        let info = folder.join(".git/info");
        crate::fs::create_folders(&info)?;
        crate::fs::write_atomically(&info.join("attributes"), ATTRIBUTES.as_bytes(), Access::Private)?;
        if commit.id.is_empty() {
            self.fetch_all(remote, folder).await?;
        } else {
            let by_id = [
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--",
                &remote.url,
                &commit.id,
            ];
            // Some servers give no commit that they do not list.
            match self.run("fetch", remote, folder, by_id).await {
                Err(error) if error.is_answer_of_git() => self.fetch_all(remote, folder).await?,
                other => drop(other?),
            }
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
        let tally = Arc::new(Tally { limits, count: Mutex::default(), over: Notify::new() });
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
        if let Some(login) = &remote.login {
            // The helper says it when git asks on behalf of this host; one of the user's own would keep it.
            let key = format!("credential.{}.helper", remote.origin());
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

/// What a tree may hold at most.
#[derive(Clone, Copy, Debug)]
pub struct TreeLimits {
    /// Files, folders and links.
    pub entries: usize,
    /// Bytes in all files together.
    pub bytes: u64,
    /// Bytes in a path.
    pub path_length: usize,
    /// Parts of a path.
    pub path_depth: usize,
}

/// Counts what `git ls-tree -r -t -l` lists.
#[derive(Debug)]
struct Tally {
    limits: TreeLimits,
    count: Mutex<Count>,
    over: Notify,
}

#[derive(Debug, Default)]
struct Count {
    entries: usize,
    bytes: u64,
    /// The first limit that was passed.
    excess: Option<&'static str>,
}

impl Tally {
    fn excess(&self) -> Option<&'static str> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).excess
    }
}

impl OutputSink for Tally {
    fn line(&self, stream: OutputStream, line: &str) {
        if stream != OutputStream::Stdout {
            return;
        }
        // Mode, kind, id, size, a tab, the path. What is no file has no size.
        let (about, path) = line.split_once('\t').unwrap_or((line, ""));
        let size = about.split_whitespace().nth(3).and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.entries += 1;
        count.bytes = count.bytes.saturating_add(size);
        let passed = [
            (count.entries > self.limits.entries, "no plugin has so many files"),
            (count.bytes > self.limits.bytes, "no plugin has so many bytes"),
            (path.len() > self.limits.path_length, "no plugin has such long paths"),
            (path.split('/').count() > self.limits.path_depth, "no plugin has so many folders in each other"),
        ];
        if let Some((_, reason)) = passed.into_iter().find(|(passed, _)| *passed) {
            count.excess.get_or_insert(reason);
            self.over.notify_one();
        }
    }
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

    fn remote(url: &str, token: Option<&str>) -> Result<Remote, FetchError> {
        Remote::new(url, Path::new("/repo"), token.and_then(|token| SourceToken::new(token.into())))
    }

    #[test]
    fn an_address_is_a_url_or_a_path_from_the_root() {
        let table = [
            ("https://me:word@git.example:99/a/b.git", "https://git.example:99/a/b.git", "git.example"),
            ("git@git.example:a/b.git", "git@git.example:a/b.git", ""),
            ("../plugins", "/repo/../plugins", ""),
            ("/srv/plugins.git", "/srv/plugins.git", ""),
            ("file:///srv/plugins.git", "file:///srv/plugins.git", ""),
            ("http://[::1]:8/a", "http://[::1]:8/a", "[::1]"),
        ];
        for (url, shown, host) in table {
            let remote = remote(url, None).unwrap();
            assert_eq!((remote.shown().as_str(), remote.host().as_str()), (shown, host));
        }
        assert_eq!(remote("https://git.example:99/a/b.git", None).unwrap().origin(), "https://git.example:99");
        for bad in ["--upload-pack=touch x", "ext::sh -c x"] {
            assert!(matches!(remote(bad, None), Err(FetchError::Address { .. })), "{bad}");
        }
    }

    #[test]
    fn a_token_goes_by_https_only() {
        for good in ["https://git.example/a", "http://127.0.0.1:80/a"] {
            assert!(remote(good, Some("t")).is_ok(), "{good}");
        }
        for bad in
            ["http://git.example/a", "git@git.example:a", "ssh://git.example/a", "/srv/a", "http://127.0.0.1.example/"]
        {
            assert!(matches!(remote(bad, Some("t")), Err(FetchError::Token { .. })), "{bad}");
        }
    }

    #[test]
    fn credentials_in_an_address_leave_it() {
        let login = |url: &str| {
            let remote = remote(url, None).unwrap();
            let login = remote.login.map(|login| (login.user, login.password.expose().to_owned()));
            (remote.url, login)
        };
        let some = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        let clean = "https://git.example/a".to_owned();
        assert_eq!(login("https://me:w%40rd@git.example/a"), (clean.clone(), some("me", "w@rd")));
        assert_eq!(login("https://t0ken@git.example/a"), (clean.clone(), some("x-access-token", "t0ken")));
        assert_eq!(login(&clean), (clean.clone(), None));
        assert_eq!(login("ssh://git@git.example/a"), ("ssh://git@git.example/a".to_owned(), None));
        assert!(matches!(remote("http://me:word@git.example/a", None), Err(FetchError::Token { .. })));
    }

    #[test]
    fn only_a_whole_id_is_a_commit_without_asking() {
        let id = "A".repeat(40);
        assert_eq!(Commit::of_id(&id).unwrap().name(), "a".repeat(40));
        for other in ["main", "v1.0.0", "abcdef0", ""] {
            assert_eq!(Commit::of_id(other), None);
        }
    }
}

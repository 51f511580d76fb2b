//! Tests of git repositories, served by git itself from a folder and over HTTP.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bridge::error::Hint as _;
use bridge::install::Installer;
use tests::http::{HttpServer, Request, Response};
use tests::releases::sha256;

use super::{Machine, checksum, git_source, plugin, release_source, run, script, token, write};

/// Repository with a history.
pub(super) struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    pub(super) fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(Stdio::inherit());
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "T").env(format!("GIT_{role}_EMAIL"), "t@example.org");
        }
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits a plugin that prints a text, and returns the id of the commit.
    pub(super) fn commit(&self, words: &str) -> String {
        write(&self.path().join("pulumi-resource-reef"), &script(words), 0o755);
        self.commit_all()
    }

    pub(super) fn commit_all(&self) -> String {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// Shows: plugins.md#git "A tag takes precedence over a branch of the same name. A commit may be shortened to seven
///   digits."
#[tokio::test]
async fn tag_branch_and_commit_are_resolved() {
    let (machine, repository) = (Machine::new(), Repository::new());
    let first = repository.commit("one");
    repository.git(&["tag", "-a", "v1.0.0", "-m", "annotated"]);
    let second = repository.commit("two");
    repository.git(&["tag", "light"]);
    repository.commit("three");
    repository.git(&["branch", "feature/x"]);
    let fourth = repository.commit("four");
    let cases = [
        ("v1.0.0", "one"),
        ("light", "two"),
        ("feature/x", "three"),
        ("main", "four"),
        (second.as_str(), "two"),
        (&first[..9], "one"),
    ];
    for (revision, words) in cases {
        let package = machine.install(&plugin(git_source(&repository.url(), revision))).await.unwrap();
        assert_eq!(run(&package).await, words, "{revision}");
        assert!(!package.folder().join(".git").exists());
    }
    let package = machine.install(&plugin(git_source(&repository.url(), "main"))).await.unwrap();
    assert_eq!(package.revision(), Some(fourth.as_str()));
    assert_eq!(machine.names("work"), Vec::<String>::new());
}

#[tokio::test]
async fn cached_tag_needs_no_remote_and_branch_is_resolved_again() {
    let (machine, repository) = (Machine::new(), Repository::new());
    repository.commit("one");
    repository.git(&["tag", "v1.0.0"]);
    let (tag, branch) =
        (plugin(git_source(&repository.url(), "v1.0.0")), plugin(git_source(&repository.url(), "main")));
    for plugin in [&tag, &branch] {
        assert_eq!(run(&machine.install(plugin).await.unwrap()).await, "one");
    }
    repository.commit("two");
    assert_eq!(run(&machine.install(&branch).await.unwrap()).await, "two");
    drop(repository);
    assert_eq!(run(&machine.install(&tag).await.unwrap()).await, "one");
    let error = machine.refusal(&branch).await;
    assert!(error.starts_with("git ls-remote failed (exit status 128)"), "{error}");
}

#[tokio::test]
async fn plugin_in_a_subdir_can_use_other_files_of_the_repository() {
    let (machine, repository) = (Machine::new(), Repository::new());
    write(&repository.path().join("plugins/reef/PulumiPlugin.yaml"), b"runtime: python\n", 0o644);
    write(&repository.path().join("plugins/reef/__main__.py"), b"import shared\n", 0o644);
    let shared = b"import sys; print('from', sys.dont_write_bytecode)\n";
    write(&repository.path().join("plugins/reef/shared.py"), shared, 0o644);
    repository.commit_all();
    let mut source = git_source(&repository.url(), "main");
    source.subdir = "plugins/reef".into();
    let first = machine.install(&plugin(source.clone())).await.unwrap();
    assert_eq!(run(&first).await, "from True");
    // Running the package added no files to it.
    machine.take_events();
    source.checksum = checksum(&first.digest().unwrap().to_hex());
    assert_eq!(run(&machine.install(&plugin(source.clone())).await.unwrap()).await, "from True");
    assert_eq!(machine.warnings(), Vec::<String>::new());
    // Another spelling of the folder changes nothing.
    source.subdir = "plugins/./reef/".into();
    assert_eq!(run(&machine.install(&plugin(source.clone())).await.unwrap()).await, "from True");
    // The package can run any file of the repository, so the checksum covers all of it.
    write(&repository.path().join("common.py"), b"", 0o644);
    repository.commit_all();
    assert!(machine.refusal(&plugin(source.clone())).await.starts_with("checksum mismatch"));
    for outside in ["..", "/etc", "plugins/missing", "plugins/reef/shared.py"] {
        source.subdir = PathBuf::from(outside);
        let error = machine.refusal(&plugin(source.clone())).await;
        assert_eq!(error, format!("source.subdir {outside} is not a folder of the repository"));
    }
}

#[tokio::test]
async fn checksum_of_the_executable_is_verified() {
    let (machine, repository) = (Machine::new(), Repository::new());
    repository.commit("one");
    let mut source = git_source(&repository.url(), "main");
    source.checksum = checksum(&sha256(&script("one")));
    for _ in 0..2 {
        assert_eq!(run(&machine.install(&plugin(source.clone())).await.unwrap()).await, "one");
    }
    repository.commit("two");
    let (expected, found) = (sha256(&script("one")), sha256(&script("two")));
    let error = machine.refusal(&plugin(source)).await;
    assert_eq!(error, format!("checksum mismatch: expected sha256:{expected}, got sha256:{found}"));
    assert_eq!(machine.names("packages").len(), 1, "only the old commit");
}

#[tokio::test]
async fn checksum_covers_the_target_of_a_link() {
    let (machine, repository) = (Machine::new(), Repository::new());
    write(&repository.path().join("bin/real"), &script("real"), 0o755);
    write(&repository.path().join("evil/pulumi-resource-reef"), &script("evil"), 0o755);
    std::os::unix::fs::symlink("bin/real", repository.path().join("pulumi-resource-reef")).unwrap();
    std::os::unix::fs::symlink("evil", repository.path().join("provider")).unwrap();
    repository.commit_all();
    let mut source = git_source(&repository.url(), "main");
    source.checksum = checksum(&sha256(&script("real")));
    assert_eq!(run(&machine.install(&plugin(source.clone())).await.unwrap()).await, "real");
    source.subdir = "provider".into();
    let error = machine.refusal(&plugin(source)).await;
    assert_eq!(error, "source.subdir provider is not a folder of the repository");
    // The checksum covers the target's content, not its path.
    write(&repository.path().join("bin/real"), &script("other"), 0o755);
    repository.commit_all();
    let mut source = git_source(&repository.url(), "main");
    source.checksum = checksum(&sha256(&script("real")));
    assert!(machine.refusal(&plugin(source)).await.starts_with("checksum mismatch"));
}

/// Shows: plugins.md#git "Git filters and conversions of line ends are switched off"
#[tokio::test]
async fn git_filters_and_line_end_conversion_are_disabled() {
    let (machine, repository) = (Machine::new(), Repository::new());
    let mark = machine.path("mark");
    let smudge = format!("[filter \"f\"]\n\tsmudge = touch '{}'; sed s/one/two/\n", mark.display());
    write(&machine.path("home/.gitconfig"), smudge.as_bytes(), 0o644);
    write(&repository.path().join(".gitattributes"), b"* filter=f text eol=crlf\n", 0o644);
    repository.git(&["config", "core.autocrlf", "false"]);
    repository.commit("one");
    let mut source = git_source(&repository.url(), "main");
    source.checksum = checksum(&sha256(&script("one")));
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "one");
    assert!(!mark.exists());
}

#[tokio::test]
async fn missing_revision_or_repository_is_reported() {
    let (machine, repository) = (Machine::new(), Repository::new());
    repository.commit("one");
    let url = repository.url();
    let refusal = async |url: &str, revision: &str| machine.refusal(&plugin(git_source(url, revision))).await;
    let hint = "(no token was sent)";
    assert_eq!(refusal(&url, "v9").await, format!("revision \"v9\" not found at {url} {hint}"));
    assert_eq!(refusal(&url, "abcdef0").await, format!("commit \"abcdef0\" not found at {url} {hint}"));
    let id = "1".repeat(40);
    let missing = refusal(&url, &id).await;
    assert_eq!(missing, format!("commit \"{id}\" not found at {url} {hint}"));
    let error = refusal("nowhere", "main").await;
    assert!(error.contains("does not appear to be a git repository"), "{error}");
    machine.assert_empty();
}

#[tokio::test]
async fn link_out_of_the_tree_is_refused() {
    let (machine, repository) = (Machine::new(), Repository::new());
    std::os::unix::fs::symlink("/etc/passwd", repository.path().join("link")).unwrap();
    repository.commit("one");
    let error = machine.refusal(&plugin(git_source(&repository.url(), "main"))).await;
    assert!(error.ends_with("link cannot be covered by a checksum: the link may lead out of the package"), "{error}");
    machine.assert_empty();
}

/// Commits a tree with nested trees, `width` per level; the innermost one has a file, or is empty.
fn commit_bomb(repository: &Repository, levels: usize, width: usize, file: Option<&[u8]>) {
    let mut below = String::new();
    if let Some(file) = file {
        write(&repository.path().join("file"), file, 0o644);
        below = format!("100644 blob {}", repository.git(&["hash-object", "-w", "file"]));
    }
    for _ in 0..levels {
        let names = (0..width).filter(|_| !below.is_empty());
        let entries: String = names.map(|at| format!("{below}\t{at}\n")).collect();
        write(&repository.path().join("entries"), entries.as_bytes(), 0o644);
        let tree = repository.git(&["-c", "alias.make=!git mktree < entries", "make"]);
        below = format!("040000 tree {tree}");
    }
    let tree = below.rsplit(' ').next().unwrap().to_owned();
    let commit = repository.git(&["commit-tree", "-m", "x", &tree]);
    repository.git(&["update-ref", "refs/heads/main", &commit]);
}

/// Shows: plugins.md#what-is-checked "The same size limits apply to a git tree, before its files are written."
#[tokio::test]
async fn oversized_tree_is_refused_before_checkout() {
    let zeros = vec![0; 1 << 20];
    for (levels, width, file, reason) in [
        (9, 10, Some(&b"x"[..]), "it has too many files"),
        (9, 10, None, "it has too many files"),
        (4, 10, Some(&zeros[..]), "it has too many bytes"),
        (100, 1, Some(&b"x"[..]), "one of its paths has too many components"),
    ] {
        let (machine, repository) = (Machine::new(), Repository::new());
        commit_bomb(&repository, levels, width, file);
        let error = machine.refusal(&plugin(git_source(&repository.url(), "main"))).await;
        assert!(error.starts_with("commit ") && error.ends_with(&format!(" is too large: {reason}")), "{error}");
        machine.assert_empty();
    }
}

#[tokio::test]
async fn git_hooks_are_not_run() {
    let (machine, repository) = (Machine::new(), Repository::new());
    let mark = machine.path("mark");
    let touch = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    write(&machine.path("home/hooks/post-checkout"), touch.as_bytes(), 0o755);
    let config = format!("[core]\n\thooksPath = {}\n", machine.path("home/hooks").display());
    write(&machine.path("home/.gitconfig"), config.as_bytes(), 0o644);
    repository.commit("one");
    machine.install(&plugin(git_source(&repository.url(), "main"))).await.unwrap();
    assert!(!mark.exists());
}

#[tokio::test]
async fn missing_git_program_is_reported() {
    let machine = Machine::new();
    let mut settings = machine.settings();
    settings.environment = bridge::process::HostEnvironment::new([("PATH".into(), "/nowhere".into())]);
    let source = bridge::install::GitRepositories::new(settings);
    let declared = git_source("https://x.example/y", "main");
    let error = Installer::new(&()).install(&source, plugin(declared.clone()).names(), &declared).await;
    assert_eq!(error.unwrap_err().to_string(), "git is missing");
}

/// Starts a server with `git http-backend` that may require a password.
pub(super) async fn serve_over_http(root: PathBuf, password: Option<&'static str>) -> HttpServer {
    HttpServer::start(move |request: Request| {
        let root = root.clone();
        async move {
            // The credentials are `x-access-token:PASSWORD`.
            let expected = password.map(|password| format!("Basic {password}"));
            if expected.is_some() && request.header("authorization") != expected.as_deref() {
                return Response::new(401, "").with("WWW-Authenticate", "Basic realm=\"git\"");
            }
            tokio::task::spawn_blocking(move || cgi(&root, &request)).await.unwrap()
        }
    })
    .await
    .unwrap()
}

fn cgi(root: &Path, request: &Request) -> Response {
    use std::io::Write as _;
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let header = |name| request.header(name).unwrap_or_default().to_owned();
    let mut git = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(&request.body).unwrap();
    let output = git.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let mut response = Response::new(200, &output[end + 4..]);
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ").unwrap() {
            ("Status", status) => response.status = status[..3].parse().unwrap(),
            (name, value) => response = response.with(name, value),
        }
    }
    response
}

#[tokio::test]
async fn package_is_fetched_over_http() {
    let (machine, repository) = (Machine::new(), Repository::new());
    let first = repository.commit("one");
    repository.commit("two");
    let server = serve_over_http(repository.path().to_owned(), None).await;
    let url = format!("{}/.git", server.url());
    for (revision, words) in [("main", "two"), (first.as_str(), "one")] {
        assert_eq!(run(&machine.install(&plugin(git_source(&url, revision))).await.unwrap()).await, words);
    }
    drop(server);
    // Without a server, the last known commit of the branch is used.
    assert_eq!(run(&machine.install(&plugin(git_source(&url, "main"))).await.unwrap()).await, "two");
    let [warning] = machine.warnings().try_into().unwrap();
    assert!(warning.ends_with("the last known one, is used"), "{warning}");
}

#[tokio::test]
async fn token_is_sent_to_its_own_host_only() {
    let (machine, repository) = (Machine::new(), Repository::new());
    repository.commit("secret");
    // The base64 text is `x-access-token:t0ken`.
    let server = serve_over_http(repository.path().to_owned(), Some("eC1hY2Nlc3MtdG9rZW46dDBrZW4=")).await;
    let url = format!("{}/.git", server.url());
    let error = machine.refusal(&plugin(git_source(&url, "main"))).await;
    assert!(error.contains("Authentication failed"), "{error}");
    let mut source = git_source(&url, "main");
    source.token = token("t0ken");
    assert_eq!(run(&machine.install(&plugin(source.clone())).await.unwrap()).await, "secret");
    // A token in the URL is accepted as well, and appears on no command line.
    let login = url.replace("http://", "http://x-access-token:t0ken@");
    assert_eq!(run(&machine.install(&plugin(git_source(&login, "main"))).await.unwrap()).await, "secret");
    // The token is not sent to the target of a redirect.
    let other_host = serve_over_http(repository.path().to_owned(), Some("never")).await;
    let target = format!("{}/.git", other_host.url());
    let redirecting_host = HttpServer::start(move |request: Request| {
        let rest = request.path.strip_prefix("/.git").unwrap_or_default().to_owned();
        let location = format!("{target}{rest}");
        async move { Response::new(302, "").with("Location", location) }
    });
    let redirecting_host = redirecting_host.await.unwrap();
    source.url = format!("{}/.git", redirecting_host.url());
    machine.install(&plugin(source)).await.unwrap_err();
    assert!(!other_host.requests().is_empty());
    let authorizations: Vec<_> =
        other_host.requests().iter().filter_map(|request| request.header("authorization").map(str::to_owned)).collect();
    assert!(authorizations.iter().all(|authorization| !authorization.contains("dDBrZW4")), "{authorizations:?}");
}

/// Shows: plugins.md#git "Remote helpers, such as `ext::`, are refused before git runs"
#[tokio::test]
async fn remote_helper_is_refused_before_git_is_started() {
    let mut machine = Machine::new();
    let mark = machine.path("mark");
    write(&machine.path("bin/git"), format!("#!/bin/sh\ntouch '{}'\n", mark.display()).as_bytes(), 0o755);
    machine.programs = Some(machine.path("bin"));
    for url in ["ext::sh -c 'touch x'", "ext::sh -c 'touch x' https://git.example/a", "ext://sh", "fd::3", "ftp://h/a"]
    {
        let error = machine.refusal(&plugin(git_source(url, "main"))).await;
        assert!(error.starts_with("cannot use the address "), "{error}");
        assert!(error.ends_with("remote helpers are not supported"), "{error}");
    }
    assert!(!mark.exists());
}

/// Shows: plugins.md#git "also if git's own settings rewrite an address to one"
#[tokio::test]
async fn remote_helper_is_not_run_for_a_rewritten_address() {
    let machine = Machine::new();
    let mark = machine.path("mark");
    let config = format!(
        "[protocol]\n\tallow = always\n[url \"ext::touch {} #\"]\n\tinsteadOf = https://git.example/\n",
        mark.display()
    );
    write(&machine.path("home/.gitconfig"), config.as_bytes(), 0o644);
    let error = machine.refusal(&plugin(git_source("https://git.example/a", "main"))).await;
    assert!(error.contains("transport 'ext' not allowed"), "{error}");
    assert!(!mark.exists());
}

#[tokio::test]
async fn git_aborts_slow_downloads_and_uses_declared_transports_only() {
    for (url, allowed) in [
        ("https://git.example/a", "https:ssh:file"),
        ("http://127.0.0.1:9/a", "https:ssh:file:http"),
        ("git@git.example:a", "https:ssh:file"),
    ] {
        let mut machine = Machine::new();
        let log = machine.path("log");
        write(&machine.path("bin/git"), format!("#!/bin/sh\nenv > '{}'\nexit 1\n", log.display()).as_bytes(), 0o755);
        machine.programs = Some(machine.path("bin"));
        machine.refusal(&plugin(git_source(url, "main"))).await;
        let environment = std::fs::read_to_string(log).unwrap();
        let variable = |name: &str| environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let setting = |name: &str| {
            let count = variable("GIT_CONFIG_COUNT").unwrap().parse::<usize>().unwrap();
            let at = (0..count).find(|at| variable(&format!("GIT_CONFIG_KEY_{at}")) == Some(name)).unwrap();
            variable(&format!("GIT_CONFIG_VALUE_{at}")).unwrap().to_owned()
        };
        assert_eq!((setting("http.lowSpeedLimit"), setting("http.lowSpeedTime")), ("1024".to_owned(), "60".to_owned()));
        assert_eq!(variable("GIT_ALLOW_PROTOCOL"), Some(allowed));
    }
}

#[tokio::test]
async fn address_without_encryption_and_checksum_is_refused_before_any_request() {
    let machine = Machine::new();
    for url in ["http://git.example/a", "git://git.example/a"] {
        let error = machine.install(&plugin(git_source(url, "main"))).await.unwrap_err();
        let expected =
            format!("{url} is not encrypted, and no checksum is declared: the plugin could be replaced on its way");
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().contains("`insecure: true`"));
    }
    let error = machine.refusal(&plugin(release_source("http://git.example/api", "v1.0.0"))).await;
    assert!(error.starts_with("http://git.example/api is not encrypted"), "{error}");
}

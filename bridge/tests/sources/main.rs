//! Tests of local packages: verification, private copies, runtimes.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bridge::install::{InstallError, Installer, LocalPackages, Verification, VerifiedPackage, local_digest};
use bridge::plugin::{
    Checksum, LocalSource, Parameters, PluginConfig, PluginName, PluginNames, PluginSource, Sha256Digest,
};
use bridge::process::{HostEnvironment, OutputStream, ProcessSandbox, ProcessSpec, Spawner};

/// Repository with one plugin, and a folder for private copies.
struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("repo")).unwrap();
        Self { folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("repo").join(path)
    }

    fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::remove_file(&path).ok();
        fs::write(&path, content).unwrap();
        path
    }

    fn script(&self, path: &str, content: &str) -> PathBuf {
        let path = self.write(path, &format!("#!/bin/sh\n{content}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn packages(&self, path: &str) -> LocalPackages {
        LocalPackages {
            root: self.folder.path().join("repo"),
            cache: self.folder.path().join("cache"),
            environment: HostEnvironment::new([("PATH".into(), path.into())]),
            spawner: Spawner::unsupervised(),
            verification: Verification::default(),
            is_offline: false,
        }
    }

    async fn resolve(&self, path: &str, checksum: Option<&str>) -> Result<VerifiedPackage, InstallError> {
        resolve(&self.packages("/usr/bin:/bin"), &source(path, checksum)).await
    }

    /// Returns the number of private copies that exist.
    fn copies(&self) -> usize {
        fs::read_dir(self.folder.path().join("cache/work")).map_or(0, Iterator::count)
    }
}

fn source(path: &str, checksum: Option<&str>) -> LocalSource {
    LocalSource { checksum: checksum.map(|digest| Checksum::One(digest.parse().unwrap())), ..LocalSource::new(path) }
}

/// Resolves the source of the plugin `files`.
async fn resolve(packages: &LocalPackages, source: &LocalSource) -> Result<VerifiedPackage, InstallError> {
    let files: PluginName = "files".parse().unwrap();
    Installer::new(&())
        .install(packages, PluginNames { plugin: &files, package: &files, accepts_only_program: false }, source)
        .await
}

/// Returns the digest of the plugin `files` at a path.
async fn digest(root: &Path, path: &str) -> Result<Sha256Digest, InstallError> {
    let files: PluginName = "files".parse().unwrap();
    local_digest(
        root,
        PluginNames { plugin: &files, package: &files, accepts_only_program: false },
        &source(path, None),
    )
    .await
}

/// Returns the digest that `sha256sum` prints.
fn sha256sum(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap().stdout;
    String::from_utf8(output).unwrap()[..64].to_owned()
}

/// Runs a package like the launcher, and returns its output.
async fn run(package: &VerifiedPackage) -> String {
    let spec = ProcessSpec {
        program: package.program().to_owned(),
        arguments: package.arguments().to_vec(),
        directory: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        sandbox: ProcessSandbox::None,
    };
    let process = Spawner::unsupervised().spawn(&spec, Arc::new(())).unwrap();
    process.wait_for_exit().await;
    process.wait_for_output_end().await;
    process.last_lines(OutputStream::Stdout).join("\n")
}

#[tokio::test]
async fn plugin_without_a_checksum_runs_in_its_own_folder() {
    let repository = Repository::new();
    let script = repository.script("plugins/files/pulumi-resource-files", "echo $0");
    for path in ["plugins/files", "plugins/files/pulumi-resource-files"] {
        let package = repository.resolve(path, None).await.unwrap();
        assert_eq!(run(&package).await, fs::canonicalize(&script).unwrap().to_str().unwrap());
        assert_eq!((package.digest(), package.version()), (None, None));
    }
    assert_eq!(repository.copies(), 0);
}

#[tokio::test]
async fn wrong_checksum_executes_nothing_and_leaves_no_copy() {
    let repository = Repository::new();
    let mark = repository.path("mark");
    let script = repository.script("x/pulumi-resource-files", &format!("touch '{}'", mark.display()));
    let wrong = "0".repeat(64);
    for path in ["x", "x/pulumi-resource-files"] {
        let error = repository.resolve(path, Some(&wrong)).await.unwrap_err();
        let found = sha256sum(&script);
        assert_eq!(error.to_string(), format!("checksum mismatch: expected sha256:{wrong}, got sha256:{found}"));
    }
    assert!(!mark.exists());
    assert_eq!(repository.copies(), 0);
}

#[tokio::test]
async fn file_that_is_swapped_after_verification_is_not_run() {
    let repository = Repository::new();
    let script = repository.script("x/pulumi-resource-files", "echo checked");
    let package = repository.resolve("x", Some(&sha256sum(&script))).await.unwrap();
    assert_eq!(package.digest().map(Sha256Digest::to_hex), Some(sha256sum(&script)));
    repository.script("x/pulumi-resource-files", "echo swapped");
    assert_eq!(run(&package).await, "checked");

    let private = package.program().parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(package.program()).unwrap().permissions().mode() & 0o222, 0);
    drop(package);
    assert!(private.exists(), "it is kept");
}

/// Shows: plugins.md#local "so that a later start compares only what the file system says about the original"
#[tokio::test]
async fn verified_copy_is_kept_until_the_original_changes() {
    let repository = Repository::new();
    let script = repository.script("x/pulumi-resource-files", "echo 1");
    repository.write("py/PulumiPlugin.yaml", "runtime: python");
    repository.write("py/__main__.py", "1");
    let root = repository.folder.path().join("repo");
    let resolve = async |path: &str, digest: Sha256Digest| {
        let package = repository.resolve(path, Some(&digest.to_hex())).await;
        package.map(|package| package.folder().to_owned())
    };
    for (path, file) in [("x", script), ("py", repository.path("py/__main__.py"))] {
        let digest = digest(&root, path).await.unwrap();
        let first = resolve(path, digest).await.unwrap();
        assert_eq!(resolve(path, digest).await.unwrap(), first, "{path}");
        // The same size, and the time of before.
        let before = fs::metadata(&file).unwrap();
        let changed = fs::read_to_string(&file).unwrap().replace('1', "2");
        fs::write(&file, changed).unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(before.modified().unwrap()).unwrap();
        let error = resolve(path, digest).await.unwrap_err();
        assert!(matches!(error, InstallError::ChecksumMismatch { .. }), "{path}: {error}");
        let other = self::digest(&root, path).await.unwrap();
        assert_ne!(resolve(path, other).await.unwrap(), first, "{path}");
        // A copy that was changed is not run.
        let copied = first.join(file.file_name().unwrap());
        fs::set_permissions(&copied, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&copied, "evil").unwrap();
        fs::write(&file, fs::read_to_string(&file).unwrap().replace('2', "1")).unwrap();
        let again = resolve(path, digest).await.unwrap();
        assert_ne!(fs::read_to_string(again.join(file.file_name().unwrap())).unwrap(), "evil");
    }
    assert_eq!(repository.copies(), 0, "nothing is left in the folder for work");
}

#[tokio::test]
async fn verified_executable_finds_the_other_files_of_its_folder() {
    let repository = Repository::new();
    repository.write("x/data.txt", "neighbour");
    let script = repository.script("x/pulumi-resource-files", r#"cat "$(dirname "$0")/data.txt""#);
    let package = repository.resolve("x", Some(&sha256sum(&script))).await.unwrap();
    assert_eq!(run(&package).await, "neighbour");
}

#[tokio::test]
async fn executable_with_the_name_of_the_package_is_found() {
    let repository = Repository::new();
    repository.script("x/pulumi-resource-disk", "echo disk");
    let (plugin, package): (PluginName, PluginName) = ("files".parse().unwrap(), "disk".parse().unwrap());
    let names = PluginNames { plugin: &plugin, package: &package, accepts_only_program: false };
    let package = Installer::new(&()).install(&repository.packages("/bin"), names, &source("x", None)).await.unwrap();
    assert_eq!(run(&package).await, "disk");
}

/// Shows: plugins.md#parameters "in each kind of source the only program at the top counts where none is called after the plugin, the
///   package or the repository"
#[tokio::test]
async fn only_program_is_that_of_a_plugin_with_parameters() {
    let repository = Repository::new();
    repository.script("x/pulumi-resource-many", "echo many");
    repository.write("x/README", "");
    let source = source("x", None);
    let error = resolve(&repository.packages("/bin"), &source).await.unwrap_err();
    assert!(matches!(error, InstallError::NoPlugin { .. }), "{error}");
    let mut plugin = PluginConfig::new("files".parse().unwrap(), PluginSource::Local(source.clone()));
    plugin.parameters = Some(Parameters::new(vec!["a".to_owned()], &plugin.source, &plugin.package));
    let install = async || {
        let packages = repository.packages("/bin");
        Installer::new(&()).install(&packages, plugin.names(), &source).await
    };
    assert_eq!(run(&install().await.unwrap()).await, "many");
    repository.script("x/pulumi-resource-other", "echo other");
    assert!(matches!(install().await.unwrap_err(), InstallError::NoPlugin { .. }));
    repository.script("x/pulumi-resource-files", "echo files");
    assert_eq!(run(&install().await.unwrap()).await, "files");
}

#[tokio::test]
async fn checksum_for_other_platforms_only_is_refused() {
    let repository = Repository::new();
    repository.script("x", "");
    let source = LocalSource { checksum: Some(Checksum::ByPlatform(Default::default())), ..LocalSource::new("x") };
    let error = resolve(&repository.packages("/bin"), &source).await.unwrap_err();
    assert!(matches!(error, InstallError::NoChecksum { .. }), "{error}");
}

#[tokio::test]
async fn missing_plugin_is_reported() {
    let repository = Repository::new();
    let error = repository.resolve("nowhere", None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot find plugin {}", repository.path("nowhere").display()));
    repository.write("x/README", "");
    let error = repository.resolve("x", None).await.unwrap_err().to_string();
    assert!(error.ends_with("x holds neither pulumi-resource-files nor PulumiPlugin.yaml"), "{error}");
}

/// Writes a Python plugin that prints a text.
fn python(repository: &Repository) {
    repository.write("py/PulumiPlugin.yaml", "runtime: python\n");
    repository.write("py/__main__.py", "import helper\nprint(helper.word)\n");
    repository.write("py/helper.py", "word = 'checked'\n");
}

/// Returns the digest of a folder, computed by a shell.
fn folder_digest(folder: &Path) -> String {
    let script = "find . -type f -not -path './.git/*' | sed 's|^./||' | xargs sha256sum | LC_ALL=C sort | sha256sum";
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[tokio::test]
async fn verified_copy_of_a_folder_is_run() {
    let repository = Repository::new();
    python(&repository);
    repository.write("py/.git/HEAD", "not covered");
    let digest = folder_digest(&repository.path("py"));
    let package = repository.resolve("py", Some(&digest)).await.unwrap();
    assert_eq!(package.digest().map(Sha256Digest::to_hex), Some(digest.clone()));
    repository.write("py/helper.py", "word = 'swapped'\n");
    assert_eq!(run(&package).await, "checked");
    assert!(!package.folder().join(".git").exists());

    repository.write("py/new.py", "");
    let error = repository.resolve("py", Some(&digest)).await.unwrap_err();
    assert!(matches!(error, InstallError::ChecksumMismatch { .. }), "{error}");
    assert!(error.to_string().ends_with("; it differs in helper.py (changed), new.py (new)"), "{error}");
    fs::remove_file(repository.path("py/new.py")).unwrap();
    let package = repository.resolve("py", None).await.unwrap();
    assert_eq!(run(&package).await, "swapped");
    assert_eq!(package.folder(), fs::canonicalize(repository.path("py")).unwrap());
}

/// Shows: plugins.md#what-is-checked "except the folders `__pycache__`, which are not used"
#[tokio::test]
async fn compiled_files_of_python_are_neither_covered_nor_copied() {
    let repository = Repository::new();
    python(&repository);
    let before = digest(&repository.path(""), "py").await.unwrap();
    repository.write("py/sub/__pycache__/helper.cpython-312.pyc", "compiled");
    repository.write("py/__pycache__/helper.cpython-312.pyc", "compiled");
    assert_eq!(digest(&repository.path(""), "py").await.unwrap(), before);
    let package = repository.resolve("py", Some(&before.to_hex())).await.unwrap();
    assert!(!package.folder().join("__pycache__").exists());
    // A file of that name is covered.
    repository.write("other/PulumiPlugin.yaml", "runtime: python\n");
    let empty = digest(&repository.path(""), "other").await.unwrap();
    repository.write("other/__pycache__", "text");
    assert_ne!(digest(&repository.path(""), "other").await.unwrap(), empty);
}

/// Shows: plugins.md#what-is-checked "The environment is used where it is"
#[tokio::test]
async fn virtual_environment_is_used_where_it_is_and_not_covered() {
    let repository = Repository::new();
    python(&repository);
    repository.write("py/PulumiPlugin.yaml", "runtime: {name: python, options: {virtualenv: venv}}");
    let before = digest(&repository.path(""), "py").await.unwrap();
    repository.write("py/venv/pyvenv.cfg", "home = /usr/bin\n");
    repository.write("py/venv/bin/python", "of this machine");
    assert_eq!(digest(&repository.path(""), "py").await.unwrap(), before);
    let package = repository.resolve("py", Some(&before.to_hex())).await.unwrap();
    assert!(!package.folder().join("venv").exists());
    assert_eq!(package.program(), fs::canonicalize(repository.path("py/venv/bin/python")).unwrap());
    // A folder of that name that is no environment, and an environment further down, are covered.
    for file in ["other/venv/bin/python", "other/lib/venv/pyvenv.cfg"] {
        repository.write("other/PulumiPlugin.yaml", "runtime: python\n");
        let before = digest(&repository.path(""), "other").await.unwrap();
        repository.write(file, "text");
        assert_ne!(digest(&repository.path(""), "other").await.unwrap(), before, "{file}");
    }
}

#[tokio::test]
async fn link_is_covered_by_the_checksum_and_must_stay_inside() {
    let repository = Repository::new();
    python(&repository);
    symlink("helper.py", repository.path("py/alias.py")).unwrap();
    let wrong = "0".repeat(64);
    let found = |error: InstallError| match error {
        InstallError::ChecksumMismatch { found, .. } => found.to_hex(),
        other => panic!("{other}"),
    };
    let first = found(repository.resolve("py", Some(&wrong)).await.unwrap_err());
    fs::remove_file(repository.path("py/alias.py")).unwrap();
    symlink("__main__.py", repository.path("py/alias.py")).unwrap();
    assert_ne!(first, found(repository.resolve("py", Some(&wrong)).await.unwrap_err()));

    let inside = fs::canonicalize(repository.path("py/helper.py")).unwrap();
    // The target passes through another link that stays inside.
    fs::create_dir(repository.path("py/sub")).unwrap();
    symlink("..", repository.path("py/sub/up")).unwrap();
    for target in ["../elsewhere.py".as_ref(), "sub/up/../elsewhere.py".as_ref(), inside.as_path()] {
        fs::remove_file(repository.path("py/alias.py")).unwrap();
        symlink(target, repository.path("py/alias.py")).unwrap();
        let error = repository.resolve("py", Some(&wrong)).await.unwrap_err();
        assert!(matches!(error, InstallError::NotHashable { .. }), "{error}");
    }
}

/// Shows: plugins.md#what-is-checked "the line of a link is `<sha256> @<path>`"
/// Shows: plugins.md#what-is-checked "`sc` refuses the link if another account can change what it leads to"
#[tokio::test]
async fn absolute_link_leads_only_to_what_other_accounts_cannot_change() {
    let repository = Repository::new();
    python(&repository);
    repository.write("tools/helper.py", "");
    let outside = fs::canonicalize(repository.path("tools/helper.py")).unwrap();
    symlink(&outside, repository.path("py/alias.py")).unwrap();
    let wrong = "0".repeat(64);
    let error = repository.resolve("py", Some(&wrong)).await.unwrap_err();
    assert!(matches!(error, InstallError::ChecksumMismatch { .. }), "{error}");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o666)).unwrap();
    let error = repository.resolve("py", Some(&wrong)).await.unwrap_err();
    assert!(matches!(error, InstallError::NotHashable { .. }), "{error}");
}

/// Shows: plugins.md#what-is-checked "`sc plugin install` prints each of these values, and `sc plugin ls` those of
///   local plugins"
#[tokio::test]
async fn digest_of_a_local_plugin_is_the_checksum_that_pins_it() {
    let repository = Repository::new();
    python(&repository);
    repository.script("bin/pulumi-resource-files", "echo");
    symlink("__main__.py", repository.path("py/alias.py")).unwrap();
    let root = repository.folder.path().join("repo");
    for path in ["bin", "bin/pulumi-resource-files", "py"] {
        let digest = digest(&root, path).await.unwrap();
        let package = repository.resolve(path, Some(&digest.to_hex())).await.unwrap();
        assert_eq!(package.digest(), Some(digest), "{path}");
    }
    assert_eq!(repository.copies(), 0, "a digest needs no copy");
    symlink("../bin", repository.path("py/outside")).unwrap();
    let error = digest(&root, "py").await.unwrap_err();
    assert!(matches!(error, InstallError::NotHashable { .. }), "{error}");
}

#[tokio::test]
async fn copy_of_a_folder_into_itself_is_refused() {
    let repository = Repository::new();
    repository.write("PulumiPlugin.yaml", "runtime: python");
    let packages = LocalPackages { cache: repository.path("cache"), ..repository.packages("/usr/bin") };
    let error = resolve(&packages, &source(".", Some(&"0".repeat(64)))).await.unwrap_err();
    assert!(error.to_string().ends_with("the folder for private copies is inside it"), "{error}");
}

/// Shows: plugin-authoring.md#trying-it "If `node_modules` or the virtual environment is missing, the error names the command that makes it"
#[tokio::test]
async fn missing_dependency_is_reported_with_the_command_that_installs_it() {
    let repository = Repository::new();
    repository.write("py/PulumiPlugin.yaml", "runtime: {name: python, options: {virtualenv: venv}}");
    repository.write("py/requirements.txt", "pulumi~=3.0");
    repository.write("node/PulumiPlugin.yaml", "runtime: nodejs");
    repository.write("node/package.json", r#"{"dependencies": {"@pulumi/pulumi": "3"}, "main": "bin"}"#);
    repository.write("go/PulumiPlugin.yaml", "runtime: go");
    repository.script("bin/node", "");
    let path = repository.path("bin");
    let packages = repository.packages(path.to_str().unwrap());
    let root = fs::canonicalize(repository.path("")).unwrap().display().to_string();
    let cases = [
        (
            "py",
            format!(
                "{root}/py/venv is missing. To provide it: python3 -m venv {root}/py/venv && {root}/py/venv/bin/pip install -r {root}/py/requirements.txt"
            ),
        ),
        ("node", format!("{root}/node/node_modules is missing. To provide it: npm install --prefix {root}/node")),
        (
            "go",
            "go is missing. To provide it: install Go and put it on PATH, or build the plugin beforehand".to_owned(),
        ),
    ];
    for (path, expected) in cases {
        assert_eq!(resolve(&packages, &source(path, None)).await.unwrap_err().to_string(), expected);
    }
    for folder in ["n$(id)", "p y"] {
        fs::rename(repository.path(if folder == "p y" { "py" } else { "node" }), repository.path(folder)).unwrap();
    }
    let command = async |path| resolve(&packages, &source(path, None)).await.unwrap_err().to_string();
    assert!(command("n$(id)").await.ends_with(&format!("npm install --prefix '{root}/n$(id)'")));
    let of_python = command("p y").await;
    let expected = format!(
        "python3 -m venv '{root}/p y/venv' && '{root}/p y/venv/bin/pip' install -r '{root}/p y/requirements.txt'"
    );
    assert!(of_python.ends_with(&expected), "{of_python}");
    fs::remove_file(repository.path("p y/requirements.txt")).unwrap();
    let of_python = command("p y").await;
    assert!(of_python.ends_with("/p y/venv/bin/pip' install pulumi"), "{of_python}");
    fs::rename(repository.path("n$(id)"), repository.path("node")).unwrap();
    fs::create_dir(repository.path("node/node_modules")).unwrap();
    let error = resolve(&packages, &source("node", None)).await.unwrap_err().to_string();
    assert_eq!(error, format!("{root}/node/bin is missing. To provide it: npm run build --prefix {root}/node"));
    repository.write("node/bin/index.js", "");
    let package = resolve(&packages, &source("node", None)).await.unwrap();
    assert_eq!(package.arguments(), [std::ffi::OsString::from(format!("{root}/node/bin/index.js"))]);
}

/// Shows: plugin-authoring.md#go "If there is no such program, `sc` runs `go build` for a local folder"
#[tokio::test]
async fn go_plugin_is_built_unless_its_program_exists() {
    let repository = Repository::new();
    repository.write("go/PulumiPlugin.yaml", "runtime: go");
    // Fake toolchain: `go build -o FILE .`
    repository.script(
        "bin/go",
        r#"[ "$1 $2 $4" = "build -o ." ] && printf '#!/bin/sh\necho built\n' >"$3" && /bin/chmod +x "$3""#,
    );
    let packages = repository.packages(repository.path("bin").to_str().unwrap());
    let package = resolve(&packages, &source("go", None)).await.unwrap();
    assert_eq!(run(&package).await, "built");
    repository.script("bin/go", "echo no such module >&2; exit 3");
    let error = resolve(&packages, &source("go", None)).await.unwrap_err().to_string();
    assert!(error.contains("go build -o ") && error.ends_with("(exit status 3): no such module"), "{error}");
    repository.script("go/pulumi-resource-files", "echo there");
    assert_eq!(run(&resolve(&packages, &source("go", None)).await.unwrap()).await, "there");
}

#[tokio::test]
async fn unsupported_runtime_is_refused() {
    let repository = Repository::new();
    repository.write("x/PulumiPlugin.yaml", "runtime: dotnet");
    let error = repository.resolve("x", None).await.unwrap_err();
    assert!(matches!(error, InstallError::Manifest { .. }), "{error}");
}

#[tokio::test]
async fn plugin_that_requires_another_engine_version_is_refused() {
    let repository = Repository::new();
    repository.write("x/PulumiPlugin.yaml", "runtime: nodejs\nrequiredPulumiVersion: '>=4.0.0'");
    let error = repository.resolve("x", None).await.unwrap_err();
    assert_eq!(error.to_string(), "it requires Pulumi >=4.0.0, but sc is compatible with Pulumi 3.260.0");
}

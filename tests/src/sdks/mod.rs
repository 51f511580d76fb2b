//! Pulumi SDKs and other real tools for the interop suites, installed from public registries. The first test that needs
//! a list of packages installs it into `target/interop`.
//!
//! Input: names of packages, sources of programs. Output: paths of interpreters and programs. Excluded: running
//! them. To install the newest versions, delete `target/interop`.

mod pulumi_cli;
mod sdk_plugin;
mod test_macro;

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use pulumi_cli::PulumiCli;
pub use sdk_plugin::{Sdk, SdkPlugin};

use crate::commands::run;

/// Python with packages, in which programs can run.
#[derive(Clone, Debug)]
pub struct PythonVenv {
    folder: PathBuf,
}

impl PythonVenv {
    /// Returns the path of the interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }

    /// Returns the folder of the interpreter from which the environment was made.
    ///
    /// # Errors
    /// Returns an error if the interpreter does not run.
    pub fn base(&self) -> io::Result<PathBuf> {
        let printed = run(Command::new(self.python()).args(["-c", "import sys; print(sys.base_prefix, end='')"]))?;
        Ok(PathBuf::from(OsString::from_vec(printed)))
    }

    /// Returns the folder of the environment, for `PULUMI_RUNTIME_VIRTUALENV` and the like.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns a virtual environment with the packages, given in pip's format (`pulumi>=3.272.0`).
///
/// # Errors
/// Returns an error if `python3` is missing or fails, or the packages cannot be installed; it contains the command's
/// output.
pub fn python_venv(name: &str, packages: &[&str]) -> io::Result<PythonVenv> {
    let version = run(Command::new("python3").arg("--version"))?;
    let folder = install_once(name, (packages, version), |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let python = PythonVenv { folder: folder.to_owned() }.python();
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(python).args(pip).args(packages)).map(drop)
    })?;
    Ok(PythonVenv { folder })
}

/// Node with packages, in which programs can run.
#[derive(Clone, Debug)]
pub struct NodeModules {
    folder: PathBuf,
}

impl NodeModules {
    /// Returns the folder that only contains the program `node`, to be the first on PATH.
    pub fn bin(&self) -> PathBuf {
        self.folder.join("node_modules/node/bin")
    }

    /// Returns the folder `node_modules`.
    pub fn folder(&self) -> PathBuf {
        self.folder.join("node_modules")
    }
}

/// Returns a Node of the major version with the packages, given in npm's format (`@pulumi/pulumi@^3.270.0`).
///
/// # Errors
/// Returns an error if `npm` is missing or fails, or the packages cannot be installed; it contains the command's
/// output.
pub fn node_modules(name: &str, major_version: u32, packages: &[&str]) -> io::Result<NodeModules> {
    let folder = install_once(name, (packages, major_version), |folder| {
        fs::create_dir_all(folder)?;
        // Without this file npm looks for a package in the parent folders.
        fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
        let node = NodeModules { folder: folder.to_owned() };
        let npm = || {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel", "error"]).current_dir(folder);
            npm
        };
        run(npm().arg(format!("node@{major_version}")))?;
        // npm selects packages that run with the Node that runs npm.
        run(npm().args(packages).env("PATH", first_on_path(&node.bin())?)).map(drop)
    })?;
    Ok(NodeModules { folder })
}

/// Returns PATH with one more folder in front.
///
/// # Errors
/// Returns an error if the folder's name cannot be part of PATH.
pub fn first_on_path(folder: &Path) -> io::Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(io::Error::other)
}

/// Returns the program built from a folder with a `go.mod` and a `go.sum`.
///
/// # Errors
/// Returns an error if `go` is missing or fails, or modules cannot be fetched; it contains the command's output.
pub fn go_program(name: &str, sources: &Path) -> io::Result<PathBuf> {
    let (content, _) = go_sources(sources)?;
    let folder = install_once(name, content, |folder| {
        run(Command::new("go").arg("build").arg("-o").arg(folder.join(name)).arg(".").current_dir(sources)).map(drop)
    })?;
    Ok(folder.join(name))
}

/// Same as [`go_program`], with another version of one module (`github.com/hashicorp/go-plugin@v1.4.3`) than the `go.mod`
/// requires.
///
/// # Errors
/// Returns the errors of [`go_program`].
pub fn go_program_with(name: &str, sources: &Path, module: &str) -> io::Result<PathBuf> {
    let (content, files) = go_sources(sources)?;
    let folder = install_once(name, (content, module), |folder| {
        let copy = folder.join("sources");
        fs::create_dir_all(&copy)?;
        for file in files {
            fs::copy(&file, copy.join(file.file_name().unwrap_or_default()))?;
        }
        run(Command::new("go").args(["mod", "edit", "-require", module]).current_dir(&copy))?;
        let build = ["build", "-mod=mod", "-o", "../", "."];
        run(Command::new("go").args(build).current_dir(&copy)).map(drop)
    })?;
    Ok(folder.join(name))
}

/// Returns the program of a package in one of the modules that a folder's `go.mod` requires, with flags for the linker.
///
/// # Errors
/// Returns the errors of [`go_program`].
pub fn go_package_program(package: &str, sources: &Path, link_flags: &str) -> io::Result<PathBuf> {
    let name = package.rsplit('/').next().unwrap_or(package);
    let (content, _) = go_sources(sources)?;
    let folder = install_once(name, (content, package, link_flags), |folder| {
        let mut build = Command::new("go");
        build.args(["build", "-ldflags", link_flags, "-o"]).arg(folder.join(name)).arg(package);
        run(build.current_dir(sources)).map(drop)
    })?;
    Ok(folder.join(name))
}

/// Returns the version of `go` and the content of the files of a folder, and their paths.
fn go_sources(sources: &Path) -> io::Result<(Vec<u8>, Vec<PathBuf>)> {
    let mut content = run(Command::new("go").arg("version"))?;
    let mut files = fs::read_dir(sources)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    for file in &files {
        content.extend(fs::read(file)?);
    }
    Ok((content, files))
}

/// Returns the program of a package in a published module, by the name of the package and the version of the module.
///
/// # Errors
/// Returns an error if `go` is missing or fails, or the module cannot be fetched; it contains the command's output.
pub fn go_module_program(package: &str, version: &str) -> io::Result<PathBuf> {
    let name = package.rsplit('/').next().unwrap_or(package);
    let go = run(Command::new("go").arg("version"))?;
    let folder = install_once(name, (package, version, go), |folder| {
        let package = format!("{package}@{version}");
        run(Command::new("go").args(["install", &package]).env("GOBIN", folder)).map(drop)
    })?;
    Ok(folder.join(name))
}

/// Returns a folder whose name follows from the name and the description of its content. One test of one process fills
/// it under a lock; an incomplete installation is started again.
fn install_once(name: &str, content: impl Hash, install: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/interop");
    fs::create_dir_all(&root)?;
    let root = root.canonicalize()?;
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let name = format!("{name}-{:016x}", hasher.finish());
    let (folder, complete) = (root.join(&name), root.join(format!("{name}.complete")));

    // Closing the file releases the lock.
    let lock = File::create(root.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !complete.exists() {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        install(&folder)?;
        File::create(&complete)?.write_all(b"installed\n")?;
    }
    Ok(folder)
}

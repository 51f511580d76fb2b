//! Plugins that are not one executable: what runs them, without a language host. Dependencies are expected to be
//! installed; what is missing is said with the command to run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::InstallError;
use crate::fs::{PathError, Scratch, read_if_there};
use crate::plugin::{PluginManifest, PluginRuntime};
use crate::process::{HostEnvironment, OutputStream, ProcessSpec, Spawner, describe_exit};

/// How long a build may take; the first one of a plugin fetches its dependencies.
const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Program, arguments, and a folder that has to live as long as they do.
pub(super) type Start = (PathBuf, Vec<OsString>, Option<Scratch>);

/// What a plugin is run or built with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Toolbox<'a> {
    pub(super) environment: &'a HostEnvironment,
    pub(super) spawner: &'a Spawner,
    pub(super) work: &'a Path,
}

/// Where a plugin's files came from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home<'a> {
    /// A folder that the user knows: dependencies are installed there, and a virtual environment is found from there.
    Folder(&'a Path),
    /// The cache, where nothing is added to a package.
    Fetched,
}

impl Home<'_> {
    /// What is missing of a plugin, and the command that installs it where that is possible.
    fn missing(self, relative: &str, command: impl FnOnce(&Path) -> String) -> InstallError {
        match self {
            Self::Folder(folder) => {
                InstallError::Missing { what: folder.join(relative).display().to_string(), command: command(folder) }
            }
            Self::Fetched => InstallError::Missing {
                what: format!("{relative} in the package"),
                command: "publish the plugin together with what it needs, or get a copy of it, install that there and \
                          declare it with a source of type local"
                    .to_owned(),
            },
        }
    }
}

impl Toolbox<'_> {
    /// How a plugin is started whose checked files are in `folder`. `executables` are the names a built one may have.
    pub(super) async fn start(
        &self,
        executables: &[String; 2],
        manifest: &PluginManifest,
        folder: &Path,
        home: Home<'_>,
    ) -> Result<Start, InstallError> {
        match &manifest.runtime {
            PluginRuntime::Python { virtualenv } => self.python(virtualenv.as_deref(), folder, home),
            PluginRuntime::Nodejs => self.nodejs(folder, home),
            PluginRuntime::Go { binary } => self.go(executables, binary.as_deref(), folder).await,
        }
    }

    /// `python -u FOLDER`: as `python -u .` would in the folder, but in whatever working directory the plugin gets.
    fn python(&self, virtualenv: Option<&str>, folder: &Path, home: Home<'_>) -> Result<Start, InstallError> {
        let interpreter = match virtualenv {
            Some(virtualenv) => {
                let places = match home {
                    Home::Folder(origin) => vec![folder.join(virtualenv), origin.join(virtualenv)],
                    Home::Fetched => vec![folder.join(virtualenv)],
                };
                let found = places.into_iter().map(|venv| venv.join("bin/python")).find(|python| python.exists());
                found.ok_or_else(|| {
                    home.missing(virtualenv, |origin| {
                        let (venv, requirements) = (origin.join(virtualenv), origin.join("requirements.txt"));
                        let (venv, requirements) = (venv.display(), requirements.display());
                        format!("python3 -m venv {venv} && {venv}/bin/pip install -r {requirements}")
                    })
                })?
            }
            None => self.interpreter(&["python3", "python"], "install Python and put it on PATH")?,
        };
        if !folder.join("__main__.py").is_file() {
            let advice = "give the plugin a __main__.py that serves the provider";
            return Err(home.missing("__main__.py", |_| advice.to_owned()));
        }
        // What is in the cache stays as it is: no compiled files beside the others.
        let options: &[&str] = if matches!(home, Home::Fetched) { &["-u", "-B"] } else { &["-u"] };
        let arguments = options.iter().map(OsString::from).chain([folder.into()]).collect();
        Ok((interpreter, arguments, None))
    }

    /// `node MAIN`, the main file of the package.
    fn nodejs(&self, folder: &Path, home: Home<'_>) -> Result<Start, InstallError> {
        let node = self.interpreter(&["node"], "install Node.js and put it on PATH")?;
        let package = read_if_there(&folder.join("package.json"))?.unwrap_or_else(|| b"{}".to_vec());
        // A package.json that cannot be read is Node's to complain about.
        let package: serde_json::Value = serde_json::from_slice(&package).unwrap_or_default();
        let has_dependencies = package["dependencies"].as_object().is_some_and(|dependencies| !dependencies.is_empty());
        if has_dependencies && !folder.join("node_modules").is_dir() {
            return Err(home.missing("node_modules", |origin| format!("npm install --prefix {}", origin.display())));
        }
        let main = package["main"].as_str().unwrap_or("index.js");
        let file = [folder.join(main), folder.join(format!("{main}.js")), folder.join(main).join("index.js")];
        let Some(file) = file.into_iter().find(|file| file.is_file()) else {
            return Err(home.missing(main, |origin| format!("npm run build --prefix {}", origin.display())));
        };
        Ok((node, vec![file.into()], None))
    }

    /// A program that is there, or one built now.
    async fn go(&self, executables: &[String; 2], binary: Option<&str>, folder: &Path) -> Result<Start, InstallError> {
        let there = binary.into_iter().chain(executables.iter().map(String::as_str));
        if let Some(program) = there.map(|name| folder.join(name)).find(|program| program.is_file()) {
            return Ok((program, Vec::new(), None));
        }
        let go = self.interpreter(&["go"], "install Go and put it on PATH, or build the plugin beforehand")?;
        let built = Scratch::new(self.work)?;
        let program =
            fs::canonicalize(built.path()).map_err(PathError::of("find", built.path()))?.join(&executables[0]);
        let arguments = ["build".into(), "-o".into(), program.clone().into_os_string(), ".".into()];
        self.run(ProcessSpec {
            program: go,
            arguments: arguments.into(),
            directory: folder.to_owned(),
            environment: self
                .environment
                .select(["PATH", "HOME", "TMPDIR", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
                .chain(self.environment.starting_with("GO"))
                .chain(self.environment.starting_with("CGO_"))
                .collect(),
        })
        .await?;
        Ok((program, Vec::new(), Some(built)))
    }

    async fn run(&self, spec: ProcessSpec) -> Result<(), InstallError> {
        let process = self.spawner.spawn(&spec, Arc::new(()))?;
        let exited = tokio::time::timeout(BUILD_LIMIT, process.exited()).await;
        if exited.as_ref().is_ok_and(ExitStatus::success) {
            return Ok(());
        }
        process.drained().await;
        let status = match exited {
            Ok(status) => describe_exit(status),
            Err(_) => format!("not done within {} minutes", BUILD_LIMIT.as_secs() / 60),
        };
        let words = spec.arguments.iter().map(|argument| argument.to_string_lossy());
        let command = [spec.program.to_string_lossy()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let output = process.last_lines(OutputStream::Stderr).join("\n");
        Err(InstallError::Build { command, status, output })
    }

    fn interpreter(&self, names: &[&str], advice: &str) -> Result<PathBuf, InstallError> {
        let found = names.iter().find_map(|name| self.environment.find_program(name));
        let missing = || InstallError::Missing { what: names[0].to_owned(), command: advice.to_owned() };
        found.ok_or_else(missing)
    }
}

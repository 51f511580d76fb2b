//! Commands that start plugins with a `PulumiPlugin.yaml`: Python and Node.js programs, and Go programs, which are
//! built first. Pulumi's language hosts are not used. Dependencies must be installed already; an error names a missing
//! one and the command that installs it.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::InstallError;
use super::layout::ExecutableNames;
use super::package_cache::PackageCache;
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, ScratchFolder, read_if_exists};
use crate::json;
use crate::plugin::{PluginManifest, PluginRuntime};
use crate::process::{HostEnvironment, OutputStream, ProcessSandbox, ProcessSpec, Spawner, describe_exit};
use crate::shell::{operand, option, quoted};

/// Time limit of a build. The first build of a plugin downloads its dependencies.
const BUILD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Fields of manifests that name files, for messages.
const VIRTUALENV: &str = "virtualenv in PulumiPlugin.yaml";
const BINARY: &str = "binary in PulumiPlugin.yaml";
const MAIN: &str = "main in package.json";

/// Program, arguments, and the folder of a built program, which must outlive the process.
pub(super) type StartCommand = (PathBuf, Vec<OsString>, Option<ScratchFolder>);

/// Environment in which a plugin is built and run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuntimeContext<'a> {
    pub(super) environment: &'a HostEnvironment,
    pub(super) spawner: &'a Spawner,
    /// Cache that contains the built programs.
    pub(super) cache: &'a PackageCache,
}

/// Origin of a plugin's files.
#[derive(Clone, Copy, Debug)]
pub(super) enum PluginOrigin<'a> {
    /// Folder of the user: dependencies are installed there, and the path of a virtual environment is relative to it.
    Folder(&'a Path),
    /// Package in the cache: no file is added to it, and its manifests name only files of the package.
    Fetched {
        /// Folder of the whole package, which may contain the folder of the plugin.
        package: &'a Path,
    },
}

impl PluginOrigin<'_> {
    /// Returns the error for a missing file of a plugin, with the command or action that provides it.
    fn missing(self, relative: &str, command: impl FnOnce(&Path) -> String) -> InstallError {
        match self {
            Self::Folder(folder) => {
                InstallError::Missing { item: folder.join(relative).display().to_string(), command: command(folder) }
            }
            Self::Fetched { .. } => InstallError::Missing {
                item: format!("{relative} in the package"),
                command: "publish the plugin together with what it needs, or get a copy of it, install that there and \
                          declare it with a source of type local"
                    .to_owned(),
            },
        }
    }

    /// Returns the path that a field of a manifest in `folder` names.
    ///
    /// # Errors
    /// [`InstallError::OutsidePackage`] if the package was fetched and the name is absolute or contains `..`.
    fn named_path(self, folder: &Path, field: &'static str, name: &str) -> Result<PathBuf, InstallError> {
        let is_inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        if matches!(self, Self::Fetched { .. }) && !Path::new(name).components().all(is_inside) {
            return Err(InstallError::OutsidePackage { field, path: name.into() });
        }
        Ok(folder.join(name))
    }

    /// Checks that the file behind a path, with all links resolved, is in the package if it was fetched.
    fn check_target(self, path: &Path, field: &'static str) -> Result<(), InstallError> {
        let Self::Fetched { package } = self else { return Ok(()) };
        let real = |path: &Path| fs::canonicalize(path).map_err(FileError::of("find", path));
        let target = real(path)?;
        if target.starts_with(real(package)?) {
            Ok(())
        } else {
            Err(InstallError::OutsidePackage { field, path: target })
        }
    }
}

impl RuntimeContext<'_> {
    /// Returns the command that starts the plugin with its verified files in `folder`. `names` are the accepted
    /// names of a built program.
    pub(super) async fn start_command(
        &self,
        names: &ExecutableNames,
        manifest: &PluginManifest,
        folder: &Path,
        origin: PluginOrigin<'_>,
    ) -> Result<StartCommand, InstallError> {
        match &manifest.runtime {
            PluginRuntime::Python { virtualenv } => self.python(virtualenv.as_deref(), folder, origin),
            PluginRuntime::Nodejs => self.nodejs(folder, origin),
            PluginRuntime::Go { binary } => self.go(names, binary.as_deref(), folder, origin).await,
        }
    }

    /// Returns `python -u FOLDER`, which does not depend on the working directory, unlike Pulumi's `python -u .`.
    fn python(
        &self,
        virtualenv: Option<&str>,
        folder: &Path,
        origin: PluginOrigin<'_>,
    ) -> Result<StartCommand, InstallError> {
        let interpreter = match virtualenv {
            Some(virtualenv) => {
                let mut candidates = vec![origin.named_path(folder, VIRTUALENV, virtualenv)?];
                if let PluginOrigin::Folder(source) = origin {
                    candidates.push(source.join(virtualenv));
                }
                let found = candidates.into_iter().map(|venv| venv.join("bin/python")).find(|python| python.exists());
                let python = found.ok_or_else(|| {
                    origin.missing(virtualenv, |source| {
                        let (venv, requirements) = (source.join(virtualenv), source.join("requirements.txt"));
                        let pip = venv.join("bin/pip");
                        let [venv, pip, requirements] =
                            [&venv, &pip, &requirements].map(|path| path.to_string_lossy().into_owned());
                        let (venv, pip, requirements) = (operand(&venv), quoted(&pip), quoted(&requirements));
                        format!("python3 -m venv {venv} && {pip} install -r {requirements}")
                    })
                })?;
                origin.check_target(&python, VIRTUALENV)?;
                python
            }
            None => self.interpreter(&["python3", "python"], "install Python and put it on PATH")?,
        };
        if !folder.join("__main__.py").is_file() {
            let advice = "give the plugin a __main__.py that serves the provider";
            return Err(origin.missing("__main__.py", |_| advice.to_owned()));
        }
        origin.check_target(&folder.join("__main__.py"), "__main__.py")?;
        // `-B`: Python must not add compiled files to a package in the cache.
        let options: &[&str] = if matches!(origin, PluginOrigin::Fetched { .. }) { &["-u", "-B"] } else { &["-u"] };
        let arguments = options.iter().map(OsString::from).chain([folder.into()]).collect();
        Ok((interpreter, arguments, None))
    }

    /// Returns `node MAIN` with the main file of the package.
    fn nodejs(&self, folder: &Path, origin: PluginOrigin<'_>) -> Result<StartCommand, InstallError> {
        let node = self.interpreter(&["node"], "install Node.js and put it on PATH")?;
        let package = read_if_exists(&folder.join("package.json"), MAX_DOCUMENT_BYTES)?;
        // Node reports a malformed package.json.
        let package: serde_json::Value = json::from_slice(&package.unwrap_or_default()).unwrap_or_default();
        let has_dependencies = package["dependencies"].as_object().is_some_and(|dependencies| !dependencies.is_empty());
        if has_dependencies && !folder.join("node_modules").is_dir() {
            return Err(origin.missing("node_modules", |source| npm("install", source)));
        }
        let main = package["main"].as_str().unwrap_or("index.js");
        let named = origin.named_path(folder, MAIN, main)?;
        let file = [named.clone(), folder.join(format!("{main}.js")), named.join("index.js")];
        let Some(file) = file.into_iter().find(|file| file.is_file()) else {
            return Err(origin.missing(main, |source| npm("run build", source)));
        };
        origin.check_target(&file, MAIN)?;
        Ok((node, vec![file.into()], None))
    }

    /// Returns the existing program of a Go plugin, or builds it.
    async fn go(
        &self,
        names: &ExecutableNames,
        binary: Option<&str>,
        folder: &Path,
        origin: PluginOrigin<'_>,
    ) -> Result<StartCommand, InstallError> {
        let named = binary.map(|binary| origin.named_path(folder, BINARY, binary)).transpose()?;
        let mut candidates = named.into_iter().chain(names.iter().map(|name| folder.join(name)));
        if let Some(program) = candidates.find(|program| program.is_file()) {
            origin.check_target(&program, BINARY)?;
            return Ok((program, Vec::new(), None));
        }
        let go = self.interpreter(&["go"], "install Go and put it on PATH, or build the plugin beforehand")?;
        let built = self.cache.scratch()?;
        let program =
            fs::canonicalize(built.path()).map_err(FileError::of("find", built.path()))?.join(&names.of_plugin);
        let arguments = ["build".into(), "-o".into(), program.clone().into_os_string(), ".".into()];
        self.run(ProcessSpec {
            program: go,
            arguments: arguments.into(),
            directory: folder.to_owned(),
            environment: self
                .environment
                .select(["PATH", "HOME", "TMPDIR", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
                .chain(self.environment.with_prefix("GO"))
                .chain(self.environment.with_prefix("CGO_"))
                .collect(),
            sandbox: ProcessSandbox::None,
        })
        .await?;
        Ok((program, Vec::new(), Some(built)))
    }

    async fn run(&self, spec: ProcessSpec) -> Result<(), InstallError> {
        let process = self.spawner.spawn(&spec, Arc::new(()))?;
        let exited = tokio::time::timeout(BUILD_TIMEOUT, process.wait_for_exit()).await;
        if exited.as_ref().is_ok_and(ExitStatus::success) {
            return Ok(());
        }
        process.wait_for_output_end().await;
        let status = match exited {
            Ok(status) => describe_exit(status),
            Err(_) => format!("not done within {} minutes", BUILD_TIMEOUT.as_secs() / 60),
        };
        let words = spec.arguments.iter().map(|argument| argument.to_string_lossy());
        let command = [spec.program.to_string_lossy()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let output = process.last_lines(OutputStream::Stderr).join("\n");
        Err(InstallError::Build { command, status, output })
    }

    fn interpreter(&self, names: &[&str], advice: &str) -> Result<PathBuf, InstallError> {
        let found = names.iter().find_map(|name| self.environment.find_program(name));
        let missing = || InstallError::Missing { item: names[0].to_owned(), command: advice.to_owned() };
        found.ok_or_else(missing)
    }
}

/// Returns a command of npm for the package in a folder.
fn npm(command: &str, folder: &Path) -> String {
    format!("npm {command} {}", option("--prefix", &folder.to_string_lossy()))
}

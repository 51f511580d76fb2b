//! Commands that start plugins with a `PulumiPlugin.yaml`: Python and Node.js programs, and Go programs, which are
//! built first if they are in a local folder. Pulumi's language hosts are not used. Dependencies must be there already; an error names
//! a missing one and what provides it.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::InstallError;
use super::build_recipe::BUILT_ENVIRONMENT;
use super::go_build::GoBuild;
use super::layout::ExecutableNames;
use super::package_use::BuiltProgram;
use super::runtime_context::RuntimeContext;
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, read_if_exists};
use crate::json;
use crate::plugin::{PluginManifest, PluginRuntime};
use crate::shell::{operand, option, quoted};

/// Runner of Pulumi's SDK for Node.js: serves the components that a package exports, from its sources.
const NODE_RUNNER: &str = "node_modules/@pulumi/pulumi/cmd/run-plugin";
/// Program in Python that serves the components which a package in a folder exports, by the runner of Pulumi's SDK. Its arguments are the
/// folder, the name of the project, and the address of the engine.
const RUN_PACKAGE: &str = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); \
                           runpy.run_module('pulumi.run.plugin', run_name='__main__', alter_sys=True)";
/// Fields of manifests that name files, for messages.
const VIRTUALENV: &str = "virtualenv in PulumiPlugin.yaml";
const BINARY: &str = "binary in PulumiPlugin.yaml";
const MAIN: &str = "main in package.json";

/// Program, arguments, and the program that was built, if one was.
pub(super) type StartCommand = (PathBuf, Vec<OsString>, Option<BuiltProgram>);

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
                command: "set `build: true` below source, or publish the plugin together with what it needs".to_owned(),
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
        let Self::Fetched { package, .. } = self else { return Ok(()) };
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
                        let [venv, pip, list] =
                            [&venv, &pip, &requirements].map(|path| path.to_string_lossy().into_owned());
                        let (venv, pip, list) = (operand(&venv), quoted(&pip), quoted(&list));
                        let packages = if requirements.is_file() { format!("-r {list}") } else { "pulumi".to_owned() };
                        format!("python3 -m venv {venv} && {pip} install {packages}")
                    })
                })?;
                origin.check_target(&python, VIRTUALENV)?;
                python
            }
            None => {
                let built = folder.join(BUILT_ENVIRONMENT).join("bin/python");
                let own = Some(built).filter(|python| python.exists());
                let on_path = || self.interpreter(&["python3", "python"], "install Python and put it on PATH");
                own.map_or_else(on_path, Ok)?
            }
        };
        if !folder.join("__main__.py").is_file()
            && let Some(name) = python_project(folder)?
        {
            let module = [folder.join("src"), folder.to_owned()].into_iter().find(|folder| folder.is_dir());
            let arguments = ["-u".into(), "-B".into(), "-c".into(), RUN_PACKAGE.into()];
            let place = module.unwrap_or_else(|| folder.to_owned()).into_os_string();
            return Ok((interpreter, arguments.into_iter().chain([place, name.into()]).collect(), None));
        }
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
        let file = file.into_iter().find(|file| file.is_file());
        if let Some(file) = &file {
            origin.check_target(file, MAIN)?;
        }
        // The SDK's own runner serves the components that a package exports, built or not, and runs any other program.
        let runner = Some(folder.join(NODE_RUNNER)).filter(|runner| runner.is_dir());
        let is_complete = file.as_ref().is_some_and(|file| serves_itself(file));
        match (file, runner) {
            (file, Some(runner)) if !is_complete && (file.is_some() || folder.join("index.ts").is_file()) => {
                origin.check_target(&runner, MAIN)?;
                // The runner reads tsconfig.json of its working folder.
                let arguments = [runner.into(), "--pwd".into(), folder.into(), folder.into()];
                Ok((node, arguments.into(), None))
            }
            (Some(file), _) => Ok((node, vec![file.into()], None)),
            (None, _) => Err(origin.missing(main, |source| npm("run build", source))),
        }
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
        if let PluginOrigin::Fetched { .. } = origin {
            return Err(InstallError::NotBuilt { program: binary.unwrap_or(&names.of_plugin).to_owned() });
        }
        if let Some(refusal) = self.build_refusal {
            return Err(Box::new(refusal.clone()).into());
        }
        let go = self.interpreter(&["go"], "install Go and put it on PATH, or build the plugin beforehand")?;
        let (program, built) = GoBuild { context: self, go, folder, program: &names.of_plugin }.program().await?;
        Ok((program, Vec::new(), Some(built)))
    }
}

/// Returns whether the main file of a Node.js package starts the server of a provider. One that does not exports components, or leaves the
/// start to another file.
fn serves_itself(file: &Path) -> bool {
    let text = read_if_exists(file, MAX_DOCUMENT_BYTES).ok().flatten().unwrap_or_default();
    let has = |word: &str| text.windows(word.len()).any(|window| window == word.as_bytes());
    // A file that is too large is a bundle, which has all that it needs.
    text.is_empty() || has("main(") || has("componentProviderHost")
}

/// Returns the name of the project in `pyproject.toml`, which is that of the package with its components; `None` if there is none.
fn python_project(folder: &Path) -> Result<Option<String>, InstallError> {
    let text = read_if_exists(&folder.join("pyproject.toml"), MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of_project = text.lines().map(str::trim).skip_while(|line| *line != "[project]").skip(1);
    let mut entries = of_project.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    let name = entries.find(|(key, _)| key.trim() == "name").map(|(_, value)| value.trim().trim_matches(['"', '\'']));
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    Ok(name.filter(is_name).map(str::to_owned))
}

/// Returns a command of npm for the package in a folder.
fn npm(command: &str, folder: &Path) -> String {
    format!("npm {command} {}", option("--prefix", &folder.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_of_python_is_named_in_its_own_section() {
        let folder = tempfile::tempdir().unwrap();
        let name = |text: &str| {
            fs::write(folder.path().join("pyproject.toml"), text).unwrap();
            python_project(folder.path()).unwrap()
        };
        assert_eq!(
            name("[tool.x]\nname = 'x'\n\n[project]\nversion = '1'\nname = \"my-nest\"\n"),
            Some("my-nest".to_owned())
        );
        assert_eq!(name("[project]\nversion = '1'\n[tool.x]\nname = 'x'\n"), None);
        assert_eq!(name("[project]\nname = '$(id)'\n"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn package_of_node_that_serves_itself_is_run_without_the_runner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index.js");
        for (text, expected) in [
            ("provider.main(greeting, process.argv.slice(2));", true),
            ("experimental_1.componentProviderHost({ components: [Nest] });", true),
            ("exports.Nest = class extends pulumi.ComponentResource {};", false),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(serves_itself(&file), expected, "{text}");
        }
    }
}

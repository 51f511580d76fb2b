//! Recipes of builds: their commands, and the programs of this machine that decide the result.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::InstallError;
use super::layout::{ExecutableNames, read_manifest};
use super::runtime_context::RuntimeContext;
use crate::fs::{MAX_DOCUMENT_BYTES, read_if_exists};
use crate::json;
use crate::plugin::{Build, PluginManifest, PluginRuntime};
use crate::process::{OutputStream, ProcessSandbox, ProcessSpec};

/// Virtual environment of a built plugin in Python whose manifest names none.
pub(super) const BUILT_ENVIRONMENT: &str = ".sc-venv";
/// Program in Python that prints its interpreter, the folder of the installation, and its version.
const PYTHON_FACTS: &str = "import sys; print(sys.executable, sys.base_prefix, sys.version.split()[0], sep='\\n')";
/// Settings of Go that decide what it builds.
pub(super) const GO_RESULT: [&str; 14] = [
    "GOVERSION",
    "GOOS",
    "GOARCH",
    "GOAMD64",
    "GOARM64",
    "GOFLAGS",
    "GOEXPERIMENT",
    "GOFIPS140",
    "CGO_ENABLED",
    "CC",
    "CXX",
    "CGO_CFLAGS",
    "CGO_CPPFLAGS",
    "CGO_LDFLAGS",
];
/// Settings of Go by which it finds its own files and modules.
const GO_MODULES: [&str; 9] =
    ["GOROOT", "GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOTOOLCHAIN", "GOMODCACHE"];

/// Commands of a build, and what decides its result beside the files of the plugin.
#[derive(Debug, Default)]
pub(super) struct BuildRecipe {
    /// Commands that are run one after another in the folder of the plugin, to which a relative path of a program relates.
    pub(super) commands: Vec<(PathBuf, Vec<OsString>)>,
    /// Programs of this machine that decide the result: their versions, as text.
    pub(super) tools: String,
    /// Files and folders of these programs, which a build reads.
    pub(super) readable: Vec<PathBuf>,
    /// Variables beside those that each build gets.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Reason why the dependencies are not pinned, if they are not.
    pub(super) unpinned: Option<String>,
}

impl BuildRecipe {
    /// Returns the text that tells it from other builds of the same files.
    pub(super) fn key(&self) -> String {
        let of_command = |(program, arguments): &(PathBuf, Vec<OsString>)| {
            let words = arguments.iter().map(|argument| argument.to_string_lossy());
            [program.to_string_lossy()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
        };
        self.commands.iter().map(of_command).chain([self.tools.clone()]).collect::<Vec<_>>().join("\n")
    }
}

impl RuntimeContext<'_> {
    /// Returns the build of the plugin in a folder.
    pub(super) async fn recipe(
        &self,
        build: &Build,
        names: &ExecutableNames,
        folder: &Path,
    ) -> Result<BuildRecipe, InstallError> {
        if let Build::Command(command) = build {
            let commands = vec![("/bin/sh".into(), vec!["-c".into(), command.into()])];
            let tools = ["go", "node", "npm", "python3"].iter().filter_map(|name| self.file_facts(name));
            return Ok(BuildRecipe { commands, tools: tools.collect::<Vec<_>>().join("\n"), ..BuildRecipe::default() });
        }
        if !folder.join(PluginManifest::FILE_NAME).is_file() {
            return Err(InstallError::NothingToBuild { folder: folder.to_owned() });
        }
        match read_manifest(folder)?.runtime {
            PluginRuntime::Python { virtualenv } => self.python_recipe(virtualenv, folder).await,
            PluginRuntime::Nodejs => self.node_recipe(folder).await,
            PluginRuntime::Go { binary } => {
                self.go_recipe(binary.unwrap_or_else(|| names.of_plugin.clone()), folder).await
            }
        }
    }

    /// Makes a virtual environment with what `requirements.txt` lists, or with the project itself.
    async fn python_recipe(&self, virtualenv: Option<String>, folder: &Path) -> Result<BuildRecipe, InstallError> {
        let python = self.interpreter(&["python3", "python"], "install Python and put it on PATH")?;
        let facts = self.ask(&python, &["-c", PYTHON_FACTS], folder).await?;
        let [interpreter, base, ..] = &facts[..] else {
            let output = facts.join("\n");
            return Err(InstallError::Build { command: python.display().to_string(), status: String::new(), output });
        };
        let environment = virtualenv.unwrap_or_else(|| BUILT_ENVIRONMENT.to_owned());
        let requirements = read_if_exists(&folder.join("requirements.txt"), MAX_DOCUMENT_BYTES)?;
        let has_project = ["pyproject.toml", "setup.py"].iter().any(|name| folder.join(name).is_file());
        let (what, unpinned): (&[&str], _) = match &requirements {
            Some(text) => {
                let first = first_unpinned(&String::from_utf8_lossy(text));
                (&["-r", "requirements.txt"], first.map(|line| format!("{line:?} in requirements.txt has no `==`")))
            }
            None if has_project => (&["."], Some("there is no requirements.txt".to_owned())),
            None => (&["pulumi"], Some("there is no requirements.txt".to_owned())),
        };
        let venv = ["-m", "venv", "--copies", &environment].map(OsString::from).to_vec();
        let pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"].iter().chain(what);
        let commands = vec![
            (PathBuf::from(interpreter), venv),
            (Path::new(&environment).join("bin/python"), pip.map(OsString::from).collect()),
        ];
        Ok(BuildRecipe {
            commands,
            tools: facts.join(" "),
            readable: vec![base.into(), interpreter.into()],
            unpinned,
            ..Default::default()
        })
    }

    /// Installs what `package-lock.json` lists, and compiles the package if its main file is missing.
    async fn node_recipe(&self, folder: &Path) -> Result<BuildRecipe, InstallError> {
        let advice = "install Node.js and put it on PATH";
        let (node, npm) = (self.interpreter(&["node"], advice)?, self.interpreter(&["npm"], advice)?);
        let facts = self.ask(&node, &["-p", "process.execPath + ' ' + process.version"], folder).await?;
        let package = read_if_exists(&folder.join("package.json"), MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        let package: serde_json::Value = json::from_slice(&package).unwrap_or_default();
        let is_locked = ["package-lock.json", "npm-shrinkwrap.json"].iter().any(|name| folder.join(name).is_file());
        let install = if is_locked { "ci" } else { "install" };
        let options = ["--no-audit", "--no-fund", "--no-update-notifier"];
        let mut commands = vec![(npm.clone(), [install].iter().chain(&options).map(OsString::from).collect())];
        let main = folder.join(package["main"].as_str().unwrap_or("index.js"));
        let has_main = main.exists() || main.with_extension("js").exists() || folder.join("index.ts").is_file();
        if package["scripts"]["build"].is_string() && !has_main {
            commands.push((npm.clone(), ["run", "build"].map(OsString::from).to_vec()));
        }
        let tools = [facts.join(" ")].into_iter().chain(self.file_facts("npm")).collect::<Vec<_>>().join("\n");
        let readable = node_files(&node, &npm);
        let unpinned = (!is_locked).then(|| "there is no package-lock.json".to_owned());
        Ok(BuildRecipe { commands, tools, readable, unpinned, ..BuildRecipe::default() })
    }

    /// Compiles the main package in a folder. Modules that this machine has are taken from its module cache.
    async fn go_recipe(&self, program: String, folder: &Path) -> Result<BuildRecipe, InstallError> {
        let go = self.interpreter(&["go"], "install Go and put it on PATH, or build the plugin beforehand")?;
        let of_result = self.go_settings(&go, &GO_RESULT, folder).await?;
        let (mut environment, mut downloaded, mut proxy): (Vec<(OsString, OsString)>, _, _) = Default::default();
        let mut readable = Vec::new();
        for (name, value) in self.go_settings(&go, &GO_MODULES, folder).await? {
            match name {
                "GOROOT" => readable.push(value.into()),
                "GOMODCACHE" => {
                    downloaded = Some(Path::new(&value).join("cache/download")).filter(|path| path.is_dir())
                }
                "GOPROXY" => proxy = value,
                name => environment.push((name.into(), value.into())),
            }
        }
        if let Some(downloaded) = downloaded {
            proxy = format!("file://{},{proxy}", downloaded.display());
            readable.push(downloaded);
        }
        environment.push(("GOPROXY".into(), proxy.trim_end_matches(',').into()));
        for (name, value) in &of_result {
            match *name {
                "GOVERSION" | "GOFLAGS" => {}
                name => environment.push((name.into(), value.into())),
            }
        }
        // Go makes its module cache read-only otherwise, so that it cannot be removed.
        let flags = of_result.iter().find(|(name, _)| *name == "GOFLAGS").map_or("", |(_, value)| value);
        environment.push(("GOFLAGS".into(), format!("{flags} -modcacherw").trim_start().into()));
        let needs_modules = read_if_exists(&folder.join("go.mod"), MAX_DOCUMENT_BYTES)?
            .is_some_and(|text| String::from_utf8_lossy(&text).lines().any(|line| line.starts_with("require")));
        let unpinned = (needs_modules && !folder.join("go.sum").is_file()).then(|| "there is no go.sum".to_owned());
        let arguments = ["build", "-o", &program, "."].map(OsString::from).to_vec();
        let tools = of_result.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n");
        Ok(BuildRecipe { commands: vec![(go, arguments)], tools, readable, environment, unpinned })
    }

    /// Returns settings of Go as it has them in a folder.
    pub(super) async fn go_settings<'n>(
        &self,
        go: &Path,
        names: &[&'n str],
        folder: &Path,
    ) -> Result<Vec<(&'n str, String)>, InstallError> {
        let arguments: Vec<&str> = ["env"].iter().chain(names).copied().collect();
        let values = self.ask(go, &arguments, folder).await?;
        Ok(names.iter().copied().zip(values.into_iter().chain(std::iter::repeat(String::new()))).collect())
    }

    /// Runs a program of this machine that says something about itself, outside of a sandbox. Returns the lines that it prints.
    async fn ask(&self, program: &Path, arguments: &[&str], folder: &Path) -> Result<Vec<String>, InstallError> {
        let process = self
            .run(
                ProcessSpec {
                    program: program.to_owned(),
                    arguments: arguments.iter().map(OsString::from).collect(),
                    directory: folder.to_owned(),
                    environment: self.environment.with_prefix("").collect(),
                    sandbox: ProcessSandbox::None,
                },
                false,
            )
            .await?;
        Ok(process.last_lines(OutputStream::Stdout))
    }

    /// Returns the files of the programs that a command may use, as far as they are on this machine.
    pub(super) async fn tool_files(&self, folder: &Path) -> Vec<PathBuf> {
        let find = |name: &str| self.environment.find_program(name);
        let mut files = match (find("node"), find("npm")) {
            (Some(node), Some(npm)) => node_files(&node, &npm),
            (node, npm) => node.into_iter().chain(npm).collect(),
        };
        if let Some(python) = find("python3")
            && let Ok(facts) = self.ask(&python, &["-c", PYTHON_FACTS], folder).await
        {
            files.extend(facts.into_iter().take(2).map(PathBuf::from));
        }
        if let Some(go) = find("go")
            && let Ok(root) = self.ask(&go, &["env", "GOROOT"], folder).await
        {
            files.extend(root.into_iter().map(PathBuf::from));
        }
        files
    }

    /// Returns what the file system says about a program on PATH, if there is one.
    fn file_facts(&self, name: &str) -> Option<String> {
        let program = fs::canonicalize(self.environment.find_program(name)?).ok()?;
        let metadata = program.metadata().ok()?;
        Some(format!("{} {} {}", program.display(), metadata.size(), metadata.mtime()))
    }
}

/// Returns the program of Node.js and the package of npm.
fn node_files(node: &Path, npm: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    // `npm` is a link to `npm/bin/npm-cli.js`.
    let package = real(npm).and_then(|npm| Some(npm.parent()?.parent()?.to_owned()));
    let package = package.filter(|folder| folder.join("package.json").is_file());
    real(node).into_iter().chain(package).collect()
}

/// Returns the first line of a `requirements.txt` that leaves the version open.
fn first_unpinned(requirements: &str) -> Option<String> {
    let lines = requirements.lines().map(|line| line.split_once(" #").map_or(line, |(line, _)| line).trim());
    let mut packages = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '-']));
    packages.find(|line| !line.contains("==") && !line.contains(" @ ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_open_version_of_a_list_is_found() {
        for (text, expected) in [
            ("pulumi==3.120.0\n# a comment\n--hash=sha256:00\nsix == 1.16.0 # why", None),
            ("pulumi==3.120.0\npulumi-random>=4\nsix", Some("pulumi-random>=4")),
            ("pulumi~=3.0", Some("pulumi~=3.0")),
            ("reef @ https://example.com/reef.whl", None),
            ("", None),
        ] {
            assert_eq!(first_unpinned(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn recipe_is_told_from_others_by_its_commands_and_tools() {
        let recipe = |command: &str, tools: &str| {
            let commands = vec![("/bin/sh".into(), vec!["-c".into(), command.into()])];
            BuildRecipe { commands, tools: tools.to_owned(), ..BuildRecipe::default() }.key()
        };
        assert_eq!(recipe("make", "go 1"), "/bin/sh -c make\ngo 1");
        assert_ne!(recipe("make", "go 1"), recipe("make", "go 2"));
        assert_ne!(recipe("make", "go 1"), recipe("make all", "go 1"));
    }
}

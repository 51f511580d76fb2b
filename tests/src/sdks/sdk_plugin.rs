//! Plugins written with Pulumi's own SDKs, installed from the sources of a suite and run by our host.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bridge::host::{DeclaredPlugin, HostEvent, HostEvents, HostSettings, PluginHost, PluginPool, Sources};
use bridge::install::{LocalPackages, Verification};
use bridge::plugin::{LocalSource, PluginConfig, PluginSource};
use bridge::process::{HostEnvironment, Spawner, Supervision};
use bridge::provider::grpc::{Limits, PluginInit};
use tokio_util::sync::CancellationToken;

use crate::binaries::sc;

use super::{first_on_path, go_program, node_modules, python_venv};

/// SDK of a plugin, by its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// `pulumi.provider.experimental`: accepts no secrets, supports previews, has no Handshake.
    Python,
    /// `@pulumi/pulumi/provider`: accepts secrets, supports no previews, has no Handshake.
    Node,
    /// Generated server code of `pulumi/sdk/v3`: accepts secrets, supports previews, has a Handshake.
    Go,
}

/// Installed plugin.
#[derive(Clone, Debug)]
pub struct SdkPlugin {
    /// Folder of the plugin, for a local source.
    pub folder: PathBuf,
    /// Program and arguments that start the plugin without `sc`.
    program: (PathBuf, Vec<PathBuf>),
    /// Folder that must come first on PATH for the plugin to start, if there is one.
    pub first_on_path: Option<PathBuf>,
    /// Folders of its interpreter and its packages, outside of its own folder: a strict sandbox has to let it read them.
    pub outside: Vec<PathBuf>,
}

impl Sdk {
    /// All SDKs.
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Go];

    /// Returns the name of the language, which is also that of the folder of sources.
    pub fn language(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Go => "go",
        }
    }

    /// Installs the plugin of a package, with its SDK, in a folder. The sources are in the folder of the language,
    /// below that of the suite.
    ///
    /// # Errors
    ///
    /// Returns an error if the SDK cannot be installed, the program cannot be built, or the folder cannot be written.
    pub fn install_plugin(self, suite: &str, package: &str, folder: &Path) -> io::Result<SdkPlugin> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(suite).join(self.language());
        let (mut first_on_path, mut outside) = (None, Vec::new());
        fs::create_dir_all(folder)?;
        let program = match self {
            Self::Python => {
                let packages = ["pulumi>=3.272.0", "googleapis-common-protos", "grpcio-tools"];
                let venv = python_venv("python-pulumi", &packages)?;
                copy_files(&sources, folder)?;
                symlink(venv.folder(), folder.join("venv"))?;
                outside.extend([venv.folder().to_owned(), venv.base()?]);
                (venv.python(), vec![folder.to_owned()])
            }
            Self::Node => {
                let node = node_modules("node-pulumi", 22, &["@pulumi/pulumi@^3.270.0"])?;
                copy_files(&sources, folder)?;
                symlink(node.folder(), folder.join("node_modules"))?;
                first_on_path = Some(node.bin());
                outside.push(node.folder());
                (node.bin().join("node"), vec![folder.join("index.js")])
            }
            Self::Go => {
                let name = format!("pulumi-resource-{package}");
                let program = folder.join(&name);
                fs::copy(go_program(&name, &sources)?, &program)?;
                (program, Vec::new())
            }
        };
        Ok(SdkPlugin { folder: folder.to_owned(), program, first_on_path, outside })
    }
}

impl SdkPlugin {
    /// Returns a command that starts the plugin as a debugger does, without `sc`. The address of the engine is missing.
    pub fn command(&self) -> Command {
        let (program, arguments) = &self.program;
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }

    /// Returns the PATH for starting the plugin.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder cannot be part of PATH.
    pub fn path(&self) -> io::Result<OsString> {
        match &self.first_on_path {
            Some(folder) => first_on_path(folder),
            None => Ok(std::env::var_os("PATH").unwrap_or_default()),
        }
    }

    /// Returns a host that runs the plugin for a package, with these variables in its environment besides PATH.
    ///
    /// # Errors
    ///
    /// Returns an error if PATH cannot be set or the host rejects the plugin.
    ///
    /// # Panics
    ///
    /// Panics if the package has no valid name.
    pub async fn host(&self, package: &str, variables: &[(&str, OsString)]) -> io::Result<PluginHost> {
        let path = [("PATH".into(), self.path()?)];
        let variables: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        let environment = HostEnvironment::new(path.into_iter().chain(variables.clone()));
        let directory = self.folder.parent().unwrap_or(&self.folder).to_owned();
        let supervisor = Supervision::new(&sc()?).map_err(io::Error::other)?;
        let spawner = Spawner::supervised(Arc::new(supervisor));
        let local = LocalPackages {
            root: directory.clone(),
            cache: directory.join("cache"),
            environment: environment.clone(),
            spawner: spawner.clone(),
            verification: Verification::default(),
            is_offline: false,
        };
        let settings = HostSettings {
            project: "t".into(),
            directory,
            secret_files: Vec::new(),
            environment,
            spawner,
            sources: Sources { local: Some(Arc::new(local)), ..Sources::default() },
            limits: Limits::default(),
            abort: CancellationToken::new(),
            type_cache: None,
            first_instances: 1,
            events: Arc::new(NoEvents),
            pool: PluginPool::new(),
            attached: Default::default(),
            undeclared: None,
        };
        let source = PluginSource::Local(LocalSource::new(self.folder.clone()));
        let mut config = PluginConfig::new(package.parse().expect("packages of tests have valid names"), source);
        config.pass_env = variables.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let plugins = vec![DeclaredPlugin { config, init: PluginInit::default(), shares_equal_configurations: false }];
        PluginHost::load(settings, plugins).await.map_err(|mut failed| io::Error::other(failed.swap_remove(0).1))
    }
}

struct NoEvents;

impl HostEvents for NoEvents {
    fn emit(&self, _: HostEvent) {}
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

//! Pulumi's command line and its YAML host, built from their published modules.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{first_on_path, go_package_program};

/// Version that `pulumi` reports. It equals the one in `tests/interop_cli/peers/pulumi/go.mod`.
const VERSION: &str = "3.260.0";

/// Pulumi's command line with its YAML host.
#[derive(Clone, Debug)]
pub struct PulumiCli {
    /// Program `pulumi`.
    program: PathBuf,
    /// PATH on which `pulumi` finds its YAML host.
    path: OsString,
}

impl PulumiCli {
    /// Builds both programs, unless they are built already: two to four minutes.
    ///
    /// # Errors
    /// Returns an error if `go` is missing or fails, or modules cannot be fetched; it contains the command's output.
    pub fn install() -> io::Result<Self> {
        let sources = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_cli/peers").join(name);
        // Without this flag, the program has no version, and writes none into states.
        let version = format!("-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{VERSION}");
        let package = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi";
        let program = go_package_program(package, &sources("pulumi"), &version)?;
        let package = "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml";
        let host = go_package_program(package, &sources("pulumi-language-yaml"), "")?;
        let path = first_on_path(host.parent().unwrap_or(&host))?;
        Ok(Self { program, path })
    }

    /// Returns the PATH on which `pulumi` finds its YAML host, and no other plugin that is not on ours.
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    /// Returns a command that works offline and finds plugins in a folder. A home folder, a backend and a passphrase are
    /// missing in its environment.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be part of PATH.
    pub fn command(&self, plugins: &Path) -> io::Result<Command> {
        let folders = std::iter::once(plugins.to_owned()).chain(std::env::split_paths(&self.path));
        let path = std::env::join_paths(folders).map_err(io::Error::other)?;
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", path).env("PULUMI_SKIP_UPDATE_CHECK", "true");
        command.env("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true");
        Ok(command)
    }
}

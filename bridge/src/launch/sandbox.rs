//! The sandbox of a plugin's process, from the declaration of the plugin.

use std::path::{Path, PathBuf};

use super::LaunchError;
use crate::install::VerifiedPackage;
use crate::plugin::Sandbox;
use crate::process::{AllowedAccess, ProcessSandbox, SandboxError, SandboxSupport};

/// Returns the sandbox of a process. `directory` is the root of the repository, `hidden` are patterns of files below it that the
/// process reads only if they are declared, `home` is the home directory; `endpoints` are the ports of the services of the host.
///
/// # Errors
/// [`LaunchError::Sandbox`] if the system cannot enforce a required restriction, or the home directory is not known;
/// [`LaunchError::SandboxPath`] if a declared path does not exist.
pub fn process_sandbox(
    sandbox: &Sandbox,
    directory: &Path,
    hidden: &[PathBuf],
    home: Option<&Path>,
    endpoints: &[u16],
) -> Result<ProcessSandbox, LaunchError> {
    let declared = match sandbox {
        Sandbox::None => return Ok(ProcessSandbox::None),
        Sandbox::Basic => return Ok(ProcessSandbox::Basic),
        Sandbox::Strict(declared) => declared,
    };
    SandboxSupport::current().check_strict().map_err(LaunchError::Sandbox)?;
    let existing = |key: &'static str, paths: &[PathBuf]| -> Result<Vec<PathBuf>, LaunchError> {
        let resolved = paths.iter().map(|path| resolve(path, directory, home).map_err(LaunchError::Sandbox));
        resolved.map(|path| path.and_then(|path| check_exists(key, path))).collect()
    };
    Ok(ProcessSandbox::Strict(AllowedAccess {
        readable: existing("readable", &declared.readable)?,
        readable_in_part: Vec::new(),
        hidden: hidden.iter().map(|pattern| directory.join(pattern)).collect(),
        writable: existing("writable", &declared.writable)?,
        ports: [&declared.ports, endpoints].concat(),
    }))
}

/// Checks a path that the declaration names. One that cannot be looked at is reported by the gate.
fn check_exists(key: &'static str, path: PathBuf) -> Result<PathBuf, LaunchError> {
    if matches!(path.try_exists(), Ok(false)) { Err(LaunchError::SandboxPath { key, path }) } else { Ok(path) }
}

/// Describes a sandbox as this system enforces it: `strict, without: signals and abstract Unix sockets (Linux 6.12)`.
pub fn describe_sandbox(sandbox: &Sandbox) -> String {
    let support = SandboxSupport::current();
    let missing = match sandbox {
        Sandbox::None => Vec::new(),
        Sandbox::Basic => support.missing_in_basic(),
        Sandbox::Strict(_) if support.check_strict().is_err() => return format!("{sandbox}, not on this system"),
        Sandbox::Strict(_) => support.missing_in_strict(),
    };
    if missing.is_empty() { sandbox.to_string() } else { format!("{sandbox}, without: {}", missing.join(", ")) }
}

/// Returns a sandbox with the files of a package and the repository allowed, except hidden ones.
pub(super) fn with_package(sandbox: ProcessSandbox, package: &VerifiedPackage, directory: &Path) -> ProcessSandbox {
    // The program may have been built elsewhere, or be an interpreter.
    let own = [package.folder(), package.program(), directory].map(Path::to_owned);
    sandbox.with_files(own, [])
}

fn resolve(path: &Path, directory: &Path, home: Option<&Path>) -> Result<PathBuf, SandboxError> {
    match path.strip_prefix("~") {
        Ok(below) => match home {
            Some(home) => Ok(home.join(below)),
            None => Err(SandboxError::new(format!("{}: the home directory is not known", path.display()))),
        },
        Err(_) => Ok(directory.join(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::StrictSandbox;

    #[test]
    fn paths_start_at_the_repository_the_home_directory_or_the_root() {
        let home = Some(Path::new("/home/me"));
        for (path, home, expected) in [
            ("data", home, "/repo/data"),
            ("/opt/x", None, "/opt/x"),
            ("~", home, "/home/me"),
            ("~/.aws", home, "/home/me/.aws"),
            ("~other/x", home, "/repo/~other/x"),
        ] {
            let resolved = resolve(Path::new(path), Path::new("/repo"), home);
            assert_eq!(resolved, Ok(PathBuf::from(expected)), "{path}");
        }
        let error = resolve(Path::new("~/.aws"), Path::new("/repo"), None).unwrap_err();
        assert_eq!(error.to_string(), "~/.aws: the home directory is not known");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn endpoints_of_the_host_are_allowed() {
        if SandboxSupport::current().check_strict().is_err() {
            return;
        }
        let strict = Sandbox::Strict(StrictSandbox::default());
        let sandbox = process_sandbox(&strict, Path::new("/repo"), &[], None, &[5, 6]).unwrap();
        let ProcessSandbox::Strict(allowed) = sandbox else { panic!("another sandbox") };
        assert_eq!(allowed.ports, [443, 5, 6]);
    }
}

//! The sandbox of a program: the restrictions that the gate applies to itself before it becomes the program
//! (docs/hosting.md#sandbox). The program inherits them, and so do all processes that it starts.

#[cfg(target_os = "linux")]
mod capabilities;
mod error;
mod hidden_files;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod seccomp_rules;
mod support;
mod temporary_folder;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use error::SandboxError;
pub use hidden_files::HiddenFiles;
pub use landlock_rules::AllowedAccess;
pub use support::SandboxSupport;
pub(super) use temporary_folder::TemporaryFolder;

/// First descriptor that a program does not need: 0, 1 and 2 are its standard streams.
const FIRST_INHERITED: i32 = 3;

/// Limit on the size of a core dump. Linux writes a core dump to no file below one page, and to no program (`|` in
/// `/proc/sys/kernel/core_pattern`) if the limit is exactly 1; with 0 it would start the program.
const CORE_LIMIT: u64 = if cfg!(target_os = "linux") { 1 } else { 0 };

/// Arguments of a gate: the levels, the kinds of what a strict sandbox lets through, and the end of their list.
const NONE: &str = "none";
const BASIC: &str = "basic";
const STRICT: &str = "strict";
const READ: &str = "read";
const READ_IN_PART: &str = "read-in-part";
const HIDE: &str = "hide";
const WRITE: &str = "write";
const CONNECT: &str = "connect";
const END: &str = "end";

/// Sandbox of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProcessSandbox {
    /// No restrictions: a program of the machine, such as git.
    #[default]
    None,
    /// No new privileges, no inherited descriptors, no core dumps, and a folder of its own for temporary files.
    Basic,
    /// The restrictions of `Basic`; on Linux, no capabilities, access to few files and ports only, and no memory, messages or
    /// keys that processes share.
    Strict(AllowedAccess),
}

impl ProcessSandbox {
    /// Returns the sandbox with further files allowed: those that it reads except hidden ones, and those that it changes.
    #[must_use]
    pub fn with_files(
        mut self,
        readable_in_part: impl IntoIterator<Item = PathBuf>,
        writable: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        if let Self::Strict(allowed) = &mut self {
            allowed.readable_in_part.extend(readable_in_part);
            allowed.writable.extend(writable);
        }
        self
    }

    /// Returns the arguments of a gate from which [`ProcessSandbox::from_arguments`] reads this sandbox.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let allowed = match self {
            Self::None => return vec![NONE.into()],
            Self::Basic => return vec![BASIC.into()],
            Self::Strict(allowed) => allowed,
        };
        let files = |kind: &'static str, paths: &[PathBuf]| {
            paths.iter().flat_map(|path| [kind.into(), path.clone().into_os_string()]).collect::<Vec<_>>()
        };
        let ports = allowed.ports.iter().flat_map(|port| [CONNECT.into(), port.to_string().into()]).collect();
        let readable = [files(READ, &allowed.readable), files(READ_IN_PART, &allowed.readable_in_part)].concat();
        let hidden = files(HIDE, &allowed.hidden);
        [vec![STRICT.into()], readable, hidden, files(WRITE, &allowed.writable), ports, vec![END.into()]].concat()
    }

    /// Reads a sandbox from the first arguments. Returns `None` if they do not begin with one.
    pub(super) fn from_arguments(arguments: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        match arguments.next()?.to_str()? {
            NONE => return Some(Self::None),
            BASIC => return Some(Self::Basic),
            STRICT => {}
            _ => return None,
        }
        let mut allowed = AllowedAccess::default();
        loop {
            match arguments.next()?.to_str()? {
                READ => allowed.readable.push(arguments.next()?.into()),
                READ_IN_PART => allowed.readable_in_part.push(arguments.next()?.into()),
                HIDE => allowed.hidden.push(arguments.next()?.into()),
                WRITE => allowed.writable.push(arguments.next()?.into()),
                CONNECT => allowed.ports.push(arguments.next()?.to_str()?.parse().ok()?),
                END => return Some(Self::Strict(allowed)),
                _ => return None,
            }
        }
    }

    /// Applies the restrictions to this process, which has one thread, for the rest of its life and for the program that it
    /// executes.
    ///
    /// # Errors
    /// [`SandboxError`] of the first restriction that the system refuses; the process must not execute the program then.
    pub(super) fn apply(&self) -> Result<(), SandboxError> {
        match self {
            Self::None => Ok(()),
            Self::Basic => apply_basic(),
            Self::Strict(allowed) => {
                apply_basic()?;
                apply_strict(allowed)
            }
        }
    }
}

fn apply_basic() -> Result<(), SandboxError> {
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
    forbid_core_dumps().map_err(|error| SandboxError::of("forbid core dumps", error))?;
    #[cfg(target_os = "linux")]
    rustix::thread::set_no_new_privs(true).map_err(|error| SandboxError::of("forbid new privileges", error))?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn apply_strict(allowed: &AllowedAccess) -> Result<(), SandboxError> {
    landlock_rules::apply(allowed)?;
    capabilities::drop_all().map_err(|error| SandboxError::of("give up capabilities", error))?;
    // Last: a process without privileges may add a filter, because it gains none either.
    seccomp_rules::apply()
}

#[cfg(not(target_os = "linux"))]
fn apply_strict(_: &AllowedAccess) -> Result<(), SandboxError> {
    SandboxSupport::current().check_strict()
}

fn forbid_core_dumps() -> io::Result<()> {
    // A limit that is lower already cannot be raised.
    let limit = getrlimit(Resource::Core).maximum.unwrap_or(CORE_LIMIT).min(CORE_LIMIT);
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_survives_the_arguments_of_a_gate() {
        let allowed = AllowedAccess {
            readable: vec!["/a b".into(), "end".into()],
            readable_in_part: vec!["/c".into()],
            hidden: vec!["/c/*/d".into()],
            writable: vec!["/w".into()],
            ports: vec![443, 50051],
        };
        for sandbox in [ProcessSandbox::None, ProcessSandbox::Basic, ProcessSandbox::Strict(allowed)] {
            let mut arguments = sandbox.arguments().into_iter().chain(["/bin/x".into()]);
            assert_eq!(ProcessSandbox::from_arguments(&mut arguments), Some(sandbox));
            assert_eq!(arguments.next().unwrap(), "/bin/x");
        }
        for invalid in [&["cage"][..], &[], &["strict"], &["strict", "read"], &["strict", "connect", "x", "end"]] {
            let mut arguments = invalid.iter().map(OsString::from);
            assert_eq!(ProcessSandbox::from_arguments(&mut arguments), None, "{invalid:?}");
        }
    }
}

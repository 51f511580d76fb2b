//! Diagnosis of a program that cannot be executed, from its first bytes and its file mode.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::fs::open_regular;
use crate::install::VerifiedPackage;

/// ENOEXEC, for which [`io::ErrorKind`] has no variant.
const NO_EXEC: i32 = 8;

/// Returns the error for a program that the kernel cannot execute. Must be called before the start: the C library would
/// run such a file with the shell.
pub(super) fn exec_format_error(program: &Path) -> Option<io::Error> {
    let head = read_head::<20>(program)?;
    let is_executable = match &head[..] {
        [b'#', b'!', ..] => true,
        [0x7f, b'E', b'L', b'F', .., machine, 0] if cfg!(target_os = "linux") => {
            is_native(*machine) || is_emulated(*machine)
        }
        // Only macOS can decide whether it runs a Mach-O file.
        [0xcf, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => cfg!(target_os = "macos"),
        _ => false,
    };
    (!is_executable).then(|| io::Error::from_raw_os_error(NO_EXEC))
}

/// Returns true if this machine runs programs for an ELF machine number. 64-bit machines also run 32-bit programs.
fn is_native(machine: u8) -> bool {
    match std::env::consts::ARCH {
        "x86_64" => matches!(machine, 0x3e | 0x03),
        "aarch64" => matches!(machine, 0xb7 | 0x28),
        _ => true,
    }
}

/// Returns true if the kernel runs programs for an ELF machine number in an emulator.
fn is_emulated(machine: u8) -> bool {
    let name = match machine {
        0x3e => "qemu-x86_64",
        0xb7 => "qemu-aarch64",
        0x28 => "qemu-arm",
        _ => return false,
    };
    Path::new("/proc/sys/fs/binfmt_misc").join(name).exists()
}

/// Returns the reason why the program of a package was not executed, with advice; `None` if there is no more information
/// than `error` has.
pub(super) fn diagnose(package: &VerifiedPackage, directory: &Path, error: &io::Error) -> Option<String> {
    let program = package.program();
    if !directory.is_dir() {
        Some(format!("its working directory {} is missing", directory.display()))
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        diagnose_permissions(package)
    } else if error.raw_os_error() == Some(NO_EXEC) {
        Some(diagnose_format(program))
    } else if error.kind() == io::ErrorKind::NotFound && program.is_file() {
        Some(diagnose_interpreter(program))
    } else {
        None
    }
}

fn diagnose_permissions(package: &VerifiedPackage) -> Option<String> {
    let metadata = fs::metadata(package.program()).ok()?;
    if metadata.is_dir() {
        Some("it is a folder".to_owned())
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Some(describe_missing_permission(&package.program_origin(), package.is_fetched()))
    } else {
        Some("it is executable, but the file system may be mounted with noexec".to_owned())
    }
}

/// Returns advice about a program without execute permission. A mode that was changed in the cache would not last.
fn describe_missing_permission(program: &Path, is_fetched: bool) -> String {
    if is_fetched {
        "it is not executable in the repository or archive that it comes from".to_owned()
    } else {
        format!("it is not executable; run chmod +x {}", program.display())
    }
}

fn diagnose_format(program: &Path) -> String {
    let built_for = match &read_head::<20>(program).unwrap_or_default()[..] {
        // The machine is the 16-bit number at offset 18.
        [0x7f, b'E', b'L', b'F', .., 0x3e, 0] => "Linux on amd64",
        [0x7f, b'E', b'L', b'F', .., 0xb7, 0] => "Linux on arm64",
        [0x7f, b'E', b'L', b'F', ..] => "another machine",
        [0xcf, 0xfa, 0xed, 0xfe, 0x07, ..] => "macOS on amd64",
        [0xcf, 0xfa, 0xed, 0xfe, 0x0c, ..] => "macOS on arm64",
        [0xca, 0xfe, 0xba, 0xbe, ..] => "macOS",
        [b'M', b'Z', ..] => "Windows",
        [] => return "it is empty".to_owned(),
        _ => return "it is neither a program nor a script that starts with #!".to_owned(),
    };
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("it is built for {built_for}, and this is {os} on {arch}")
}

/// Returns the reason why the kernel did not find the interpreter or loader of an existing program.
fn diagnose_interpreter(program: &Path) -> String {
    let head = read_head::<256>(program).unwrap_or_default();
    let text = String::from_utf8_lossy(&head);
    let Some(line) = text.strip_prefix("#!").and_then(|rest| rest.split('\n').next()) else {
        return "its loader or a library that it needs is missing".to_owned();
    };
    // The kernel takes the carriage return as part of the name of the interpreter.
    if line.ends_with('\r') {
        return "its first line ends with a Windows line break; save it with Unix line breaks".to_owned();
    }
    format!("its interpreter {} is missing", line.split_whitespace().next().unwrap_or_default())
}

/// Returns the first bytes of a file; `None` if it cannot be read.
fn read_head<const N: usize>(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(N);
    open_regular(program).ok()?.take(N as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_of_a_fetched_program_is_not_to_be_changed_in_the_cache() {
        assert!(!describe_missing_permission(Path::new("/cache/x"), true).contains("chmod"));
        assert!(describe_missing_permission(Path::new("/x"), false).ends_with("run chmod +x /x"));
    }
}

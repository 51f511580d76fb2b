//! Diagnosis of a program that cannot be executed, from its first bytes and its file mode.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::fs::open_regular;

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

/// Returns the reason why a program was not executed, with advice; `None` if there is no more information than `error`
/// has.
pub(super) fn diagnose(program: &Path, directory: &Path, error: &io::Error) -> Option<String> {
    if !directory.is_dir() {
        Some(format!("its working directory {} is missing", directory.display()))
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        diagnose_permissions(program)
    } else if error.raw_os_error() == Some(NO_EXEC) {
        Some(diagnose_format(program))
    } else if error.kind() == io::ErrorKind::NotFound && program.is_file() {
        find_interpreter(program).map_or_else(
            || Some("its loader or a library that it needs is missing".to_owned()),
            |interpreter| Some(format!("its interpreter {interpreter} is missing")),
        )
    } else {
        None
    }
}

fn diagnose_permissions(program: &Path) -> Option<String> {
    let metadata = fs::metadata(program).ok()?;
    if metadata.is_dir() {
        Some("it is a folder".to_owned())
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Some("it is not executable: chmod +x".to_owned())
    } else {
        Some("it is executable, but the file system may be mounted with noexec".to_owned())
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

/// Returns the interpreter in the `#!` line of a script.
fn find_interpreter(program: &Path) -> Option<String> {
    let head = read_head::<256>(program)?;
    let text = String::from_utf8_lossy(&head);
    let line = text.strip_prefix("#!")?.lines().next()?;
    line.split_whitespace().next().map(str::to_owned)
}

/// Returns the first bytes of a file; `None` if it cannot be read.
fn read_head<const N: usize>(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(N);
    open_regular(program).ok()?.take(N as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

//! Why a program does not run, as far as its first bytes and its mode tell.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// ENOEXEC, which has no kind of its own.
const NO_EXEC: i32 = 8;

/// The error of a program that the kernel cannot run. It has to be found beforehand: the C library hands such a file to
/// the shell, which makes of it what it can.
pub(super) fn refusal(program: &Path) -> Option<io::Error> {
    let head = head::<20>(program)?;
    let runs = match &head[..] {
        [b'#', b'!', ..] => true,
        [0x7f, b'E', b'L', b'F', .., machine, 0] if cfg!(target_os = "linux") => {
            is_native(*machine) || is_emulated(*machine)
        }
        // Of what macOS runs, only macOS knows.
        [0xcf, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => cfg!(target_os = "macos"),
        _ => false,
    };
    (!runs).then(|| io::Error::from_raw_os_error(NO_EXEC))
}

/// Whether programs for a machine, as ELF numbers them, run here; 32 bits run on 64.
fn is_native(machine: u8) -> bool {
    match std::env::consts::ARCH {
        "x86_64" => matches!(machine, 0x3e | 0x03),
        "aarch64" => matches!(machine, 0xb7 | 0x28),
        _ => true,
    }
}

/// Whether the kernel hands programs for a machine to an emulator.
fn is_emulated(machine: u8) -> bool {
    let name = match machine {
        0x3e => "qemu-x86_64",
        0xb7 => "qemu-aarch64",
        0x28 => "qemu-arm",
        _ => return false,
    };
    Path::new("/proc/sys/fs/binfmt_misc").join(name).exists()
}

/// Returns why a program did not run, with advice; `None` where nothing more is known than the error says.
pub(super) fn diagnose(program: &Path, directory: &Path, error: &io::Error) -> Option<String> {
    if !directory.is_dir() {
        Some(format!("its working directory {} is missing", directory.display()))
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        not_permitted(program)
    } else if error.raw_os_error() == Some(NO_EXEC) {
        Some(not_executable(program))
    } else if error.kind() == io::ErrorKind::NotFound && program.is_file() {
        interpreter(program).map_or_else(
            || Some("the loader or a library that it names is missing".to_owned()),
            |interpreter| Some(format!("its interpreter {interpreter} is missing")),
        )
    } else {
        None
    }
}

fn not_permitted(program: &Path) -> Option<String> {
    let metadata = fs::metadata(program).ok()?;
    if metadata.is_dir() {
        Some("it is a folder".to_owned())
    } else if metadata.permissions().mode() & 0o111 == 0 {
        Some("it is not executable: chmod +x".to_owned())
    } else {
        Some("it is executable, so the file system may forbid to run programs (noexec)".to_owned())
    }
}

fn not_executable(program: &Path) -> String {
    let built_for = match &head::<20>(program).unwrap_or_default()[..] {
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

/// The interpreter that a script names.
fn interpreter(program: &Path) -> Option<String> {
    let head = head::<256>(program)?;
    let text = String::from_utf8_lossy(&head);
    let line = text.strip_prefix("#!")?.lines().next()?;
    line.split_whitespace().next().map(str::to_owned)
}

/// The first bytes of a file; `None` where it cannot be read.
fn head<const N: usize>(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(N);
    File::open(program).ok()?.take(N as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

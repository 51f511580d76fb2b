//! Program that attempts what a sandbox prevents. Prints `possible` and what it found, or `prevented` and why.
//!
//! Usage: `bridge-sandboxed ATTEMPT [ARGUMENT]`.

#![expect(clippy::disallowed_methods, reason = "a program that only tests start; it panics at the first failure")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that only tests start; it panics at the first failure"
)]

use std::fs;
use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{AccessFs, Ruleset, RulesetAttr as _};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType};

/// Outcome of an attempt: what the program found, or why it did not.
type Outcome = Result<String, String>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (attempt, argument) = (arguments[0].as_str(), arguments.get(1).cloned().unwrap_or_default());
    let path = Path::new(&argument);
    let outcome = match attempt {
        "gain privileges" => gain_privileges(&argument),
        "print the account" => return println!("{}", rustix::process::geteuid().as_raw()),
        "use inherited descriptors" => use_descriptors(),
        "dump its memory" => dump_memory(),
        "abort" => std::process::abort(),
        "read temporary files" => read_temporary_files(&argument),
        "use capabilities" => use_capabilities(),
        "outlive its parent" => outlive_parent(),
        "read" => of_io(fs::read_to_string(path)),
        "list" => of_io(fs::read_dir(path)).map(|_| String::new()),
        "execute" => of_io(Command::new(path).arg("print the account").output()).map(|_| String::new()),
        "write" => of_io(fs::OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"x"))),
        "create" => of_io(fs::write(path, "x")),
        "truncate" => of_io(rustix::fs::open(path, OFlags::WRONLY | OFlags::TRUNC, Mode::empty()).map_err(Into::into)),
        "remove" => of_io(fs::remove_file(path)),
        "rename" => of_io(fs::rename(path, path.with_extension("new"))),
        "link" => of_io(fs::hard_link(path, path.with_extension("link"))),
        "change the mode" => of_io(fs::set_permissions(path, fs::Permissions::from_mode(0o600))),
        "look at" => of_io(fs::metadata(path)),
        "read the environment of its parent" => read_environment_of_parent(),
        "signal" => of_io(rustix::process::test_kill_process(parent()).map_err(Into::into)),
        "connect by TCP" => of_io(TcpStream::connect(&argument)),
        "send by UDP" => of_io(UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", &argument))),
        "connect by MPTCP" => of_io(connect_by_mptcp(&argument)),
        "connect to a socket" => of_io(UnixStream::connect(path)),
        "connect to an abstract socket" => {
            of_io(SocketAddr::from_abstract_name(&argument).and_then(|address| UnixStream::connect_addr(&address)))
        }
        "connect by TCP Fast Open" => of_io(connect_by_fast_open(&argument)),
        "open a socket" => of_io(open_socket(&argument)),
        "set the limit of" => of_io(set_limit(argument.parse().unwrap())),
        "run" => run(&argument),
        "run below all layers of Landlock" => run_below_all_layers(path),
        "listen" => of_io(TcpListener::bind("127.0.0.1:0")),
        _ => panic!("{attempt} is no attempt"),
    };
    match outcome {
        Ok(found) => println!("possible: {found}"),
        Err(reason) => println!("prevented: {reason}"),
    }
}

fn of_io<T: std::fmt::Debug>(result: io::Result<T>) -> Outcome {
    result.map(|found| format!("{found:?}")).map_err(|error| error.to_string())
}

fn parent() -> rustix::process::Pid {
    rustix::process::getppid().unwrap()
}

fn read_environment_of_parent() -> Outcome {
    let path = format!("/proc/{}/environ", parent().as_raw_nonzero());
    of_io(fs::read(path).map(|environment| environment.len()))
}

fn outlive_parent() -> Outcome {
    match rustix::process::parent_process_death_signal().unwrap() {
        Some(signal) => Err(format!("{signal:?}")),
        None => Ok("no signal".to_owned()),
    }
}

fn use_capabilities() -> Outcome {
    let effective = rustix::thread::capabilities(None).unwrap().effective;
    if effective.is_empty() { Err("none".to_owned()) } else { Ok(format!("{effective:?}")) }
}

/// Opens a connection of the protocol that extends TCP to several paths, and falls back to TCP.
fn connect_by_mptcp(address: &str) -> io::Result<()> {
    const MPTCP: u32 = 262;
    let protocol = Protocol::from_raw(MPTCP.try_into().unwrap());
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(protocol))?;
    let address: std::net::SocketAddr = address.parse().unwrap();
    Ok(rustix::net::connect(&socket, &address)?)
}

/// Sends data with the flag that connects a socket. The flag has no effect if the system does not connect so.
fn connect_by_fast_open(address: &str) -> io::Result<usize> {
    const FAST_OPEN: u32 = 0x2000_0000;
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let address: std::net::SocketAddr = address.parse().unwrap();
    Ok(rustix::net::sendto(&socket, b"x", SendFlags::from_bits_retain(FAST_OPEN), &address)?)
}

/// Opens a socket: numbers of its family, type and protocol.
fn open_socket(numbers: &str) -> io::Result<()> {
    let numbers: Vec<u32> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    let family = AddressFamily::from_raw(numbers[0].try_into().unwrap());
    let protocol = numbers[2].try_into().ok().map(Protocol::from_raw);
    let (kind, flags) = (SocketType::from_raw(numbers[1]), SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(family, kind, flags, protocol).map(drop)?)
}

/// Sets a limit of a process to the value that it has.
fn set_limit(process: i32) -> io::Result<()> {
    use rustix::process::{Pid, Resource, getrlimit, prlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(prlimit(Pid::from_raw(process), Resource::Nofile, limit).map(drop)?)
}

/// Runs a command of a shell.
fn run(command: &str) -> Outcome {
    let output = Command::new("/bin/sh").args(["-c", command]).output().map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\n', " ");
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(format!("{}{}", text(output.stderr), output.status))
    }
}

/// Restricts this process as often as Landlock allows, and starts a gate that restricts itself once more.
fn run_below_all_layers(gate: &Path) -> Outcome {
    const LAYERS: u32 = 16;
    for _ in 0..LAYERS {
        let rules = Ruleset::default().handle_access(AccessFs::MakeChar).unwrap().create().unwrap();
        rules.restrict_self().unwrap();
    }
    let own = std::process::id().to_string();
    let mut command = Command::new(gate);
    command.args(["__exec", &own, "1", "strict", "read", "/", "end", "/bin/echo", "executed"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let output = String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap();
    if output.starts_with("executed") { Ok(output) } else { Err(output.trim_end().to_owned()) }
}

/// Runs a copy of this program that has the set-user-ID bit and belongs to another account.
fn gain_privileges(copy: &str) -> Outcome {
    let own = rustix::process::geteuid().as_raw().to_string();
    let output = Command::new(copy).arg("print the account").output().map_err(|error| error.to_string())?;
    let account = String::from_utf8(output.stdout).unwrap();
    if account.trim() == own { Err(format!("account {own}")) } else { Ok(format!("account {}", account.trim())) }
}

fn use_descriptors() -> Outcome {
    let is_standard = |number: &str| ["0", "1", "2"].contains(&number);
    let paths: Vec<PathBuf> = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path()).collect();
    let others = paths.iter().filter(|path| !is_standard(path.file_name().unwrap().to_str().unwrap()));
    // The descriptor of the listing is closed by now, so it has no target.
    let targets = others.filter_map(|path| fs::read_link(path).ok());
    let found: Vec<String> = targets.map(|target| target.display().to_string()).collect();
    if found.is_empty() { Err("none".to_owned()) } else { Ok(found.join(" ")) }
}

fn dump_memory() -> Outcome {
    let status = Command::new(std::env::current_exe().unwrap()).arg("abort").status().unwrap();
    if status.core_dumped() { Ok(status.to_string()) } else { Err(status.to_string()) }
}

/// Looks for the file of another program in the folder for temporary files, and writes one itself.
fn read_temporary_files(other: &str) -> Outcome {
    let folders = ["TMPDIR", "TMP", "TEMP"].map(|name| PathBuf::from(std::env::var(name).unwrap_or_default()));
    let folder = &folders[0];
    fs::write(folder.join("own"), "x").unwrap();
    let (mode, name) = (fs::metadata(folder).unwrap().permissions().mode() & 0o777, Path::new(other).file_name());
    if fs::exists(folder.join(name.unwrap())).unwrap() {
        return Ok(folder.display().to_string());
    }
    assert!(folders.iter().all(|other| other == folder), "{folders:?}");
    Err(format!("mode {mode:o}"))
}

//! Rules of Landlock: the files and ports that a program reaches.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use rustix::fs::{Mode, OFlags};

use super::error::SandboxError;
use super::hidden_files::HiddenFiles;

/// Version of Landlock without which there is no strict sandbox: the first one that restricts TCP (Linux 6.7).
const REQUIRED: ABI = ABI::V4;

/// Programs, libraries and settings of the system, which a program reads. Some of them are links or missing.
const SYSTEM: [&str; 9] = ["/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/proc"];

/// Files of `/etc` that may be links to somewhere else: without them, no name is resolved and no certificate is verified.
const LINKED_SETTINGS: [&str; 3] = ["/etc/resolv.conf", "/etc/ssl/certs", "/etc/localtime"];

/// Devices that a program reads, and to which it writes. Others are terminals, and the disks of root.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Part of Landlock that a kernel may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Files and TCP: required.
    FilesAndTcp,
    /// Control requests to devices (Linux 6.10).
    Devices,
    /// Signals and abstract Unix sockets (Linux 6.12).
    Scopes,
}

/// Returns whether this system has a part of Landlock.
pub(super) fn has(part: Part) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = match part {
        Part::FilesAndTcp => required_rules(ruleset),
        Part::Devices => ruleset.handle_access(AccessFs::IoctlDev),
        Part::Scopes => ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal),
    };
    ruleset.and_then(Ruleset::create).is_ok()
}

/// Restricts this process, and all that it executes and starts, to what is allowed.
pub(super) fn apply(allowed: &AllowedAccess) -> Result<(), SandboxError> {
    let failed = |error: RulesetError| SandboxError::of("restrict the access to files and ports (Landlock)", error);
    let mut rules = create().map_err(failed)?;
    for path in system_paths() {
        // A path of the system may be missing.
        if let Ok(file) = PathFd::new(&path) {
            rules = add(rules, file, &path, AccessFs::from_read(REQUIRED)).map_err(failed)?;
        }
    }
    for path in DEVICES.map(Path::new) {
        if let Ok(file) = PathFd::new(path) {
            let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
            rules = add(rules, file, path, access).map_err(failed)?;
        }
    }
    let readable = allowed.readable.iter().map(|path| (path, AccessFs::from_read(REQUIRED)));
    let writable = allowed.writable.iter().map(|path| (path, AccessFs::from_all(REQUIRED)));
    for (path, access) in readable.chain(writable) {
        let file = PathFd::new(path).map_err(|error| SandboxError(error.to_string()))?;
        rules = add(rules, file, path, access).map_err(failed)?;
    }
    let hidden = HiddenFiles::find(&allowed.hidden);
    for path in &allowed.readable_in_part {
        rules = add_in_part(rules, path, &hidden).map_err(failed)?;
    }
    let ports = allowed.ports.iter().map(|port| Ok(NetPort::new(*port, AccessNet::ConnectTcp)));
    let status = rules.add_rules(ports).and_then(RulesetCreated::restrict_self).map_err(failed)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(SandboxError("the kernel does not enforce Landlock".to_owned())),
    }
}

/// Creates rules that deny all access.
fn create() -> Result<RulesetCreated, RulesetError> {
    required_rules(Ruleset::default().set_compatibility(CompatLevel::HardRequirement))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

fn required_rules(ruleset: Ruleset) -> Result<Ruleset, RulesetError> {
    ruleset.handle_access(AccessFs::from_all(REQUIRED))?.handle_access(AccessNet::ConnectTcp)
}

/// Allows to read a file, or a folder and what is below it except hidden files. The names of hidden files can be listed.
fn add_in_part(rules: RulesetCreated, path: &Path, hidden: &HiddenFiles) -> Result<RulesetCreated, RulesetError> {
    // What has gone meanwhile has no content to read.
    let (Ok(file), Ok(real)) = (PathFd::new(path), path.canonicalize()) else { return Ok(rules) };
    if !real.is_dir() || !hidden.can_be_below(&real) {
        return add(rules, file, path, AccessFs::from_read(REQUIRED));
    }
    let mut rules = add(rules, file, &real, AccessFs::ReadDir.into())?;
    for path in hidden.visible_below(&real) {
        // An entry that became a link meanwhile is not followed.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()) {
            rules = add(rules, file, &path, AccessFs::from_read(REQUIRED))?;
        }
    }
    Ok(rules)
}

/// Allows an access to a file, or to a folder and what is below it.
fn add(
    rules: RulesetCreated,
    file: impl AsFd,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let is_folder = path.is_dir();
    let access = if is_folder { access } else { access & (AccessFs::from_file(REQUIRED) | AccessFs::IoctlDev) };
    rules.add_rule(PathBeneath::new(file, access))
}

fn system_paths() -> impl Iterator<Item = PathBuf> {
    let linked = LINKED_SETTINGS.into_iter().filter_map(|path| std::fs::canonicalize(path).ok());
    SYSTEM.into_iter().map(PathBuf::from).chain(linked)
}

/// Files and ports that a program in a strict sandbox reaches, besides the programs and settings of the system, and its
/// folder for temporary files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedAccess {
    /// Existing files and folders that it reads, with what is below them.
    pub readable: Vec<PathBuf>,
    /// Existing files and folders that it reads, with what is below them at its start except [`AllowedAccess::hidden`].
    pub readable_in_part: Vec<PathBuf>,
    /// Patterns of [`HiddenFiles`].
    pub hidden: Vec<PathBuf>,
    /// Existing files and folders that it reads and changes, with what is below them.
    pub writable: Vec<PathBuf>,
    /// Ports to which it opens TCP connections, on every machine.
    pub ports: Vec<u16>,
}

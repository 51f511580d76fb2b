//! Environment of the process: working folder, environment variables, time and user account. The library does not read
//! them itself; it receives them as values.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, place_below, read_regular, utf8};
use bridge::message_text::MessageText;
use config::{Account, ProcessContext, Repository};
use jiff::Timestamp;
use provisioner::operation::ProcessIdentity;

use super::exit::CliError;
use super::lock_process::{has_ended_for_certain, own_fingerprint};

/// Variable with the filter of the log.
pub(crate) const LOG_FILTER: &str = "SC_LOG";
/// Variable with the path of the log.
pub(crate) const LOG_FILE: &str = "SC_LOG_FILE";
/// Variable with the form of the lines of the log.
pub(crate) const LOG_FORMAT: &str = "SC_LOG_FORMAT";

/// Returns the environment variables, the time and the account of this process.
pub(crate) fn process_context() -> ProcessContext {
    // Variables that are not UTF-8 are skipped, as a stack cannot refer to them. Those of the log are for this process alone: a
    // plugin could be another `sc`.
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| ![LOG_FILTER, LOG_FILE, LOG_FORMAT].contains(&name.as_str()))
        .collect();
    let accounts = read_regular(Path::new("/etc/passwd"), MAX_DOCUMENT_BYTES).and_then(utf8).unwrap_or_default();
    let user = rustix::process::getuid().as_raw().to_string();
    let account = account(&accounts, &user, &environment);
    ProcessContext { environment, now: Timestamp::now(), time_zone: None, account }
}

/// Returns the working folder: `cwd`, else that of the process.
///
/// # Errors
/// Wrong usage, if `cwd` is not a folder.
pub(crate) fn working_folder(cwd: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the current working folder cannot be determined")?;
    let Some(cwd) = cwd else { return Ok(here) };
    let folder = here.join(cwd);
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = MessageText::new(format_args!("there is no folder {}", folder.display()));
    Err(CliError::usage(message, "give an existing folder with --cwd").into())
}

/// Returns the place of a file that the user names to be written, relative to a working folder: the file behind the links.
///
/// # Errors
/// [`FileError`]: the path is in the repository of the working folder, and a link leads out of that. The user may only have cloned it.
pub(crate) fn place_to_write(folder: &Path, path: &Path) -> Result<PathBuf, FileError> {
    let path = folder.join(path);
    let root = Repository::discover(folder).root;
    match lexically_normal(&path).strip_prefix(&root) {
        Ok(below) => place_below(&root, below),
        Err(_) => Ok(path.canonicalize().unwrap_or(path)),
    }
}

/// Returns a path without `.` and `..`, as it is written: the links in it are not followed.
fn lexically_normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    normal
}

/// Returns what identifies this process. It trusts repositories of its own account and of root; as root also those of the
/// user who called `sudo`, as git does.
pub(crate) fn identity(environment: &BTreeMap<String, String>) -> ProcessIdentity {
    const ROOT: u32 = 0;
    let user = rustix::process::geteuid().as_raw();
    let caller = environment.get("SUDO_UID").filter(|_| user == ROOT).and_then(|id| id.parse().ok());
    ProcessIdentity {
        pid: std::process::id(),
        user,
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        fingerprint: own_fingerprint(),
        has_ended: has_ended_for_certain,
        trusted_owners: [ROOT, user].into_iter().chain(caller).collect(),
    }
}

/// Returns the account of a user id: that of the account database, else that of the environment. Go programs without
/// cgo look it up in this order.
fn account(accounts: &str, id: &str, environment: &BTreeMap<String, String>) -> Option<Account> {
    let listed = accounts.lines().find_map(|line| {
        let [username, _, found, _, name, home, ..] = line.split(':').collect::<Vec<_>>()[..] else { return None };
        (found == id).then(|| Account {
            home: home.into(),
            username: username.to_owned(),
            id: id.to_owned(),
            // The field may continue with an address and telephone numbers.
            name: name.split(',').next().unwrap_or_default().to_owned(),
        })
    });
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    listed.or_else(|| {
        Some(Account {
            home: variable("HOME")?.into(),
            username: variable("USER")?.clone(),
            id: id.to_owned(),
            name: String::new(),
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn file_to_write_is_not_led_out_of_the_repository() {
        let (repository, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [root, elsewhere] = [&repository, &elsewhere].map(|folder| folder.path().canonicalize().unwrap());
        let work = root.join("work");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir(&work).unwrap();
        fs::write(elsewhere.join("file"), "mine").unwrap();
        symlink(&elsewhere, work.join("out")).unwrap();
        symlink(elsewhere.join("file"), work.join("file")).unwrap();
        symlink(elsewhere.join("none"), work.join("dangling")).unwrap();
        symlink("../other", work.join("inside")).unwrap();
        fs::write(root.join("other"), "").unwrap();
        let place = |path: &str| place_to_write(&work, Path::new(path)).ok();
        for refused in ["out/file", "file", "dangling", "../work/file", "./out/new/deep"] {
            assert_eq!(place(refused), None, "{refused}");
        }
        assert_eq!(place("new/file"), Some(work.join("new/file")));
        assert_eq!(place("inside"), Some(root.join("other")));
        // What is outside is named by the user.
        let named = elsewhere.join("file");
        assert_eq!(place(&named.display().to_string()), Some(named.clone()));
        symlink(&named, elsewhere.join("link")).unwrap();
        assert_eq!(place(&elsewhere.join("link").display().to_string()), Some(named));
    }

    #[test]
    fn account_is_read_from_passwd_or_else_from_the_environment() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000:My Self,Room 1,,:/home/me:/bin/sh\n";
        let environment =
            BTreeMap::from([("HOME".to_owned(), "/tmp/h".to_owned()), ("USER".to_owned(), "guest".to_owned())]);
        let found =
            |id| account(accounts, id, &environment).map(|account| (account.username, account.name, account.home));
        assert_eq!(found("1000"), Some(("me".to_owned(), "My Self".to_owned(), "/home/me".into())));
        assert_eq!(found("7"), Some(("guest".to_owned(), String::new(), "/tmp/h".into())));
        assert!(account(accounts, "7", &BTreeMap::new()).is_none());
    }
}

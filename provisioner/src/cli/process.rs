//! Environment of the process: working folder, environment variables, time and user account. The library does not read
//! them itself; it receives them as values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bridge::fs::{MAX_DOCUMENT_BYTES, read_regular, utf8};
use bridge::message_text::MessageText;
use config::{Account, ProcessContext};
use jiff::Timestamp;
use provisioner::operation::ProcessIdentity;

use super::exit::CliError;
use super::lock_process::{has_ended_for_certain, own_fingerprint};

/// Returns the environment variables, the time and the account of this process.
pub(crate) fn process_context() -> ProcessContext {
    // Variables that are not UTF-8 are skipped, as a stack cannot refer to them.
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
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
    use super::*;

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

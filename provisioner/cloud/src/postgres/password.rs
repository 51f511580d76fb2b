//! Passwords: in a URL, in the environment, in a password file.

use std::fmt;
use std::path::Path;

use bridge::fs::{FileError, read_if_exists, utf8};
use zeroize::Zeroizing;

/// Limit of a password file.
const FILE_LIMIT: u64 = 1024 * 1024;

/// Password, wiped from memory when dropped and never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(Zeroizing<String>);

impl Password {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the password itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[password]")
    }
}

/// Properties of a connection that select a line of a password file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// Returns the password for a login from a password file. Like Pulumi's driver, ignores a file that does not exist, and
/// one that other users can read.
///
/// # Errors
/// [`FileError`] if the file cannot be read.
pub(super) fn read_password(path: &Path, login: Login<'_>) -> Result<Option<Password>, FileError> {
    if is_open_to_others(path) {
        return Ok(None);
    }
    let Some(content) = read_if_exists(path, FILE_LIMIT)? else { return Ok(None) };
    let text = utf8(content).map_err(FileError::of("read", path))?;
    Ok(find(&text, login))
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> bool {
    false
}

/// Returns the password of the first line that applies: `host:port:database:user:password`, where `*` is any value, and
/// a backslash makes the next character an ordinary one.
fn find(text: &str, login: Login<'_>) -> Option<Password> {
    let is_socket = login.host.starts_with(['/', '@']);
    let port = login.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields: [String; 5] = fields(line).try_into().ok()?;
        let [host, number, database, user, password] = fields;
        let applies = |field: &str, value: &str| field == "*" || field == value;
        let selected = (applies(&host, login.host) || (is_socket && host == "localhost"))
            && applies(&number, &port)
            && applies(&database, login.database)
            && applies(&user, login.user);
        selected.then(|| Password::new(password))
    })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            ':' => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(literal);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# host:port:database:user:password
db.example.com:5432:reef:ada:one
db.example.com:*:*:ada:two
localhost:5432:reef:ada:th\\:ree\\\\
too:few:fields
*:*:other:*:four
";

    fn password(host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        find(FILE, Login { host, port, database, user }).map(|found| found.reveal().to_owned())
    }

    #[test]
    fn first_line_that_applies_has_the_password() {
        assert_eq!(password("db.example.com", 5432, "reef", "ada").as_deref(), Some("one"));
        assert_eq!(password("db.example.com", 5433, "reef", "ada").as_deref(), Some("two"));
        assert_eq!(password("db.example.com", 5432, "reef", "bob"), None);
        assert_eq!(password("elsewhere", 1, "other", "bob").as_deref(), Some("four"));
    }

    #[test]
    fn socket_is_localhost_and_a_backslash_quotes() {
        assert_eq!(password("/run/postgresql", 5432, "reef", "ada").as_deref(), Some("th:ree\\"));
    }

    #[test]
    fn file_that_others_can_read_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        let login = Login { host: "h", port: 1, database: "d", user: "u" };
        assert_eq!(read_password(&path, login).unwrap(), None);
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        for (mode, expected) in [(0o600, true), (0o640, false), (0o604, false)] {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_password(&path, login).unwrap().is_some(), expected, "{mode:o}");
        }
    }
}

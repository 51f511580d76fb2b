//! Lines of `.gitignore` for secret files.

use std::path::Path;

use bridge::fs::{Access, FileError, MAX_DOCUMENT_BYTES, place_below, read_if_exists, utf8};

use crate::temporary::TemporaryFolder;

const FILE: &str = ".gitignore";

/// Adds a line for a path to the `.gitignore` of a folder, unless there is one. Returns whether the file was changed.
///
/// The text is that of the Go program, a line end and the path, and a line end behind it: a line that is appended next would change the
/// path. An equal line is found wherever it stands, and a longer one is not taken for it.
///
/// # Errors
/// [`FileError`].
pub fn add_to_gitignore(root: &Path, path: &str) -> Result<bool, FileError> {
    let text = read(root)?.unwrap_or_default();
    let line = pattern(path);
    if text.lines().any(|known| matches(known, &line)) {
        return Ok(false);
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write(root, &format!("{text}{end}{line}\n"))?;
    Ok(true)
}

/// Removes the lines for a path.
pub(crate) fn remove_from_gitignore(root: &Path, path: &str) -> Result<(), FileError> {
    let Some(text) = read(root)? else { return Ok(()) };
    let line = pattern(path);
    let kept: Vec<&str> = text.split('\n').filter(|known| !matches(known, &line)).collect();
    let kept = kept.join("\n");
    if kept == text { Ok(()) } else { write(root, &kept) }
}

fn matches(known: &str, line: &str) -> bool {
    let known = known.strip_suffix('\r').unwrap_or(known);
    known == line || known.strip_prefix('/') == Some(line)
}

/// Returns the pattern that matches a path only: characters with a meaning are escaped.
fn pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for (at, character) in path.char_indices() {
        let is_special = match character {
            '*' | '?' | '[' | '\\' => true,
            '#' | '!' => at == 0,
            ' ' => path[at..].trim_end_matches(' ').is_empty(),
            _ => false,
        };
        if is_special {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn read(root: &Path) -> Result<Option<String>, FileError> {
    let path = root.join(FILE);
    read_if_exists(&path, MAX_DOCUMENT_BYTES)?.map(utf8).transpose().map_err(FileError::of("read", &path))
}

fn write(root: &Path, text: &str) -> Result<(), FileError> {
    // A link inside of the repository stays a link.
    let place = place_below(root, Path::new(FILE))?;
    TemporaryFolder::open(root)?.write(&place, text.as_bytes(), Access::Shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, path: &str, added: &str, removed: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        if let Some(before) = before {
            std::fs::write(&file, before).unwrap();
        }
        add_to_gitignore(folder.path(), path).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), added, "{before:?} and {path}");
        remove_from_gitignore(folder.path(), path).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), removed, "{before:?} and {path}");
    }

    #[test]
    fn line_is_added_once_and_removed_wherever_it_stands() {
        check(None, "a.txt", "\na.txt\n", "\n");
        check(Some("/target"), "a.txt", "/target\na.txt\n", "/target\n");
        check(Some("/target\n"), "a.txt", "/target\na.txt\n", "/target\n");
        check(Some("a.txt\nb"), "a.txt", "a.txt\nb", "b");
        check(Some("x\n/a.txt\r\n"), "a.txt", "x\n/a.txt\r\n", "x\n");
        check(Some("\na.txt.bak"), "a.txt", "\na.txt.bak\na.txt\n", "\na.txt.bak\n");
        check(Some(""), "#a*[b ", "\n\\#a\\*\\[b\\ \n", "\n");
    }
}

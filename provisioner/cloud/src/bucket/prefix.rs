//! Beginnings of keys.

use percent_encoding::percent_decode_str;

/// Decodes the path of a URL and makes it a prefix, as Pulumi does: without slashes before it, with one after it.
///
/// # Errors
/// The reason why no key can have it.
pub(crate) fn parse_prefix(path: &str) -> Result<String, &'static str> {
    let Ok(decoded) = percent_decode_str(path).decode_utf8() else { return Err("it is not UTF-8") };
    let trimmed = decoded.trim_start_matches('/');
    if trimmed.is_empty() {
        return Ok(String::new());
    }
    let folders = trimmed.strip_suffix('/').unwrap_or(trimmed);
    for folder in folders.split('/') {
        match folder {
            "" => return Err("two slashes follow each other"),
            "." | ".." => return Err("a folder is `.` or `..`"),
            _ if folder.chars().any(char::is_control) => return Err("it has a control character"),
            _ => {}
        }
    }
    Ok(format!("{folders}/"))
}

//! Names of members of archives.

/// Names a member of an archive that is itself a member of another: joined with a slash and cleaned of empty, `.` and
/// `..` parts. A name directly in the outermost archive stays as it is.
pub fn member_name(archive: &str, member: &str) -> String {
    let rooted = if archive.is_empty() { member } else { archive }.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in archive.split('/').chain(member.split('/')) {
        match part {
            "" | "." => (),
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => (),
            part => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) if archive.is_empty() && member.is_empty() => String::new(),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

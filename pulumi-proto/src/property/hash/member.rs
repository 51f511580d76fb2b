//! Names of archive members.

/// Returns the name of a member of a nested archive: both names joined like Go's `path.Join`, without empty and `.`
/// parts and with resolved `..` parts. With an empty `archive`, normalizes `member`.
///
/// Member names of the outermost archive are hashed unchanged, without this function.
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

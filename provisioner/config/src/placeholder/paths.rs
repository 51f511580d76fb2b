//! Grammar of the paths in placeholders: `KEY[ENTRY].name[0].name`.

/// Splits the target of a reference at the first dot outside of brackets: the key of the resource, perhaps with an entry of its `forEach`, and
/// the path.
pub(super) fn split_target(target: &str) -> (&str, &str) {
    let mut is_inside = false;
    for (at, byte) in target.bytes().enumerate() {
        match byte {
            b'[' => is_inside = true,
            b']' => is_inside = false,
            b'.' if !is_inside => return (&target[..at], &target[at + 1..]),
            _ => {}
        }
    }
    (target, "")
}

/// Splits `KEY[ENTRY]` into its key and its entry of a `forEach`.
pub(crate) fn split_entry(text: &str) -> (&str, Option<&str>) {
    match text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((key, entry)) if !key.is_empty() => (key, Some(entry)),
        _ => (text, None),
    }
}

/// Returns the steps of the path of a reference: names after dots, and list indices, which may be in brackets
/// (`list[0].name`). `None` for another text.
pub(super) fn path_steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, mut indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return None;
        }
        steps.push(name.to_owned());
        while !indices.is_empty() {
            let (index, rest) = indices.strip_prefix('[')?.split_once(']')?;
            let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            steps.push(is_number.then(|| index.parse::<usize>().ok())??.to_string());
            indices = rest;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_of_a_list_is_a_step_with_or_without_brackets() {
        let steps = |path| path_steps(path).map(|steps| steps.join(" "));
        for (path, expected) in [
            ("a", "a"),
            ("list.0.name", "list 0 name"),
            ("list[0].name", "list 0 name"),
            ("lists[10][2]", "lists 10 2"),
            ("a.b-c[007].d", "a b-c 7 d"),
        ] {
            assert_eq!(steps(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["", ".", "a.", "a..b", "[0]", "a.[0]", "a[", "a[]", "a[x]", "a[-1]", "a[+1]", "a[0]b", "a[0"] {
            assert_eq!(steps(path), None, "{path}");
        }
    }
}

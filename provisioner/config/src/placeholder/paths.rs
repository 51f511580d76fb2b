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

/// Splits `NAME.path` or `NAME[step].path` into the name of a function and the rest, which begins with `.` or `[` or is empty.
pub(super) fn split_function(target: &str) -> (&str, &str) {
    target.split_at(target.find(['.', '[']).unwrap_or(target.len()))
}

/// Returns the steps of a path after a name (`.list[0].name`, `[a.b]`); empty for an empty path, `None` for another text.
pub(super) fn steps_after_name(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let step;
        (step, rest) = match rest.strip_prefix('[') {
            Some(bracket) => {
                let (text, rest) = bracket.split_once(']').filter(|(text, _)| !text.is_empty() && *text != "*")?;
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let index = text.parse::<usize>().ok().filter(|_| is_number);
                (index.map_or_else(|| text.to_owned(), |index| index.to_string()), rest)
            }
            None => {
                let name = rest.strip_prefix('.')?;
                let (name, rest) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
                (name.to_owned(), rest)
            }
        };
        if step.is_empty() {
            return None;
        }
        steps.push(step);
    }
    Some(steps)
}

/// Returns the steps of the path of a reference: names after dots, and indices or texts in brackets (`list[0].name`,
/// `tags[a.b]`). `None` for another text.
pub(super) fn path_steps(path: &str) -> Option<Vec<String>> {
    steps_after_name(&format!(".{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_or_text_in_brackets_is_a_step() {
        let steps = |path| path_steps(path).map(|steps| steps.join(" "));
        for (path, expected) in [
            ("a", "a"),
            ("list.0.name", "list 0 name"),
            ("list[0].name", "list 0 name"),
            ("lists[10][2]", "lists 10 2"),
            ("a.b-c[007].d", "a b-c 7 d"),
            ("tags[a.b/c].x", "tags a.b/c x"),
            ("a[x][-1]", "a x -1"),
        ] {
            assert_eq!(steps(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["", ".", "a.", "a..b", "[0]", "a.[0]", "a[", "a[]", "a[*]", "a[0]b", "a[0"] {
            assert_eq!(steps(path), None, "{path}");
        }
        let of_function = |target| {
            let (name, path) = split_function(target);
            steps_after_name(path).map(|steps| format!("{name}: {}", steps.join(" ")))
        };
        for (target, expected) in [("zones", "zones: "), ("zones.names[0]", "zones: names 0"), ("z[a.b].c", "z: a.b c")]
        {
            assert_eq!(of_function(target).as_deref(), Some(expected), "{target}");
        }
        assert_eq!(of_function("zones."), None);
    }
}

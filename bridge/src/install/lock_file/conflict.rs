//! Marks that git leaves in a file whose merge it could not complete.

/// Returns the line of the first mark, from 1; `None` without a mark.
pub(super) fn has_markers(text: &str) -> Option<usize> {
    text.lines().position(is_mark).map(|at| at + 1)
}

fn is_mark(line: &str) -> bool {
    ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r'])))
}

/// Returns the texts of both sides of a merge; `None` without marks. The common ancestor, which some settings of git add, is left out.
pub(super) fn sides(text: &str) -> Option<[String; 2]> {
    has_markers(text)?;
    let (mut sides, mut taken) = ([String::new(), String::new()], [true, true]);
    for line in text.lines() {
        match line.get(..7).filter(|_| is_mark(line)) {
            Some("<<<<<<<") => taken = [true, false],
            Some("|||||||") => taken = [false, false],
            Some("=======") => taken = [false, true],
            Some(_) => taken = [true, true],
            None => {
                for (side, _) in sides.iter_mut().zip(taken).filter(|(_, taken)| *taken) {
                    side.push_str(line);
                    side.push('\n');
                }
            }
        }
    }
    Some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_taken_apart() {
        let text = "a\n<<<<<<< HEAD\nb\n||||||| base\nc\n=======\nd\n>>>>>>> next\ne\n";
        assert_eq!(sides(text), Some(["a\nb\ne\n".to_owned(), "a\nd\ne\n".to_owned()]));
        assert_eq!(
            (has_markers(text), sides("a\n======== b\n"), has_markers("a\n=======\n")),
            (Some(2), None, Some(2))
        );
    }
}

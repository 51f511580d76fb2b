//! Selection among the stacks of a repository, by name.

use super::SetupError;
use super::key_stack::owner_name;

/// Selection among the stacks of a repository. The stack of a key (`<stack>--sc`) can be named as well.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    /// Stacks with these names; all if there is no name here, of which there must be one.
    Named(&'a [String]),
    /// Stack with this name, or the only one.
    One(Option<&'a str>),
    /// Stacks as [`Selection::Named`]. What they depend on is loaded, too, without being requested.
    WithDependencies(&'a [String]),
    /// All stacks, of which there may be none.
    All,
}

impl Selection<'_> {
    /// Returns the names that were given; none if the selection is among all stacks.
    pub(super) fn names(self) -> impl Iterator<Item = String> {
        let names = match self {
            Self::Named(names) | Self::WithDependencies(names) => names.to_vec(),
            Self::One(name) => name.map(str::to_owned).into_iter().collect(),
            Self::All => Vec::new(),
        };
        names.into_iter().map(|name| name.trim().to_owned())
    }
}

/// Returns the names of the selected stacks, without duplicates.
pub(super) fn select(existing: &[String], selection: Selection<'_>) -> Result<Vec<String>, SetupError> {
    match selection {
        Selection::All => Ok(existing.to_vec()),
        Selection::Named([]) | Selection::WithDependencies([]) if existing.is_empty() => Err(SetupError::NoStacks),
        Selection::Named([]) | Selection::WithDependencies([]) => Ok(existing.to_vec()),
        Selection::Named(names) | Selection::WithDependencies(names) => {
            let mut selected: Vec<String> = Vec::new();
            for name in names.iter().map(|name| name.trim()) {
                check_exists(existing, name)?;
                if !selected.iter().any(|known| known == name) {
                    selected.push(name.to_owned());
                }
            }
            Ok(selected)
        }
        Selection::One(name) => match (name.map(str::trim), existing) {
            (Some(name), _) => check_exists(existing, name).map(|()| vec![name.to_owned()]),
            (None, [only]) => Ok(vec![only.clone()]),
            (None, []) => Err(SetupError::NoStacks),
            (None, several) => Err(SetupError::SeveralStacks(several.to_vec())),
        },
    }
}

fn check_exists(existing: &[String], name: &str) -> Result<(), SetupError> {
    if name.is_empty() {
        return Err(SetupError::EmptyName);
    }
    if existing.is_empty() {
        return Err(SetupError::NoStacks);
    }
    if stack_in_files(existing, name).is_some() {
        return Ok(());
    }
    Err(SetupError::UnknownStack { name: name.to_owned(), existing: existing.to_vec() })
}

/// Returns the name of the stack with the files of a stack, which may be that of a key; `None` if there is none.
pub(super) fn stack_in_files<'n>(existing: &[String], name: &'n str) -> Option<&'n str> {
    let exists = |name: &&str| existing.iter().any(|known| known == name);
    Some(name).filter(exists).or_else(|| owner_name(name).filter(exists))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    fn error_text(result: Result<Vec<String>, SetupError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn stacks_are_selected_by_name_without_duplicates_or_all() {
        let existing = names(["network", "reef", "shore"]);
        let named = |names: &[&str]| -> Result<Vec<String>, SetupError> {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            select(&existing, Selection::Named(&names))
        };
        assert_eq!(named(&[]).unwrap(), existing);
        assert_eq!(named(&["shore", " reef", "shore"]).unwrap(), ["shore", "reef"]);
        assert_eq!(error_text(named(&["ref"])), "there is no stack ref");
        for empty in [&[""][..], &["shore", ""], &[" "]] {
            assert_eq!(error_text(named(empty)), "the name of a stack is empty");
        }
        assert_eq!(select(&existing, Selection::All).unwrap(), existing);
        assert_eq!(select(&[], Selection::All).unwrap(), [""; 0]);
        assert_eq!(error_text(select(&[], Selection::Named(&[]))), "there are no stacks");
        assert_eq!(error_text(select(&[], Selection::Named(&names(["reef"])))), "there are no stacks");
    }

    #[test]
    fn single_stack_is_selected_by_name_or_is_the_only_one() {
        let existing = names(["reef", "shore"]);
        let one = |existing: &[String], name| select(existing, Selection::One(name));
        assert_eq!(one(&existing[..1], None).unwrap(), ["reef"]);
        assert_eq!(one(&existing, Some("shore")).unwrap(), ["shore"]);
        assert_eq!(error_text(one(&existing, None)), "there are 2 stacks: reef, shore");
        assert_eq!(error_text(one(&existing[..1], Some(""))), "the name of a stack is empty");
        assert_eq!(error_text(one(&existing, Some("mountains"))), "there is no stack mountains");
        assert_eq!(error_text(one(&[], None)), "there are no stacks");
    }
}

//! Name of a stack within a store.

use std::fmt;

/// Reference to a stack of a project.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackReference {
    /// Name of the project; `None` in a store with the legacy layout.
    project: Option<String>,
    stack: String,
}

/// Reason why a text is not a valid stack reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// A name is too short, too long, or has invalid characters.
    #[error("{0:?} is not a valid name (1 to 100 letters, digits, dots, dashes and underscores)")]
    Name(String),
    /// The organization is not `organization`.
    #[error("{0:?} names another organization than \"organization\", the only one of this kind of store")]
    Organization(String),
    /// The text has too many parts.
    #[error("{0:?} is not a stack reference (expected STACK, organization/STACK or organization/PROJECT/STACK)")]
    Shape(String),
}

impl StackReference {
    /// Creates a reference from the names of a project and a stack.
    ///
    /// # Errors
    /// [`ReferenceError::Name`].
    pub fn new(project: &str, stack: &str) -> Result<Self, ReferenceError> {
        for name in [project, stack] {
            let allowed = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
            if name.is_empty() || name.len() > 100 || !name.chars().all(allowed) || [".", ".."].contains(&name) {
                return Err(ReferenceError::Name(name.to_owned()));
            }
        }
        Ok(Self { project: Some(project.to_owned()), stack: stack.to_owned() })
    }

    /// Creates a reference for a store with the legacy layout, whose stacks have no project.
    ///
    /// # Errors
    /// [`ReferenceError::Name`].
    pub fn without_project(stack: &str) -> Result<Self, ReferenceError> {
        Ok(Self { project: None, ..Self::new("any", stack)? })
    }

    /// Parses `STACK`, `organization/STACK` or `organization/PROJECT/STACK`.
    ///
    /// # Errors
    /// [`ReferenceError`].
    pub fn parse(text: &str, default_project: &str) -> Result<Self, ReferenceError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (project, stack) = match parts[..] {
            [stack] => return Self::new(default_project, stack),
            ["organization", stack] => (default_project, stack),
            ["organization", project, stack] => (project, stack),
            [_, _] | [_, _, _] => return Err(ReferenceError::Organization(text.to_owned())),
            _ => return Err(ReferenceError::Shape(text.to_owned())),
        };
        Self::new(project, stack)
    }

    /// Returns the name of the project; empty in a store with the legacy layout.
    pub fn project(&self) -> &str {
        self.project.as_deref().unwrap_or_default()
    }

    /// Returns the name of the stack.
    pub fn stack(&self) -> &str {
        &self.stack
    }
}

impl fmt::Display for StackReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.project {
            None => f.write_str(&self.stack),
            Some(project) => write!(f, "organization/{project}/{}", self.stack),
        }
    }
}

impl fmt::Debug for StackReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organization_and_default_project_may_be_omitted() {
        for text in ["dev", "organization/dev", "organization/reef/dev"] {
            assert_eq!(StackReference::parse(text, "reef").unwrap().to_string(), "organization/reef/dev");
        }
        assert!(matches!(StackReference::parse("me/reef/dev", "reef"), Err(ReferenceError::Organization(_))));
        assert!(matches!(StackReference::parse("a/b/c/d", "reef"), Err(ReferenceError::Shape(_))));
        for bad in ["", "a b", "..", "é", "a\0"] {
            assert!(matches!(StackReference::parse(bad, "reef"), Err(ReferenceError::Name(_))), "{bad:?}");
        }
    }
}

//! Settings of a new profile, which are those of the profiles that a repository has already.

use std::path::Path;

use bridge::yaml::from_str;
use config::Repository;
use config::sibling_profiles::SharedSettings;
use serde_json::Value;

/// Settings of a new profile, but its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfileSettings {
    /// The Pulumi project.
    pub(crate) project: String,
    /// Folder of the stacks; `None` for `.sc/stacks`.
    pub(crate) stacks_dir: Option<String>,
    /// File that has these settings; `None`: the project is named after the folder of the repository.
    pub(crate) file: Option<String>,
}

impl ProfileSettings {
    /// Returns the settings of the profiles or the template of a repository, else a project with the name of its folder.
    pub(crate) fn of(repository: &Repository) -> Self {
        match SharedSettings::of(repository) {
            Some(SharedSettings { project_name, stacks_dir, file }) => {
                Self { project: project_name, stacks_dir, file: Some(file) }
            }
            None => Self { project: name_of_folder(&repository.root), stacks_dir: None, file: None },
        }
    }

    /// Returns the settings as lines of a profile.
    pub(crate) fn text(&self) -> String {
        let stacks_dir = self.stacks_dir.as_ref().map(|folder| format!("stacksDir: {}\n", scalar(folder)));
        format!("projectName: {}\n{}", scalar(&self.project), stacks_dir.unwrap_or_default())
    }

    /// Returns the end of a message about a file with these settings: where they come from.
    pub(crate) fn origin(&self) -> String {
        self.file.as_ref().map(|file| format!(", with the project of {file}")).unwrap_or_default()
    }
}

/// Returns a text as YAML: plain if it is read as the same text, else in quotes, as in JSON.
fn scalar(text: &str) -> String {
    let quoted = Value::from(text);
    match from_str::<Value>(text) {
        Ok(read) if read == quoted => text.to_owned(),
        _ => quoted.to_string(),
    }
}

/// Returns the name of a folder, with characters that a project cannot have replaced.
fn name_of_folder(root: &Path) -> String {
    let folder = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let name: String =
        folder.chars().take(100).map(|character| if is_valid(character) { character } else { '-' }).collect();
    let has_letters = name.contains(|character: char| character.is_ascii_alphanumeric());
    if has_letters { name } else { "project".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_has_the_name_of_the_folder_as_far_as_possible() {
        let table = [("reef", "reef"), ("my reef", "my-reef"), ("/", "project"), ("…", "project"), ("a.b_c", "a.b_c")];
        for (folder, expected) in table {
            assert_eq!(name_of_folder(&Path::new("/").join(folder)), expected, "{folder}");
        }
    }

    #[test]
    fn values_that_yaml_reads_as_another_kind_are_quoted() {
        let settings =
            ProfileSettings { project: "1.30".to_owned(), stacks_dir: Some("yes: no".to_owned()), file: None };
        assert_eq!(settings.text(), "projectName: \"1.30\"\nstacksDir: \"yes: no\"\n");
    }
}

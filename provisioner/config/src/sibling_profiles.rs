//! All profiles of a repository: what a new one takes from them, and a warning where they differ.
//!
//! The project is a part of the name of each state, so that with another project all resources would be created a second time.

use std::path::{Component, Path, PathBuf};

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::files;
use crate::process_context::Repository;
use crate::profile::{DEFAULT_STACKS_FOLDER, Profile};

/// Name of the profile of commands without `--profile`.
const DEFAULT: &str = "default";
/// Template of a profile, for those who clone the repository.
pub const PROFILE_TEMPLATE: &str = ".sc/cfg.yaml.template";

/// Settings that the profiles of a repository have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    /// The Pulumi project.
    pub project_name: String,
    /// Folder of the stacks; `None` for `.sc/stacks`.
    pub stacks_dir: Option<String>,
    /// File that has the settings, relative to the root of the repository.
    pub file: String,
}

impl SharedSettings {
    /// Returns the settings of the default profile, else of another profile, else of the template. A file that cannot be read, or
    /// that names no project, counts for nothing.
    pub fn of(repository: &Repository) -> Option<Self> {
        let profiles = profiles(repository);
        let (default, others): (Vec<_>, Vec<_>) = profiles.into_iter().partition(|(name, _)| name == DEFAULT);
        let of_profiles =
            default.into_iter().chain(others).map(|(name, profile)| (format!(".sc/cfg.{name}.yaml"), profile));
        let template = template(repository).map(|profile| (PROFILE_TEMPLATE.to_owned(), profile));
        of_profiles.chain(template).find_map(|(file, profile)| {
            let project_name = profile.project().ok()?.to_owned();
            Some(Self { project_name, stacks_dir: profile.stacks_dir, file })
        })
    }
}

/// Returns the warnings of a profile that has another project, or another folder of stacks, than other profiles of the repository or
/// their template. The profile may come from the environment, beside a file with its name.
pub fn differences(name: &str, profile: &Profile, repository: &Repository) -> Vec<Diagnostic> {
    let others: Vec<_> = profiles(repository)
        .into_iter()
        .chain(template(repository).map(|template| (PROFILE_TEMPLATE.to_owned(), template)))
        .collect();
    let differing = |setting: &dyn Fn(&Profile) -> Option<String>| {
        let own = setting(profile)?;
        let different = |(name, other): &(String, Profile)| {
            setting(other).filter(|value| *value != own).map(|value| (name.clone(), value))
        };
        let found: Vec<_> = others.iter().filter_map(different).collect();
        (!found.is_empty()).then_some((own, listed(&found)))
    };
    let project = differing(&|profile| profile.project().ok().map(str::to_owned)).map(|(own, others)| {
        let summary = format_args!(
            "the profile {name:?} has the project {own:?}, and other profiles of the repository have others: {others}"
        );
        let help = "each project has states of its own: a command with another project creates everything again; \
                    write the same `projectName` into all profiles";
        Diagnostic::warning(Code("profile"), profile.project_name_span, MessageText::new(summary)).help(help)
    });
    let folder = differing(&|profile| Some(stacks_folder(profile, repository).display().to_string())).map(|(own, others)| {
        let summary = format_args!("the profile {name:?} has its stacks in {own:?}, and other profiles of the repository elsewhere: {others}");
        let help = "a command sees the stacks of its own profile only; write the same `stacksDir` into all profiles";
        Diagnostic::warning(Code("profile"), None, MessageText::new(summary)).help(help)
    });
    project.into_iter().chain(folder).collect()
}

/// Lists names of profiles with their values.
fn listed(found: &[(String, String)]) -> String {
    found.iter().map(|(name, value)| format!("{name:?} has {value:?}")).collect::<Vec<_>>().join(", ")
}

/// Returns the folder of the stacks, relative to the root of the repository where it is below it.
fn stacks_folder(profile: &Profile, repository: &Repository) -> PathBuf {
    let folder = Path::new(profile.stacks_dir.as_deref().unwrap_or(DEFAULT_STACKS_FOLDER));
    let folder = folder.strip_prefix(&repository.root).unwrap_or(folder);
    folder.components().filter(|component| *component != Component::CurDir).collect()
}

/// Returns the template of a profile, if it can be read and names a project.
fn template(repository: &Repository) -> Option<Profile> {
    let template = Profile::from_text(&files::read_optional(&repository.root.join(PROFILE_TEMPLATE))?)?;
    template.project().is_ok().then_some(template)
}

/// Returns the profiles that can be read, by name.
fn profiles(repository: &Repository) -> Vec<(String, Profile)> {
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("cfg.")?.strip_suffix(".yaml")?.to_owned();
        Some((name, Profile::from_text(&files::read_optional(&path)?)?))
    };
    files::list_paths(&repository.root.join(".sc")).into_iter().filter_map(named).collect()
}

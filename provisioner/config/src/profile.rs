//! The profile: `cfg.<profile>.yaml`, or the text of `SIMPLE_CONTAINER_CONFIG` (docs/spec/simple-container.md#1.2).

use std::path::PathBuf;

use secrets_store::keys::KeyConfig;
use zeroize::Zeroizing;

use crate::diagnostics::{Code, Diagnostic, Sensitivity, SourceFiles, Span, has_errors};
use crate::process_context::{ProcessContext, Repository};
use crate::reader::Reader;
use crate::secret_text::SecretText;
use crate::{files, yaml};

/// Environment variable that holds the text of a profile. If it is set, no profile file is read.
const VARIABLE: &str = "SIMPLE_CONTAINER_CONFIG";
const CODE: Code = Code("profile");
/// Folder of the stacks, relative to the root of the repository, unless a profile or an option names another.
pub(crate) const DEFAULT_STACKS_FOLDER: &str = ".sc/stacks";
const KEYS: [&str; 8] = [
    "projectName",
    "privateKeyPath",
    "publicKeyPath",
    "privateKey",
    "publicKey",
    "privateKeyPassword",
    "stacksDir",
    "parentRepository",
];

/// A profile. Absent and empty fields are `None`; placeholders are not resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The Pulumi project.
    pub project_name: Option<String>,
    /// File of the private key.
    pub private_key_path: Option<String>,
    /// File of the public key.
    pub public_key_path: Option<String>,
    /// The private key itself.
    pub private_key: Option<SecretText>,
    /// The public key itself.
    pub public_key: Option<String>,
    /// Passphrase of the private key.
    pub private_key_password: Option<SecretText>,
    /// Folder of the stacks; `None` for `.sc/stacks`.
    pub stacks_dir: Option<String>,
    /// `parentRepository`, used only by the Go program to generate CI workflows.
    pub parent_repository: Option<String>,
    /// Position of the project's name.
    pub project_name_span: Option<Span>,
}

impl Profile {
    /// Reads a profile by name.
    ///
    /// # Errors
    /// The profile does not exist or is invalid.
    pub fn read(
        name: &str,
        repository: &Repository,
        process_context: &ProcessContext,
        sources: &mut SourceFiles,
    ) -> Result<Self, Vec<Diagnostic>> {
        let file = match process_context.environment.get(VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => sources.add(VARIABLE, text, Sensitivity::Secret),
            None => {
                let path = repository.root.join(".sc").join(format!("cfg.{name}.yaml"));
                let display_path = repository.display_path(&path);
                let text = files::read(&path).map_err(|error| {
                    if let Some(found) = error.not_utf8(CODE, &display_path, Sensitivity::Secret, sources) {
                        return vec![found];
                    }
                    vec![if error.is_missing() {
                        missing_profile(name, repository)
                    } else {
                        let message = format!("failed to read the profile {name:?}, {display_path}: {error}");
                        Diagnostic::error(CODE, None, message)
                    }]
                })?;
                sources.add(&display_path, &text, Sensitivity::Secret)
            }
        };
        let document = yaml::parse(file, sources).map_err(|diagnostic| vec![*diagnostic])?;
        let mut diagnostics = Vec::new();
        let profile = Self::from_document(&document, &mut Reader::new(&mut diagnostics));
        if has_errors(&diagnostics) { Err(diagnostics) } else { Ok(profile) }
    }

    /// Reads the text of a profile; `None` if it is invalid.
    pub fn from_text(text: &str) -> Option<Self> {
        let (mut sources, mut diagnostics) = (SourceFiles::default(), Vec::new());
        let file = sources.add("", text, Sensitivity::Secret);
        let document = yaml::parse(file, &sources).ok()?;
        let profile = Self::from_document(&document, &mut Reader::new(&mut diagnostics));
        (!has_errors(&diagnostics)).then_some(profile)
    }

    fn from_document(document: &yaml::Document, reader: &mut Reader<'_>) -> Self {
        let Some(root) = reader.root(document, &KEYS) else { return Self::default() };
        reader.reject_misspelled_keys(root, &KEYS, "the profile");
        let mut field = |key: &str| reader.text_at(root, key).filter(|(text, _)| !text.is_empty());
        let (project_name, project_name_span) = field("projectName").unzip();
        let mut text = |key: &str| field(key).map(|(text, _)| text);
        Self {
            project_name,
            project_name_span,
            private_key_path: text("privateKeyPath"),
            public_key_path: text("publicKeyPath"),
            private_key: text("privateKey").map(SecretText::new),
            public_key: text("publicKey"),
            private_key_password: text("privateKeyPassword").map(SecretText::new),
            stacks_dir: text("stacksDir"),
            parent_repository: text("parentRepository"),
        }
    }

    /// Returns whether the profile has keys, names their files, or has a passphrase.
    pub fn names_keys(&self) -> bool {
        let texts = [&self.private_key_path, &self.public_key_path, &self.public_key];
        let secrets = [&self.private_key, &self.private_key_password];
        texts.into_iter().any(Option::is_some) || secrets.into_iter().any(Option::is_some)
    }

    /// Returns what the secrets store needs to find the keys of the profile.
    pub fn key_config(&self, repository: &Repository, process_context: &ProcessContext) -> KeyConfig {
        let home = process_context.environment.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let secret = |text: &Option<SecretText>| text.as_ref().map(|text| Zeroizing::new(text.expose().to_owned()));
        KeyConfig {
            root: repository.root.clone(),
            home: home.or_else(|| process_context.account.as_ref().map(|account| account.home.clone())),
            private_key_path: self.private_key_path.clone(),
            public_key_path: self.public_key_path.clone(),
            private_key: secret(&self.private_key),
            public_key: self.public_key.clone(),
            passphrase: secret(&self.private_key_password),
        }
    }

    /// Returns the name of the Pulumi project.
    ///
    /// # Errors
    /// The name is missing, or it is not a valid Pulumi project name.
    pub fn project(&self) -> Result<&str, Box<Diagnostic>> {
        let Some(name) = &self.project_name else {
            return Err(Diagnostic::error(CODE, None, "bad stack reference, project was not set")
                .help("set `projectName` in the profile: `.sc/cfg.PROFILE.yaml`, by default `.sc/cfg.default.yaml`, or SIMPLE_CONTAINER_CONFIG")
                .into());
        };
        if name.len() > 100 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            let text = "project names may only contain alphanumerics, hyphens, underscores, and periods";
            return Err(Diagnostic::error(CODE, self.project_name_span, text).into());
        }
        Ok(name)
    }
}

/// File that a repository has in the place of a profile, which may contain keys.
const TEMPLATE: &str = "cfg.yaml.template";

/// Returns the error for a profile without a file.
fn missing_profile(name: &str, repository: &Repository) -> Diagnostic {
    let folder = repository.root.join(".sc");
    let message = format!("the profile {name:?} does not exist: there is no cfg.{name}.yaml in {}", folder.display());
    let error = Diagnostic::error(CODE, None, message);
    let profiles: Vec<String> = files::list_paths(&folder)
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.strip_prefix("cfg.")?.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    if !profiles.is_empty() {
        let candidate = bridge::error::closest(name, profiles.iter().map(String::as_str));
        let candidate = candidate.map(|profile| format!("did you mean `{profile}`?"));
        let hints = candidate.into_iter().chain([format!("this folder has the profiles: {}", profiles.join(", "))]);
        return hints.fold(error, Diagnostic::help);
    }
    let searched = match repository.git {
        Some(_) => "`.sc` is searched only in the root of the git repository",
        None => "outside of a git repository, `.sc` is searched only in the working folder",
    };
    let first = if folder.join(TEMPLATE).is_file() {
        format!("copy `.sc/{TEMPLATE}`, which this repository has for it, to `.sc/cfg.{name}.yaml`")
    } else {
        "`sc init` writes one, with a first stack; SIMPLE_CONTAINER_CONFIG can have its text instead".to_owned()
    };
    error.help(first).help("a profile is a YAML file that holds `projectName: NAME`").help(searched)
}

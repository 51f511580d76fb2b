//! Reasons why a run cannot be put together.

use std::error::Error;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use bridge::error::{Hint, closest};
use bridge::fs::FileError;
use bridge::message_text::MessageText;
use bridge::source::FetchError;
use config::ForeignOwner;
use state::secrets::SecretsError;
use state::store::{ReferenceError, StackReference, StoreError};
use state::{SettingsEditError, SettingsError, StateError};

/// User id of the administrator.
const ROOT: u32 = 0;

/// Reason why the inputs of an operation cannot be put together. Nothing was changed, except as a variant says.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The repository belongs to an account whose programs must not run.
    #[error("the repository {} is refused: {foreign}, neither to you (user {user}) nor to root", root.display())]
    ForeignRepository {
        /// Root of the repository.
        root: PathBuf,
        /// The path, and the account that owns it.
        foreign: ForeignOwner,
        /// Account of the process.
        user: u32,
    },
    /// An empty name was given for a stack.
    #[error("the name of a stack is empty")]
    EmptyName,
    /// The repository has no stacks.
    #[error("there are no stacks")]
    NoStacks,
    /// No stack has the name that was given.
    #[error("there is no stack {name}")]
    UnknownStack {
        /// Name that was given.
        name: String,
        /// Names of the stacks that exist.
        existing: Vec<String>,
    },
    /// The name that was given is that of a client stack.
    #[error("{name} is a client stack: its folder has a client.yaml and no server.yaml")]
    ClientStack {
        /// Name that was given.
        name: String,
    },
    /// No name was given for one stack, and there are several.
    #[error("there are {} stacks: {}", .0.len(), .0.join(", "))]
    SeveralStacks(Vec<String>),
    /// Environment variables select different compressions.
    #[error("{gzip} and {zstd} are both set")]
    TwoCompressions {
        /// Variable that selects gzip.
        gzip: &'static str,
        /// Variable that selects zstd.
        zstd: &'static str,
    },
    /// An environment variable has no valid time for the lease of a lock.
    #[error("{variable} must be a number of seconds from {} to {}, not {value:?}", valid.start(), valid.end())]
    LeaseSeconds {
        /// The variable.
        variable: &'static str,
        /// Value of the variable.
        value: String,
        /// Valid values.
        valid: RangeInclusive<u64>,
    },
    /// An environment variable has no valid rule for the verification of packages.
    #[error("{variable} must be `always` or `never`, not {value:?}")]
    Verification {
        /// The variable.
        variable: &'static str,
        /// Value of the variable.
        value: String,
    },
    /// An environment variable has no valid address of a mirror.
    #[error("{variable} cannot be used")]
    Mirror {
        /// The variable.
        variable: &'static str,
        /// Reason.
        #[source]
        error: Box<FetchError>,
    },
    /// A local build was named for a plugin that no stack declares.
    #[error("no stack declares the plugin {name}, so that no local build can take its place")]
    UnknownOverride {
        /// Name of the plugin.
        name: String,
        /// Names of the plugins that the stacks declare.
        declared: Vec<String>,
    },
    /// A local build was named where only what is locked may run.
    #[error("no local build may take the place of the plugin {name} {place}")]
    OverrideRefused {
        /// Name of the plugin.
        name: String,
        /// Place where it may not.
        place: LockedPlace,
    },
    /// The project or the stack has a name that no state can have.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The URL of the backend is invalid.
    #[error("the backend of stack {stack} cannot be opened")]
    Url {
        /// Name of the stack.
        stack: String,
        /// Reason why the URL is invalid.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The bucket of the backend cannot be created.
    #[error("the bucket for the state of stack {stack} cannot be created")]
    Bucket {
        /// Name of the stack.
        stack: String,
        /// Reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The backend is in a cloud or a database, and this build has no clients of them.
    #[error(
        "the backend of stack {stack} is at {scheme}://, and this build of sc has no clients of clouds and databases"
    )]
    NoClients {
        /// Name of the stack.
        stack: String,
        /// Scheme of the URL of the backend.
        scheme: String,
    },
    /// The URL of a new state storage is not supported.
    #[error("{url:?} cannot be the new state storage: {reason}")]
    UnsupportedTarget {
        /// The URL, without passwords.
        url: String,
        /// Reason.
        reason: UnsupportedTarget,
    },
    /// The backend cannot be opened.
    #[error("the backend of stack {stack} cannot be opened")]
    Store {
        /// Name of the stack.
        stack: String,
        /// Error of the backend.
        source: StoreError,
    },
    /// An interrupted rename can be neither completed nor undone.
    #[error(transparent)]
    Rename(StoreError),
    /// An interrupted rename was completed, and has given the stack another name.
    #[error("an interrupted rename of this stack was completed: {from} is {to} now")]
    Renamed {
        /// Old name, which was requested.
        from: StackReference,
        /// Name of the stack now.
        to: StackReference,
    },
    /// An interrupted move of resources can be neither completed nor undone.
    #[error(transparent)]
    Move(Box<StateError>),
    /// A move of resources was interrupted, and the other stack cannot be opened.
    #[error("a move of resources between {stack} and {other} was interrupted, and {other} cannot be opened")]
    OtherStack {
        /// Stack that was requested.
        stack: StackReference,
        /// The other stack of the move.
        other: StackReference,
        /// Location of the record of the move.
        record: Box<str>,
        /// Reason.
        source: Box<OtherStackError>,
    },
    /// The settings file of a renamed stack would overwrite another file.
    #[error("{} already exists, and {} would overwrite it", new.display(), old.display())]
    SettingsExist {
        /// File of the old name.
        old: PathBuf,
        /// File of the new name, which exists.
        new: PathBuf,
    },
    /// The stack was renamed, but not its settings file.
    #[error("the stack was renamed, but {} could not be renamed; rename it by hand", old.display())]
    SettingsNotMoved {
        /// File of the old name.
        old: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The settings file of the stack is invalid.
    #[error("{} is invalid", path.display())]
    InvalidSettings {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: SettingsError,
    },
    /// The settings file of the stack cannot be read.
    #[error("{} cannot be read", path.display())]
    UnreadableSettings {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file with the passphrase cannot be read.
    #[error("{variable} names {}, which cannot be read", path.display())]
    PassphraseFile {
        /// Environment variable that names the file.
        variable: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An interrupted change of the secrets provider cannot be finished.
    #[error("an interrupted change of the secrets provider cannot be finished")]
    SecretsProvider(#[source] Box<SecretsProviderError>),
    /// The state of the stack of a key cannot be read.
    #[error("the stack {stack}, which has the key of the secrets, cannot be read")]
    KeyStack {
        /// Name of the stack.
        stack: String,
        /// Reason.
        source: Box<StateError>,
    },
    /// A secret of the configuration in the settings file cannot be decrypted.
    #[error("the configuration in the stack file cannot be read")]
    Config(#[source] SecretsError),
}

impl Hint for SetupError {
    fn hint(&self) -> Option<MessageText> {
        match self {
        Self::ForeignRepository { foreign, user, .. } => {
            let owner = foreign.owner;
            let accept = match *user {
                ROOT => MessageText::new(format_args!("set SUDO_UID={owner} to accept its files as root")),
                _ => "change the owner with `chown`".into(),
            };
            Some(MessageText::new(format_args!(
                "its files name programs that `sc` runs. If you trust user {owner}, run `sc` as that user, or {accept}; \
                 else choose another folder with --cwd"
            )))
        }
        Self::EmptyName => {
            Some("an unset variable may have been passed; leave the option out for the default".into())
        }
        Self::NoStacks => {
            Some("a stack is a folder with a server.yaml below `.sc/stacks`; `sc init` writes a first one".into())
        }
        Self::UnknownStack { name, existing } => Some(match closest(name, existing.iter().map(String::as_str)) {
            Some(close) => MessageText::new(format_args!("did you mean {close}?")),
            None => MessageText::new(format_args!("the stacks are: {}", existing.join(", "))),
        }),
        Self::ClientStack { .. } => {
            Some("`sc` provisions stacks with a server.yaml; Simple Container's own program deploys client stacks".into())
        }
        Self::SeveralStacks(_) => Some("choose one with --stack".into()),
        Self::TwoCompressions { .. } => Some("only one compression can be used: unset one of them".into()),
        Self::NoClients { .. } => Some(
            "use a build with the feature `cloud`, which is on by default, or keep the state in a folder (`file://…`)".into(),
        ),
        Self::Bucket { .. } => Some(
            "give the account the permission storage.buckets.create (role `Storage Admin`), or create the bucket yourself".into(),
        ),
        Self::Rename(error) => error.hint(),
        Self::Move(error) => error.hint(),
        Self::OtherStack { other, record, .. } => Some(MessageText::new(format_args!(
            "make {other} readable, and run the command again. If it is gone for good, remove {record}: the state is used as it is then"
        ))),
        Self::Renamed { from, to } => Some(rename_hint(from, to)),
        Self::SettingsExist { .. } => Some("remove or move one of them".into()),
        Self::UnsupportedTarget { .. } => Some(
            "write `file:///absolute/folder`, `file://~/folder`, `s3://bucket/prefix`, `gs://bucket/prefix`, \
             `azblob://container/prefix` or `postgres://host/database`, with the parameters that `pulumi login` takes"
                .into(),
        ),
        Self::UnknownOverride { declared, .. } if declared.is_empty() => Some("the stacks declare no plugins".into()),
        Self::UnknownOverride { name, declared } => Some(match closest(name, declared.iter().map(String::as_str)) {
            Some(close) => MessageText::new(format_args!("did you mean {close}? The stacks declare: {}", declared.join(", "))),
            None => MessageText::new(format_args!("the stacks declare: {}", declared.join(", "))),
        }),
        Self::OverrideRefused { .. } => Some(
            "leave out --plugin, and unset SC_PLUGIN_OVERRIDE; a policy with `overrides: true` allows it".into(),
        ),
        Self::Reference(_)
        | Self::LeaseSeconds { .. }
        | Self::Verification { .. }
        | Self::Mirror { .. }
        | Self::Url { .. }
        | Self::Store { .. }
        | Self::SettingsNotMoved { .. }
        | Self::InvalidSettings { .. }
        | Self::UnreadableSettings { .. }
        | Self::PassphraseFile { .. }
        | Self::SecretsProvider(_)
        | Self::KeyStack { .. }
        | Self::Config(_) => None,
    }
    }
}

/// Returns what else the user has to rename.
pub fn rename_hint(from: &StackReference, to: &StackReference) -> MessageText {
    let mut steps = Vec::new();
    if from.stack() != to.stack() {
        steps.push(MessageText::new(format_args!("rename the folder of its server.yaml to {}", to.stack())));
    }
    if from.project() != to.project() {
        steps.push(MessageText::new(format_args!("set `projectName: {}` in the profile", to.project())));
    }
    let mut text = MessageText::default();
    for (index, step) in steps.iter().enumerate() {
        text.push_text(&if index == 0 { "".into() } else { " and ".into() });
        text.push_text(step);
    }
    text.push_text(&" before the next provision".into());
    text
}

/// Reason why the other stack of a move of resources cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OtherStackError {
    /// The stack is missing, or its state storage cannot be opened.
    #[error(transparent)]
    Setup(Box<SetupError>),
    /// Errors in its files.
    #[error("its server.yaml has errors: {0}")]
    Unreadable(MessageText),
    /// Files that name another state than that of the move.
    #[error("its server.yaml names {found} in {location}, and the move has the one in {expected}")]
    Elsewhere {
        /// Stack that the files name.
        found: StackReference,
        /// Location of the store that they name.
        location: String,
        /// Location of the store of the move.
        expected: String,
    },
}

/// Place where only what is locked may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockedPlace {
    /// A command with `--locked`.
    #[error("with --locked")]
    Option,
    /// A pipeline.
    #[error("in a pipeline (`CI` is set)")]
    Pipeline,
}

/// Reason why a URL cannot be that of a new state storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedTarget {
    /// The URL has a placeholder.
    #[error("a placeholder is not replaced on the command line")]
    Placeholder,
    /// The URL leads to a service.
    #[error("Pulumi Cloud is not supported")]
    Service,
    /// The URL has another scheme, or none.
    #[error("it has no supported scheme")]
    Scheme,
}

/// Reason why the secrets provider of a stack was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SecretsProviderError {
    /// The state was not changed, and neither was the settings file.
    #[error("the secrets provider was not changed")]
    State(#[from] StateError),
    /// The new key cannot be used. Nothing was changed.
    #[error("the secrets provider was not changed")]
    Secrets(#[from] SecretsError),
    /// The settings file cannot be edited. Nothing was changed.
    #[error("{} cannot be edited, and nothing was changed", path.display())]
    Edit {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: SettingsEditError,
    },
    /// The settings file cannot be read. Nothing was changed.
    #[error("{} cannot be read, and nothing was changed", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The new settings file cannot be written. Nothing was changed.
    #[error("the new settings file cannot be written, and nothing was changed")]
    Unwritable(#[source] FileError),
    /// The state was changed, but the new settings file is not in its place.
    #[error("the state was changed, but {} could not be renamed to {}", from.display(), to.display())]
    NotMoved {
        /// Path of the new file.
        from: PathBuf,
        /// Path of the file that it replaces.
        to: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

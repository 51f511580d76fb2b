//! Files to a typed, positioned, inherited and resolved stack, with every mistake collected.
//!
//! Enters: a repository's files and the [`Surroundings`] that the binary hands in. Leaves: [`Stack`]s and
//! [`diagnostics`]. Never here: anything of the engine, the environment of the process, the network, a write.

pub mod diagnostics;
mod files;
pub mod graph;
mod inherit;
mod load;
mod options;
pub mod placeholder;
mod plugins;
mod profile;
mod provisioner;
mod raw;
mod reader;
mod resources;
mod routing;
mod secret_text;
mod secrets;
mod sections;
mod stack;
mod surroundings;
mod templates;
pub mod values;
pub mod yaml;

pub use load::{Loaded, Workspace};
pub use plugins::{PluginDeclaration, PluginSecrets};
pub use profile::Profile;
pub use secret_text::SecretText;
pub use secrets::{Auth, AuthKind, Secrets};
pub use stack::{
    AliasOption, Environment, Options, Output, Provisioner, Resource, SecretsProvider, Stack, StateStorage, Target,
    Timeouts,
};
pub use surroundings::{Account, Git, Head, Repository, Surroundings};

//! Reads the stacks of a repository: files to typed values with positions, after inheritance and placeholders. Collects
//! all errors.
//!
//! Input: a [`Repository`], the [`ProcessContext`] of the process, and a [`TypeTable`](types::TypeTable), the types
//! that resources and templates may have. Output: [`Stack`]s, and [`diagnostics`] with file, line and column. Excluded:
//! access to the environment of the process, network, writes, the engine, concrete core types.
//!
//! A [`Workspace`] reads `server.yaml` and `secrets.yaml` of each stack, and of the stacks that it inherits from.
//! Placeholders are resolved, except for references to outputs of resources. Such a reference stays in the
//! tree, and [`values`] resolves it once its resource is registered.
//!
//! ```
//! use config::diagnostics::SourceFiles;
//! use config::types::TypeTable;
//! use config::{ProcessContext, Profile, Repository, Workspace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::fs::create_dir_all(folder.path().join(".sc/stacks/reef"))?;
//! # std::fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: sea\n")?;
//! # std::fs::write(folder.path().join(".sc/stacks/reef/server.yaml"), "
//! # provisioner:
//! #   type: pulumi
//! #   config:
//! #     state-storage: { type: fs, config: { path: 'file://${project:root}/state' } }
//! #     secrets-provider: { type: passphrase }
//! # ")?;
//! let repository = Repository::discover(folder.path());
//! let process_context =
//!     ProcessContext { environment: std::env::vars().collect(), now: jiff::Timestamp::now(), time_zone: None, account: None };
//! let mut sources = SourceFiles::default();
//! let profile = Profile::read("default", &repository, &process_context, &mut sources)
//!     .map_err(|found| format!("{found:?}"))?;
//!
//! let types = TypeTable::default();
//! let workspace = Workspace {
//!     repository: &repository,
//!     profile: &profile,
//!     stacks_dir: None,
//!     process_context: &process_context,
//!     types: &types,
//! };
//! let loaded = workspace.load(&["reef".to_owned()], &mut sources);
//! assert!(loaded.diagnostics.is_empty());
//! assert_eq!(loaded.stacks[0].project, "sea");
//! # Ok(())
//! # }
//! ```

pub mod asset_function;
mod collections;
mod compat;
mod deciding_functions;
mod declared_names;
pub mod diagnostics;
mod files;
mod function;
mod function_references;
mod functions;
pub mod graph;
mod inherit;
mod load;
mod moved;
mod options;
pub mod output_part;
mod outputs;
mod place;
mod placeholder;
mod plugin_dialect;
mod plugin_edit;
mod plugin_policy;
mod plugin_sandbox;
mod plugins;
mod process_context;
mod profile;
mod provisioner;
mod reader;
mod referenced_stacks;
mod registrar;
mod resources;
mod routing;
mod secret_text;
mod secrets;
mod sections;
pub mod sibling_profiles;
mod stack;
mod stack_names;
mod stack_outputs;
mod stored_secrets;
mod templates;
pub mod tree;
pub mod types;
pub mod values;
mod yaml;

pub use compat::ignored_by_go;
pub use declared_names::{DeclaredNames, StackFolders};
pub use function::Function;
pub use inherit::Inheritance;
pub use load::{LoadedStacks, Reading, StackDocuments, Workspace};
pub use place::{Collection, Moved, Place};
pub use plugin_edit::{NewPlugin, PluginEditError};
pub use plugin_policy::read_plugin_policy;
pub use plugins::{PluginDeclaration, PluginSecrets};
pub use process_context::{Account, ForeignOwner, Git, Head, ProcessContext, Repository};
pub use profile::Profile;
pub use secret_text::SecretText;
pub use secrets::{Auth, AuthKind};
pub use stack::{
    AliasOption, AliasParentOption, AwsAccount, CloudAccount, Confirm, Environment, JournalGuarantee, MaxDeletes,
    NewBucket, Options, Output, PendingCreateRule, ProvisionedKey, Provisioner, ReferencedStack, Resource,
    ResourceImplementation, SecretsProvider, Stack, StateStorage,
};
pub use stack_names::StackNames;
pub use stack_outputs::{FunctionName, FunctionResults, KnownValues, OutputReference, StackOutputs};

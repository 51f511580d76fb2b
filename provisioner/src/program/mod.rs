//! Program of a stack: the resources to register, their order and their references.
//!
//! Enters: a [`Stack`] whose names are checked and whose graph has no cycle. Leaves: registrations through
//! [`Registrar`], each as soon as all that it refers to is registered; the position in the files of every registration.
//! Never here: the scope of a run, the effect of a failure on the run (the deployment decides both), the reading of
//! files.

mod goals;
mod imports;
mod known;
mod packages;
mod positions;
mod run;

use std::sync::Arc;

use crate::registry::provision::ProvisionTable;
use config::Stack;
use config::diagnostics::{Diagnostic, Span};
use engine::events::SourceRef;
use engine::{ImportGoal, Registrar};
use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::resource_id::ResourceId;

pub use imports::NoImport;
pub use run::{End, Ended};

/// Stack that drives deployments. Several runs of one stack (preview, then update) share one program.
#[derive(Clone, Debug)]
pub struct Program {
    stack: Arc<Stack>,
    core: ProvisionTable,
}

impl Program {
    /// Creates the program of a stack. `core` maps its core types to what they register.
    pub fn new(stack: Arc<Stack>, core: ProvisionTable) -> Self {
        Self { stack, core }
    }

    /// The stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the mistakes that keep the plugins of the stack from serving its core types, for a check before the run.
    pub fn check_packages(&self) -> Vec<Diagnostic> {
        packages::check(&self.stack, &self.core)
    }

    /// Registers all resources and outputs of the stack.
    ///
    /// # Cancellation
    /// The deployment refuses registrations once it is stopped. The program then waits for the running ones and
    /// returns.
    pub async fn run(&self, registrar: &dyn Registrar) -> Ended {
        run::run(&self.stack, &self.core, registrar).await
    }

    /// Returns the import of an existing resource that the stack declares, by its name in the state:
    /// `<key>--<environment>`.
    ///
    /// # Errors
    /// [`NoImport`] if it describes none of that name that a provider could read.
    pub fn import(&self, name: &str, id: &ResourceId) -> Result<ImportGoal, NoImport> {
        imports::find(&self.stack, name, id)
    }

    /// Returns the position of a registration in the file: that of the deepest part of the property path that the file
    /// has. `None` for the root, which no file declares.
    pub fn source_of(&self, source: SourceRef, property: Option<&PropertyPath>) -> Option<Span> {
        positions::find(&self.stack, source, property)
    }
}

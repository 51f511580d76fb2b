//! A stack as a program: what to register, in which order, with which references.
//!
//! Enters: a [`Stack`] whose names are checked and whose graph has no cycle. Leaves: registrations through
//! [`Registrar`], each as soon as all it refers to is known; and for every registration the place in the files that it
//! came from. Never here: what is in scope, what a failure means for the run (both are the deployment's), the reading of
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

/// A stack, ready to drive a deployment. Several runs of one stack (preview, then update) use one program.
#[derive(Clone, Debug)]
pub struct Program {
    stack: Arc<Stack>,
    core: ProvisionTable,
}

impl Program {
    /// Takes a stack, and what its core types register.
    pub fn new(stack: Arc<Stack>, core: ProvisionTable) -> Self {
        Self { stack, core }
    }

    /// The stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// What keeps the plugins of the stack from serving its core types. Ask before anything is touched.
    pub fn check_packages(&self) -> Vec<Diagnostic> {
        packages::check(&self.stack, &self.core)
    }

    /// Registers everything.
    ///
    /// # Cancellation
    /// To stop, the deployment refuses registrations; this then waits for those under way and returns.
    pub async fn run(&self, registrar: &dyn Registrar) -> Ended {
        run::run(&self.stack, &self.core, registrar).await
    }

    /// The import of an existing resource that the stack describes, by its name in the state: `<key>--<environment>`.
    ///
    /// # Errors
    /// [`NoImport`] if it describes none of that name that a provider could read.
    pub fn import(&self, name: &str, id: &ResourceId) -> Result<ImportGoal, NoImport> {
        imports::find(&self.stack, name, id)
    }

    /// Where a registration was written: the deepest part of the path that the file has. `None` for what the user did
    /// not write (the root).
    pub fn source_of(&self, source: SourceRef, property: Option<&PropertyPath>) -> Option<Span> {
        positions::find(&self.stack, source, property)
    }
}

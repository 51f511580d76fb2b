//! Outputs of other stacks, which `${output:STACK.NAME}` reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::diagnostics::Span;
use crate::tree::Reference;

/// Outputs of stacks, by the names that placeholders use: that of a stack of the repository, or of an entry of `references`. A value may be
/// unknown, as in a preview.
pub type StackOutputs = BTreeMap<String, Arc<PropertyMap>>;

/// Environment of a function, if it is seen in one alone, and its name.
pub type FunctionName = (Option<String>, String);

/// Results of functions.
pub type FunctionResults = BTreeMap<FunctionName, PropertyValue>;

/// Values that a stack is read again with, once they are known.
#[derive(Clone, Debug, Default)]
pub struct KnownValues {
    /// Outputs of other stacks.
    pub outputs: StackOutputs,
    /// Results of the functions in [`Stack::deciding`](crate::Stack::deciding), once they are called.
    pub functions: Option<FunctionResults>,
}

/// `${output:STACK.NAME}`, whose path may go on, and which may have a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputReference {
    /// Name of a stack of the repository, or of an entry of `references`.
    pub stack: String,
    /// Name of the output, then names and list indices within it.
    pub path: Vec<String>,
    /// Text that takes the place of an output that is missing or null.
    pub default: Option<String>,
    /// Position in the file.
    pub span: Span,
}

/// Reference to a function where its result is needed before the run.
#[derive(Clone, Debug)]
pub(crate) struct DecidingReference {
    pub(crate) reference: Reference,
    /// Environment of what is decided; `None` in the `config` of a plugin or the registrar.
    pub(crate) environment: Option<String>,
}

/// Stacks whose outputs a stack can read.
#[derive(Clone, Copy)]
pub(crate) struct ReadableStacks<'a> {
    /// Names of the stacks of the repository.
    pub(crate) names: &'a [String],
    /// Names of the entries of `references`.
    pub(crate) references: &'a [String],
    /// The values; `None`: they are not known yet.
    pub(crate) values: Option<&'a KnownValues>,
}

impl ReadableStacks<'_> {
    /// Returns the names of all stacks that can be read, by a stack with a name.
    pub(crate) fn candidates(&self, own: &str) -> Vec<String> {
        let others = self.names.iter().filter(|name| *name != own);
        others.chain(self.references).cloned().collect()
    }
}

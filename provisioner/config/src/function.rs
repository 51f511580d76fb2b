//! Functions of plugins that a stack calls (`functions` of server.yaml).

use bridge::plugin::PluginVersion;

use crate::diagnostics::Span;
use crate::tree::{Entry, Node};

/// Key of the sections with functions. An environment in short form and a resource may have this name as well.
pub(crate) const FUNCTIONS: &str = "functions";
/// Key that each function has.
pub(crate) const FUNCTION: &str = "function";

/// Call of a function of a plugin, whose result `${function:NAME.PATH}` reads.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Position of the name.
    pub name_span: Span,
    /// Environment in which the function is seen; `None`: in all of them.
    pub environment: Option<String>,
    /// False if the function is switched off (`enabled: false`): it is not called.
    pub is_enabled: bool,
    /// The function as written: `package:module:name` or `package:name`. It is a token of the package's schema, or a short form for which the
    /// schema has a token.
    pub token_text: String,
    /// Position of the function.
    pub token_span: Span,
    /// Index of the plugin in [`Stack::plugins`](crate::Stack::plugins).
    pub plugin: usize,
    /// `arguments`, resolved up to references; an empty mapping if they are missing.
    pub arguments: Node,
    /// Version that the plugin has to have, with its position.
    pub version: Option<(PluginVersion, Span)>,
    /// Keys of resources in the same environment, with their positions.
    pub depends_on: Vec<(String, Span)>,
}

/// Returns true for a mapping with a string `type`.
pub(crate) fn is_resource(node: &Node) -> bool {
    let kind = node.as_mapping().and_then(|mapping| mapping.get_non_null("type"));
    kind.is_some_and(|kind| kind.as_scalar().is_some())
}

/// Returns true for the functions of all environments, and false for an environment in short form, whose values are resources.
pub(crate) fn is_section_of_all(node: &Node) -> bool {
    let resources = node.as_mapping().filter(|mapping| !mapping.0.is_empty());
    has_functions(node) || !resources.is_some_and(|mapping| mapping.into_iter().all(|entry| is_resource(&entry.value)))
}

/// Returns true for a mapping of functions: one of its values has the form of a function.
pub(crate) fn has_functions(node: &Node) -> bool {
    let is_function = |entry: &Entry| {
        entry
            .value
            .as_mapping()
            .is_some_and(|mapping| mapping.entry(FUNCTION).is_some() && mapping.entry("type").is_none())
    };
    node.as_mapping().is_some_and(|mapping| mapping.into_iter().any(is_function))
}

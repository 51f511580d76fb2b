//! Check of the properties that options of a resource name, against the schema of its type.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{InputInfo, NestedObjects, PackageTypes, TypeInfo};
use bridge::message_text::MessageText;
use config::Options;
use config::diagnostics::{Code, Diagnostic, Span};
use pulumi_proto::property::path::{Element, PropertyPath};

use super::schema_findings::first_names;

const OPTION: Code = Code("option");

/// Path with which an option names the errors of an initialization (docs/spec/provider-protocol.md#6.3).
const INIT_ERROR: &str = "#initerror";

/// Type against which the options of a resource are checked.
#[derive(Clone, Copy)]
pub(super) struct CheckedOptions<'t> {
    /// Words for the type in messages.
    pub(super) subject: &'t str,
    pub(super) info: &'t TypeInfo,
    pub(super) types: &'t PackageTypes,
}

/// Properties of an object, or of a type.
type Properties = BTreeMap<String, Option<NestedObjects>>;

/// Rest of a path that does not exist: its first name, and the names that do.
struct Unknown<'p> {
    name: &'p str,
    names: Vec<String>,
}

impl CheckedOptions<'_> {
    /// Returns the errors of names in `ignoreChanges`, `replaceOnChanges` and `additionalSecretOutputs` that the type does not have.
    pub(super) fn errors(self, options: &Options) -> Vec<Diagnostic> {
        let (inputs, outputs) = (nested_of(&self.info.inputs), &self.info.outputs);
        let paths = [("ignoreChanges", &options.ignore_changes), ("replaceOnChanges", &options.replace_on_changes)];
        let paths = paths.into_iter().flat_map(|(option, paths)| paths.iter().map(move |path| (option, path)));
        let of_paths = paths.filter_map(|(option, (text, span))| {
            let path: PropertyPath = text.parse().ok()?;
            // Engine and provider compare inputs and outputs.
            let of_inputs = self.unknown(&inputs, path.elements())?;
            let of_outputs = self.unknown(outputs, path.elements())?;
            let is_first = [&of_inputs, &of_outputs].map(|found| is_first(found, path.elements()));
            let unknown = if is_first == [true, false] { of_outputs } else { of_inputs };
            let has_initerror = option == "replaceOnChanges" && text == INIT_ERROR;
            (!has_initerror).then(|| self.error(option, "property", text, *span, unknown))
        });
        // A schema that only marks a component may omit its outputs.
        let secrets = options.additional_secret_outputs.iter().filter(|_| !outputs.is_empty());
        let of_secrets = secrets.filter(|(name, _)| !outputs.contains_key(name)).map(|(name, span)| {
            let unknown = Unknown { name: name.as_str(), names: outputs.keys().cloned().collect() };
            self.error("additionalSecretOutputs", "output", name, *span, unknown)
        });
        of_paths.chain(of_secrets).collect()
    }

    fn error(self, option: &str, what: &str, text: &str, span: Span, unknown: Unknown<'_>) -> Diagnostic {
        let Unknown { name, names } = unknown;
        let summary =
            MessageText::new(format_args!("`{option}` names {text:?}, but {} has no such {what}", self.subject));
        let names: Arc<[String]> = names.into();
        let error = Diagnostic::error(OPTION, span, summary).did_you_mean_one_of(name, &names);
        if names.is_empty() { error } else { error.help(format_args!("it has {}", first_names(names.iter().cloned()))) }
    }

    /// Returns the part of a path that properties lack; `None` if they have it, or if the schema does not say it.
    fn unknown<'p>(self, properties: &Properties, path: &'p [Element]) -> Option<Unknown<'p>> {
        let (first, rest) = path.split_first()?;
        let Element::Key(name) = first else { return None };
        match properties.get(name) {
            Some(nested) => self.unknown_in(nested.as_ref()?, rest),
            None => Some(Unknown { name, names: properties.keys().cloned().collect() }),
        }
    }

    fn unknown_in<'p>(self, nested: &NestedObjects, path: &'p [Element]) -> Option<Unknown<'p>> {
        match nested {
            NestedObjects::Object(token) => {
                let object = self.types.object(token)?;
                self.unknown(&nested_of(&object.properties), path)
            }
            NestedObjects::List(items) | NestedObjects::Map(items) => self.unknown_in(items, path.split_first()?.1),
        }
    }
}

/// Returns true if the first name of the path is the one that is missing.
fn is_first(unknown: &Unknown<'_>, path: &[Element]) -> bool {
    matches!(path.first(), Some(Element::Key(name)) if std::ptr::eq(name.as_str(), unknown.name))
}

fn nested_of(properties: &BTreeMap<String, InputInfo>) -> Properties {
    properties.iter().map(|(name, info)| (name.clone(), info.nested.clone())).collect()
}

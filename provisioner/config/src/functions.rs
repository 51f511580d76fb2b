//! Reads the functions of a stack: `resources.functions`, which are seen in all environments, and
//! `resources.resources.ENVIRONMENT.functions`.

use std::collections::HashMap;

use bridge::message_text::MessageText;

use crate::asset_function::{self, AssetRule};
use crate::diagnostics::{Code, Diagnostic};
use crate::function::{FUNCTION, FUNCTIONS, Function, is_resource, is_section_of_all};
use crate::options;
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section, unknown_key_error};
use crate::resources::{ENABLED, is_switched_on};
use crate::routing::{RoutingContext, RoutingRequest};
use crate::tree::{Entry, Mapping, Node, Value};

const KEYS: [&str; 4] = [FUNCTION, "arguments", "options", ENABLED];
const OPTION_KEYS: [&str; 3] = ["provider", "version", "dependsOn"];
const CODE: Code = Code("function");
/// Characters that cannot stand in the name of a function, since a placeholder cannot have them there.
const NOT_IN_NAMES: [char; 8] = ['"', '{', '}', ':', '[', ']', '.', '/'];

/// Functions of a stack, and the names of those that are invalid: references to them are not reported again.
#[derive(Default)]
pub(super) struct ReadFunctions {
    pub(super) functions: Vec<Function>,
    /// Environment and name of each function that is invalid.
    pub(super) invalid: Vec<(Option<String>, String)>,
}

/// Section with functions: that of an environment, or that of all.
#[derive(Clone, Copy)]
struct FunctionsSection<'n> {
    environment: Option<&'n Entry>,
    node: &'n Node,
}

/// Reads all functions: those of all environments first, then those of each environment in the order of the file.
pub(super) fn read(root: Section<'_>, routing: RoutingContext<'_>, resolver: &mut Resolver<'_>) -> ReadFunctions {
    let (mut read, mut diagnostics) = (ReadFunctions::default(), Vec::new());
    let sections = sections(root);
    let shared: HashMap<&str, &Entry> = sections
        .iter()
        .filter(|section| section.environment.is_none())
        .flat_map(|section| section.node.as_mapping().into_iter().flatten())
        .map(|entry| (entry.key.as_str(), entry))
        .collect();
    for section in sections {
        let what =
            if section.environment.is_some() { "`functions` of an environment" } else { "`resources.functions`" };
        let Some(entries) = Reader::new(&mut diagnostics).mapping(section.node, what) else { continue };
        Reader::new(&mut diagnostics).reject_empty_names(entries, "a function");
        let is_switched_on =
            section.environment.is_none_or(|environment| is_switched_on(&environment.value, resolver, &mut Vec::new()));
        for entry in entries.mapping.into_iter().filter(|entry| !entry.key.is_empty()) {
            let environment = section.environment.map(|environment| environment.key.clone());
            if let Some(first) = shared.get(entry.key.as_str()).filter(|_| environment.is_some()) {
                let summary = MessageText::new(format_args!(
                    "function {:?} of env {:?} has the name of a function of all environments",
                    entry.key,
                    environment.as_deref().unwrap_or_default()
                ));
                let error = Diagnostic::error(Code("duplicate-function"), entry.key_span, summary);
                diagnostics.push(error.label(first.key_span, "the other one").help("rename one of them"));
                continue;
            }
            let is_valid = match read_function(section.environment, entry, routing, resolver, &mut diagnostics) {
                Some(function) => {
                    let is_enabled = is_switched_on && function.is_enabled;
                    read.functions.push(Function { is_enabled, ..function });
                    true
                }
                None => false,
            };
            read.invalid.extend((!is_valid).then(|| (environment, entry.key.clone())));
        }
    }
    resolver.diagnostics.extend(diagnostics);
    read
}

/// Finds the sections with functions. What has the form of an environment or of a resource is one, and is none of these.
fn sections(root: Section<'_>) -> Vec<FunctionsSection<'_>> {
    let Some(outer) = root.get("resources").and_then(Node::as_mapping) else { return Vec::new() };
    let shared = outer.get_non_null(FUNCTIONS).filter(|node| is_section_of_all(node));
    let shared = shared.map(|node| FunctionsSection { environment: None, node });
    let environments = outer.get("resources").and_then(Node::as_mapping).into_iter().flatten();
    let of_environments = environments.filter_map(|environment| {
        let node = environment.value.as_mapping()?.get_non_null(FUNCTIONS).filter(|node| !is_resource(node))?;
        Some(FunctionsSection { environment: Some(environment), node })
    });
    shared.into_iter().chain(of_environments).collect()
}

fn read_function(
    environment: Option<&Entry>,
    entry: &Entry,
    routing: RoutingContext<'_>,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Function> {
    let mut reader = Reader::new(diagnostics);
    if let Some(character) = entry.key.chars().find(|character| NOT_IN_NAMES.contains(character)) {
        let summary = MessageText::new(format_args!("the name {:?} of a function has a `{character}`", entry.key));
        let help = "a placeholder cannot name it: use letters, digits, `-` and `_`";
        reader.push(Diagnostic::error(CODE, entry.key_span, summary).help(help));
        return None;
    }
    let empty = Mapping::default();
    let section = match reader.mapping(&entry.value, "a function") {
        Some(section) => section,
        None if entry.value.is_null() => Section { mapping: &empty, span: entry.key_span },
        None => return None,
    };
    reject_unknown_keys(section, &mut reader);
    let token = reader.text_at(section, FUNCTION).filter(|(text, _)| !text.is_empty());
    let has_arguments = reader.section(section, "arguments", "arguments").is_some();
    let is_on = is_switched_on(&entry.value, resolver, diagnostics);
    let arguments = match section.get("arguments").filter(|_| has_arguments) {
        Some(node) => {
            asset_function::check(node, AssetRule::Rejected, diagnostics);
            resolver.resolve(node, ReferenceRule::SameEnvironment)
        }
        None => Node { value: Value::Mapping(Mapping::default()), span: entry.key_span },
    };
    let options = section.get("options").map(|node| resolver.resolve(node, ReferenceRule::Rejected));
    let Some((token_text, token_span)) = token else {
        let summary = MessageText::new(format_args!("function {:?} has no `{FUNCTION}`", entry.key));
        let help = "add `function: plugin:name` or `function: plugin:module:name`";
        diagnostics.push(Diagnostic::error(CODE, entry.key_span, summary).help(help));
        return None;
    };
    let request = RoutingRequest {
        resource: &entry.key,
        environment: environment.map_or("", |environment| environment.key.as_str()),
        text: &token_text,
        span: token_span,
        provider: options.as_ref().and_then(|node| node.as_mapping()?.get_non_null("provider")),
    };
    let plugin =
        request.select_plugin_of_function(routing).map_err(|diagnostic| diagnostics.push(*diagnostic)).ok()??;
    let mut reader = Reader::new(diagnostics);
    let (mut version, mut depends_on) = (None, Vec::new());
    if let Some(options) = options.as_ref().and_then(|node| reader.mapping(node, "`options` of a function")) {
        reader.reject_unknown_keys(options, &OPTION_KEYS, "`options` of a function");
        reader.text_at(options, "provider");
        version = options::read_version(options, &routing.plugins[plugin], &mut reader);
        depends_on = reader.texts(options, "dependsOn");
        if let Some((_, span)) = depends_on.first().filter(|_| environment.is_none()) {
            let error = Diagnostic::error(CODE, *span, "a function of all environments depends on no resource");
            reader.push(error.help("declare it in an environment: `resources.resources.ENVIRONMENT.functions`"));
            depends_on.clear();
        }
    }
    Some(Function {
        name: entry.key.clone(),
        name_span: entry.key_span,
        environment: environment.map(|environment| environment.key.clone()),
        is_enabled: is_on,
        token_text,
        token_span,
        plugin,
        arguments,
        version,
        depends_on,
    })
}

/// Reports keys that a function does not have, with the words that other tools have for its keys.
fn reject_unknown_keys(section: Section<'_>, reader: &mut Reader<'_>) {
    for entry in section.mapping.into_iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
        let unknown = unknown_key_error("a function", entry);
        reader.push(match entry.key.as_str() {
            "call" | "fn::invoke" | "invoke" | "token" => unknown.help("did you mean `function`?"),
            "args" | "inputs" | "config" | "properties" | "parameters" => unknown.help("did you mean `arguments`?"),
            "type" => unknown.help("a function has `function: plugin:name`; a resource stands below `resources`"),
            "return" => unknown.help("write the part of the result into the placeholder: `${function:NAME.PATH}`"),
            key if OPTION_KEYS.contains(&key) => unknown.help(format_args!("write `options: {{ {key}: … }}`")),
            key => unknown.did_you_mean(key, KEYS).help(format_args!("the keys are {}", KEYS.join(", "))),
        });
    }
}

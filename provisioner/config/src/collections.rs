//! Resources with `forEach`: reads the collection, and leads references and options to the resources that it stands for.

use std::collections::{HashMap, HashSet};

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::function::Function;
use crate::place::Collection;
use crate::placeholder::{Each, ReferenceRule, Resolver, split_entry};
use crate::stack::{Environment, Output, Resource};
use crate::tree::{Entry, Mapping, Node, Reference, ReferenceKind, ReferencedInstances, Scalar, Value};
use crate::yaml::scalar::is_text;

/// Key of a resource with its collection.
pub(super) const FOR_EACH: &str = "forEach";
/// Maximum number of entries of a collection.
const MAX_ENTRIES: usize = 100_000;
/// Characters that cannot stand in the key of an entry, since a path cannot have them.
const NOT_IN_PATHS: [char; 5] = ['"', '{', '}', ':', ']'];
const EACH_PLACEHOLDER: &str = "${each:";
const CODE: Code = Code("for-each");

/// Returns the entries of a `forEach`; `None` if they are not known here, or if the error is reported.
pub(super) fn entries(
    node: &Node,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Vec<Each>> {
    let resolved = resolver.resolve(node, ReferenceRule::KnownBefore);
    let has_unknown_item = resolved.as_sequence().is_some_and(|items| items.iter().any(Node::is_unknown));
    if resolved.is_unknown() || has_unknown_item {
        return None;
    }
    let entries: Result<Vec<(Each, Span)>, Box<Diagnostic>> = match &resolved.value {
        Value::Sequence(items) => items.iter().map(of_item).collect(),
        Value::Mapping(mapping) => Ok(mapping.into_iter().map(of_entry).collect()),
        Value::Scalar(scalar) if !scalar.plain => of_text(&scalar.text, node.span),
        Value::Interpolated(string) if string.secret => {
            let error = Diagnostic::error(CODE, node.span, "a secret cannot be the collection of a `forEach`");
            Err(error.help("its keys become names, which are not secret").into())
        }
        Value::Scalar(_) | Value::Interpolated(_) => Err(not_a_collection(node.span)),
    };
    let entries = entries.and_then(|entries| {
        let mut seen = HashMap::new();
        if entries.len() > MAX_ENTRIES {
            let summary = format!("a collection has at most {MAX_ENTRIES} entries, and this one has {}", entries.len());
            return Err(Diagnostic::error(CODE, node.span, summary).into());
        }
        for (each, span) in &entries {
            if let Some(first) = seen.insert(each.key.as_str(), *span) {
                let summary = MessageText::new(format_args!("the collection has {:?} twice", each.key));
                return Err(Diagnostic::error(CODE, *span, summary).label(first, "first here").into());
            }
            if each.key.is_empty() || each.key.contains(NOT_IN_PATHS) {
                let summary = MessageText::new(format_args!("{:?} cannot be the key of an entry", each.key));
                let help = "use a mapping with short keys, and the text as its value: \", {, }, : and ] cannot stand in a path";
                return Err(Diagnostic::error(CODE, *span, summary).help(help).into());
            }
        }
        Ok(entries.into_iter().map(|(each, _)| each).collect())
    });
    entries.map_err(|error| diagnostics.push(*error)).ok()
}

fn not_a_collection(span: Span) -> Box<Diagnostic> {
    Diagnostic::error(CODE, span, "`forEach` must be a list of texts or a mapping")
        .help("a placeholder that is known before the run may stand for one, as JSON: `[\"eu\", \"us\"]`")
        .into()
}

/// Returns an entry of a list, whose value is its key.
fn of_item(item: &Node) -> Result<(Each, Span), Box<Diagnostic>> {
    let text = item.as_scalar().filter(|scalar| is_text(scalar)).map(|scalar| scalar.text.clone());
    let key = text.ok_or_else(|| {
        let summary =
            MessageText::new(format_args!("an entry of the list must be a text, and this is {}", item.kind()));
        Box::new(
            Diagnostic::error(CODE, item.span, summary).help("put a number in quotes; for other values use a mapping"),
        )
    })?;
    Ok((Each { value: Node::text(key.clone(), item.span), key }, item.span))
}

fn of_entry(entry: &Entry) -> (Each, Span) {
    (Each { key: entry.key.clone(), value: entry.value.clone() }, entry.key_span)
}

/// Reads a collection from the text of a placeholder.
fn of_text(text: &str, span: Span) -> Result<Vec<(Each, Span)>, Box<Diagnostic>> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Array(items)) => items.into_iter().map(|item| of_item(&of_json(item, span))).collect(),
        Ok(serde_json::Value::Object(map)) => {
            let entry = |(key, value)| (Each { key, value: of_json(value, span) }, span);
            Ok(map.into_iter().map(entry).collect())
        }
        _ => Err(not_a_collection(span)),
    }
}

fn of_json(value: serde_json::Value, span: Span) -> Node {
    let plain = |text: String| Value::Scalar(Scalar { text, plain: true });
    let value = match value {
        serde_json::Value::Null => plain("null".to_owned()),
        serde_json::Value::Bool(value) => plain(value.to_string()),
        serde_json::Value::Number(value) => plain(value.to_string()),
        serde_json::Value::String(text) => Value::Scalar(Scalar { text, plain: false }),
        serde_json::Value::Array(items) => Value::Sequence(items.into_iter().map(|item| of_json(item, span)).collect()),
        serde_json::Value::Object(map) => {
            let entry = |(key, value)| Entry { key, key_span: span, value: of_json(value, span) };
            Value::Mapping(Mapping(map.into_iter().map(entry).collect()))
        }
    };
    Node { value, span }
}

/// Reports a name in the cloud that all resources of a collection would have: core types make names of `name`, or take `config.name`.
pub(super) fn reject_fixed_names(resource: &Node, type_name: &str, diagnostics: &mut Vec<Diagnostic>) {
    let name = resource.as_mapping().and_then(|mapping| mapping.get_non_null("name"));
    let is_fixed = |node: &&Node| node.as_scalar().is_some_and(|scalar| !scalar.text.contains(EACH_PLACEHOLDER));
    for node in [name, resource.get_path(["config", "name"])].into_iter().flatten().filter(is_fixed) {
        let summary = MessageText::new(format_args!("all resources of this {type_name:?} would have one name"));
        let help = "write `${each:key}` into the name, or leave it out";
        diagnostics.push(Diagnostic::error(CODE, node.span, summary).help(help));
    }
}

/// Reports resources of one environment that come to one key.
pub(super) fn reject_equal_keys(environments: &[Environment], diagnostics: &mut Vec<Diagnostic>) {
    for environment in environments.iter().filter(|environment| !environment.collections.is_empty()) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for resource in &environment.resources {
            if let Some(first) = seen.insert(&resource.key, resource.key_span) {
                let summary = MessageText::new(format_args!(
                    "two resources of env {:?} come to the name {:?}",
                    environment.name, resource.key
                ));
                diagnostics.push(Diagnostic::error(CODE, resource.key_span, summary).label(first, "the other one"));
            }
        }
    }
}

/// Collections by environment and key, each with the keys of its resources that are registered.
struct Collections(HashMap<(String, String), (Collection, Vec<String>)>);

/// Leads references and options that name a resource with `forEach` to the resources that it stands for.
pub(super) fn link(
    environments: &mut [Environment],
    functions: &mut [Function],
    outputs: &mut [Output],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut collections = HashMap::new();
    for environment in environments.iter() {
        for collection in &environment.collections {
            let keys = collection.instances.iter().map(|(_, key)| key);
            let registered = keys.filter(|key| !environment.disabled.contains(key)).cloned().collect();
            let place = (environment.name.clone(), collection.key.clone());
            collections.insert(place, (collection.clone(), registered));
        }
    }
    let collections = Collections(collections);
    for Environment { name, resources, .. } in environments {
        for resource in resources {
            let mut link = |reference: &mut Reference| collections.link_in(name, reference, diagnostics);
            resource.config.each_reference(&mut link);
            if let Some(trigger) = &mut resource.options.replacement_trigger {
                trigger.each_reference(&mut link);
            }
            collections.link_options(resource, name, diagnostics);
        }
    }
    for Function { environment, arguments, depends_on, .. } in functions {
        let environment = environment.as_deref().unwrap_or_default();
        arguments.each_reference(&mut |reference| collections.link_in(environment, reference, diagnostics));
        *depends_on = collections.keys_of_all(depends_on, None, environment, diagnostics);
    }
    for output in outputs {
        output.value.each_reference(&mut |reference| {
            let environment =
                reference.environment.clone().or_else(|| collections.only_environment(&reference.resource));
            collections.link(reference, environment.as_deref(), true, diagnostics);
        });
    }
}

impl Collections {
    fn find(&self, environment: &str, key: &str) -> Option<&(Collection, Vec<String>)> {
        self.0.get(&(environment.to_owned(), key.to_owned()))
    }

    /// Returns whether it is not known yet if a resource is registered.
    fn is_undecided(&self, environment: &str, key: &str) -> bool {
        self.find(environment, key).is_some_and(|(collection, _)| collection.is_unknown)
    }

    /// Returns the only environment that has a collection with a key.
    fn only_environment(&self, key: &str) -> Option<String> {
        let mut found = self.0.keys().filter(|(_, known)| known == key).map(|(environment, _)| environment);
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// Leads a reference of a resource or a function of an environment to the resources that it means.
    fn link_in(&self, own: &str, reference: &mut Reference, diagnostics: &mut Vec<Diagnostic>) {
        let written = reference.environment.clone();
        self.link(reference, Some(written.as_deref().unwrap_or(own)), written.is_some(), diagnostics);
    }

    /// Leads a reference to the resources that it means. If `names_environment`, it names the environment from then on.
    fn link(
        &self,
        reference: &mut Reference,
        environment: Option<&str>,
        names_environment: bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        if reference.kind == ReferenceKind::Function {
            return;
        }
        let (key, span) = (reference.resource.clone(), reference.span);
        let Some((collection, registered)) = environment.and_then(|environment| self.find(environment, &key)) else {
            if reference.instances != ReferencedInstances::None {
                diagnostics.push(no_collection(&key, span));
                reference.instances = ReferencedInstances::None;
            }
            return;
        };
        reference.environment = environment.map(str::to_owned).filter(|_| names_environment);
        match std::mem::take(&mut reference.instances) {
            _ if collection.is_unknown => reference.instances = ReferencedInstances::Undecided,
            ReferencedInstances::None => diagnostics.push(without_entry(collection, span)),
            ReferencedInstances::One(entry) => match collection.resource(&entry) {
                Some(resource) => {
                    resource.clone_into(&mut reference.resource);
                    if environment.is_some_and(|environment| self.is_undecided(environment, resource)) {
                        reference.instances = ReferencedInstances::Undecided;
                    }
                }
                None => diagnostics.push(unknown_entry(collection, &entry, span)),
            },
            ReferencedInstances::All(_) => {
                let is_undecided = |key: &String| environment.is_some_and(|name| self.is_undecided(name, key));
                reference.instances = match registered.iter().any(is_undecided) {
                    true => ReferencedInstances::Undecided,
                    false => ReferencedInstances::All(registered.clone()),
                };
            }
            // Only this function decides it.
            ReferencedInstances::Undecided => {}
        }
    }

    /// Replaces names of collections in options by those of their resources.
    fn link_options(&self, resource: &mut Resource, environment: &str, diagnostics: &mut Vec<Diagnostic>) {
        let options = &mut resource.options;
        for list in [&mut options.depends_on, &mut options.replace_with] {
            *list = self.keys_of_all(list, Some(&resource.key), environment, diagnostics);
        }
        if let Some((text, span)) = options.deleted_with.take() {
            let mut keys = self.keys_of(&text, span, environment, diagnostics);
            if keys.len() > 1 {
                diagnostics.push(match self.find(environment, &text) {
                    Some((collection, _)) => without_entry(collection, span),
                    None => no_collection(&text, span),
                });
            }
            options.deleted_with = keys.pop().map(|key| (key, span));
        }
    }

    /// Returns the keys of the resources that a list in an option names, without `own`, each once.
    fn keys_of_all(
        &self,
        list: &[(String, Span)],
        own: Option<&str>,
        environment: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<(String, Span)> {
        let mut linked = Vec::new();
        let mut seen = HashSet::new();
        for (text, span) in list {
            for key in self.keys_of(text, *span, environment, diagnostics) {
                if own != Some(&key) && seen.insert(key.clone()) {
                    linked.push((key, *span));
                }
            }
        }
        linked
    }

    /// Returns the keys of the resources that a text in an option names: `KEY`, `KEY[ENTRY]`, or all of a collection.
    fn keys_of(&self, text: &str, span: Span, environment: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
        let (key, entry) = split_entry(text);
        let Some((collection, registered)) = self.find(environment, key) else { return vec![text.to_owned()] };
        match entry {
            _ if collection.is_unknown => Vec::new(),
            None | Some("*") => registered.iter().filter(|key| !self.is_undecided(environment, key)).cloned().collect(),
            Some(entry) => match collection.resource(entry) {
                Some(resource) if self.is_undecided(environment, resource) => Vec::new(),
                Some(resource) => vec![resource.to_owned()],
                None => {
                    diagnostics.push(unknown_entry(collection, entry, span));
                    Vec::new()
                }
            },
        }
    }
}

fn no_collection(key: &str, span: Span) -> Diagnostic {
    let summary = MessageText::new(format_args!("resource {key:?} has no `forEach`"));
    Diagnostic::error(CODE, span, summary).help(format_args!("write `{key}` without an entry in brackets"))
}

fn without_entry(collection: &Collection, span: Span) -> Diagnostic {
    let key = &collection.key;
    let summary = MessageText::new(format_args!("resource {key:?} has `forEach`, so it is several resources"));
    let example = collection.instances.first().map_or("KEY", |(entry, _)| entry);
    Diagnostic::error(CODE, span, summary)
        .help(format_args!("write `{key}[{example}]` for one of them, or `{key}[*]` for all"))
}

fn unknown_entry(collection: &Collection, entry: &str, span: Span) -> Diagnostic {
    let key = &collection.key;
    let summary = MessageText::new(format_args!("the `forEach` of {key:?} has no entry {entry:?}"));
    let known = collection.instances.iter().map(|(entry, _)| entry.as_str());
    Diagnostic::error(CODE, span, summary).did_you_mean(entry, known)
}

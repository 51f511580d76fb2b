//! Resolves the placeholders of a parsed tree. Resolved values are not scanned for placeholders again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bridge::message_text::MessageText;

use super::each::Each;
use super::namespaces::{GIT, MissingValues, Namespaces, PlaceholderValue, UsedSecrets};
use super::paths::{path_steps, split_entry, split_function, split_target, steps_after_name};
use super::positions::PlaceholderPositions;
use super::syntax::{
    EACH, FUNCTION, Fault, MalformedPlaceholder, Misspelled, NAMESPACES, OUTPUT, Piece, Placeholder, pieces,
};
use crate::diagnostics::{Code, Diagnostic, SourceFiles, Span};
use crate::stack_outputs::{DecidingReference, OutputReference};
use crate::tree::{
    Entry, InterpolatedString, Mapping, Node, Part, Reference, ReferenceKind, ReferencedInstances, Scalar, Value,
};

const UNRESOLVED: Code = Code("unresolved-placeholder");

const LITERAL_HELP: &str =
    "to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again";

/// Namespaces that are resolved when a client stack is deployed (docs/spec/simple-container.md#3.1).
const CLIENT_NAMESPACES: [&str; 2] = ["resource", "dependency"];

/// Rule for `${resource:…}` and `${function:…}` in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceRule {
    /// Not allowed, and `${output:…}` is not, either.
    Rejected,
    /// Only what is known before the run: `${output:…}`, and `${function:…}`, which is called before it.
    KnownBefore,
    /// Kept as text, and `${dependency:…}` as well. The deployment of a client stack resolves both. With a default, both
    /// are replaced by the default, as in the Go program.
    Kept,
    /// `KEY.PATH` in the same environment, or `ENV/KEY.PATH`.
    SameEnvironment,
    /// `ENV/KEY.PATH`, or `KEY.PATH` if the key is unique, as in outputs.
    AnyEnvironment,
}

impl ReferenceRule {
    /// Returns true for a placeholder of an output of another stack, or of a function that is called before the run.
    pub(super) fn is_early(self, placeholder: &Placeholder<'_>) -> bool {
        placeholder.namespace == OUTPUT || (placeholder.namespace == FUNCTION && self == Self::KnownBefore)
    }
}

/// Resolves placeholders and collects diagnostics.
pub(crate) struct Resolver<'a> {
    namespaces: Namespaces<'a>,
    sources: &'a SourceFiles,
    /// Paths of the namespaces that an error named.
    candidates: HashMap<String, Arc<[String]>>,
    /// Entry of the `forEach` of the resource that is read.
    pub(crate) each: Option<Each>,
    /// Errors found so far.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Secrets and auth entries used so far.
    pub(crate) used: UsedSecrets,
    /// Outputs of other stacks that were read so far.
    pub(crate) outputs_read: Vec<OutputReference>,
    /// Functions whose results are needed before the run, where they are needed.
    pub(crate) deciding: Vec<DecidingReference>,
    /// Environment of the resource that is read.
    pub(crate) environment: Option<String>,
    /// Placeholders whose values are unknown.
    pub(crate) unknown: BTreeSet<String>,
}

impl<'a> Resolver<'a> {
    /// Returns a resolver without diagnostics.
    pub(crate) fn new(namespaces: Namespaces<'a>, sources: &'a SourceFiles) -> Self {
        Self {
            namespaces,
            sources,
            candidates: HashMap::new(),
            each: None,
            diagnostics: Vec::new(),
            used: UsedSecrets::default(),
            outputs_read: Vec::new(),
            deciding: Vec::new(),
            environment: None,
            unknown: BTreeSet::new(),
        }
    }

    /// Returns the sources of placeholder values.
    pub(crate) fn namespaces(&self) -> Namespaces<'a> {
        self.namespaces
    }

    /// Resolves all placeholders in the values of a tree. Keys are not changed.
    pub(crate) fn resolve(&mut self, node: &Node, references: ReferenceRule) -> Node {
        let value = match &node.value {
            Value::Scalar(scalar) => self.resolve_scalar(scalar, node.span, references),
            Value::Sequence(items) => {
                Value::Sequence(items.iter().map(|item| self.resolve(item, references)).collect())
            }
            Value::Mapping(mapping) => {
                let entries = mapping.into_iter().map(|Entry { key, key_span, value }| {
                    let value = self.resolve(value, references);
                    Entry { key: key.clone(), key_span: *key_span, value }
                });
                Value::Mapping(Mapping(entries.collect()))
            }
            Value::Interpolated(_) => node.value.clone(),
        };
        Node { value, span: node.span }
    }

    fn resolve_scalar(&mut self, scalar: &Scalar, span: Span, references: ReferenceRule) -> Value {
        if !scalar.text.contains("${") {
            return Value::Scalar(scalar.clone());
        }
        if let Some(value) = self.each.as_ref().and_then(|each| each.whole_value(&scalar.text)) {
            return value;
        }
        if let Some(value) = self.whole_output(&scalar.text, span, references) {
            return value;
        }
        let mut string = InterpolatedString { parts: Vec::new(), secret: false };
        let mut positions = PlaceholderPositions::new(&scalar.text, span, self.sources);
        for piece in pieces(&scalar.text) {
            match piece {
                Piece::Text(text) => string.push_text(text),
                Piece::Placeholder(placeholder) => {
                    let at = positions.find(placeholder.offset, placeholder.raw);
                    self.resolve_placeholder(&placeholder, at, references, &mut string);
                }
                Piece::Malformed(malformed) => {
                    let at = positions.find(malformed.offset, malformed.beginning);
                    self.diagnostics.push(malformed_error(&malformed, at));
                    string.push_text(malformed.raw);
                }
            }
        }
        match string.known() {
            Some(text) if !string.secret => Value::Scalar(Scalar { text, plain: false }),
            _ => Value::Interpolated(string),
        }
    }

    fn resolve_placeholder(
        &mut self,
        placeholder: &Placeholder<'_>,
        at: Span,
        references: ReferenceRule,
        into: &mut InterpolatedString,
    ) {
        let in_config = matches!(references, ReferenceRule::SameEnvironment | ReferenceRule::AnyEnvironment);
        if in_config && is_shell_text(placeholder) {
            return into.push_text(placeholder.raw);
        }
        if placeholder.namespace == EACH {
            let inserted = match &self.each {
                Some(each) => each.insert(placeholder, at, into),
                None => Err(misplaced_each_error(placeholder, at)),
            };
            return inserted.unwrap_or_else(|diagnostic| self.keep_unresolved(placeholder, *diagnostic, into));
        }
        if references.is_early(placeholder) {
            let inserted = self.insert_output(placeholder, at, references, into);
            return inserted.unwrap_or_else(|diagnostic| self.keep_unresolved(placeholder, *diagnostic, into));
        }
        match self.namespaces.lookup(placeholder, &mut self.used) {
            PlaceholderValue::Public(text) => into.push_text(&text),
            PlaceholderValue::Unset if self.namespaces.missing == MissingValues::Rejected => {
                let diagnostic = unset_variable_error(placeholder, at);
                self.keep_unresolved(placeholder, diagnostic, into);
            }
            PlaceholderValue::Unset => self.diagnostics.push(unset_variable_warning(placeholder, at)),
            value @ (PlaceholderValue::Unknown | PlaceholderValue::UnknownSecret) => {
                let placeholder = placeholder.raw.to_owned();
                self.unknown.insert(placeholder.clone());
                into.parts.push(Part::Unknown { placeholder });
                into.secret |= value == PlaceholderValue::UnknownSecret;
            }
            PlaceholderValue::Secret(text) => {
                into.push_text(text.expose());
                into.secret = true;
            }
            PlaceholderValue::Reference | PlaceholderValue::UnknownNamespace
                if references == ReferenceRule::Kept && CLIENT_NAMESPACES.contains(&placeholder.namespace) =>
            {
                into.push_text(placeholder.default.unwrap_or(placeholder.raw));
            }
            PlaceholderValue::Reference => match self.parse_reference(placeholder, at, references) {
                Ok(reference) => into.parts.push(Part::Reference(reference)),
                Err(diagnostic) => self.keep_unresolved(placeholder, *diagnostic, into),
            },
            // The error in secrets.yaml, which is reported, may be the reason.
            PlaceholderValue::Missing
                if self.namespaces.secrets.is_incomplete && ["secret", "auth"].contains(&placeholder.namespace) =>
            {
                into.push_text(placeholder.raw);
            }
            PlaceholderValue::Missing => {
                let diagnostic = self.missing_value_error(placeholder, at);
                self.keep_unresolved(placeholder, diagnostic, into);
            }
            PlaceholderValue::UnknownNamespace => {
                let diagnostic = unknown_namespace_error(placeholder, at);
                self.keep_unresolved(placeholder, diagnostic, into);
            }
        }
    }

    fn keep_unresolved(
        &mut self,
        placeholder: &Placeholder<'_>,
        diagnostic: Diagnostic,
        into: &mut InterpolatedString,
    ) {
        into.push_text(placeholder.raw);
        self.diagnostics.push(diagnostic);
    }

    fn parse_reference(
        &self,
        placeholder: &Placeholder<'_>,
        at: Span,
        references: ReferenceRule,
    ) -> Result<Reference, Box<Diagnostic>> {
        let format = match references {
            ReferenceRule::Rejected | ReferenceRule::KnownBefore | ReferenceRule::Kept => {
                let summary = MessageText::new(format_args!("`{}` is not allowed here", placeholder.raw));
                return Err(Diagnostic::error(Code("misplaced-reference"), at, summary)
                    .help(format_args!(
                        "`${{{}:…}}` is allowed in `config` and `replacementTrigger` of a resource, in `arguments` of a function, and in `outputs`",
                        placeholder.namespace
                    ))
                    .into());
            }
            ReferenceRule::SameEnvironment => "KEY.PATH",
            ReferenceRule::AnyEnvironment => "ENV/KEY.PATH",
        };
        if placeholder.namespace == FUNCTION {
            return parse_function(placeholder, at);
        }
        let malformed = || -> Box<Diagnostic> {
            let summary = MessageText::new(format_args!(
                "resource placeholder requires format ${{resource:{format}}}, got: {}",
                placeholder.raw
            ));
            Diagnostic::error(Code("malformed-reference"), at, summary).into()
        };
        let target = placeholder.path.unwrap_or_default();
        // A slash in brackets is part of the key of an entry.
        let before_entry = &target[..target.find('[').unwrap_or(target.len())];
        let (environment, target) = match before_entry.find('/') {
            Some(at) => (Some(&target[..at]), &target[at + 1..]),
            None => (None, target),
        };
        let (resource, path) = split_target(target);
        let (resource, entry) = split_entry(resource);
        let steps = path_steps(path);
        let Some(path) = steps.filter(|_| !resource.is_empty() && !environment.is_some_and(str::is_empty)) else {
            return Err(malformed());
        };
        let (environment, default) = (environment.map(str::to_owned), placeholder.default.map(str::to_owned));
        let resource = resource.to_owned();
        let instances = match entry {
            None => ReferencedInstances::None,
            Some("*") => ReferencedInstances::All(Vec::new()),
            Some(entry) => ReferencedInstances::One(entry.to_owned()),
        };
        Ok(Reference { kind: ReferenceKind::Resource, environment, resource, instances, path, default, span: at })
    }

    /// Returns the paths of a namespace, collected once.
    fn candidates(&mut self, namespace: &str) -> Arc<[String]> {
        if let Some(known) = self.candidates.get(namespace) {
            return Arc::clone(known);
        }
        let candidates: Arc<[String]> = self.namespaces.candidates(namespace).into();
        self.candidates.insert(namespace.to_owned(), Arc::clone(&candidates));
        candidates
    }

    /// Returns what to do about a missing entry of secrets.yaml.
    fn secrets_hint(&self, section: &str) -> String {
        match &self.namespaces.secrets.closed {
            Some(reason) => format!("secrets.yaml is not on the disk, and the store does not open: {reason}"),
            None if self.namespaces.secrets.is_withheld => {
                format!("the stack has no secrets.yaml: write one beside server.yaml, with `{section}`")
            }
            None => format!("add it to `{section}` of the stack's secrets.yaml"),
        }
    }

    fn missing_value_error(&mut self, placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
        let path = placeholder.path.unwrap_or_default();
        let name = if placeholder.namespace == "auth" { path.split('.').next().unwrap_or_default() } else { path };
        let stack = self.namespaces.stack;
        let (summary, help) = match placeholder.namespace {
            _ if placeholder.path.is_none() => {
                (format!("`{}` has no name", placeholder.raw), format!("write `${{{}:NAME}}`", placeholder.namespace))
            }
            "secret" => {
                (format!("the secret {path:?} is not defined for stack {stack:?}"), self.secrets_hint("values"))
            }
            "auth" if self.namespaces.secrets.auth.contains_key(name) || self.namespaces.may_have_secrets() => (
                format!("an auth entry has no property {:?}", path.split_once('.').map_or("", |(_, rest)| rest)),
                format!("`${{auth:{name}}}` is its credentials, `${{auth:{name}.projectId}}` its account or project"),
            ),
            "auth" => {
                (format!("the auth entry {name:?} is not defined for stack {stack:?}"), self.secrets_hint("auth"))
            }
            "var" => (
                format!("the variable {path:?} is not defined"),
                "add it to `variables` as `{ type: string, value: … }`".into(),
            ),
            "git" if GIT.contains(&path) && self.namespaces.repository.git.is_none() => (
                format!("`{}` needs a git repository", placeholder.raw),
                "run `git init` in the project's folder".into(),
            ),
            "git" if GIT.contains(&path) => (
                format!("`{}` is not known: the repository has no commit or no branch there", placeholder.raw),
                "commit something, or check a branch out".into(),
            ),
            namespace => {
                let known = self.candidates(namespace).join(", ");
                (format!("the namespace `{namespace}` has no {path:?}"), format!("it has {known}"))
            }
        };
        let candidates = self.candidates(placeholder.namespace);
        Diagnostic::error(UNRESOLVED, at, summary).did_you_mean_one_of(name, &candidates).help(help)
    }
}

fn malformed_error(malformed: &MalformedPlaceholder<'_>, at: Span) -> Diagnostic {
    let beginning = malformed.beginning;
    let (summary, help) = match malformed.fault {
        Fault::Unclosed => {
            let path = match beginning {
                "${resource:" => "KEY.PATH",
                "${output:" => "STACK.NAME",
                "${function:" => "NAME.PATH",
                _ => "NAME",
            };
            let example = if malformed.has_namespace() { beginning } else { "${env:" };
            (format!("`{beginning}…` is not closed"), format!("add the missing `}}`, as in `{example}{path}}}`"))
        }
        Fault::Nested => {
            let help = "write text in its place: a placeholder cannot contain another one, not even in its default";
            (format!("`{beginning}…}}` contains another placeholder"), help.to_owned())
        }
        Fault::Misspelled => {
            let spelling = Misspelled::of(malformed.raw).map(|found| found.spelling).unwrap_or_default();
            (format!("`{beginning}` is not how a placeholder is written"), format!("write `{spelling}`"))
        }
    };
    Diagnostic::error(Code("malformed-placeholder"), at, summary).help(help).help(LITERAL_HELP)
}

/// Reads the placeholder of a function: `NAME`, `NAME.PATH` or `ENV/NAME.PATH`.
pub(super) fn parse_function(placeholder: &Placeholder<'_>, at: Span) -> Result<Reference, Box<Diagnostic>> {
    let target = placeholder.path.unwrap_or_default();
    let before_bracket = &target[..target.find('[').unwrap_or(target.len())];
    let (environment, target) = match before_bracket.find('/') {
        Some(at) => (Some(&target[..at]), &target[at + 1..]),
        None => (None, target),
    };
    let (name, path) = split_function(target);
    let steps = steps_after_name(path).filter(|_| !name.is_empty() && !environment.is_some_and(str::is_empty));
    let Some(path) = steps else {
        let summary = MessageText::new(format_args!(
            "function placeholder requires format ${{function:NAME.PATH}}, got: {}",
            placeholder.raw
        ));
        return Err(Diagnostic::error(Code("malformed-reference"), at, summary).into());
    };
    Ok(Reference {
        kind: ReferenceKind::Function,
        environment: environment.map(str::to_owned),
        resource: name.to_owned(),
        instances: ReferencedInstances::None,
        path,
        default: placeholder.default.map(str::to_owned),
        span: at,
    })
}

/// Returns the error of a variable that a check with all values needs.
fn unset_variable_error(placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
    let name = placeholder.path.unwrap_or_default();
    let summary = MessageText::new(format_args!(
        "the environment variable {name:?} is not set or is empty, and `{}` has no default",
        placeholder.raw
    ));
    Diagnostic::error(UNRESOLVED, at, summary)
        .help("set the variable; without --require-values, its value counts as unknown")
        .help(format_args!("if the text may be empty, write `${{env:{name}:}}`"))
}

fn unset_variable_warning(placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
    let name = placeholder.path.unwrap_or_default();
    let summary = MessageText::new(format_args!(
        "the environment variable {name:?} is not set, and `{}` has no default",
        placeholder.raw
    ));
    Diagnostic::warning(Code("unset-variable"), at, summary)
        .detail("the value is an empty text")
        .help(format_args!("set the variable, or write a default: `${{env:{name}:DEFAULT}}`"))
        .help(format_args!("if the text may be empty, write `${{env:{name}:}}`"))
}

/// Returns true for a text that only a shell expands, such as `${1:-x}` or `${HOME:-/root}`: a parameter without a letter
/// at its beginning, or with an operator for a default.
fn is_shell_text(placeholder: &Placeholder<'_>) -> bool {
    let has_operator = placeholder.path.is_some_and(|path| path.starts_with(['-', '=', '+', '?']));
    let is_namespace = NAMESPACES.contains(&placeholder.namespace);
    !is_namespace && (has_operator || !placeholder.namespace.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn unknown_namespace_error(placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
    let namespace = placeholder.namespace;
    let summary = format_args!("`{}` cannot be resolved: there is no namespace {namespace:?}", placeholder.raw);
    let error = Diagnostic::error(UNRESOLVED, at, summary);
    let error = match namespace.split_once('.').filter(|_| placeholder.path.is_none()) {
        Some((first, rest)) if NAMESPACES.contains(&first) => error.help(format_args!("write `${{{first}:{rest}}}`")),
        Some(_) => error.help(format_args!("if it is an output of a resource, write `${{resource:{namespace}}}`")),
        None => error.did_you_mean(namespace, NAMESPACES),
    };
    error.help(LITERAL_HELP)
}

fn misplaced_each_error(placeholder: &Placeholder<'_>, at: Span) -> Box<Diagnostic> {
    let summary = MessageText::new(format_args!("`{}` is not allowed here", placeholder.raw));
    let help = "`${each:key}` and `${each:value}` are allowed in a resource with `forEach`: in `name`, `config`, `enabled` and `options`";
    Diagnostic::error(Code("misplaced-reference"), at, summary).help(help).into()
}

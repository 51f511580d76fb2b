//! The pass: a tree as written to a tree without placeholders of the first pass. Values are never scanned again.

use super::namespaces::{Found, GIT, NAMESPACES, Namespaces, Used};
use super::syntax::{Piece, Placeholder, pieces};
use crate::diagnostics::{Code, Diagnostic, SourceFiles, Span};
use crate::tree::{Entry, Mapping, Node, Part, Reference, Scalar, Template, Value};

const UNRESOLVED: Code = Code("unresolved-placeholder");

/// Namespaces that are filled in when a client stack is deployed (simple-container §3.1).
const OF_CLIENTS: [&str; 2] = ["resource", "dependency"];

/// Where `${resource:…}` may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    /// Nowhere here; the text says where they may.
    Refused,
    /// Anywhere, and `${dependency:…}` too: they stay as text, for the deployment of a client stack to fill in.
    Left,
    /// `KEY.PATH`, of the same environment.
    SameEnvironment,
    /// `ENV/KEY.PATH`, or `KEY.PATH` where the key is unique.
    AnyEnvironment,
}

/// Fills in placeholders and collects those that cannot be.
pub(crate) struct Resolver<'a> {
    namespaces: Namespaces<'a>,
    sources: &'a SourceFiles,
    /// What was found to be wrong.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Which secrets and auth entries were used so far.
    pub(crate) used: Used,
}

impl<'a> Resolver<'a> {
    /// Begins with nothing found.
    pub(crate) fn new(namespaces: Namespaces<'a>, sources: &'a SourceFiles) -> Self {
        Self { namespaces, sources, diagnostics: Vec::new(), used: Used::default() }
    }

    /// What the placeholders can name.
    pub(crate) fn namespaces(&self) -> Namespaces<'a> {
        self.namespaces
    }

    /// Fills in a whole tree. Keys are never touched.
    pub(crate) fn tree(&mut self, node: &Node, references: References) -> Node {
        let value = match &node.value {
            Value::Scalar(scalar) => self.scalar(scalar, node.span, references),
            Value::Sequence(items) => Value::Sequence(items.iter().map(|item| self.tree(item, references)).collect()),
            Value::Mapping(mapping) => {
                let filled = mapping.into_iter().map(|Entry { key, key_span, value }| {
                    let value = self.tree(value, references);
                    Entry { key: key.clone(), key_span: *key_span, value }
                });
                Value::Mapping(Mapping(filled.collect()))
            }
            Value::Template(_) => node.value.clone(),
        };
        Node { value, span: node.span }
    }

    fn scalar(&mut self, scalar: &Scalar, span: Span, references: References) -> Value {
        if !scalar.text.contains("${") {
            return Value::Scalar(scalar.clone());
        }
        let mut template = Template { parts: Vec::new(), secret: false };
        let mut written = self.span_of_pieces(&scalar.text, span);
        for piece in pieces(&scalar.text) {
            match piece {
                Piece::Text(text) => push_text(&mut template.parts, text),
                Piece::Placeholder(placeholder) => {
                    let at = written(placeholder.raw);
                    self.fill(&placeholder, at, references, &mut template);
                }
            }
        }
        match template.known() {
            Some(text) if !template.secret => Value::Scalar(Scalar { text, plain: false }),
            _ => Value::Template(template),
        }
    }

    fn fill(&mut self, placeholder: &Placeholder<'_>, at: Span, references: References, into: &mut Template) {
        match self.namespaces.find(placeholder, &mut self.used) {
            Found::Public(text) => push_text(&mut into.parts, &text),
            Found::Secret(text) => {
                push_text(&mut into.parts, text.expose());
                into.secret = true;
            }
            Found::Reference | Found::UnknownNamespace
                if references == References::Left && OF_CLIENTS.contains(&placeholder.namespace) =>
            {
                push_text(&mut into.parts, placeholder.raw);
            }
            Found::Reference => match self.reference(placeholder, at, references) {
                Ok(reference) => into.parts.push(Part::Reference(reference)),
                Err(diagnostic) => self.leave(placeholder, *diagnostic, into),
            },
            Found::Missing => {
                let diagnostic = self.missing(placeholder, at);
                self.leave(placeholder, diagnostic, into);
            }
            Found::UnknownNamespace => {
                let diagnostic = unknown_namespace(placeholder, at);
                self.leave(placeholder, diagnostic, into);
            }
        }
    }

    fn leave(&mut self, placeholder: &Placeholder<'_>, diagnostic: Diagnostic, into: &mut Template) {
        push_text(&mut into.parts, placeholder.raw);
        self.diagnostics.push(diagnostic);
    }

    fn reference(
        &self,
        placeholder: &Placeholder<'_>,
        at: Span,
        references: References,
    ) -> Result<Reference, Box<Diagnostic>> {
        let shape = match references {
            References::Refused | References::Left => {
                let summary = format!("`{}` cannot stand here", placeholder.raw);
                return Err(Diagnostic::error(Code("misplaced-reference"), at, summary)
                    .help("`${resource:…}` stands in `config` of a resource and in `outputs`")
                    .into());
            }
            References::SameEnvironment => "${resource:KEY.PATH}",
            References::AnyEnvironment => "${resource:ENV/KEY.PATH}",
        };
        let malformed = || -> Box<Diagnostic> {
            let summary = format!("resource placeholder requires format {shape}, got: {}", placeholder.raw);
            Diagnostic::error(Code("malformed-reference"), at, summary).into()
        };
        let target = placeholder.path.unwrap_or_default();
        let (environment, target) = match target.split_once('/') {
            Some(_) if references == References::SameEnvironment => {
                return Err(malformed().help("a resource refers to resources of its own environment only").into());
            }
            Some((environment, target)) => (Some(environment), target),
            None => (None, target),
        };
        let mut steps = target.split('.').map(str::to_owned);
        let resource = steps.next().unwrap_or_default();
        let path: Vec<String> = steps.collect();
        let empty = resource.is_empty() || path.is_empty() || path.iter().any(String::is_empty);
        if empty || environment.is_some_and(str::is_empty) {
            return Err(malformed());
        }
        Ok(Reference { environment: environment.map(str::to_owned), resource, path, span: at })
    }

    fn missing(&self, placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
        let path = placeholder.path.unwrap_or_default();
        let name = if placeholder.namespace == "auth" { path.split('.').next().unwrap_or_default() } else { path };
        let stack = self.namespaces.stack;
        let (summary, help) = match placeholder.namespace {
            _ if placeholder.path.is_none() => {
                (format!("`{}` names nothing", placeholder.raw), format!("write `${{{}:NAME}}`", placeholder.namespace))
            }
            "secret" => (
                format!("the secret {path:?} is not defined for stack {stack:?}"),
                "add it to `values` of the stack's secrets.yaml; after a clone, reveal it with Simple Container's `sc secrets reveal`"
                    .into(),
            ),
            "auth" if self.namespaces.secrets.auth.contains_key(name) => (
                format!("an auth entry has no property {:?}", path.split_once('.').map_or("", |(_, rest)| rest)),
                format!("`${{auth:{name}}}` is its credentials, `${{auth:{name}.projectId}}` its account or project"),
            ),
            "auth" => (
                format!("the auth entry {name:?} is not defined for stack {stack:?}"),
                "add it to `auth` of the stack's secrets.yaml; after a clone, reveal it with Simple Container's `sc secrets reveal`"
                    .into(),
            ),
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
                let known = self.namespaces.candidates(namespace).join(", ");
                (format!("the namespace `{namespace}` has no {path:?}"), format!("it has {known}"))
            }
        };
        let candidates = self.namespaces.candidates(placeholder.namespace);
        Diagnostic::error(UNRESOLVED, at, summary).did_you_mean(name, candidates.iter().map(String::as_str)).help(help)
    }

    /// Finds the text of each placeholder, in order, in the file; escapes may hide it, then the whole scalar is it.
    fn span_of_pieces(&self, text: &str, span: Span) -> impl FnMut(&str) -> Span + use<> {
        let source = self.sources.slice(span).to_owned();
        let faithful = text.matches("${").count() == source.matches("${").count();
        let mut from = 0;
        move |raw| match source[from..].find(raw).filter(|_| faithful) {
            Some(at) => {
                let start = from + at;
                from = start + raw.len();
                let offset = |bytes: usize| span.start + u32::try_from(bytes).unwrap_or_default();
                Span { file: span.file, start: offset(start), end: offset(from) }
            }
            None => span,
        }
    }
}

fn unknown_namespace(placeholder: &Placeholder<'_>, at: Span) -> Diagnostic {
    Diagnostic::error(
        UNRESOLVED,
        at,
        format!("`{}` cannot be resolved: there is no namespace {:?}", placeholder.raw, placeholder.namespace),
    )
    .did_you_mean(placeholder.namespace, NAMESPACES)
    .help("to write it literally, put the text into a variable and use `${var:NAME}`: values are not scanned again")
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

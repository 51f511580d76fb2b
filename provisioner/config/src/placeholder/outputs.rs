//! Values of `${output:STACK.NAME}`, outputs of other stacks, and of `${function:NAME}` where they are needed before the run.

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyValue;

use super::paths::steps_after_name;
use super::resolve::{ReferenceRule, Resolver, parse_function};
use super::syntax::{FUNCTION, Piece, Placeholder, pieces};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::output_part::{OutputPart, output_at};
use crate::stack_outputs::{DecidingReference, OutputReference};
use crate::tree::{Entry, InterpolatedString, Mapping, Node, Part, Scalar, Value};
use crate::values::format_json_number;

const FORMAT: &str = "${output:STACK.NAME}";

impl Resolver<'_> {
    /// Returns the numbers of outputs and results that were read so far.
    pub(crate) fn read_early(&self) -> (usize, usize) {
        (self.outputs_read.len(), self.deciding.len())
    }

    /// Returns what has to happen before an unknown text is known, which has read an output or a result since then: `net is provisioned`.
    /// `None` as long as the text may be known when the stack is read again.
    pub(crate) fn awaited_since(&self, (outputs, results): (usize, usize)) -> Option<String> {
        let values = self.namespaces().stacks.values?;
        if let Some(read) = self.outputs_read.get(outputs..).and_then(<[_]>::last) {
            return Some(format!("{} is provisioned", read.stack));
        }
        values.functions.as_ref()?;
        let read = self.deciding.get(results..)?.last()?;
        Some(format!("the arguments of the function {} are known", read.reference.resource))
    }

    /// Returns the value of a text that is one placeholder of an output: it keeps its type. `None` for another text.
    pub(super) fn whole_output(&mut self, text: &str, at: Span, rule: ReferenceRule) -> Option<Value> {
        let [Piece::Placeholder(placeholder)] = pieces(text)[..] else { return None };
        if !rule.is_early(&placeholder) {
            return None;
        }
        Some(match self.find_early(&placeholder, at, rule) {
            Ok(value) => node_of(value, &placeholder, at).value,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                Value::Scalar(Scalar { text: placeholder.raw.to_owned(), plain: false })
            }
        })
    }

    /// Inserts the value of a placeholder of an output into a text.
    pub(super) fn insert_output(
        &mut self,
        placeholder: &Placeholder<'_>,
        at: Span,
        rule: ReferenceRule,
        into: &mut InterpolatedString,
    ) -> Result<(), Box<Diagnostic>> {
        let mut value = self.find_early(placeholder, at, rule)?;
        while let PropertyValue::Secret(secret) = value {
            into.secret = true;
            value = secret.into_exposed();
        }
        match text_of(&value) {
            Some(text) => into.push_text(&text),
            None if matches!(value, PropertyValue::Unknown(_)) => into.parts.push(unknown(placeholder)),
            None => {
                let summary =
                    MessageText::new(format_args!("`{}` is no text: it cannot be part of a text", placeholder.raw));
                let help = "use it as the whole value, or read a part of it: `${output:STACK.NAME.part}`";
                return Err(Diagnostic::error(Code("cannot-join"), at, summary).help(help).into());
            }
        }
        Ok(())
    }

    fn find_early(
        &mut self,
        placeholder: &Placeholder<'_>,
        at: Span,
        rule: ReferenceRule,
    ) -> Result<PropertyValue, Box<Diagnostic>> {
        match placeholder.namespace {
            FUNCTION => self.find_result(placeholder, at),
            _ => self.find_output(placeholder, at, rule),
        }
    }

    /// Returns the result of a function, unknown as long as it is not called.
    fn find_result(&mut self, placeholder: &Placeholder<'_>, at: Span) -> Result<PropertyValue, Box<Diagnostic>> {
        let reference = parse_function(placeholder, at)?;
        let environment = self.environment.clone();
        self.deciding.push(DecidingReference { reference: reference.clone(), environment: environment.clone() });
        let values = self.namespaces().stacks.values.and_then(|values| values.functions.as_ref());
        let Some(values) = values else { return Ok(PropertyValue::UNKNOWN) };
        let of = |environment: Option<String>| values.get(&(environment, reference.resource.clone()));
        let named = reference.environment.clone().or(environment);
        let only = || values.iter().find(|((_, name), _)| *name == reference.resource).map(|(_, value)| value);
        let value = named.and_then(|named| of(Some(named))).or_else(|| of(None)).or_else(only);
        let part = match value {
            Some(value) => output_at(Some(value), &reference.path),
            // It is switched off, or a mistake, which is reported.
            None => OutputPart::Missing { is_secret: false, steps: reference.path.len() },
        };
        part.or_default(reference.default.as_deref()).ok_or_else(|| {
            let summary =
                MessageText::new(format_args!("the result of the function has no `{}`", reference.path_text()));
            let known = match value {
                Some(PropertyValue::Map(map)) => map.keys().cloned().collect(),
                _ => Vec::new(),
            };
            let error = Diagnostic::error(Code("unknown-output"), at, summary);
            let first = reference.path.first().map(String::as_str).unwrap_or_default();
            error.did_you_mean_one_of(first, &known.into()).into()
        })
    }

    /// Returns the value of an output, unknown as long as the outputs of other stacks are not known.
    fn find_output(
        &mut self,
        placeholder: &Placeholder<'_>,
        at: Span,
        rule: ReferenceRule,
    ) -> Result<PropertyValue, Box<Diagnostic>> {
        if matches!(rule, ReferenceRule::Rejected | ReferenceRule::Kept) {
            let summary = MessageText::new(format_args!("`{}` is not allowed here", placeholder.raw));
            let help = "`${output:…}` is allowed in `config` of resources, plugins and the registrar, in `forEach` and `enabled`, and in `outputs`";
            return Err(Diagnostic::error(Code("misplaced-reference"), at, summary).help(help).into());
        }
        let reference = self.parse_output(placeholder, at)?;
        let stacks = self.namespaces().stacks;
        let outputs = stacks.values.and_then(|values| values.outputs.get(&reference.stack)).cloned();
        let (stack, default) = (reference.stack.clone(), reference.default.clone());
        let (first, rest) = (reference.path[0].clone(), reference.path[1..].to_vec());
        self.outputs_read.push(reference);
        let Some(outputs) = outputs else { return Ok(PropertyValue::UNKNOWN) };
        let part = output_at(outputs.get(&first), &rest);
        part.or_default(default.as_deref()).ok_or_else(|| {
            let path = std::iter::once(first.as_str()).chain(rest.iter().map(String::as_str));
            let path = path.collect::<Vec<_>>().join(".");
            let summary = MessageText::new(format_args!("the stack {stack:?} has no output {path:?}"));
            let error = Diagnostic::error(Code("unknown-output"), at, summary)
                .did_you_mean(&first, outputs.keys().map(String::as_str).filter(|known| *known != first));
            let help = match (outputs.contains_key(&first), outputs.is_empty()) {
                (true, _) => format!("the output {first:?} is there, and has no such part"),
                (false, true) => {
                    "it has no outputs: declare them in `outputs` of its server.yaml, and provision it".to_owned()
                }
                (false, false) => {
                    format!("its outputs are {}", outputs.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
                }
            };
            error.help(MessageText::new(format_args!("{help}"))).into()
        })
    }

    /// Reads the name of the stack and the path in a placeholder. The stack is the longest name that fits, because names may have dots.
    fn parse_output(&self, placeholder: &Placeholder<'_>, at: Span) -> Result<OutputReference, Box<Diagnostic>> {
        let target = placeholder.path.unwrap_or_default();
        let namespaces = self.namespaces();
        let names = namespaces.stacks.names.iter().chain(namespaces.stacks.references);
        let fits = |name: &&String| target.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['.', '[']));
        let found = names.filter(fits).max_by_key(|name| name.len());
        let is_named = |name: &str| !name.is_empty() && name.len() < target.len();
        let Some(stack) = found else {
            let written = &target[..target.find(['.', '[']).unwrap_or(target.len())];
            if !is_named(written) {
                return Err(malformed(placeholder, at));
            }
            let candidates = namespaces.stacks.candidates(namespaces.stack);
            let summary = MessageText::new(format_args!("there is no stack {written:?} whose outputs could be read"));
            let help = match candidates.is_empty() {
                true => "the repository has no other stack, and `references` no entry".to_owned(),
                false => {
                    format!("there are {}; stacks of other projects are named in `references`", candidates.join(", "))
                }
            };
            let error = Diagnostic::error(Code("unknown-stack"), at, summary);
            return Err(error
                .did_you_mean_one_of(written, &candidates.into())
                .help(MessageText::new(format_args!("{help}")))
                .into());
        };
        if stack == namespaces.stack {
            let summary = MessageText::new(format_args!("`{}` reads an output of its own stack", placeholder.raw));
            let help = "read what the output is made of: `${resource:KEY.PATH}`";
            return Err(Diagnostic::error(Code("own-output"), at, summary).help(help).into());
        }
        let path = steps_after_name(&target[stack.len()..])
            .filter(|path| !path.is_empty())
            .ok_or_else(|| malformed(placeholder, at))?;
        let default = placeholder.default.map(str::to_owned);
        Ok(OutputReference { stack: stack.clone(), path, default, span: at })
    }
}

fn malformed(placeholder: &Placeholder<'_>, at: Span) -> Box<Diagnostic> {
    let summary =
        MessageText::new(format_args!("output placeholder requires format {FORMAT}, got: {}", placeholder.raw));
    Diagnostic::error(Code("malformed-reference"), at, summary)
        .help("a name with dots stands in brackets: `${output:base[a.b].part}`")
        .into()
}

/// Returns a value as a text within a text; `None` for a value that has no text.
fn text_of(value: &PropertyValue) -> Option<String> {
    match value {
        PropertyValue::String(text) => Some(text.clone()),
        PropertyValue::Bool(value) => Some(value.to_string()),
        PropertyValue::Number(number) => Some(format_json_number(*number)),
        PropertyValue::Null => Some(String::new()),
        _ => None,
    }
}

fn unknown(placeholder: &Placeholder<'_>) -> Part {
    Part::Unknown { placeholder: placeholder.raw.to_owned() }
}

/// Returns a value as a node, with its type.
fn node_of(value: PropertyValue, placeholder: &Placeholder<'_>, span: Span) -> Node {
    let plain = |text: String| Value::Scalar(Scalar { text, plain: true });
    let single = |part: Part, secret: bool| Value::Interpolated(InterpolatedString { parts: vec![part], secret });
    let value = match value {
        PropertyValue::Null => plain("null".to_owned()),
        PropertyValue::Bool(value) => plain(value.to_string()),
        PropertyValue::Number(value) => plain(format_json_number(value)),
        PropertyValue::String(text) => Value::Scalar(Scalar { text, plain: false }),
        PropertyValue::Unknown(_) => single(unknown(placeholder), false),
        PropertyValue::List(items) => {
            Value::Sequence(items.into_iter().map(|item| node_of(item, placeholder, span)).collect())
        }
        PropertyValue::Map(map) => {
            let entry = |(key, value)| Entry { key, key_span: span, value: node_of(value, placeholder, span) };
            Value::Mapping(Mapping(map.into_iter().map(entry).collect()))
        }
        PropertyValue::Secret(secret) => match secret.into_exposed() {
            PropertyValue::String(text) => single(Part::Text(text), true),
            PropertyValue::Unknown(_) => single(unknown(placeholder), true),
            value => single(Part::Value(value), true),
        },
        value => single(Part::Value(value), false),
    };
    Node { value, span }
}

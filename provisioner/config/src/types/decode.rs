//! Decodes the typed `config` of a core type: a node to a `serde` type. Collects all errors.
//!
//! Scalars are read as the Go program reads them inside `config` (see [`crate::yaml::scalar`]). Unknown keys are
//! ignored, with a warning.

use std::cell::RefCell;
use std::fmt;

use bridge::message_text::MessageText;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::text_handle::{TEXT_HANDLE, TextHandle};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::reader::{Reader, Section};
use crate::tree::{Entry, InterpolatedString, Mapping, Node, Part, Scalar, Value};
use crate::yaml::scalar::{Resolved, UntypedScalar, go_bool, go_int, go_text, read_untyped, resolve};

/// Name of the newtype that [`FreeValue`](super::FreeValue) is decoded as: its texts are passed to the visitor as handles.
pub(super) const FREE_VALUE: &str = "$sc::FreeValue";
const WRONG_KIND: Code = Code("wrong-kind");

/// Name of the field of a struct that is decoded from the same mapping as the struct itself, for fields that several types
/// share. The attribute `flatten` of serde would lose the positions.
const FLATTENED: &str = "$sc::Flattened";

/// A decoded `config` with the texts of its handles.
#[derive(Clone, Debug)]
pub struct Decoded<T> {
    /// The typed configuration.
    pub config: T,
    /// True if a value that is not known in this process stands for a number, a boolean or another value without a handle: the
    /// configuration has a default in its place.
    pub has_unknown_values: bool,
    texts: Vec<(InterpolatedString, Span)>,
}

impl<T> Decoded<T> {
    /// Returns the text of a handle, with its position.
    ///
    /// # Panics
    /// Panics if the handle comes from another configuration.
    pub fn text(&self, handle: TextHandle) -> (&InterpolatedString, Span) {
        let (string, span) = &self.texts[handle.index()];
        (string, *span)
    }

    /// Returns all texts with their positions, by the index of their handles.
    pub fn texts(&self) -> impl Iterator<Item = (&InterpolatedString, Span)> {
        self.texts.iter().map(|(string, span)| (string, *span))
    }

    /// Returns the text of a handle; `None` if the handle is missing or the text is empty.
    pub fn non_empty_text(&self, handle: Option<TextHandle>) -> Option<&InterpolatedString> {
        let (string, _) = self.text(handle?);
        (string.known().as_deref() != Some("")).then_some(string)
    }
}

/// Decodes a `config`; `None` if it has errors, which are added to `diagnostics`.
pub fn decode<T: DeserializeOwned>(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<Decoded<T>> {
    let context = DecodeContext::default();
    let result = T::deserialize(Decoder { node, context: &context, is_flattened: false });
    let mut decode_diagnostics = context.diagnostics.into_inner();
    let has_errors = context.has_errors.into_inner();
    if let Err(DecodeError::Message(text)) = &result
        && !has_errors
    {
        decode_diagnostics.push(Diagnostic::error(WRONG_KIND, node.span, text.clone()));
    }
    diagnostics.extend(decode_diagnostics);
    let config = result.ok().filter(|_| !has_errors)?;
    let has_unknown_values = context.has_unknown_values.into_inner();
    Some(Decoded { config, has_unknown_values, texts: context.texts.into_inner() })
}

#[derive(Default)]
struct DecodeContext {
    diagnostics: RefCell<Vec<Diagnostic>>,
    has_errors: RefCell<bool>,
    has_unknown_values: RefCell<bool>,
    texts: RefCell<Vec<(InterpolatedString, Span)>>,
    /// Fields of the structs around the flattened one that is decoded next.
    outer_fields: RefCell<Vec<&'static str>>,
}

impl DecodeContext {
    fn push_error(&self, diagnostic: Diagnostic) {
        *self.has_errors.borrow_mut() = true;
        self.diagnostics.borrow_mut().push(diagnostic);
    }
}

/// Reasons why decoding stops.
#[derive(Debug, thiserror::Error)]
enum DecodeError {
    /// The error is already reported with its position.
    #[error("already reported")]
    Reported,
    /// The error is not reported yet.
    #[error("{0}")]
    Message(String),
}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Message(message.to_string())
    }
}

#[derive(Clone, Copy)]
struct Decoder<'n> {
    node: &'n Node,
    context: &'n DecodeContext,
    /// True for the value of a flattened field.
    is_flattened: bool,
}

impl<'n> Decoder<'n> {
    /// Reports a value of the wrong kind, unless it is unknown. Decoding continues with a default value, which is discarded.
    fn report_wrong_kind(self, expected: &str) {
        if self.is_unknown() {
            return;
        }
        let summary = MessageText::new(format_args!("expected {expected}, found {}", self.node.kind()));
        let diagnostic = Diagnostic::error(WRONG_KIND, self.node.span, summary);
        let quoted = self.node.as_scalar().is_some_and(|scalar| !scalar.plain);
        self.context.push_error(if quoted { diagnostic.help("write it without quotes") } else { diagnostic });
    }

    /// Warns of a number whose fraction is lost, as in the Go program.
    fn warn_of_fraction(self, read: i64) {
        let scalar = self.node.as_scalar();
        if let Some((scalar, Resolved::Float(value))) = scalar.map(|scalar| (scalar, resolve(scalar)))
            && value.fract() != 0.0
        {
            self.warn_of_rewriting(scalar, &read.to_string(), "write a whole number");
        }
    }

    fn warn_of_rewriting(self, scalar: &Scalar, read: &str, help: &str) {
        let summary = MessageText::new(format_args!("{:?} is read as {read:?}", scalar.text));
        let warning = Diagnostic::warning(Code("rewritten-scalar"), self.node.span, summary).help(help.to_owned());
        self.context.diagnostics.borrow_mut().push(warning);
    }

    /// Returns whether the value is not known in this process, and notes that a default takes its place.
    fn is_unknown(self) -> bool {
        let is_unknown = self.node.is_unknown();
        *self.context.has_unknown_values.borrow_mut() |= is_unknown;
        is_unknown
    }

    fn scalar(self, expected: &str) -> Option<&'n Scalar> {
        let scalar = self.node.as_scalar();
        if scalar.is_none() {
            self.report_wrong_kind(expected);
        }
        scalar
    }

    fn text(self) -> String {
        match &self.node.value {
            Value::Scalar(scalar) => {
                let text = go_text(scalar);
                if text != scalar.text && !scalar.is_null() {
                    self.warn_of_rewriting(scalar, &text, "put the value in quotes to keep it as it is written");
                }
                text
            }
            Value::Interpolated(_) if self.is_unknown() => String::new(),
            Value::Interpolated(string) => string.known().unwrap_or_else(|| {
                let summary = "a reference to another resource is not allowed here";
                self.context.push_error(Diagnostic::error(Code("misplaced-reference"), self.node.span, summary));
                String::new()
            }),
            Value::Sequence(_) | Value::Mapping(_) => {
                self.report_wrong_kind("a text");
                String::new()
            }
        }
    }

    /// Stores a text, with its secrets and references, and passes its index to the visitor.
    fn handle<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let string = match &self.node.value {
            Value::Interpolated(string) => string.clone(),
            _ => InterpolatedString { parts: vec![Part::Text(self.text())], secret: false },
        };
        let mut texts = self.context.texts.borrow_mut();
        texts.push((string, self.node.span));
        visitor.visit_u64(texts.len() as u64 - 1)
    }

    /// Passes a value of any structure to the visitor, typed as the Go program types it, with its texts as by
    /// [`Decoder::handle`].
    fn free_value<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Scalar(scalar) => match resolve(scalar) {
                Resolved::Null => visitor.visit_unit(),
                Resolved::Bool(value) => visitor.visit_bool(value),
                #[expect(clippy::cast_precision_loss, reason = "numbers of the protocol are doubles")]
                Resolved::Int(value) => visitor.visit_f64(value as f64),
                Resolved::Float(value) if value.is_finite() => visitor.visit_f64(value),
                Resolved::Float(_) | Resolved::Date(_) | Resolved::Text => self.handle(visitor),
            },
            Value::Interpolated(_) => self.handle(visitor),
            Value::Sequence(items) => {
                let items: Vec<&Node> = items.iter().collect();
                visitor.visit_seq(Items { items: items.into_iter(), context: self.context })
            }
            Value::Mapping(_) => self.visit_entries(visitor, None),
        }
    }

    /// Passes the entries of a mapping to a visitor. With the fields of a struct that has a flattened one, an entry with the
    /// whole mapping follows.
    fn visit_entries<V: Visitor<'n>>(
        self,
        visitor: V,
        fields: Option<&'static [&'static str]>,
    ) -> Result<V::Value, DecodeError> {
        let fields = fields.filter(|_| matches!(self.node.value, Value::Mapping(_)));
        let flattened = fields.map(|fields| (Self { is_flattened: true, ..self }, fields));
        visitor.visit_map(Entries { entries: self.entries().iter(), flattened, value: None, context: self.context })
    }

    fn entries(self) -> &'n [Entry] {
        match &self.node.value {
            Value::Mapping(Mapping(entries)) => entries,
            _ if self.node.is_null() => &[],
            _ => {
                self.report_wrong_kind("a mapping");
                &[]
            }
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            match self.node.is_null().then_some(0).or_else(|| self.node.as_scalar().and_then(go_int)) {
                Some(value) => {
                    self.warn_of_fraction(value);
                    visitor.visit_i64(value)
                }
                None => {
                    self.report_wrong_kind("a whole number");
                    visitor.visit_i64(0)
                }
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for Decoder<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Scalar(scalar) => match read_untyped(scalar) {
                UntypedScalar::Null => visitor.visit_unit(),
                UntypedScalar::Bool(value) => visitor.visit_bool(value),
                UntypedScalar::Number(..) => match go_int(scalar) {
                    Some(value) if !scalar.text.contains(['.', 'e', 'E']) => visitor.visit_i64(value),
                    _ => self.deserialize_f64(visitor),
                },
                UntypedScalar::Text(_) => visitor.visit_str(&scalar.text),
            },
            Value::Interpolated(_) => visitor.visit_string(self.text()),
            Value::Sequence(_) => self.deserialize_seq(visitor),
            Value::Mapping(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.is_null().then_some(false).or_else(|| self.node.as_scalar().and_then(go_bool)) {
            Some(value) => visitor.visit_bool(value),
            None => {
                self.report_wrong_kind("`true` or `false`");
                visitor.visit_bool(false)
            }
        }
    }

    integers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let number = self.scalar("a number").map(go_text);
        if self.node.as_scalar().is_some_and(|scalar| !scalar.plain) {
            self.report_wrong_kind("a number");
            return visitor.visit_f64(0.0);
        }
        match number.filter(|text| !text.is_empty()).map(|text| text.parse()) {
            Some(Ok(number)) => visitor.visit_f64(number),
            Some(Err(_)) => {
                self.report_wrong_kind("a number");
                visitor.visit_f64(0.0)
            }
            None => visitor.visit_f64(0.0),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_string(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_string(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match name {
            TEXT_HANDLE => self.handle(visitor),
            FREE_VALUE => self.free_value(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let items: &[Node] = match &self.node.value {
            Value::Sequence(items) => items,
            _ if self.node.is_null() => &[],
            _ => {
                self.report_wrong_kind("a list");
                &[]
            }
        };
        // A null in a list is dropped.
        let items: Vec<&Node> = items.iter().filter(|item| !item.is_null()).collect();
        visitor.visit_seq(Items { items: items.into_iter(), context: self.context })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.visit_entries(visitor, None)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if fields.contains(&FLATTENED) {
            return self.visit_entries(visitor, Some(fields));
        }
        if let Value::Mapping(mapping) = &self.node.value {
            let section = Section { mapping, span: self.node.span };
            let outer_fields = if self.is_flattened { self.context.outer_fields.take() } else { Vec::new() };
            let known: Vec<&str> =
                fields.iter().chain(&outer_fields).copied().filter(|key| *key != FLATTENED).collect();
            Reader::new(&mut self.context.diagnostics.borrow_mut()).warn_of_unknown_keys(section, &known);
        }
        self.visit_entries(visitor, None)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if let Some(first) = variants.first().filter(|_| self.is_unknown()) {
            return visitor.visit_enum((*first).into_deserializer());
        }
        let text = self.text();
        if !variants.contains(&text.as_str()) {
            self.context.push_error(
                Diagnostic::error(Code("unknown-value"), self.node.span, format_args!("{text:?} is not a valid value"))
                    .did_you_mean(&text, variants.iter().copied())
                    .help(format_args!("the values are {}", variants.join(", "))),
            );
            return Err(DecodeError::Reported);
        }
        visitor.visit_enum(text.into_deserializer())
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit_struct tuple tuple_struct identifier }
}

struct Items<'n> {
    items: std::vec::IntoIter<&'n Node>,
    context: &'n DecodeContext,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.items.next() else { return Ok(None) };
        decode_at(seed, Decoder { node, context: self.context, is_flattened: false }).map(Some)
    }
}

struct Entries<'n> {
    entries: std::slice::Iter<'n, Entry>,
    /// Value of the flattened field, and the fields of its struct.
    flattened: Option<(Decoder<'n>, &'static [&'static str])>,
    value: Option<Decoder<'n>>,
    context: &'n DecodeContext,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        let (key, value) = match (self.entries.next(), self.flattened.take()) {
            (Some(entry), flattened) => {
                self.flattened = flattened;
                (entry.key.as_str(), Decoder { node: &entry.value, context: self.context, is_flattened: false })
            }
            (None, Some((flattened, fields))) => {
                self.context.outer_fields.borrow_mut().extend(fields);
                (FLATTENED, flattened)
            }
            (None, None) => return Ok(None),
        };
        self.value = Some(value);
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        decode_at(seed, self.value.take().ok_or_else(|| DecodeError::Message("a value without a key".into()))?)
    }
}

fn decode_at<'n, S: DeserializeSeed<'n>>(seed: S, decoder: Decoder<'n>) -> Result<S::Value, DecodeError> {
    seed.deserialize(decoder).map_err(|error| {
        if let DecodeError::Message(text) = error {
            decoder.context.push_error(Diagnostic::error(WRONG_KIND, decoder.node.span, text));
        }
        DecodeError::Reported
    })
}

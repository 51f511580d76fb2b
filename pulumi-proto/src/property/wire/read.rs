//! The messages of `google/protobuf/struct.proto` in the bytes that they are: one level at a time, nothing copied.
//!
//! Where a field comes twice the last one counts, as with any protobuf reader; nobody writes the parts of one object
//! twice, so they are not merged.

use prost::encoding::{self, DecodeContext, WireType};

use super::{Attempt, Fault, WireProblem};

/// The bytes of a `google.protobuf.Value`.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

/// What a value is.
pub(super) enum Kind<'a> {
    Null,
    Number(f64),
    Text(&'a str),
    Bool(bool),
    Object(Object<'a>),
    List(List<'a>),
}

/// The bytes of a `google.protobuf.Struct`.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(pub(super) &'a [u8]);

/// The bytes of a `google.protobuf.ListValue`.
#[derive(Clone, Copy)]
pub(super) struct List<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// What the value is.
    ///
    /// # Errors
    /// No kind at all, or bytes that are no value.
    pub(super) fn kind(self) -> Attempt<Kind<'a>> {
        let mut kind = None;
        let mut fields = Fields(self.0);
        while let Some(field) = fields.next()? {
            kind = Some(match field {
                (1, Payload::Varint(_)) => Kind::Null,
                (2, Payload::Fixed64(bits)) => Kind::Number(f64::from_bits(bits)),
                (3, Payload::Bytes(bytes)) => Kind::Text(text(bytes)?),
                (4, Payload::Varint(value)) => Kind::Bool(value != 0),
                (5, Payload::Bytes(bytes)) => Kind::Object(Object(bytes)),
                (6, Payload::Bytes(bytes)) => Kind::List(List(bytes)),
                (1..=6, _) => return Err(unreadable()),
                _ => continue,
            });
        }
        kind.ok_or_else(|| Fault::new(WireProblem::NoKind))
    }
}

impl<'a> Object<'a> {
    /// The members, as they come.
    pub(super) fn members(self) -> impl Iterator<Item = Attempt<(&'a str, Raw<'a>)>> {
        let member = |(key, value)| Ok((text(key)?, Raw(value)));
        entries(self.0).map(move |entry| entry.and_then(entry_parts).and_then(member))
    }

    /// The member of this name.
    pub(super) fn get(self, name: &str) -> Attempt<Option<Raw<'a>>> {
        let mut found = None;
        for entry in entries(self.0) {
            let (key, value) = entry_parts(entry?)?;
            if key == name.as_bytes() {
                found = Some(Raw(value));
            }
        }
        Ok(found)
    }
}

impl<'a> List<'a> {
    /// The items.
    pub(super) fn items(self) -> impl Iterator<Item = Attempt<Raw<'a>>> {
        entries(self.0).map(|item| item.map(Raw))
    }
}

/// What a message that repeats its first field, and has no other, holds in it.
fn entries(bytes: &[u8]) -> impl Iterator<Item = Attempt<&[u8]>> {
    let mut fields = Fields(bytes);
    std::iter::from_fn(move || {
        loop {
            match fields.next().transpose()? {
                Ok((1, Payload::Bytes(entry))) => return Some(Ok(entry)),
                Ok((1, _)) => return Some(Err(unreadable())),
                Ok(_) => {}
                Err(fault) => return Some(Err(fault)),
            }
        }
    })
}

/// Key and value of an entry of a map; what is not there is empty.
fn entry_parts(entry: &[u8]) -> Attempt<(&[u8], &[u8])> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Fields(entry);
    while let Some(field) = fields.next()? {
        match field {
            (1, Payload::Bytes(bytes)) => key = bytes,
            (2, Payload::Bytes(bytes)) => value = bytes,
            (1 | 2, _) => return Err(unreadable()),
            _ => {}
        }
    }
    Ok((key, value))
}

/// The fields of a message, from the first to the last; nothing comes after an error.
struct Fields<'a>(&'a [u8]);

/// What a field carries.
enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// None of the kinds that these messages have.
    Other,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Attempt<Option<(u32, Payload<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        field.map(Some).ok_or_else(unreadable)
    }

    fn field(&mut self) -> Option<(u32, Payload<'a>)> {
        let rest = &mut self.0;
        let (tag, wire_type) = encoding::decode_key(rest).ok()?;
        let payload = match wire_type {
            WireType::Varint => Payload::Varint(encoding::decode_varint(rest).ok()?),
            WireType::SixtyFourBit => {
                let (bits, after) = rest.split_first_chunk()?;
                *rest = after;
                Payload::Fixed64(u64::from_le_bytes(*bits))
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(encoding::decode_varint(rest).ok()?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                *rest = after;
                Payload::Bytes(bytes)
            }
            WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
                encoding::skip_field(wire_type, tag, rest, DecodeContext::default()).ok()?;
                Payload::Other
            }
        };
        Some((tag, payload))
    }
}

fn text(bytes: &[u8]) -> Attempt<&str> {
    std::str::from_utf8(bytes).map_err(|_| unreadable())
}

fn unreadable() -> Box<Fault> {
    Fault::new(WireProblem::Unreadable)
}

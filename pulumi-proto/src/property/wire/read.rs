//! Zero-copy reader of the messages of `google/protobuf/struct.proto`, one level at a time.
//!
//! If a field that is not `repeated` occurs more than once, the last occurrence wins, as in any protobuf reader.
//! Message fields are not merged, because no writer splits them.

use prost::encoding::{self, DecodeContext, WireType};

use super::{NestedError, NestedResult, WireProblem};

/// Bytes of a `google.protobuf.Value`.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

/// Kind of a value, with its content.
pub(super) enum Kind<'a> {
    Null,
    Number(f64),
    Text(&'a str),
    Bool(bool),
    Object(Object<'a>),
    List(List<'a>),
}

/// Bytes of a `google.protobuf.Struct`.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(pub(super) &'a [u8]);

/// Bytes of a `google.protobuf.ListValue`.
#[derive(Clone, Copy)]
pub(super) struct List<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Returns the kind of the value.
    ///
    /// # Errors
    /// [`WireProblem::NoKind`]; [`WireProblem::Unreadable`] for malformed bytes.
    pub(super) fn kind(self) -> NestedResult<Kind<'a>> {
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
        kind.ok_or_else(|| NestedError::new(WireProblem::NoKind))
    }
}

impl<'a> Object<'a> {
    /// Returns the members in the order of the message.
    pub(super) fn members(self) -> impl Iterator<Item = NestedResult<(&'a str, Raw<'a>)>> {
        let member = |(key, value)| Ok((text(key)?, Raw(value)));
        entries(self.0).map(move |entry| entry.and_then(entry_parts).and_then(member))
    }

    /// Returns the member with a name.
    pub(super) fn get(self, name: &str) -> NestedResult<Option<Raw<'a>>> {
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
    pub(super) fn items(self) -> impl Iterator<Item = NestedResult<Raw<'a>>> {
        entries(self.0).map(|item| item.map(Raw))
    }
}

/// Returns the values of the repeated field 1, for a message that has no other field.
fn entries(bytes: &[u8]) -> impl Iterator<Item = NestedResult<&[u8]>> {
    let mut fields = Fields(bytes);
    std::iter::from_fn(move || {
        loop {
            match fields.next().transpose()? {
                Ok((1, Payload::Bytes(entry))) => return Some(Ok(entry)),
                Ok((1, _)) => return Some(Err(unreadable())),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// Returns key and value of an entry of a map. A missing part is empty.
fn entry_parts(entry: &[u8]) -> NestedResult<(&[u8], &[u8])> {
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

/// Iterator over the fields of a message. Ends after an error.
struct Fields<'a>(&'a [u8]);

/// Value of a field.
enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Value of a wire type that these messages do not have.
    Other,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> NestedResult<Option<(u32, Payload<'a>)>> {
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

fn text(bytes: &[u8]) -> NestedResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| unreadable())
}

fn unreadable() -> Box<NestedError> {
    NestedError::new(WireProblem::Unreadable)
}

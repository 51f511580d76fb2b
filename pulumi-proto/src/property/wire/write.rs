//! Writer of the messages of `google/protobuf/struct.proto`.

use prost::encoding::{self, WireType};

use super::NestedResult;

/// Writer of encoded values. A closure writes the content of a nested value and returns false to drop the value.
pub(super) struct Writer(Vec<u8>);

/// Initial capacity in bytes, enough for the properties of most resources.
const INITIAL_CAPACITY: usize = 512;

impl Writer {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(INITIAL_CAPACITY))
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn null(&mut self) {
        encoding::uint64::encode(1, &0, &mut self.0);
    }

    pub(super) fn number(&mut self, value: f64) {
        encoding::double::encode(2, &value, &mut self.0);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(3, text.as_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        encoding::bool::encode(4, &value, &mut self.0);
    }

    /// Writes an object. The closure writes its members.
    pub(super) fn object(&mut self, members: impl FnOnce(&mut Self) -> NestedResult<()>) -> NestedResult<()> {
        self.message(5, |writer| members(writer).map(|()| true)).map(drop)
    }

    /// Writes a list. The closure writes its items.
    pub(super) fn list(&mut self, items: impl FnOnce(&mut Self) -> NestedResult<()>) -> NestedResult<()> {
        self.message(6, |writer| items(writer).map(|()| true)).map(drop)
    }

    /// Writes a member of an object. The closure writes its value.
    pub(super) fn member(
        &mut self,
        key: &str,
        value: impl FnOnce(&mut Self) -> NestedResult<bool>,
    ) -> NestedResult<bool> {
        self.message(1, |writer| {
            writer.bytes(1, key.as_bytes());
            writer.message(2, value)
        })
    }

    /// Writes a text member of an object.
    pub(super) fn text_member(&mut self, key: &str, text: &str) -> NestedResult<()> {
        self.member(key, |writer| {
            writer.text(text);
            Ok(true)
        })
        .map(drop)
    }

    /// Writes an item of a list. The closure writes its value.
    pub(super) fn item(&mut self, value: impl FnOnce(&mut Self) -> NestedResult<bool>) -> NestedResult<bool> {
        self.message(1, value)
    }

    fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encoding::encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a nested message. Its length precedes it and is known last: one byte is reserved for the length, and a
    /// longer message is moved.
    fn message(&mut self, tag: u32, contents: impl FnOnce(&mut Self) -> NestedResult<bool>) -> NestedResult<bool> {
        let before = self.0.len();
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.0);
        self.0.push(0);
        let start = self.0.len();
        if !contents(self)? {
            self.0.truncate(before);
            return Ok(false);
        }
        let (end, length) = (self.0.len(), (self.0.len() - start) as u64);
        let more = encoding::encoded_len_varint(length) - 1;
        if more > 0 {
            self.0.resize(end + more, 0);
            self.0.copy_within(start..end, start + more);
        }
        encoding::encode_varint(length, &mut &mut self.0[start - 1..start + more]);
        Ok(true)
    }
}

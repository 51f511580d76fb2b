//! Protobuf messages in encoded form.

use std::fmt;
use std::marker::PhantomData;

use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

/// Encoded message of type `T`. The bytes are written and read directly, without an intermediate tree of values and
/// without prost's limit on nesting.
///
/// Two messages are equal if their bytes are equal. `Debug` shows only the length, because the bytes may contain
/// secrets.
#[derive(Clone, PartialEq)]
pub struct Encoded<T> {
    bytes: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T: Message + Default> Encoded<T> {
    /// Decodes the message with prost.
    ///
    /// # Errors
    /// [`DecodeError`] for malformed bytes, and for nesting beyond prost's limit of 100 messages.
    pub fn open(&self) -> Result<T, DecodeError> {
        T::decode(self.bytes.as_slice())
    }
}

impl<T> Encoded<T> {
    /// Returns a message from its bytes, which may be malformed.
    pub fn from_encoded(bytes: Vec<u8>) -> Self {
        Self { bytes, of: PhantomData }
    }

    /// Returns the bytes of the message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Default for Encoded<T> {
    fn default() -> Self {
        Self::from_encoded(Vec::new())
    }
}

impl<T: Message> From<&T> for Encoded<T> {
    fn from(message: &T) -> Self {
        Self::from_encoded(message.encode_to_vec())
    }
}

impl<T: Message> From<T> for Encoded<T> {
    fn from(message: T) -> Self {
        Self::from(&message)
    }
}

impl<T> fmt::Debug for Encoded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.bytes.len())
    }
}

impl<T> Message for Encoded<T> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.bytes);
    }

    /// Appends the encoded field.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match wire_type {
            WireType::LengthDelimited => {
                let mut field = Bytes::new();
                encoding::bytes::merge(wire_type, &mut field, buf, ctx)?;
                encoding::bytes::encode(tag, &field, &mut self.bytes);
            }
            WireType::Varint => {
                let mut field = 0_u64;
                encoding::uint64::merge(wire_type, &mut field, buf, ctx)?;
                encoding::uint64::encode(tag, &field, &mut self.bytes);
            }
            WireType::SixtyFourBit => {
                let mut field = 0_u64;
                encoding::fixed64::merge(wire_type, &mut field, buf, ctx)?;
                encoding::fixed64::encode(tag, &field, &mut self.bytes);
            }
            // Neither `Struct` nor `Value` has fields of this wire type.
            WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
                encoding::skip_field(wire_type, tag, buf, ctx)?;
            }
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
    }
}

//! Messages that stay the bytes they travel as.

use std::fmt;
use std::marker::PhantomData;

use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

/// A message of type `T`, as its bytes: what the wire carries is written and read once, without a tree of values in
/// between, and nests as deep as its reader likes.
///
/// Equal to another when the bytes are. Its `Debug` shows how many there are: they may hold secrets.
#[derive(Clone, PartialEq)]
pub struct Encoded<T> {
    bytes: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T: Message + Default> Encoded<T> {
    /// The message as prost has it.
    ///
    /// # Errors
    /// Bytes that are no such message, and nesting that prost does not follow: its limit is a hundred messages inside
    /// each other.
    pub fn open(&self) -> Result<T, DecodeError> {
        T::decode(self.bytes.as_slice())
    }
}

impl<T> Encoded<T> {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, of: PhantomData }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T> Default for Encoded<T> {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl<T: Message> From<&T> for Encoded<T> {
    fn from(message: &T) -> Self {
        Self::of(message.encode_to_vec())
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

    /// Keeps the field as it came.
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
            // Neither message has fields of the kind: nothing that anybody will ask for.
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

//! Encoding of property maps as `google.protobuf.Struct`, and decoding (docs/spec/provider-protocol.md#5).
//!
//! Input and output: property maps and encoded maps ([`Bag`]), or an error with the path of the property. Excluded:
//! options of individual calls, hashing, files.

mod decode;
mod encode;
mod encoded;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use decode::{decode, decode_value};
pub use encode::{encode, encode_value};
pub use encoded::Encoded;

use super::path::{Element, PropertyPath};

/// Encoded map: a property map in the encoded form of a `google.protobuf.Struct`.
pub type Bag = Encoded<prost_types::Struct>;
/// Encoded property value.
pub type Value = Encoded<prost_types::Value>;

/// Maximum nesting of values. Pulumi has none of its own: protobuf and JSON in Go end at 10,000 levels.
///
/// Code that handles a value calls itself for each level, so a value without a limit could overflow the stack, which
/// ends the process. Threads have at least 2 MiB of stack; this depth needs less than that even in programs without
/// optimizations, where reading a state takes the most. Deeper values are an error before any recursion.
pub const MAX_DEPTH: usize = 250;

/// Treatment of unknown values, including output values without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknowns {
    /// Keeps unknown values.
    Keep,
    /// Removes unknown values: a member of a map with its key, a secret with its wrapper. An item of a list is removed
    /// by the encoder and replaced by null by the decoder.
    Drop,
    /// Returns an error for an unknown value.
    Reject,
}

/// Options of the encoder (docs/spec/provider-protocol.md#5.4 lists the options of each call).
#[derive(Clone, Copy, Debug)]
pub struct EncodeOptions {
    /// Treatment of unknown values.
    pub unknowns: Unknowns,
    /// True encodes secrets as secrets, false as their plain values.
    pub keep_secrets: bool,
    /// True encodes resource references, false their ids, or the URNs of components.
    pub keep_resources: bool,
    /// True encodes output values, false their values, as secrets or unknowns if needed.
    pub keep_outputs: bool,
    /// True encodes strings that are not UTF-8, false makes them an error.
    pub keep_bytes: bool,
    /// True encodes only the hash of assets and archives.
    pub elide_assets: bool,
}

impl EncodeOptions {
    /// Options without any loss of information.
    pub const EVERYTHING: Self = Self {
        unknowns: Unknowns::Keep,
        keep_secrets: true,
        keep_resources: true,
        keep_outputs: true,
        keep_bytes: true,
        elide_assets: false,
    };
}

/// Options of the decoder. Strings that are not UTF-8 are always decoded.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// Treatment of unknown values.
    pub unknowns: Unknowns,
    /// True decodes secrets as secrets, false as their plain values.
    pub keep_secrets: bool,
    /// True decodes resource references, false their ids, or the URNs of components.
    pub keep_resources: bool,
    /// True decodes output values, false their values, as secrets or unknowns if needed.
    pub keep_outputs: bool,
}

impl DecodeOptions {
    /// Options without any loss of information.
    pub const EVERYTHING: Self =
        Self { unknowns: Unknowns::Keep, keep_secrets: true, keep_resources: true, keep_outputs: true };
}

/// Error of the encoder or decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", at(path))]
pub struct WireError {
    /// Path of the property. Empty for a single value.
    pub path: PropertyPath,
    /// Problem of the property.
    pub problem: WireProblem,
}

/// Problem of a property that is encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireProblem {
    /// An unknown value is not allowed here.
    #[error("unexpected unknown value")]
    Unknown,
    /// The receiver does not support strings that are not UTF-8.
    #[error("the string is not UTF-8, which the receiver does not support")]
    Bytes,
    /// The values are nested deeper than [`MAX_DEPTH`].
    #[error("values nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The bytes are not a message of `google/protobuf/struct.proto`.
    #[error("the message is not a valid protobuf struct")]
    Unreadable,
    /// A `google.protobuf.Value` has no kind.
    #[error("the value has no kind")]
    NoKind,
    /// The signature of a tagged object is unknown.
    #[error("unrecognized signature {0:?}")]
    UnrecognizedSignature(String),
    /// A field of a tagged object is missing or has the wrong type.
    #[error("malformed {kind}: {reason}")]
    Malformed {
        /// Kind of the tagged object, in words.
        kind: &'static str,
        /// Problem, in words.
        reason: &'static str,
    },
}

fn at(path: &PropertyPath) -> String {
    if path.elements().is_empty() { String::new() } else { format!("property {path}: ") }
}

/// Error inside nested values. Path elements are added while the error is propagated, innermost first, so that a
/// successful run has no cost for paths.
struct NestedError {
    reversed_path: Vec<Element>,
    problem: WireProblem,
}

/// Result with a boxed error, which keeps the success case small.
type NestedResult<T> = Result<T, Box<NestedError>>;

impl NestedError {
    fn new(problem: WireProblem) -> Box<Self> {
        Box::new(Self { reversed_path: Vec::new(), problem })
    }

    fn inside(mut self: Box<Self>, element: Element) -> Box<Self> {
        self.reversed_path.push(element);
        self
    }
}

impl From<Box<NestedError>> for WireError {
    fn from(mut error: Box<NestedError>) -> Self {
        error.reversed_path.reverse();
        Self { path: error.reversed_path.into(), problem: error.problem }
    }
}

impl Unknowns {
    /// Returns the unknown value, `None` if it must be removed, or an error.
    fn apply<T>(self, unknown: T) -> NestedResult<Option<T>> {
        match self {
            Self::Keep => Ok(Some(unknown)),
            Self::Drop => Ok(None),
            Self::Reject => Err(NestedError::new(WireProblem::Unknown)),
        }
    }
}

/// Returns the depth of the next level, or an error beyond [`MAX_DEPTH`].
fn descend(depth: usize) -> NestedResult<usize> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(NestedError::new(WireProblem::TooDeep)) }
}

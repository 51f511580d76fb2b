//! Property maps to `google.protobuf.Struct` and back (provider protocol, section 5).
//!
//! Enters: bags of ours, and structs as they came. Leaves: the other of the two, or an error that names the property.
//! Never here: which call takes which options, hashing, files.

mod decode;
mod encode;
mod encoded;
mod read;
mod secretness;
#[cfg(test)]
mod tests;
mod write;

pub use decode::{decode, decode_value};
pub use encode::{encode, encode_value};
pub use encoded::Encoded;
pub use secretness::copy_secretness;

use super::path::{Element, PropertyPath};

/// A bag of properties as it travels.
pub type Bag = Encoded<prost_types::Struct>;
/// A single property value as it travels.
pub type Value = Encoded<prost_types::Value>;

/// How deep values may nest: half of what JSON readers take, for an archive in an archive is two objects in a state. What
/// came in any deeper could be written down, and never read again.
pub const MAX_DEPTH: usize = 60;

/// What happens to unknown values, output values without a value among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknowns {
    /// They stay.
    Keep,
    /// They vanish: a member of a map with its key, a secret with its mark. An item of a list vanishes when it is
    /// encoded and becomes null when it is decoded.
    Drop,
    /// They are an error.
    Reject,
}

/// How to encode (provider protocol, section 5.4 lists what each call takes).
#[derive(Clone, Copy, Debug)]
pub struct EncodeOptions {
    /// What happens to unknown values.
    pub unknowns: Unknowns,
    /// Secrets keep their mark; otherwise the value inside is sent.
    pub keep_secrets: bool,
    /// References stay references; otherwise the id is sent, or the URN of what has none.
    pub keep_resources: bool,
    /// Output values stay; otherwise the value inside is sent, secret where it was, or an unknown.
    pub keep_outputs: bool,
    /// Strings that are not UTF-8 are sent; otherwise they are an error.
    pub keep_bytes: bool,
    /// Of assets and archives only the hash is sent.
    pub elide_assets: bool,
}

impl EncodeOptions {
    /// Loses nothing.
    pub const EVERYTHING: Self = Self {
        unknowns: Unknowns::Keep,
        keep_secrets: true,
        keep_resources: true,
        keep_outputs: true,
        keep_bytes: true,
        elide_assets: false,
    };
}

/// How to decode. Strings that are not UTF-8 are always taken.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// What happens to unknown values.
    pub unknowns: Unknowns,
    /// Secrets keep their mark; otherwise the value inside is taken.
    pub keep_secrets: bool,
    /// References stay references; otherwise the id is taken, or the URN of what has none.
    pub keep_resources: bool,
    /// Output values stay; otherwise the value inside is taken, secret where it was, or an unknown.
    pub keep_outputs: bool,
}

impl DecodeOptions {
    /// Loses nothing.
    pub const EVERYTHING: Self =
        Self { unknowns: Unknowns::Keep, keep_secrets: true, keep_resources: true, keep_outputs: true };
}

/// Why a bag could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", at(path))]
pub struct WireError {
    /// Which property; empty where a single value was encoded or decoded.
    pub path: PropertyPath,
    /// What is wrong with it.
    pub problem: WireProblem,
}

/// What is wrong with a property on the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireProblem {
    /// An unknown value where none may be.
    #[error("unexpected unknown value")]
    Unknown,
    /// A string that is not UTF-8, for a receiver that does not take them.
    #[error("the string is not UTF-8, which the receiver does not support")]
    Bytes,
    /// Values nested deeper than [`MAX_DEPTH`].
    #[error("values nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Bytes that are not what `google/protobuf/struct.proto` says.
    #[error("the message is no protobuf struct")]
    Unreadable,
    /// A `google.protobuf.Value` of no kind.
    #[error("the value has no kind")]
    NoKind,
    /// An object that claims to be something special which nobody knows.
    #[error("unrecognized signature {0:?}")]
    UnrecognizedSignature(String),
    /// A special object that lacks something, or holds the wrong thing.
    #[error("malformed {what}: {fault}")]
    Malformed {
        /// What the object claims to be.
        what: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
}

fn at(path: &PropertyPath) -> String {
    if path.elements().is_empty() { String::new() } else { format!("property {path}: ") }
}

/// A failure on its way out of nested values. Steps are noted from the inside out, so that nothing is paid for paths
/// while all is well.
struct Fault {
    outward: Vec<Element>,
    problem: WireProblem,
}

/// Boxed, for the sake of the way on which nothing fails.
type Attempt<T> = Result<T, Box<Fault>>;

impl Fault {
    fn new(problem: WireProblem) -> Box<Self> {
        Box::new(Self { outward: Vec::new(), problem })
    }

    fn inside(mut self: Box<Self>, element: Element) -> Box<Self> {
        self.outward.push(element);
        self
    }
}

impl From<Box<Fault>> for WireError {
    fn from(mut fault: Box<Fault>) -> Self {
        fault.outward.reverse();
        Self { path: fault.outward.into(), problem: fault.problem }
    }
}

impl Unknowns {
    /// What becomes of an unknown value: `None` vanishes.
    fn treat<T>(self, unknown: T) -> Attempt<Option<T>> {
        match self {
            Self::Keep => Ok(Some(unknown)),
            Self::Drop => Ok(None),
            Self::Reject => Err(Fault::new(WireProblem::Unknown)),
        }
    }
}

/// One level deeper, unless that is too deep.
fn descend(depth: usize) -> Attempt<usize> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(Fault::new(WireProblem::TooDeep)) }
}

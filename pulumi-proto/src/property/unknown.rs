//! Kinds of unknown values, and their sentinel texts (docs/spec/provider-protocol.md#5.3).

/// Sentinel text of an unknown string and of an unknown id.
pub const UNKNOWN_STRING: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/// Type that an unknown value will have. A hint only: SDKs support only [`UnknownKind::String`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKind {
    /// Bool.
    Bool,
    /// Number.
    Number,
    /// String, or value of any type.
    #[default]
    String,
    /// List.
    List,
    /// Asset.
    Asset,
    /// Archive.
    Archive,
    /// Map.
    Map,
}

impl UnknownKind {
    /// Returns the sentinel text of an unknown of this kind.
    pub fn sentinel(self) -> &'static str {
        match self {
            Self::Bool => "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
            Self::Number => "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
            Self::String => UNKNOWN_STRING,
            Self::List => "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
            Self::Asset => "030794c1-ac77-496b-92df-f27374a8bd58",
            Self::Archive => "e48ece36-62e2-4504-bad9-02848725956a",
            Self::Map => "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
        }
    }

    /// Returns the kind of a sentinel text. `None` for every other text.
    pub fn from_sentinel(text: &str) -> Option<Self> {
        use UnknownKind::{Archive, Asset, Bool, List, Map, Number, String};
        // Fast path: all sentinels are UUIDs, most strings are not.
        if text.len() != UNKNOWN_STRING.len() {
            return None;
        }
        [String, Bool, Number, List, Asset, Archive, Map].into_iter().find(|kind| kind.sentinel() == text)
    }
}

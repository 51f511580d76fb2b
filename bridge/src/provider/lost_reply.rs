//! Replies that are lost although their calls may have had an effect: the table of all of them.

use pulumi_proto::property::wire::WireProblem;

/// Way in which a call may have had an effect although its reply is lost or cannot be used.
///
/// The engine treats all of them alike. What it records depends on the call only:
///
/// | call | recorded | next run |
/// |---|---|---|
/// | Create | the operation stays pending, with the id of the resource if the reply contains it | reads the resource by its id and records it; without an id, warns and creates another one |
/// | Update, Delete | the entry stays as it was, and the operation stays pending | warns; Read or Diff finds what has changed |
/// | Read of an import | the operation stays pending, with the id of the import | warns; the import is repeated |
/// | other Read | nothing, because Read has no effect | reads again |
/// | Construct | the steps of its children, each on its own | constructs again |
///
/// An abort, or the end of `sc` itself, leaves the same records: an operation is pending from the record that precedes
/// its call. An error that the provider returned is no lost reply, whatever its code is, except that of a gRPC library whose
/// own limit has kept the reply from being sent. Calls that change resources have no time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostReply {
    /// The process of the plugin exited before it replied.
    PluginExited,
    /// The call was reset, or the connection was lost, before the reply was complete.
    ConnectionLost,
    /// The reply is not gRPC with one message: it is compressed, ended early, or has no message, several, or no status.
    NotGrpc,
    /// The message is larger than [`MAX_MESSAGE`](crate::launch::MAX_MESSAGE), or than the plugin's own limit.
    TooLarge,
    /// The message, or the detail of a partial failure, is not protobuf, or a text of it is not UTF-8.
    Undecodable,
    /// The properties are not protobuf, or a text in them is not UTF-8.
    UndecodableProperties,
    /// The properties are nested too deep.
    TooDeep,
    /// A property value has no kind.
    NoKind,
    /// A property value is unknown, and the call is not a preview.
    Unknown,
    /// A secret, asset, archive, reference or another tagged value among the properties is malformed.
    MalformedValue,
    /// Another field has an invalid value, such as a URN.
    InvalidField,
    /// The reply to a Create, or its partial failure, has no id.
    NoId,
}

impl LostReply {
    /// All ways.
    pub const ALL: [Self; 12] = [
        Self::PluginExited,
        Self::ConnectionLost,
        Self::NotGrpc,
        Self::TooLarge,
        Self::Undecodable,
        Self::UndecodableProperties,
        Self::TooDeep,
        Self::NoKind,
        Self::Unknown,
        Self::MalformedValue,
        Self::InvalidField,
        Self::NoId,
    ];
}

impl From<&WireProblem> for LostReply {
    fn from(problem: &WireProblem) -> Self {
        match problem {
            WireProblem::Unknown => Self::Unknown,
            WireProblem::TooDeep => Self::TooDeep,
            WireProblem::Unreadable => Self::UndecodableProperties,
            WireProblem::NoKind => Self::NoKind,
            WireProblem::UnrecognizedSignature(_) | WireProblem::Malformed { .. } | WireProblem::Bytes => {
                Self::MalformedValue
            }
        }
    }
}

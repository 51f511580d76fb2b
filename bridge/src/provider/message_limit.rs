//! Limits of plugins on the size of messages, recognized by the words of their gRPC libraries: the protocol has no code of
//! its own for them.

use std::fmt;

/// Direction of a message that is larger than a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The plugin has not received the request.
    Request,
    /// The plugin has not sent its reply. The call had its effect.
    Reply,
}

/// Limit of a plugin that a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageLimit {
    pub(crate) refused: Refused,
    /// Limit in bytes.
    pub(crate) bytes: u64,
}

impl MessageLimit {
    /// Recognizes the limit in the message of a status with the code `RESOURCE_EXHAUSTED` or `OUT_OF_RANGE`.
    pub(crate) fn in_message(message: &str) -> Option<Self> {
        // Go, C++ and what is built on it (Python, C#, Ruby), Node.js, Rust.
        const REPLY: [&str; 4] = [
            "trying to send message larger than max",
            "Sent message larger than max",
            "Attempted to send message with a size larger than",
            "encoded message length too large",
        ];
        const REQUEST: [&str; 5] = [
            "received message larger than max",
            "received message after decompression larger than max",
            "Received message larger than max",
            "decoded message length too large",
            "message after decompression is larger than",
        ];
        // Java: `gRPC message exceeds maximum size 4194304: 5242880`. Only a received message has this limit.
        const JAVA: &str = "gRPC message exceeds maximum size ";
        if let Some((_, numbers)) = message.split_once(JAVA) {
            return Some(Self { refused: Refused::Request, bytes: numbers_in(numbers).next()? });
        }
        let contains = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        let refused = match () {
            () if contains(&REPLY) => Refused::Reply,
            () if contains(&REQUEST) => Refused::Request,
            () => return None,
        };
        // The size of the message precedes the limit, if the text has both.
        Some(Self { refused, bytes: numbers_in(message).last()? })
    }
}

fn numbers_in(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

/// Number of bytes as text, with its size in MiB if that is a whole number.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        match self.0 {
            bytes if bytes >= MIB && bytes.is_multiple_of(MIB) => write!(f, "{bytes} bytes ({} MiB)", bytes / MIB),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_recognized_in_the_words_of_each_library() {
        let mib4 = 4_194_304;
        for (message, expected) in [
            ("grpc: trying to send message larger than max (5242880 vs. 4194304)", Some((Refused::Reply, mib4))),
            ("grpc: received message larger than max (5242880 vs. 4194304)", Some((Refused::Request, mib4))),
            ("SERVER: Sent message larger than max (5242891 vs. 4194304)", Some((Refused::Reply, mib4))),
            ("SERVER: Received message larger than max (5242891 vs. 4194304)", Some((Refused::Request, mib4))),
            ("Attempted to send message with a size larger than 4194304", Some((Refused::Reply, mib4))),
            ("Received message larger than max (5242891 vs 4194304)", Some((Refused::Request, mib4))),
            (
                "Error, encoded message length too large: found 5242880 bytes, the limit is: 4194304 bytes",
                Some((Refused::Reply, mib4)),
            ),
            (
                "Error, decoded message length too large: found 5242880 bytes, the limit is: 4194304 bytes",
                Some((Refused::Request, mib4)),
            ),
            ("gRPC message exceeds maximum size 4194304: 5242880", Some((Refused::Request, mib4))),
            ("quota of 5 addresses exceeded (6 vs. 5)", None),
            ("trying to send message larger than max", None),
        ] {
            let found = MessageLimit::in_message(message).map(|limit| (limit.refused, limit.bytes));
            assert_eq!(found, expected, "{message}");
        }
    }

    #[test]
    fn bytes_are_shown_in_whole_mebibytes_too() {
        for (bytes, text) in [(4_194_304, "4194304 bytes (4 MiB)"), (5_000_000, "5000000 bytes"), (0, "0 bytes")] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}

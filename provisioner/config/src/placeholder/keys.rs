//! Check of keys, in which placeholders are not resolved.

use super::positions::PlaceholderPositions;
use super::syntax::{NAMESPACES, Piece, pieces};
use crate::diagnostics::{Code, Diagnostic, SourceFiles};
use crate::tree::{Entry, Node, Value};
use bridge::message_text::MessageText;

/// Reports each placeholder of a namespace in the keys of a tree.
pub(crate) fn check_keys(node: &Node, sources: &SourceFiles, diagnostics: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::Scalar(_) | Value::Interpolated(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| check_keys(item, sources, diagnostics)),
        Value::Mapping(mapping) => {
            for entry in mapping {
                check_key(entry, sources, diagnostics);
                check_keys(&entry.value, sources, diagnostics);
            }
        }
    }
}

fn check_key(entry: &Entry, sources: &SourceFiles, diagnostics: &mut Vec<Diagnostic>) {
    let mut positions = PlaceholderPositions::new(&entry.key, entry.key_span, sources);
    for piece in pieces(&entry.key) {
        let (offset, raw) = match piece {
            Piece::Placeholder(found) if found.path.is_some() && NAMESPACES.contains(&found.namespace) => {
                (found.offset, found.raw)
            }
            Piece::Malformed(found) => (found.offset, found.raw),
            Piece::Text(_) | Piece::Placeholder(_) => continue,
        };
        let summary =
            MessageText::new(format_args!("`{raw}` is in a key, but placeholders are resolved in values only"));
        diagnostics.push(
            Diagnostic::error(Code("placeholder-in-key"), positions.find(offset, raw), summary)
                .help("write the key without a placeholder"),
        );
    }
}

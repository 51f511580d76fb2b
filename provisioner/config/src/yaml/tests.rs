//! Property tests: the parser does not panic, and reports only valid positions.

use proptest::prelude::*;

use super::parse;
use super::yaml_text::yaml_text;
use crate::diagnostics::{Sensitivity, SourceFiles, Style, render};
use crate::tree::{Node, Value};

fn assert_spans_are_valid(node: &Node, sources: &SourceFiles) {
    let text = sources.get(node.span.file).text();
    assert!(node.span.start <= node.span.end && node.span.end as usize <= text.len());
    assert!(text.is_char_boundary(node.span.start as usize) && text.is_char_boundary(node.span.end as usize));
    match &node.value {
        Value::Scalar(_) | Value::Interpolated(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| assert_spans_are_valid(item, sources)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| assert_spans_are_valid(&entry.value, sources)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_rejected_with_position(text in prop_oneof![yaml_text(), any::<String>()]) {
        let mut sources = SourceFiles::default();
        let file = sources.add("t.yaml", &text, Sensitivity::Public);
        match parse(file, &sources) {
            Ok(document) => document.root.iter().for_each(|root| assert_spans_are_valid(root, &sources)),
            Err(diagnostic) => prop_assert!(!render(&diagnostic, &sources, Style::Coloured).is_empty()),
        }
    }
}

//! No text makes the reader panic, and whatever it reads has places that exist.

use proptest::prelude::*;
use provisioner::config::diagnostics::{Sensitivity, SourceFiles, Style, render};
use provisioner::config::yaml::{Node, Value, parse};

use crate::repository::Files;

fn places_exist(node: &Node, sources: &SourceFiles) {
    let text = sources.get(node.span.file).text();
    assert!(node.span.start <= node.span.end && node.span.end as usize <= text.len());
    assert!(text.is_char_boundary(node.span.start as usize) && text.is_char_boundary(node.span.end as usize));
    match &node.value {
        Value::Scalar(_) | Value::Template(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| places_exist(item, sources)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| places_exist(&entry.value, sources)),
    }
}

/// Text that looks like YAML more often than not.
fn yamlish() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("plugins:"),
        Just("resources:"),
        Just("outputs:"),
        Just("name: "),
        Just("type: "),
        Just("config:"),
        Just("- "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("&a "),
        Just("*a"),
        Just("<<: "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("\""),
        Just("'"),
        Just("|\n"),
        Just("!!str "),
        Just("${resource:a.b}"),
        Just("${secret:x}"),
        Just("${"),
        Just("é"),
        Just("\u{2028}"),
        Just("\t"),
        Just("# c\n"),
        Just("local"),
        Just("p:m:T"),
        Just("---\n"),
        Just(": "),
        Just("? "),
        Just("0x1F"),
        Just("~"),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused_at_a_place(text in prop_oneof![yamlish(), any::<String>()]) {
        let mut sources = SourceFiles::default();
        let file = sources.add("t.yaml", &text, Sensitivity::Public);
        match parse(file, &sources) {
            Ok(document) => document.root.iter().for_each(|root| places_exist(root, &sources)),
            Err(diagnostic) => prop_assert!(!render(&diagnostic, &sources, Style::Coloured).is_empty()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stack_is_read_or_refused_with_words(text in yamlish()) {
        let read = Files::sections(&text).secrets(&text).read(&["s"]);
        prop_assert!(read.loaded.stacks.len() == 1 || !read.words().is_empty());
    }
}

//! Random text for property tests of this crate and of its integration tests.

use proptest::prelude::*;

/// Returns random text of tokens that are significant in YAML or in server.yaml.
pub(crate) fn yaml_text() -> impl Strategy<Value = String> {
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

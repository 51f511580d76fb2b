//! Property test: reading any text returns a stack or diagnostics, without a panic.

use proptest::prelude::*;

use crate::repository::Files;
use crate::yaml_text::yaml_text;

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_rejected_with_diagnostics(text in yaml_text()) {
        let read = Files::sections(&text).secrets(&text).read(&["s"]);
        prop_assert!(read.loaded.stacks.len() == 1 || !read.messages().is_empty());
    }
}

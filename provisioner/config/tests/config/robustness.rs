//! No text makes the reader panic.

use proptest::prelude::*;

use crate::repository::Files;
use crate::yaml_text::yaml_text;

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stack_is_read_or_refused_with_words(text in yaml_text()) {
        let read = Files::sections(&text).secrets(&text).read(&["s"]);
        prop_assert!(read.loaded.stacks.len() == 1 || !read.words().is_empty());
    }
}

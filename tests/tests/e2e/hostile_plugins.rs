//! Tests of plugins that use more of the machine than a provider needs.

use crate::repository::{Repository, Sections};

/// Shows: security.md#endpoints-that-plugins-call "so that descriptors are left for the state and the journal"
#[test]
fn plugin_that_opens_connections_without_end_does_not_prevent_the_save() {
    let plugins = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR, REC_CONNECT] }";
    let resources = "a: { type: rec:index:Thing, config: { v: 1 } }";
    let repository = Repository::new(Sections { plugins, resources, ..Sections::default() });
    // More connections than the process may open files.
    let output = repository.sc_in_shell("ulimit -S -n 128; export REC_CONNECT=200", "provision --verbose -S");
    assert!(output.starts_with("exit 0\n"), "{output}");
    let warning = "warning: plugins have opened more than 64 connections to sc; further ones are closed\n";
    assert_eq!(output.matches(warning).count(), 1, "{output}");
    assert!(!repository.is_locked());
    repository.expect_exit(0, "preview --expect-no-changes");
}

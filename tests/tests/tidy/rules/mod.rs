//! Rules, one in each file.

mod citations;
mod claims;
mod crates;
mod cycles;
mod entry_references;
mod environment;
mod language;
mod layers;
mod length;
mod purity;
mod wire;
mod wrappers;

/// Returns the names of a path's modules below its crate, joined.
fn below_crate(path: &[String]) -> String {
    path.get(1..).unwrap_or_default().join("::")
}

/// Returns whether a path is a module or lies within it. The segments of both are joined by `::`.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Panics with the violations of a rule, one per line, if there are any.
pub(crate) fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn module_prefix_is_matched_by_segments() {
    assert!(is_within("config::yaml", "config") && is_within("config", "config"));
    assert!(!is_within("configuration", "config"));
}

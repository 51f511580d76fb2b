//! Decisions of the step generator as pure functions of values. `tests` has a table for each decision.
//!
//! Input: recorded resources, goals, options, replies of providers. Output: decisions. Excluded: I/O, clocks,
//! randomness, async, the deployment state.
//!
//! docs/spec/engine-semantics.md#2.3 to #2.16, #3 and #5.

pub(crate) mod aliases;
pub(crate) mod autonaming;
pub(crate) mod change;
pub(crate) mod decision;
pub(crate) mod deletions;
pub(crate) mod dependent_replacements;
pub(crate) mod identity;
pub(crate) mod ignore_changes;
pub(crate) mod imports;
pub(crate) mod refresh;
pub(crate) mod retries;
pub(crate) mod scope;
#[cfg(test)]
mod tests;

//! The pure core of the step generator: every decision as a function of values, with a table per decision in `tests`.
//!
//! Enters: recorded resources, goals, options, replies of providers. Leaves: decisions. Never here: I/O, clocks, randomness,
//! async, the deployment's state.
//!
//! Engine semantics, sections 2.3 to 2.16, 3 and 5.

pub(crate) mod aliases;
pub(crate) mod autonaming;
pub(crate) mod change;
pub(crate) mod deletions;
pub(crate) mod dependent_replacements;
pub(crate) mod ignore_changes;
pub(crate) mod imports;
pub(crate) mod refresh;
pub(crate) mod registration;
pub(crate) mod scope;
#[cfg(test)]
mod tests;

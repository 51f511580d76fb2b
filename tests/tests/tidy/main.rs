//! Checks the workspace against `docs/architecture.md`: parses all product code, and checks the imports between its
//! files.
//!
//! `workspace` finds the crates, `modules` parses their files, `references` lists the paths in the code, `resolution`
//! follows each path to the file that defines its item, `graph` builds the graph of imports. Each file of `rules` has
//! one rule. `pages` checks the documentation.
//!
//! An associated function counts as an item of its type, wherever its `impl` block is. Method calls are not checked:
//! resolving `value.method()` requires the types of all expressions.

mod conditions;
mod graph;
mod modules;
mod pages;
mod references;
mod resolution;
mod rules;
mod workspace;

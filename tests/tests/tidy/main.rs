//! Holds the workspace to `docs/architecture.md`: parses all product code and checks the imports between its files.
//!
//! `workspace` finds the crates, `modules` parses their files, `references` lists the paths that the code names,
//! `resolution` follows each path to the file that defines its item, `graph` puts them together. Each file of `rules`
//! holds one rule. `pages` checks the documentation.
//!
//! An associated function counts as its type's, wherever its `impl` block is. Method calls are not seen: to resolve
//! `value.method()` takes the types of all expressions.

mod conditions;
mod graph;
mod modules;
mod pages;
mod references;
mod resolution;
mod rules;
mod workspace;

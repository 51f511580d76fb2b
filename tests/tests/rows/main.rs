//! Tests of engine semantics, section 10 (situation → calls): one test per row, with its name.
//!
//! A test plays the recordings that show its row, and checks one or two of their steps: the calls about the resource,
//! notable parts of these, the recorded entries. Both the recorded outcome and that of our engine are checked, so that
//! a row is right about Pulumi as well as about ours. `docs/testing.md` has the table of rows, with the test of
//! `decide` that covers each decision.
//!
//! `°` after Check: without olds. Names are those of the recorded program; `default` is the default provider.

mod components;
mod failures;
mod imports;
mod life;
mod options;
mod providers;
mod refresh;
mod replacements;
mod seen;
mod table;

//! Tests of docs/spec/engine-semantics.md#10 (situation → calls): one test per row, named after it.
//!
//! A test replays the recordings of its row, and checks one or two of their steps: the calls about the resource, their
//! important parts, the recorded entries. Both the recorded outcome and that of our engine are checked, so that a row
//! holds for Pulumi's engine as well as for ours. `README.md` has the table of rows, with the file that
//! decides each.
//!
//! `Check°` is a Check without olds. Names are those of the recorded program; `default` is the default provider.

mod components;
mod create_update_delete;
mod failures;
mod imports;
mod options;
mod providers;
mod refresh;
mod replacements;
mod step_outcome;
mod table;

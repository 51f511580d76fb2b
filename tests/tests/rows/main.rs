//! Each row of engine semantics, section 10 (situation → calls), as a test of that name.
//!
//! A row plays the recordings that show it, and says of one or two of their steps what the row says: the calls about the
//! resource, what is notable in them, what is recorded. Both engines are held to that, so a row is right about Pulumi as well
//! as about ours. `docs/testing.md` has the table; which test of `decide` takes a row's decision is told there, too.
//!
//! `°` after Check: without olds. A program is the one of the recording; `default` is the provider nobody named.

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

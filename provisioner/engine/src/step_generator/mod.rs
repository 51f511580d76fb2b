//! Step generator: turns goals into steps (docs/spec/engine-semantics.md#2.1 to #2.16).
//!
//! Input: a goal. Output: steps, in the order in which they must be carried out. Decisions are pure functions in
//! [`crate::decisions`]; this module calls the providers that a decision queries, and turns decisions into steps.
//! Excluded: Create, Update, Delete, records of begun operations.

mod carry_over;
mod delete_step;
mod dependent_replacements;
mod early_end;
mod generator;
mod identify;
mod inherit;
mod plan;
mod queries;
mod references;
mod registration;
mod replacement;
mod shared_resources;

pub(crate) use carry_over::carry_over;
pub(crate) use delete_step::delete_step;
pub(crate) use dependent_replacements::{SkippedEntries, find_dependent_replacements};
pub(crate) use early_end::EarlyEnd;
pub(crate) use generator::StepGenerator;
pub(crate) use inherit::{inherit, source_of_component};
pub(crate) use references::{refuse_cycle, refuse_skipped_dependencies, refuse_unregistered_references};
pub(crate) use registration::{GoalOrigin, Registration};
pub(crate) use replacement::without_shared_resource;
pub(crate) use shared_resources::{SharingEntry, others_of_same_resource};

//! Step executor: carries steps out, records their begin and end, applies their effects, reports them
//! (docs/spec/engine-semantics.md#1.3, #4 and #6.3).
//!
//! Input: steps that the step generator or a phase has planned. Output: entries, events, records. Excluded: a
//! decision about which step comes next.

mod create;
mod delete;
mod executor;
mod failed_call;
mod import;
mod provider_read;
mod read;
mod same;
mod update;
mod view_log;
mod view_steps;

pub(crate) use executor::{Imported, StepExecutor};
pub(crate) use provider_read::{Reading, read as call_read};
pub(crate) use view_log::ViewLog;

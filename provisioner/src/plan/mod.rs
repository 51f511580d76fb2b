//! Saved plans: what a preview has decided, and a run that may do this and nothing else.
//!
//! Input: what the engine asks its guard about. Output: a [`StackPlan`] for each stack ([`PlanRecorder`]), its text
//! ([`PlanFile`]), and refusals in a run ([`PlanEnforcer`]). Excluded: decisions about resources, which are the engine's alone;
//! stores, keys and files of stacks, which the operations pass in as values.
//!
//! A plan is a recording of decisions, and a run compares. An unknown value of the plan may be any value in the run; all else is
//! equal, or refused before its step. The steps of a replacement are one kind of step, in either order.

mod compare;
mod enforcer;
mod format;
mod header;
mod planned;
mod recorder;
mod sealed;
mod step_kind;
mod steps;
mod text;

pub use compare::output_differences;
pub use enforcer::{PlanEnforcer, PlanUse};
pub(crate) use format::StackToSeal;
pub use format::{MAX_PLAN_BYTES, PlanFile, PlanFileError};
pub use header::{PlanHeader, PlanOptions, PlannedStackName};
pub use planned::{PlannedRead, PlannedRegistration, PlannedResource, PlannedStep, StackPlan, Surroundings};
pub use recorder::PlanRecorder;
pub use step_kind::{StepKind, StepKinds};
pub use steps::ShownSteps;
pub use text::property_text;

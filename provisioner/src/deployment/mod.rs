//! One run of an operation: registrations in, provider calls and records out.
//!
//! Enters: a loaded snapshot, goals from a program, a host that starts providers. Leaves: records for the state, events,
//! and the answers that the program waits for. Never here: files, processes, terminals, the grammar of programs.
//!
//! [`Registrar`] is the door for programs, [`Deployment`] the thing behind it. `decide` holds every decision, as pure
//! functions; the other files ask the questions, do the steps and write down what came of them. The semantics are those
//! of `docs/engine.md`, held against recordings of the real engine.

mod ask;
mod calls;
mod component;
mod decide;
mod door;
mod effects;
mod engine;
mod finish;
mod goal;
mod identify;
mod import;
mod monitor;
mod options;
mod plan;
mod providers;
mod refresh;
mod register;
mod registrar;
mod replace;
mod report;
mod run;
mod step;
mod steps;
mod tables;
mod views;

pub use crate::events::SourceRef;
pub use decide::scope::{Scope, UrnPattern};
pub(crate) use door::BUILT_IN;
pub use goal::Goal;
pub use import::{ImportGoal, ImportProvider};
pub use options::{ConfigEntry, DeploymentOptions, StopSignals};
pub use registrar::{InvokeGoal, ReadGoal, Refused, Registered, Registrar, RegistrationResult};
pub(crate) use report::{chain, interrupted};
pub use run::{Deployment, DeploymentEnd, ProgramEnd};

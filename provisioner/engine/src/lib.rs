//! Deployment engine for Pulumi resource providers: maps registrations to provider calls and records.
//!
//! Input: a loaded snapshot, goals from a program, a host that starts providers. Output: records for the state,
//! events, and the replies to the program. Excluded: files, processes, terminals, the grammar of programs.
//!
//! A program drives a [`Deployment`] through [`Registrar`]. Inside, the parts are those of Pulumi's engine: the step
//! generator (with its pure core in `decisions`), the step executor, the deployment state, the phases, the resource
//! monitor. The semantics are those of `docs/engine.md`; tests compare them with recordings of Pulumi's engine.

mod context;
mod decisions;
mod deletion_limit;
mod deployment;
mod deployment_state;
pub mod events;
mod goal;
mod jobs;
pub mod masking;
mod messages;
mod missing;
mod options;
mod pending_messages;
mod phases;
mod plan_guard;
mod providers;
mod records;
mod registrar;
mod reporter;
mod resource_monitor;
mod secretness;
mod step;
mod step_executor;
mod step_generator;

pub use decisions::scope::{Scope, UrnPattern, names_of_key};
pub use deletion_limit::DeletionLimit;
pub use deployment::{Deployment, DeploymentEnd, ProgramEnd};
pub use events::SourceRef;
pub use goal::ConfigEntry;
pub use goal::{
    BUILT_IN, Goal, INTERNAL_KEY, ImportGoal, ImportProvider, InvokeGoal, ProgramGoals, ReadGoal, VERSION_KEY,
};
pub use missing::{MissingApproval, MissingResource, ProviderReadings};
pub use options::{DEFAULT_PARALLEL, DeploymentOptions, DeploymentRequest, StopSignals};
pub use pending_messages::{PendingWithEntry, pending_operation_warnings};
pub use plan_guard::{DecidedRegistration, PlanGuard, RandomSeeds, SeedKey};
pub use providers::base_package;
pub use registrar::{Announcement, Halted, Registered, Registrar, RegistrationResult};
pub use reporter::ErrorReported;

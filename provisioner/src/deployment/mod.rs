//! One run of an operation: registrations in, provider calls and records out.

mod goal;
mod registrar;

pub use goal::{Goal, SourceRef};
pub use registrar::{InvokeGoal, ReadGoal, Refused, Registered, Registrar, RegistrationResult};

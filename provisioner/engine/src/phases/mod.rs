//! The phases of a run (refresh, program, import, deletion of unregistered resources), and the requests of a program
//! in its phase: registrations, reads, functions, methods, components, outputs.
//!
//! Each phase orders the step generator and the step executor, which do not depend on the phases.

mod calls;
mod checks;
mod components;
mod default_providers;
mod deletion;
mod deletion_scope;
mod import;
mod invokes;
mod orphans;
mod outputs;
mod phase_end;
mod program;
mod program_configurations;
mod reading;
mod reads;
mod recorded_provider;
mod refresh;
mod refresh_registered;
mod register;
mod run_info;
mod shared_resources;

pub(crate) use calls::call;
pub(crate) use checks::{
    check_hooks, check_names, check_targets_found, report_pending_operations, report_unregistered_replacements,
};
pub(crate) use deletion::{delete_unregistered, rename_pending_deletes};
pub(crate) use import::import_all;
pub(crate) use invokes::CallError;
pub(crate) use invokes::{call_function, invoke};
pub(crate) use outputs::{record_stack_outputs, register_outputs};
pub(crate) use phase_end::PhaseEnd;
pub(crate) use program::register;
pub(crate) use reads::read;
pub(crate) use refresh::{refresh_first, refresh_unregistered};
pub(crate) use run_info::run_info;

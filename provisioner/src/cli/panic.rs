//! Report of a panic, which is a bug in `sc`: the position in the code and how to report it.
//!
//! Panic messages that were formatted at run time are not printed, as they may contain secrets.

use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::addresses::ISSUES;

/// Flag that is set once any thread of the process has panicked.
#[derive(Clone, Debug, Default)]
pub(crate) struct PanicFlag(Arc<AtomicBool>);

impl PanicFlag {
    /// Returns whether a thread has panicked.
    pub(crate) fn has_panicked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Installs a panic hook that prints a bug report on standard error instead of Rust's message.
pub(crate) fn install_hook() -> PanicFlag {
    let flag = PanicFlag::default();
    let hook_flag = flag.clone();
    std::panic::set_hook(Box::new(move |info| {
        hook_flag.0.store(true, Ordering::Relaxed);
        super::output::print_bug(&bug_report(info));
    }));
    flag
}

fn bug_report(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let message = info.payload().downcast_ref::<&'static str>().map(|text| format!(": {text}")).unwrap_or_default();
    format!(
        "This is a bug in sc, and we are sorry for it.
  where: {place}{message}
  version: {} ({} {})
  hint: please report these lines and the command {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        if ISSUES.is_empty() { "to the maintainers of sc".to_owned() } else { format!("at {ISSUES}") },
    )
}

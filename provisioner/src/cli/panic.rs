//! Report of a panic, which is a bug in `sc`: an apology, the position in the code, the way to report it.
//!
//! Never here: the text of a panic that was formatted at run time, as it may contain secrets.

use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag that is set once any thread of the process has panicked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bugs(Arc<AtomicBool>);

impl Bugs {
    /// Returns whether a panic has happened.
    pub(crate) fn seen(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Installs a panic hook that prints an apology on standard error instead of Rust's message.
pub(crate) fn report_bugs() -> Bugs {
    let bugs = Bugs::default();
    let seen = bugs.clone();
    std::panic::set_hook(Box::new(move |info| {
        seen.0.store(true, Ordering::Relaxed);
        super::ui::print_bug(&apology(info));
    }));
    bugs
}

fn apology(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let what = info.payload().downcast_ref::<&'static str>().map(|text| format!(": {text}")).unwrap_or_default();
    format!(
        "This is a bug in sc, and we are sorry for it.
  where: {place}{what}
  version: {} ({} {})
  What was done so far is recorded; the next run goes on from there.
  hint: please report it to the maintainers of sc with these lines and the command you ran",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

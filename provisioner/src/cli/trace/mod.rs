//! Log of `SC_LOG` and trace of `--trace`: what a run does, for its developers.
//!
//! The crates below emit spans and events at the places where a run waits or decides. Without these settings nobody receives them, and
//! each costs the comparison of a level.

mod chrome;
mod file;
mod filter;
mod layer;
mod log;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bridge::error::chain;
use bridge::fs::FileError;
use bridge::message_text::MessageText;
use tracing_subscriber::layer::SubscriberExt as _;

use super::args::GlobalArgs;
use super::exit::CliError;
use super::output::Output;
use super::process::{LOG_FILE, LOG_FILTER, LOG_FORMAT, working_folder};
use chrome::ChromeTrace;
use filter::Filter;
use layer::TraceLayer;
use log::{Log, LogFormat, LogTarget};

/// Trace of the command, which ends with it.
#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Arc<Mutex<ChromeTrace>>>);

impl Trace {
    /// Starts the log and the trace that the environment and the arguments request. Called once in a process.
    ///
    /// # Errors
    /// Wrong usage, if a variable has a value that it cannot have; an error of a file that cannot be created.
    pub(crate) fn start(
        output: &Output,
        global: &GlobalArgs,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let folder = || working_folder(global.cwd.as_deref());
        let log = match variable(LOG_FILTER).filter(|filter| !filter.is_empty()) {
            Some(filter) => Some((filter_of(&filter)?, log_of(output, &variable, folder)?)),
            None => None,
        };
        let chrome = match &global.trace {
            Some(path) => {
                let file = file::create(&folder()?, path).map_err(|error| not_opened("--trace", &error))?;
                Some(Arc::new(Mutex::new(ChromeTrace::new(file))))
            }
            None => None,
        };
        if log.is_some() || chrome.is_some() {
            let layer = TraceLayer {
                masker: Arc::clone(output.masker()),
                log,
                chrome: chrome.clone().map(|chrome| (Filter::all(), chrome)),
            };
            let subscriber = tracing_subscriber::registry().with(layer);
            tracing::subscriber::set_global_default(subscriber).context("the trace cannot be started")?;
        }
        Ok(Self(chrome))
    }

    /// Ends the file of the trace.
    ///
    /// # Errors
    /// The first error of a write.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        let Some(chrome) = &self.0 else { return Ok(()) };
        chrome.lock().unwrap_or_else(PoisonError::into_inner).finish().context("cannot write the file of --trace")
    }
}

fn filter_of(text: &str) -> anyhow::Result<Filter> {
    text.parse().map_err(|error| {
        let message = MessageText::new(format_args!("the variable {LOG_FILTER} is not a filter: {error}"));
        let hint = "set it to a level (error, warn, info, debug, trace), or to parts of the program with levels, \
                    separated by commas, such as engine=debug,bridge::host=trace,state=info";
        CliError::usage(message, hint).into()
    })
}

/// Returns the error of a file that cannot be opened. `setting` is the option or the variable that names the file.
fn not_opened(setting: &str, error: &FileError) -> CliError {
    let message = MessageText::new(format_args!("the file of {setting}: {}", chain(error)));
    let hint =
        format_args!("give {setting} a file of your own, or a new name in a folder that exists, or leave it out");
    CliError::failed(message, MessageText::new(hint))
}

fn log_of(
    output: &Output,
    variable: impl Fn(&str) -> Option<String>,
    folder: impl Fn() -> anyhow::Result<std::path::PathBuf>,
) -> anyhow::Result<Log> {
    let path = variable(LOG_FILE).filter(|path| !path.is_empty());
    let format = match variable(LOG_FORMAT).as_deref() {
        None | Some("") if path.is_some() => LogFormat::Json,
        None | Some("" | "text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            let message = MessageText::new(format_args!("the variable {LOG_FORMAT} is {other:?}"));
            return Err(CliError::usage(message, "set it to text or json").into());
        }
    };
    let target = match path {
        Some(path) => {
            let file = file::append(&folder()?, Path::new(&path)).map_err(|error| not_opened(LOG_FILE, &error))?;
            LogTarget::File(file)
        }
        None => {
            let output = output.clone();
            LogTarget::Lines(Box::new(move |line| output.log(line)))
        }
    };
    Ok(Log { format, target })
}

#[cfg(test)]
mod tests;

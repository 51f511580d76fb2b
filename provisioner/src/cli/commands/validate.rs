//! `sc validate`: finds mistakes in the files of stacks, without a cloud and without states.

use clap::Args;
use config::diagnostics::{Diagnostic, Severity, SourceFiles, finish, has_errors};
use provisioner::operation::{self, StacksRead};
use provisioner::program::Program;

use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::runs::plugin_settings;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::find_stacks;
use crate::cli::ui::Ui;

/// Find mistakes in the files of the stacks, without a cloud
///
/// Checks the profile, server.yaml and secrets.yaml of the stacks: keys, values, placeholders, references and cycles. If
/// they have no mistakes, also checks the types and properties of resources, and references to their outputs, against
/// the schemas of the plugins.
///
/// Reads no state and takes no lock. Plugins are fetched, and started once for all stacks if their schema is not in the
/// cache yet, but they are not configured, so no credentials are needed. Values of resources are checked by the
/// providers only in `sc preview`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit codes: 0 no mistakes (there may be warnings), 1 mistakes, 2 wrong usage.

Examples:
    sc validate                    all stacks
    sc validate -s aquarium        one stack
    sc validate --no-plugins       only the files: fetches and starts no plugin
    sc validate --json             each mistake as one line of JSON")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Check only the files: fetch and start no plugin; types and properties are not checked
    #[arg(long)]
    pub(crate) no_plugins: bool,
}

/// Stacks and resources that were checked.
#[derive(Clone, Copy, Debug)]
struct Checked {
    stacks: usize,
    resources: usize,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ValidateArgs) -> anyhow::Result<Exit> {
    let (stacks, mut found) = match find_stacks(ui, global, &args.stacks)? {
        StacksRead::Stacks(stacks, warnings) => (stacks, warnings),
        StacksRead::Errors(found, sources) => return report(&ui.output, &found, &sources, None),
    };
    let programs = stacks.programs();
    found.extend(programs.iter().chain(&stacks.key_programs()).flat_map(Program::check_core_types));
    if !args.no_plugins {
        let plugins = plugin_settings(&stacks)?;
        let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None };
        let work = async |session: &session::Session<'_>| {
            let events = session.sink("", None);
            let checked = operation::validate(&programs, &plugins, &events, &session.signals).await;
            plugins.pool.close().await;
            found.extend(checked?);
            Ok(Exit::Done)
        };
        session::run(ui, options, work).await?;
    }
    finish(&mut found);
    let resources = programs.iter().map(|program| program.stack().resources().count()).sum();
    report(&ui.output, &found, &stacks.sources, Some(Checked { stacks: programs.len(), resources }))
}

/// Prints the diagnostics, then what was checked and the number of mistakes. `checked` is `None` if the files could not be
/// read.
fn report(
    output: &Output,
    found: &[Diagnostic],
    sources: &SourceFiles,
    checked: Option<Checked>,
) -> anyhow::Result<Exit> {
    output.print_diagnostics(found, sources);
    let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let (mistakes, warnings) = (count(Severity::Error), count(Severity::Warning));
    let line = if output.results_are_json() {
        serde_json::json!({
            "stacks": checked.map(|checked| checked.stacks),
            "resources": checked.map(|checked| checked.resources),
            "mistakes": mistakes,
            "warnings": warnings,
        })
        .to_string()
    } else {
        summary(checked, mistakes, warnings)
    };
    output.print(&[Line::plain(line)])?;
    Ok(if has_errors(found) { Exit::Failed } else { Exit::Done })
}

fn summary(checked: Option<Checked>, mistakes: usize, warnings: usize) -> String {
    let warnings = if warnings == 0 { String::new() } else { format!(", {}", counted(warnings, "warning")) };
    match checked.filter(|_| mistakes == 0) {
        Some(Checked { stacks, resources }) => {
            format!("{}, {}: no mistakes{warnings}", counted(stacks, "stack"), counted(resources, "resource"))
        }
        None => format!("{}{warnings}", counted(mistakes, "mistake")),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_says_what_was_checked_or_counts_the_mistakes() {
        let checked = |stacks, resources| Some(Checked { stacks, resources });
        for (checked, mistakes, warnings, expected) in [
            (checked(3, 12), 0, 0, "3 stacks, 12 resources: no mistakes"),
            (checked(1, 1), 0, 2, "1 stack, 1 resource: no mistakes, 2 warnings"),
            (checked(3, 12), 2, 1, "2 mistakes, 1 warning"),
            (None, 1, 0, "1 mistake"),
        ] {
            assert_eq!(summary(checked, mistakes, warnings), expected);
        }
    }
}

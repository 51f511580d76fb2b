//! `sc validate`: finds mistakes in the files of stacks, without a cloud and without states.

use std::collections::BTreeMap;

use clap::Args;
use config::diagnostics::{Diagnostic, Severity, SourceFiles, finish, has_errors};
use config::{Reading, ignored_by_go};
use provisioner::operation::{self, StacksRead};
use provisioner::program::Program;

use crate::cli::args::{ChangedSinceArgs, GlobalArgs, OverrideArgs, StacksArgs};
use crate::cli::changed_since::select_changed;
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::plugins::overridden_plugins;
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
///
/// Environment variables that are not set, and secrets of a secrets.yaml that is neither on the disk nor can be read from the store,
/// are unknown here, as in the pull request of a fork: they count as values of the right kind. --require-values makes them
/// mistakes, for a pipeline that has them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit codes: 0 no mistakes (there may be warnings), 1 mistakes, 2 wrong usage.

Examples:
    sc validate                    all stacks
    sc validate -s aquarium        one stack
    sc validate --no-plugins       only the files: fetches and starts no plugin
    sc validate --require-values   where all variables and the key of the secrets are
    sc validate --compat           what the Go program of Simple Container ignores
    sc validate --json             each mistake as one line of JSON")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) changed: ChangedSinceArgs,
    /// Check only the files: fetch and start no plugin; types and properties are not checked
    #[arg(long)]
    pub(crate) no_plugins: bool,
    /// Report environment variables that are not set or are empty, and secrets that cannot be read, as mistakes
    #[arg(long)]
    pub(crate) require_values: bool,
    /// List what the Go program of Simple Container ignores in the files, as warnings
    #[arg(long)]
    pub(crate) compat: bool,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Stacks and resources that were checked.
#[derive(Clone, Copy, Debug)]
struct Checked {
    stacks: usize,
    resources: usize,
    /// Number of placeholders whose values are unknown.
    unknown: usize,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ValidateArgs) -> anyhow::Result<Exit> {
    let reading = if args.require_values { Reading::WithValues } else { Reading::WithoutValues };
    let (mut stacks, mut found) = match find_stacks(ui, global, &args.stacks, &args.changed, reading)? {
        StacksRead::Stacks(stacks, warnings) => (stacks, warnings),
        StacksRead::Errors(found, sources) => return report(&ui.output, &found, &sources, None),
    };
    select_changed(ui, global, &args.changed, &mut stacks).await?;
    let programs = stacks.programs();
    found.extend(programs.iter().chain(&stacks.key_programs()).flat_map(Program::check_before_plugins));
    if !args.no_plugins && !programs.is_empty() {
        let plugins = overridden_plugins(&stacks, &args.overrides)?;
        let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
        let work = async |session: &session::Session<'_>| {
            let events = session.sink("", None);
            let checked = operation::validate(&programs, &plugins, &events, &session.signals).await;
            plugins.pool.close().await;
            found.extend(checked?);
            Ok(Exit::Done)
        };
        session::run(ui, options, work).await?;
    } else {
        // Without schemas, only values whose reading may surprise are found.
        let warnings = |program: &Program| {
            let found = program.check_types(&BTreeMap::new()).warnings.into_iter();
            found.map(|warning| program.diagnostic_of(warning)).collect::<Vec<_>>()
        };
        found.extend(programs.iter().flat_map(warnings));
    }
    if args.compat {
        found.extend(ignored_by_go(&stacks.sources));
    }
    finish(&mut found);
    let resources = programs.iter().map(|program| program.stack().resources().count()).sum();
    let checked = Checked { stacks: programs.len(), resources, unknown: stacks.unknown.len() };
    if !stacks.unknown.is_empty() {
        let unknown = shown_placeholders(&stacks.unknown);
        ui.output
            .inform(format_args!("unknown here, and not checked: {unknown} (--require-values makes them mistakes)"));
    }
    report(&ui.output, &found, &stacks.sources, Some(checked))
}

/// Returns the first placeholders, and the number of further ones.
fn shown_placeholders(unknown: &[String]) -> String {
    const MAX_SHOWN: usize = 5;
    let shown = unknown.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match unknown.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
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
            "unknownValues": checked.map(|checked| checked.unknown),
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
        Some(Checked { stacks, resources, .. }) => {
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
        let checked = |stacks, resources| Some(Checked { stacks, resources, unknown: 0 });
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

//! `sc plugin verify`: reads all files of the packages in the cache.

use bridge::error::chain;
use bridge::install::{CachedDeclaration, CachedState, verify_cache};
use clap::Args;
use config::Repository;
use provisioner::operation::cache_folder;

use crate::cli::args::GlobalArgs;
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::table;
use crate::cli::process::{process_context, working_folder};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Arguments of `sc plugin verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, _args: &VerifyArgs) -> anyhow::Result<Exit> {
    let repository = Repository::discover(&working_folder(global.cwd.as_deref())?);
    let folder = cache_folder(&process_context().environment, &repository.root);
    let what = format!("reading the packages in {}", folder.display());
    let found = show_while(&ui.output, &what, verify_cache(&folder)).await?;
    if ui.output.results_are_json() {
        ui.output.print(&found.iter().map(|declaration| Line::plain(as_json(declaration))).collect::<Vec<_>>())?;
    } else if found.is_empty() {
        ui.output.inform(format_args!("no packages are in the cache, {}", folder.display()));
    } else {
        let rows: Vec<Vec<String>> = found.iter().map(as_row).collect();
        ui.output.print(&table(&["SOURCE", "REVISION", "STATE", "DIGEST"], &rows))?;
    }
    let bad = found.iter().filter(|declaration| !matches!(declaration.state, CachedState::Verified)).count();
    for declaration in &found {
        if let CachedState::Unreadable(error) = &declaration.state {
            ui.output.warn(format_args!(
                "{} {} cannot be verified: {}",
                declaration.source,
                declaration.revision,
                chain(error)
            ));
        }
    }
    match bad {
        0 => Ok(Exit::Done),
        count => {
            let summary = match count {
                1 => "1 package is not as it was fetched".to_owned(),
                count => format!("{count} packages are not as they were fetched"),
            };
            let hint = "what is damaged or missing is not run: the next run that needs it fetches it again, as `sc plugin install` does";
            Err(CliError::failed(summary, hint).into())
        }
    }
}

fn as_row(declaration: &CachedDeclaration) -> Vec<String> {
    let CachedDeclaration { source, revision, digest, state } = declaration;
    vec![source.clone(), revision.clone(), word(state).to_owned(), digest.to_string()]
}

fn as_json(declaration: &CachedDeclaration) -> String {
    let CachedDeclaration { source, revision, digest, state } = declaration;
    serde_json::json!({ "source": source, "revision": revision, "state": word(state), "digest": digest.to_string() })
        .to_string()
}

/// Returns the result of a verification in a word.
fn word(state: &CachedState) -> &'static str {
    match state {
        CachedState::Verified => "verified",
        CachedState::Damaged => "damaged",
        CachedState::Missing => "missing",
        CachedState::Unreadable(_) => "unreadable",
    }
}

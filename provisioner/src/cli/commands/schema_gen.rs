//! `sc schema-gen`: writes JSON Schemas for editors.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bridge::fs::{Access, create_folders, read_if_exists, write_atomically};
use clap::Args;
use provisioner::operation::{PluginSettings, Stacks};
use provisioner::registry::recipes;
use provisioner::schema::{Package, files};

use crate::cli::args::{GlobalArgs, OverrideArgs, StacksArgs};
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::plugins::overridden_plugins;
use crate::cli::process::{place_to_write, working_folder};
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, Session, SessionOptions};
use crate::cli::stacks::read_despite_errors;
use crate::cli::ui::Ui;

/// Maximum size of an existing schema that is compared with the generated one, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1 << 30;

/// Write JSON Schemas of server.yaml for editors
///
/// Writes `server.schema.json`, the schema of a server.yaml: its keys, the core types, and the types of the plugins
/// that the stacks declare, from the plugins' own schemas (GetSchema). The plugins are downloaded and started for this,
/// but not configured. Mistakes in the files are printed; the schema has the plugins that can be read nevertheless. Also writes
/// folders with one file per type.
///
/// Editors with a YAML language server find the schema through the first line of a server.yaml.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
    sc schema-gen schemas              all stacks
    sc schema-gen schemas -s common    the plugins of one stack
    sc schema-gen schemas --core       without plugins; types of plugins are not checked

The first line of .sc/stacks/NAME/server.yaml for an editor:
    # yaml-language-server: $schema=../../../schemas/server.schema.json")]
pub(crate) struct SchemaGenArgs {
    /// Folder to write to; created if it is missing
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Write only the core types, without reading stacks or starting plugins; types of plugins are not checked
    #[arg(long, conflicts_with_all = ["stacks", "dir"])]
    pub(crate) core: bool,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &SchemaGenArgs) -> anyhow::Result<Exit> {
    let working = working_folder(global.cwd.as_deref())?;
    let folder = working.join(&args.folder);
    if args.core {
        return write(&ui.output, &working, &folder, None);
    }
    // An editor needs the schema most while a file has mistakes.
    let stacks = read_despite_errors(ui, global, &args.stacks)?;
    for name in stacks.unread() {
        ui.output
            .warn(format_args!("the stack {name} cannot be read as far as its plugins: the schema lacks their types"));
    }
    let plugins = overridden_plugins(&stacks, &args.overrides)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let packages = packages(&ui.output, session, &stacks, &plugins).await;
        plugins.pool.close().await;
        let (mut packages, warnings) = packages?;
        session.pause();
        warnings.iter().for_each(|warning| ui.output.warn(warning.as_str()));
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        write(&ui.output, &working, &folder, Some(packages))
    })
    .await
}

/// Returns the packages of the plugins of all stacks, and warnings. Prints the reasons of an error.
async fn packages(
    output: &Output,
    session: &Session<'_>,
    stacks: &Stacks,
    plugins: &PluginSettings,
) -> anyhow::Result<(Vec<Package>, Vec<String>)> {
    let mut packages: Vec<Package> = Vec::new();
    let mut warnings = Vec::new();
    for stack in stacks.requested() {
        let events = session.sink(&stack.name, None);
        let schemas = plugins.schemas(stack, &events, &session.signals).await.map_err(anyhow::Error::from);
        for found in schemas.inspect_err(|error| print_reasons(output, session, stacks, error))? {
            match packages.iter().find(|known| known.name == found.name) {
                None => packages.push(found),
                Some(known) if version(known) != version(&found) => warnings.push(format!(
                    "the stacks declare several versions of the package {}; the schema has the types of {}",
                    found.name,
                    version(known)
                )),
                Some(_) => {}
            }
        }
    }
    Ok((packages, warnings))
}

fn version(package: &Package) -> &str {
    package.schemas.as_ref().map_or("", |schemas| &schemas.version)
}

/// Writes the files whose content has changed.
fn write(output: &Output, working: &Path, folder: &Path, packages: Option<Vec<Package>>) -> anyhow::Result<Exit> {
    let unknown = packages.iter().flatten().filter(|package| package.schemas.is_none());
    let unknown: Vec<String> = unknown.map(|package| package.name.clone()).collect();
    let files = files(&recipes::built_in_types(), packages);
    let mut changed = 0;
    for (path, text) in &files {
        let path = place_to_write(working, &folder.join(path))?;
        if read_if_exists(&path, MAX_SCHEMA_BYTES)?.as_deref() == Some(text.as_bytes()) {
            continue;
        }
        create_folders(path.parent().context("the path of a schema has no folder")?)?;
        write_atomically(&path, text.as_bytes(), Access::Shared)?;
        changed += 1;
    }
    for package in unknown {
        output.warn(format_args!("the plugin of {package} has no schema: its types are not checked"));
    }
    if output.results_are_json() {
        let line = serde_json::json!({
            "folder": folder.display().to_string(),
            "files": files.len(),
            "changed": changed,
        });
        output.print(&[Line::plain(line.to_string())])?;
    } else {
        let text = format!("{} schemas in {}, {changed} of them changed", files.len(), folder.display());
        output.print(&[Line::plain(text)])?;
    }
    Ok(Exit::Done)
}

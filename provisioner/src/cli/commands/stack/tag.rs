//! `sc stack tag`: lists, sets, prints and removes the tags of a stack.

use bridge::message_text::MessageText;
use clap::{Args, Subcommand};
use state::StackAccess;
use state::store::Tags;

use crate::cli::access::access;
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::table;
use crate::cli::output::Output;
use crate::cli::recorded_names;
use crate::cli::stacks::{not_provisioned, only, read_stack_of_state};
use crate::cli::ui::Ui;

/// Manage the tags of a stack
///
/// A tag has a name and a value. Backends of type `fs` only store tags, for people and scripts: neither `sc` nor
/// `pulumi` uses them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Set and print the owner of a stack:
      sc stack tag set -s aquarium owner ada
      sc stack tag get -s aquarium owner")]
pub(crate) struct TagCommand {
    #[command(subcommand)]
    verb: TagVerb,
}

#[derive(Debug, Subcommand)]
enum TagVerb {
    /// List the tags
    Ls(LsArgs),
    /// Set the value of a tag
    Set(SetArgs),
    /// Print the value of a tag
    Get(NameArgs),
    /// Remove a tag
    Rm(NameArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    #[command(flatten)]
    stack: StackArgs,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// Name of the tag
    #[arg(value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// Value of the tag
    #[arg(value_name = "VALUE")]
    value: String,
    #[command(flatten)]
    stack: StackArgs,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// Name of the tag
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    stack: StackArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &TagCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        TagVerb::Ls(args) => {
            let (_, tags) = load_tags(ui, global, &args.stack).await?;
            print_tags(&ui.output, &tags)?;
        }
        TagVerb::Get(args) => {
            let (_, tags) = load_tags(ui, global, &args.stack).await?;
            let value = tags.get(&args.name).ok_or_else(|| unknown_tag(&args.name, &tags))?;
            if ui.output.results_are_json() {
                ui.output.print(&[Line::plain(serde_json::json!({ &args.name: value }).to_string())])?;
            } else {
                ui.output.print_text(&format!("{value}\n"))?;
            }
        }
        TagVerb::Set(args) => {
            let (access, mut tags) = load_tags(ui, global, &args.stack).await?;
            tags.insert(args.name.clone(), args.value.clone());
            access.store.set_tags(&access.stack, &tags).await?;
            ui.output.print_messages(&[Line::plain(format!("set the tag {} of {}", args.name, access.stack.stack()))]);
        }
        TagVerb::Rm(args) => {
            let (access, mut tags) = load_tags(ui, global, &args.stack).await?;
            if tags.remove(&args.name).is_none() {
                return Err(unknown_tag(&args.name, &tags).into());
            }
            access.store.set_tags(&access.stack, &tags).await?;
            ui.output.print_messages(&[Line::plain(format!(
                "removed the tag {} of {}",
                args.name,
                access.stack.stack()
            ))]);
        }
    }
    Ok(Exit::Done)
}

/// Returns the access to an existing stack, and its tags.
async fn load_tags(ui: &Ui, global: &GlobalArgs, stack: &StackArgs) -> anyhow::Result<(StackAccess, Tags)> {
    let stacks = read_stack_of_state(ui, global, stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    if access.store.load(&access.stack).await?.is_none() {
        return Err(not_provisioned(&access.stack).into());
    }
    let tags = access.store.tags(&access.stack).await?;
    let environment = &stacks.process_context.environment;
    let names = tags.keys().cloned().collect();
    recorded_names::keep_tags(environment, &stacks.repository.root, &only(&stacks)?.name, names);
    Ok((access, tags))
}

fn print_tags(output: &Output, tags: &Tags) -> anyhow::Result<()> {
    let lines = if output.results_are_json() {
        vec![Line::plain(serde_json::json!(tags).to_string())]
    } else {
        let rows: Vec<Vec<String>> = tags.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
        table(&["NAME", "VALUE"], &rows)
    };
    output.print(&lines)?;
    Ok(())
}

fn unknown_tag(name: &str, tags: &Tags) -> CliError {
    let hint = if tags.is_empty() {
        "the stack has no tags".into()
    } else {
        MessageText::new(format_args!("the tags are: {}", tags.keys().cloned().collect::<Vec<_>>().join(", ")))
    };
    CliError::failed(format_args!("the stack has no tag {name}"), hint)
}

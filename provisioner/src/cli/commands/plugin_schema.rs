//! `sc plugin schema`: the schema of a plugin, as it returns it.

use bridge::message_text::MessageText;
use clap::Args;
use config::Stack;
use provisioner::operation::Stacks;

use super::plugin_lock::check_names;
use crate::cli::args::{GlobalArgs, OverrideArgs, StacksArgs};
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::{CliError, Exit};
use crate::cli::plugins::overridden_plugins;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Arguments of `sc plugin schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Name of the plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Runs the command.
pub(super) async fn run(ui: &Ui, global: &GlobalArgs, args: &SchemaArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    check_names(&stacks, std::slice::from_ref(&args.name))?;
    let Some(stack) = stack_of(&stacks, &args.name) else {
        let hint = MessageText::new(format_args!("set `enabled: true` on the plugin {}", args.name));
        return Err(CliError::failed(format_args!("the plugin {} is disabled", args.name), hint).into());
    };
    let plugins = overridden_plugins(&stacks, &args.overrides)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let events = session.sink(&stack.name, None);
        let schemas = plugins.schema_texts(&stack, &events, &session.signals).await;
        plugins.pool.close().await;
        let schemas = schemas.map_err(anyhow::Error::from);
        let schemas = schemas.inspect_err(|error| print_reasons(&ui.output, session, &stacks, error))?;
        session.pause();
        match schemas.into_values().next().flatten() {
            Some(schema) => ui.output.print(&[Line::plain(schema)])?,
            None => ui.output.inform(format_args!("the plugin {} has no schema", args.name)),
        }
        Ok(Exit::Done)
    })
    .await
}

/// Returns the first stack that declares a plugin and does not disable it, with this plugin alone.
fn stack_of(stacks: &Stacks, name: &str) -> Option<Stack> {
    let is_used = |plugin: &&config::PluginDeclaration| plugin.name() == name && plugin.plugin.enabled;
    let (stack, plugin) = stacks.requested().find_map(|stack| Some((stack, stack.plugins.iter().find(is_used)?)))?;
    Some(Stack { plugins: vec![plugin.clone()], ..Stack::clone(stack) })
}

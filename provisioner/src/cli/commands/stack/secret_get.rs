//! `sc stack secret-get`: prints a secret of a stack.

use bridge::error::closest;
use bridge::message_text::MessageText;
use clap::Args;

use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::exit::{CliError, Exit};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// Print the value of a secret in the `values` of a stack's secrets.yaml
///
/// The value is printed in plaintext. A secrets.yaml that is not on the disk is read from the store of the
/// repository. With
/// --json, the value is printed as JSON.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Use a secret in a script:
      psql \"$(sc stack secret-get -s aquarium DATABASE_URL)\"")]
pub(crate) struct SecretGetArgs {
    /// Name of the secret
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    stack: StackArgs,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, global: &GlobalArgs, args: &SecretGetArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let stack = only(&stacks)?;
    let Some(value) = stack.secrets.get(&args.name) else {
        let hint = match closest(&args.name, stack.secrets.keys().map(String::as_str)) {
            Some(close) => MessageText::new(format_args!("did you mean {close}?")),
            None if stack.secrets.is_empty() => match &stack.closed_secrets {
                Some(reason) => MessageText::new(format_args!(
                    "secrets.yaml is not on the disk, and the store does not open: {reason}"
                )),
                None => "the stack has no secrets: they are in `values` of its secrets.yaml".into(),
            },
            None => MessageText::new(format_args!(
                "the secrets are: {}",
                stack.secrets.keys().cloned().collect::<Vec<_>>().join(", ")
            )),
        };
        return Err(
            CliError::failed(format_args!("secret {:?} not found in stack {:?}", args.name, stack.name), hint).into()
        );
    };
    let text = match ui.output.results_are_json() {
        true => serde_json::Value::from(value.expose()).to_string(),
        false => value.expose().to_owned(),
    };
    ui.output.print_text(&(text + "\n"))?;
    Ok(Exit::Done)
}

//! `sc stack change-secrets-provider`: encrypts the secrets of a stack with the provider of server.yaml.

use std::io::{BufRead as _, IsTerminal as _};

use anyhow::Context as _;
use bridge::message_text::MessageText;
use clap::Args;
use state::secrets::{Provider, SecretsError};
use state::{SecretsChange, StackAccess};
use tokio_util::sync::CancellationToken;

use crate::cli::access::access_for_change;
use crate::cli::args::{ConfirmArgs, GlobalArgs, LockArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, ask_secret, confirm, decline, without_line_end};
use crate::cli::stacks::{only, read_stack};
use crate::cli::ui::Ui;

/// Encrypt the secrets of a stack with the secrets provider that server.yaml names
///
/// Change `secrets-provider` in server.yaml first, and provide the previous key or passphrase as well: the secrets of the
/// state and of `Pulumi.<stack>.yaml` are decrypted with it. If the provider is the same, the data key of a key in a cloud
/// is replaced, or the passphrase: the command asks for the new one on a terminal, else it is the first line of standard
/// input; the present one comes from server.yaml or the environment. Set the new one there afterwards.
///
/// The previous state (`.bak`), the history and the backups stay under the previous key or passphrase. Nothing in the
/// cloud is changed, and the history gets no entry.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Move a stack from a passphrase to the key that server.yaml names:
      PULUMI_CONFIG_PASSPHRASE=… sc stack change-secrets-provider -s aquarium

  Replace the passphrase of a stack, with a question for the new one:
      sc stack change-secrets-provider -s aquarium

  Replace it in a script:
      sc stack change-secrets-provider -s aquarium --yes < new-passphrase.txt")]
pub(crate) struct ChangeSecretsProviderArgs {
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    lock: LockArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &ChangeSecretsProviderArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack(ui, global, &args.stack)?;
    let access = access_for_change(&ui.output, &stacks, only(&stacks)?, args.lock).await?;
    if access.keyring.awaits_key() {
        return Err(SecretsError::KeyNotCreated.into());
    }
    let new_passphrase = match stacks.needs_new_passphrase(&access).await? {
        false => None,
        true if ui.output.can_ask() => match ask_passphrase(ui).await? {
            Some(passphrase) => Some(passphrase),
            None => return Ok(decline(&ui.output)),
        },
        true => Some(read_passphrase()?),
    };
    let target = access.keyring.provider().map_or_else(String::new, Provider::to_string);
    let question = match &new_passphrase {
        Some(_) => MessageText::new(format_args!(
            "Replace the passphrase of {}? Nothing in the cloud is changed.",
            access.stack
        )),
        None => MessageText::new(format_args!(
            "Encrypt the secrets of {} anew, with {target}? Nothing in the cloud is changed.",
            access.stack
        )),
    };
    if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, args.confirm.yes).await?
        == Confirmation::No
    {
        return Ok(decline(&ui.output));
    }
    let changed = stacks.change_secrets_provider(&access, new_passphrase.as_deref()).await?;
    report(&ui.output, &access, &target, changed.as_ref(), new_passphrase.is_some())?;
    Ok(Exit::Done)
}

/// Asks for the new passphrase twice. Returns `None` at the end of the input.
async fn ask_passphrase(ui: &Ui) -> anyhow::Result<Option<String>> {
    let stop = CancellationToken::new();
    let Some(passphrase) = ask_secret(&ui.output, &ui.signals, &stop, "New passphrase:").await? else {
        return Ok(None);
    };
    if passphrase.is_empty() {
        return Err(CliError::usage("the new passphrase is empty", "run the command again").into());
    }
    let Some(repeated) = ask_secret(&ui.output, &ui.signals, &stop, "The new passphrase again:").await? else {
        return Ok(None);
    };
    if repeated != passphrase {
        return Err(CliError::usage("the two passphrases differ", "nothing was changed; run the command again").into());
    }
    Ok(Some(passphrase))
}

/// Reads the new passphrase: the first line of standard input, without its end.
fn read_passphrase() -> anyhow::Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let hint = "pipe the new passphrase into this command: its first line of input is the new one";
        return Err(CliError::usage("no terminal to ask for the new passphrase", hint).into());
    }
    let mut line = String::new();
    input.lock().read_line(&mut line).context("the new passphrase cannot be read from standard input")?;
    let passphrase = without_line_end(&line);
    if passphrase.is_empty() {
        let hint = "the first line of standard input is the new passphrase";
        return Err(CliError::usage("the new passphrase is empty", hint).into());
    }
    Ok(passphrase.to_owned())
}

fn report(
    output: &Output,
    access: &StackAccess,
    target: &str,
    changed: Option<&SecretsChange>,
    is_new_passphrase: bool,
) -> anyhow::Result<()> {
    let from = changed.map(|change| match Provider::of(&change.from) {
        Some(provider) => provider.to_string(),
        None => format!("the provider {:?}", change.from.kind),
    });
    if output.results_are_json() {
        let changed = serde_json::json!({ "stack": access.stack.stack(), "from": from, "to": target });
        output.print(&[Line::plain(changed.to_string())])?;
    } else {
        let to = match &from {
            _ if is_new_passphrase => "the new passphrase".to_owned(),
            Some(from) if from == target => format!("a new data key of {target}"),
            _ => target.to_owned(),
        };
        output.print_messages(&[Line::plain(format!("encrypted the secrets of {} with {to}", access.stack))]);
    }
    if is_new_passphrase {
        output.warn("set the new passphrase in server.yaml or in the environment before the next command");
    }
    if let Some(from) = from {
        let previous = match from.as_str() {
            _ if is_new_passphrase => "the previous passphrase",
            from if from == target => "the previous data key",
            from => from,
        };
        output.warn(format_args!("the previous state (`.bak`), the history and the backups stay under {previous}"));
    }
    Ok(())
}

//! `sc doctor`: finds what is wrong around a command, and says what to do.

use std::sync::Arc;

use anyhow::Context as _;
use bridge::error::{Hint as _, chain};
use bridge::health::{HealthCheck, HealthState};
use bridge::process::{Spawner, Supervision};
use clap::Args;
use config::{Reading, Repository};
use provisioner::operation::{SetupError, Stacks, StacksRead, check_machine};

use crate::cli::args::{ChangedSinceArgs, GlobalArgs, StacksArgs};
use crate::cli::display::{Line, Palette};
use crate::cli::error_texts::first_hint;
use crate::cli::exit::{CliError, Exit};
use crate::cli::plugins::plugin_settings;
use crate::cli::process::{process_context, working_folder};
use crate::cli::stacks::find_stacks;
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Find what is wrong around a run: git, cache, sandbox, lock file, hosts of packages, states, and say what to do
///
/// Checks the version of git; whether the cache can be written and permits programs; the sandbox of this kernel; proxies and
/// certificates; the lock file and the policy for the plugins of the stacks; whether each host of their packages can be reached, as whom,
/// and how many requests are left; whether the state of each stack can be read and its secrets be decrypted.
///
/// Writes nothing, takes no lock and starts no plugin.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit codes: 0 nothing is wrong (there may be notes), 1 something is wrong.

Examples:
    sc doctor              this machine, and all stacks
    sc doctor -s aquarium  one stack
    sc doctor --offline    asks no host of packages
    sc doctor --json       each check as one line of JSON")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let (stacks, mut checks) = match find_stacks(ui, global, &args.stacks, &ChangedSinceArgs::default(), Reading::Whole)
    {
        Ok(StacksRead::Stacks(stacks, found)) => {
            ui.output.print_diagnostics(&found, &stacks.sources);
            let count = stacks.requested().count();
            let text = format!("{count} {} read", if count == 1 { "stack was" } else { "stacks were" });
            (Some(stacks), vec![HealthCheck::good("files", text)])
        }
        Ok(StacksRead::Errors(found, sources)) => {
            ui.output.print_diagnostics(&found, &sources);
            (
                None,
                vec![HealthCheck::bad("files", "they have mistakes, so that no stack is checked", "repair them first")],
            )
        }
        Err(error) => match error.downcast_ref::<SetupError>() {
            Some(SetupError::NoStacks) => {
                let advice = "`sc init` writes a first one";
                (None, vec![HealthCheck::notable("files", "there are no stacks", advice)])
            }
            Some(setup) => (None, vec![HealthCheck::bad("files", chain(setup), setup.hint().unwrap_or_default())]),
            None => return Err(error),
        },
    };
    let program = std::env::current_exe().context("the path of the sc executable cannot be determined")?;
    let spawner = Spawner::supervised(Arc::new(Supervision::new(&program)?));
    let context = process_context();
    let repository = Repository::discover(&working_folder(global.cwd.as_deref())?);
    let machine = check_machine(&context, &repository, &spawner, stacks.as_deref());
    checks.extend(show_while(&ui.output, "checking this machine", machine).await);
    if let Some(stacks) = &stacks {
        checks.extend(check_stacks(ui, stacks, &spawner).await?);
    }
    print(ui, &checks)?;
    match checks.iter().filter(|check| check.state == HealthState::Bad).count() {
        0 => Ok(Exit::Done),
        1 => Err(CliError::failed("1 check has found something wrong", "").into()),
        count => Err(CliError::failed(format_args!("{count} checks have found something wrong"), "").into()),
    }
}

async fn check_stacks(ui: &Ui, stacks: &Stacks, spawner: &Spawner) -> anyhow::Result<Vec<HealthCheck>> {
    let settings = plugin_settings(stacks)?;
    let packages = settings.check_packages(stacks, spawner);
    let mut checks = show_while(&ui.output, "asking the hosts of packages", packages).await;
    for stack in stacks.requested() {
        let what = format!("reading the state of {}", stack.name);
        checks.push(show_while(&ui.output, &what, stacks.check_state(stack, first_hint)).await);
    }
    Ok(checks)
}

fn print(ui: &Ui, checks: &[HealthCheck]) -> anyhow::Result<()> {
    let masked = |text: &str| ui.output.masker().mask(text).into_owned();
    let width = checks.iter().map(|check| Line::plain(masked(&check.name)).width()).max().unwrap_or_default();
    let lines = |check: &HealthCheck| {
        let HealthCheck { name, state, text, advice } = check;
        let (name, text) = (masked(name), masked(text));
        if ui.output.results_are_json() {
            let advice = advice.as_ref().map(|advice| masked(advice));
            let json = serde_json::json!({ "name": name, "state": state.as_str(), "text": text, "advice": advice });
            return vec![Line::plain(json.to_string())];
        }
        let (mark, style) = match state {
            HealthState::Good => ("✓", Palette::CREATE),
            HealthState::Notable => ("!", Palette::WARNING),
            HealthState::Bad => ("✗", Palette::ERROR),
        };
        let line = Line::new().styled(style, mark).join(Line::plain(format!(" {name}"))).pad_to(width + 4);
        let hint = advice.as_ref().map(|advice| format!("hint: {}", masked(advice))).unwrap_or_default();
        let hint = hint.lines().map(|line| Line::plain(format!("    {line}")));
        [line.join(Line::plain(text))].into_iter().chain(hint).collect()
    };
    ui.output.print(&checks.iter().flat_map(lines).collect::<Vec<_>>())?;
    Ok(())
}

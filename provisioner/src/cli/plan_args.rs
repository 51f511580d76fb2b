//! Arguments about saved plans, and what a plan says about the arguments of a run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bridge::message_text::MessageText;
use clap::Args;
use jiff::SignedDuration;
use provisioner::operation::{self, PlanSettings, Report, StackRun, Stacks, UnsealedPlan};
use provisioner::plan::{PlanFile, PlanOptions};

use super::args::{GlobalArgs, ReplaceArgs, RunArgs, ScopeArgs, StacksArgs, age};
use super::exit::{CliError, Exit};
use super::output::Output;
use super::stacks::profile_name;

/// Time until a plan expires, unless the command line has another one.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Saving of a preview as a plan.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Saved plans")]
pub(crate) struct SavePlanArgs {
    /// Save what the preview has decided as a plan, which `sc provision --plan FILE` carries out
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        conflicts_with_all = ["import_pending_creates", "clear_pending_creates"],
    )]
    pub(crate) save_plan: Option<PathBuf>,
    /// Time until the plan expires: 90m, 12h, 7d [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = age, requires = "save_plan")]
    pub(crate) plan_expires: Option<Duration>,
}

/// Plans of the stacks of a command, collected one after the other.
pub(crate) struct PlanCollection<'a> {
    args: &'a SavePlanArgs,
    collected: Mutex<Vec<UnsealedPlan>>,
}

impl<'a> PlanCollection<'a> {
    /// Creates a collection without plans.
    pub(crate) fn new(args: &'a SavePlanArgs) -> Self {
        Self { args, collected: Mutex::default() }
    }

    /// Previews a stack, and collects its plan if the command saves one.
    ///
    /// # Errors
    /// The errors of [`operation::preview`] and [`operation::preview_for_plan`].
    pub(crate) async fn preview(&self, run: &StackRun, stacks: &Stacks, refresh: bool) -> anyhow::Result<Report> {
        if self.args.save_plan.is_none() {
            return Ok(operation::preview(run, refresh).await?);
        }
        let (report, plan) = operation::preview_for_plan(run, stacks, refresh).await?;
        self.collected.lock().unwrap_or_else(PoisonError::into_inner).extend(plan);
        Ok(report)
    }

    /// Saves the plans of all stacks, if the command saves a plan and all previews have succeeded.
    ///
    /// # Errors
    /// A plan cannot be encrypted, or the file not be written.
    pub(crate) async fn save(
        &self,
        output: &Output,
        stacks: &Stacks,
        global: &GlobalArgs,
        (run, replace): (&RunArgs, &ReplaceArgs),
        (dir, exit): (Option<&Path>, Exit),
    ) -> anyhow::Result<Exit> {
        let Some(path) = &self.args.save_plan else { return Ok(exit) };
        if !matches!(exit, Exit::Done | Exit::UnexpectedChanges) {
            output.inform("no plan was saved, because a preview has failed");
            return Ok(exit);
        }
        let lifetime = self.args.plan_expires.unwrap_or(DEFAULT_LIFETIME);
        let settings = PlanSettings {
            lifetime: SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX),
            profile: profile_name(global).to_owned(),
            options: plan_options(run, replace, dir),
        };
        let collected = std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner));
        let path = in_folder(global.cwd.as_deref(), path);
        let file = stacks.save_plan(&path, collected, settings).await?;
        output.inform(MessageText::new(format_args!(
            "the plan is saved in {} until {:.0} (SHA-256 {}); `sc plan show` shows it",
            path.display(),
            file.header.expires,
            file.digest
        )));
        Ok(exit)
    }
}

fn plan_options(run: &RunArgs, replace: &ReplaceArgs, dir: Option<&Path>) -> PlanOptions {
    let ScopeArgs { target, target_dependents, exclude, exclude_dependents } = run.scope.clone();
    let ReplaceArgs { replace, target_replace } = replace.clone();
    PlanOptions {
        targets: target,
        excludes: exclude,
        target_dependents,
        exclude_dependents,
        replace,
        target_replace,
        stacks_dir: dir.map(|dir| dir.display().to_string()),
    }
}

/// Returns the path of a file that a command names: it starts at the folder of `--cwd`.
fn in_folder(cwd: Option<&Path>, path: &Path) -> PathBuf {
    cwd.unwrap_or(Path::new(".")).join(path)
}

/// Reads a plan, and returns it with the stacks that it is for. Checks its header.
///
/// # Errors
/// The file is not a plan, or one of another version or profile, or one that has expired.
pub(crate) fn read_plan(global: &GlobalArgs, path: &Path) -> anyhow::Result<(PlanFile, StacksArgs)> {
    let file = operation::read_plan(&in_folder(global.cwd.as_deref(), path))?;
    let dir = file.header.options.stacks_dir.as_ref().map(PathBuf::from);
    let stacks = file.header.stacks.iter().map(|stack| stack.stack.clone()).collect();
    Ok((file, StacksArgs { stacks, dir: super::args::DirArgs { dir } }))
}

/// Checks the arguments of a run by a plan, which has its own stacks and its own selection of resources, and returns the arguments
/// with those of the plan.
///
/// # Errors
/// Wrong usage: an argument contradicts the plan.
pub(crate) fn with_plan_options(
    run: &RunArgs,
    replace: &ReplaceArgs,
    options: &PlanOptions,
) -> Result<(RunArgs, ReplaceArgs), CliError> {
    let ScopeArgs { target, target_dependents, exclude, exclude_dependents } = &run.scope;
    let given = [
        ("--target", !target.is_empty()),
        ("--target-dependents", *target_dependents),
        ("--exclude", !exclude.is_empty()),
        ("--exclude-dependents", *exclude_dependents),
        ("--replace", !replace.replace.is_empty()),
        ("--target-replace", !replace.target_replace.is_empty()),
    ];
    if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message =
            MessageText::new(format_args!("{name} cannot be given with --plan: the plan says what is changed"));
        return Err(CliError::usage(message, "give it to `sc preview --save-plan FILE`"));
    }
    let scope = ScopeArgs {
        target: options.targets.clone(),
        target_dependents: options.target_dependents,
        exclude: options.excludes.clone(),
        exclude_dependents: options.exclude_dependents,
    };
    let replace = ReplaceArgs { replace: options.replace.clone(), target_replace: options.target_replace.clone() };
    Ok((RunArgs { scope, ..run.clone() }, replace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_a_plan_starts_at_the_folder_of_the_command() {
        let table =
            [(None, "p", "./p"), (None, "/a/p", "/a/p"), (Some("/b"), "p", "/b/p"), (Some("/b"), "/a/p", "/a/p")];
        for (cwd, path, expected) in table {
            assert_eq!(in_folder(cwd.map(Path::new), Path::new(path)), Path::new(expected));
        }
    }
}

//! Operations on stacks: their settings, and their combined outcome.

use std::sync::Arc;
use std::time::Duration;

use config::{PendingCreateRule, Stack};
use engine::events::{Event, Message, Operation, Severity, Summary};
use engine::{DeploymentOptions, Scope, UrnPattern};
use provisioner::operation::{
    MissingOutputs, OperationError, PendingCreateResolution, PendingCreates, PendingQuestion, PluginSettings,
    RunOptions, Stacks, secrets_diagnostic,
};
use provisioner::program::Program;

use super::args::{
    GuardArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs, OverrideArgs, PendingArgs, ProgramArgs, ReplaceArgs,
    RunArgs, ScopeArgs, ShowArgs, TimeLimitArgs,
};
use super::causes::secrets_error;
use super::display::{self, Secrets};
use super::exit::{Changes, CliError, Exit};
use super::output::Output;
use super::questions::AskedSession;
use super::session::Session;
use super::signals::TimeLimit;
use super::stack_queue::Direction;

/// Settings for operations on stacks, and for their display.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// Options of the operation.
    pub(crate) options: RunOptions,
    /// True if changes are shown property by property.
    pub(crate) diff: bool,
    /// Treatment of secrets.
    pub(crate) secrets: Secrets,
    /// Limit on the time of the command.
    pub(crate) limit: Option<TimeLimit>,
    /// Treatment of changes.
    pub(crate) changes: Changes,
    /// Wait for the lock of a stack.
    pub(crate) lock: LockArgs,
    /// Local builds that take the place of declared plugins.
    pub(crate) overrides: OverrideArgs,
    /// Guarantee that a run waits for, if the command line says it.
    pub(crate) journal: JournalArgs,
    /// True if a new stack may begin under the old name of one that was renamed.
    pub(crate) begins_anew: bool,
    /// True if the user has agreed to all questions, with `--yes`.
    pub(crate) yes: bool,
    /// Treatment of resources that a refresh does not find.
    pub(crate) missing: MissingArgs,
    /// Resolution of pending creates.
    pub(crate) pending: PendingArgs,
    /// True if the user is asked about each pending create, where the command line resolves none.
    pub(crate) asks_about_pending: bool,
    /// Rules for deletes and replacements, where the command has them.
    pub(crate) guard: Option<GuardArgs>,
    /// Message for the history; `None` if the command changes nothing, so that it has no history.
    pub(crate) message: Option<MessageArgs>,
    /// Direction in which the command goes through the stacks.
    pub(crate) direction: Direction,
    /// Number of stacks that may run at the same time.
    pub(crate) parallel_stacks: usize,
    /// Treatment of outputs of other stacks that cannot be read.
    pub(crate) missing_outputs: MissingOutputs,
    /// True if the operation comes to the key of a stack first, if the stack asks for one that has not been created.
    pub(crate) creates_keys: bool,
}

impl Runs {
    /// Creates the settings from the arguments of a command.
    pub(crate) fn new(args: &RunArgs, diff: bool, time: TimeLimitArgs, changes: Changes) -> Self {
        let deployment = DeploymentOptions {
            parallel: usize::try_from(args.parallel).unwrap_or(usize::MAX),
            continue_on_error: args.continue_on_error,
            run_program: args.program.run_program,
            scope: scope(&args.scope),
            ..DeploymentOptions::default()
        };
        let options = RunOptions { deployment, ..RunOptions::default() };
        let (secrets, limit, lock) = (args.show.secrets(), time.limit(), LockArgs::default());
        let (missing, guard, journal) = (MissingArgs::default(), None, JournalArgs::default());
        let missing_outputs = if args.program.run_program { MissingOutputs::Refused } else { MissingOutputs::Unknown };
        Self {
            options,
            diff,
            secrets,
            limit,
            changes,
            lock,
            overrides: args.overrides.clone(),
            journal,
            begins_anew: false,
            yes: false,
            missing,
            pending: PendingArgs::default(),
            asks_about_pending: false,
            guard,
            message: None,
            direction: Direction::default(),
            parallel_stacks: usize::try_from(args.parallel_stacks).unwrap_or(usize::MAX),
            missing_outputs,
            creates_keys: false,
        }
    }

    /// Creates the settings of an import, which has no refresh before it and the whole stack in scope.
    pub(crate) fn for_import(parallel: u32, show: ShowArgs, time: TimeLimitArgs, changes: Changes) -> Self {
        let run = RunArgs {
            skip_refresh: false,
            program: ProgramArgs::default(),
            parallel,
            parallel_stacks: 1,
            continue_on_error: false,
            show,
            scope: ScopeArgs::default(),
            overrides: OverrideArgs::default(),
        };
        Self::new(&run, true, time, changes)
    }

    /// Adds resources to replace.
    pub(crate) fn with_replacements(mut self, args: &ReplaceArgs) -> Self {
        let options = &mut self.options.deployment;
        options.scope.targets.extend(patterns(&args.target_replace));
        options.replace.extend(patterns(&args.replace).chain(patterns(&args.target_replace)));
        self
    }

    /// Runs the programs of the stacks: comes to their keys before them, if they have not been created, and needs the outputs of other
    /// stacks that they read.
    pub(crate) fn with_keys(self) -> Self {
        Self { creates_keys: true, missing_outputs: MissingOutputs::Refused, ..self }
    }

    /// Returns the options of the operation on a stack. Resources are selected in the stack itself, not in that of its key.
    pub(super) fn options_for(&self, stack: &Stack) -> RunOptions {
        let mut options = self.options.clone();
        if stack.key_of.is_some() {
            options.deployment.scope = Scope::default();
            options.deployment.replace.clear();
        }
        options
    }

    /// Returns the treatment of the pending creates of a stack. The resources that the command line names are not in the stack of a
    /// key.
    pub(super) fn pending_creates(&self, stack: &Stack, asked: &Arc<AskedSession>) -> PendingCreates {
        let rule = stack.provisioner.pending_creates;
        let asks = self.asks_about_pending
            && stack.key_of.is_none()
            && (self.guard.is_none() || rule == PendingCreateRule::Ask);
        let named = self.pending.import_pending_creates.iter().filter(|_| stack.key_of.is_none());
        PendingCreates {
            clear: self.pending.clear_pending_creates,
            resolutions: named.map(|(name, id)| (name.clone(), PendingCreateResolution::Import(id.clone()))).collect(),
            question: asks.then(|| Arc::clone(asked) as Arc<dyn PendingQuestion>),
            // A key has a fixed name, so it cannot exist twice.
            recreates: rule == PendingCreateRule::Recreate || stack.key_of.is_some(),
        }
    }

    /// Rejects resource names for several stacks, as the other stacks do not have these resources.
    pub(super) fn check_resource_names(&self, stacks: &Stacks) -> Result<(), CliError> {
        let DeploymentOptions { scope, replace, .. } = &self.options.deployment;
        if scope.target_dependents && scope.targets.is_empty() {
            return Err(CliError::usage("--target-dependents requires a target", "give one with --target"));
        }
        let named =
            scope.targets.len() + scope.excludes.len() + replace.len() + self.pending.import_pending_creates.len();
        let requested = stacks.requested().count();
        if named == 0 || requested <= 1 {
            return Ok(());
        }
        let hint = "select one stack with -s STACK";
        Err(CliError::usage(
            format_args!("resources can be selected in one stack only, but {requested} stacks are selected"),
            hint,
        ))
    }
}

fn scope(args: &ScopeArgs) -> Scope {
    Scope {
        targets: patterns(&args.target).collect(),
        excludes: patterns(&args.exclude).collect(),
        target_dependents: args.target_dependents,
        exclude_dependents: args.exclude_dependents,
    }
}

fn patterns(names: &[String]) -> impl Iterator<Item = UrnPattern> {
    names.iter().map(UrnPattern::new)
}

/// Locates or downloads the packages that the core types of programs need, before the first stack is changed. Prints the reasons of
/// an error.
pub(super) async fn provide_packages(
    output: &Output,
    stacks: &Stacks,
    programs: &[Program],
    plugins: &PluginSettings,
    session: &Session<'_>,
) -> anyhow::Result<()> {
    let events = session.sink("", None);
    let provided = plugins.provide_packages(programs, &events, &session.signals).await;
    provided.map(drop).map_err(anyhow::Error::from).inspect_err(|error| print_reasons(output, session, stacks, error))
}

/// Says what the runs on several stacks have done together, and why the command fails although each run succeeded.
pub(super) fn report_end(session: &Session<'_>, summaries: &[Summary], exit: Exit, elapsed: Duration) {
    let Some(last) = summaries.last() else { return };
    let emit = |severity, text| session.sink("", None).emit(Event::Message(Message::new(severity, text)));
    if summaries.len() > 1 {
        // The summary of the last stack is not the last line.
        session.pause();
        emit(Severity::Info, display::total_text(summaries, elapsed));
    }
    if exit == Exit::UnexpectedChanges {
        let text = match (last.phase.preview, last.phase.operation) {
            (true, _) => "there are changes, and --expect-no-changes was given",
            (false, Operation::Refresh) => "changes were found and recorded, and --expect-no-changes was given",
            (false, _) => "changes were made, and --expect-no-changes was given",
        };
        emit(Severity::Error, text.into());
    }
}

/// Prints the errors in the files of a stack that are the reason of an error.
pub(crate) fn print_reasons(output: &Output, session: &Session<'_>, stacks: &Stacks, error: &anyhow::Error) {
    let found = error.downcast_ref().map(OperationError::diagnostics).unwrap_or_default();
    if !found.is_empty() {
        session.pause();
        output.print_diagnostics(found, &stacks.sources);
    }
}

/// Prints the position of the secrets provider if its passphrase or key is the reason of an error.
pub(super) fn print_secrets_reason(
    output: &Output,
    session: &Session<'_>,
    stacks: &Stacks,
    stack: &Stack,
    error: &anyhow::Error,
) {
    if let Some(found) = secrets_error(error).and_then(|error| secrets_diagnostic(stack, error)) {
        session.pause();
        output.print_diagnostics(&[found], &stacks.sources);
    }
}

//! Operations on stacks, one stack after the other, and their combined outcome.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bridge::message_text::MessageText;
use config::{PendingCreateRule, Stack};
use engine::events::{ActivityKind, Event, Message, Operation, Outcome, Severity, Summary};
use engine::{DeploymentOptions, Scope, UrnPattern};
use provisioner::operation::{
    MissingGuard, OperationError, PendingCreateResolution, PendingCreates, PendingQuestion, PluginSettings, Report,
    RunInputs, RunOptions, RunningActivity, StackRun, Stacks, key_stack, secrets_diagnostic,
};
use state::{StackAccess, drop_in_background};

use super::access::access_for_change;
use super::args::{
    GuardArgs, JournalArgs, LockArgs, MessageArgs, MissingArgs, OverrideArgs, PendingArgs, ProgramArgs, ReplaceArgs,
    RunArgs, ScopeArgs, ShowArgs, TimeLimitArgs,
};
use super::causes::secrets_error;
use super::display::{self, Secrets};
use super::downloads::DownloadQuestions;
use super::exit::{Changes, CliError, Exit};
use super::guard::Limit;
use super::output::Output;
use super::plugins::overridden_plugins;
use super::prompt;
use super::questions::{AskedSession, Questions};
use super::recorded_names;
use super::run_origin;
use super::session::{self, Session, SessionOptions};
use super::signals::TimeLimit;
use super::stacks::locate;
use super::ui::Ui;

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
            creates_keys: false,
        }
    }

    /// Creates the settings of an import, which has no refresh before it and the whole stack in scope.
    pub(crate) fn for_import(parallel: u32, show: ShowArgs, time: TimeLimitArgs, changes: Changes) -> Self {
        let run = RunArgs {
            skip_refresh: false,
            program: ProgramArgs::default(),
            parallel,
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

    /// Comes to the keys of the stacks that have not been created, before the stacks.
    pub(crate) fn with_keys(self) -> Self {
        Self { creates_keys: true, ..self }
    }

    /// Returns the options of the operation on a stack. Resources are selected in the stack itself, not in that of its key.
    fn options_for(&self, stack: &Stack) -> RunOptions {
        let mut options = self.options.clone();
        if stack.key_of.is_some() {
            options.deployment.scope = Scope::default();
            options.deployment.replace.clear();
        }
        options
    }

    /// Returns the treatment of the pending creates of a stack. The resources that the command line names are not in the stack of a
    /// key.
    fn pending_creates(&self, stack: &Stack, asked: &Arc<AskedSession>) -> PendingCreates {
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
    fn check_resource_names(&self, stacks: &Stacks) -> Result<(), CliError> {
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

/// Runs an operation on one stack after the other, and stops after the first that fails. The operation returns `None` if the
/// user declined it.
///
/// # Errors
/// The first error of an operation.
pub(crate) async fn on_stacks(
    ui: &Ui,
    stacks: &Stacks,
    mut runs: Runs,
    operation: impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> anyhow::Result<Exit> {
    runs.check_resource_names(stacks)?;
    let options = SessionOptions { diff: runs.diff, secrets: runs.secrets, limit: runs.limit };
    let mut plugins = overridden_plugins(stacks, &runs.overrides)?;
    let (approval, questions) = DownloadQuestions::new(&ui.output, runs.yes);
    plugins.packages.approval = approval;
    let (asked, session_questions) = Questions::new(&ui.output);
    // A preview has no history.
    let origin = runs.message.take().map(|args| run_origin::collection(stacks, args.message)).unwrap_or_default();
    runs.options.origin = origin.clone();
    session::run(ui, options, async |session| {
        let work = async {
            provide_packages(&ui.output, stacks, &plugins, session).await?;
            on_each_stack(ui, stacks, &runs, &plugins, &asked, session, operation).await
        };
        // Beside the work, as only the history needs the origin.
        let collected = async {
            origin.collect().await;
            std::future::pending::<Infallible>().await
        };
        let exit = tokio::select! {
            exit = work => exit,
            never = collected => match never {},
            never = questions.ask(&ui.output, session) => match never {},
            never = session_questions.ask(&ui.output, session) => match never {},
        };
        let _ending = RunningActivity::begin(&session.sink("", None), ActivityKind::End, "this command");
        plugins.pool.close().await;
        exit
    })
    .await
}

/// Locates or downloads the packages that the core types of all requested stacks need, before the first stack is changed.
/// Prints the reasons of an error.
async fn provide_packages(
    output: &Output,
    stacks: &Stacks,
    plugins: &PluginSettings,
    session: &Session<'_>,
) -> anyhow::Result<()> {
    let events = session.sink("", None);
    let provided = plugins.provide_packages(&stacks.programs(), &events, &session.signals).await;
    provided.map(drop).map_err(anyhow::Error::from).inspect_err(|error| print_reasons(output, session, stacks, error))
}

async fn on_each_stack(
    ui: &Ui,
    stacks: &Stacks,
    runs: &Runs,
    plugins: &PluginSettings,
    asked: &Arc<AskedSession>,
    session: &Session<'_>,
    operation: impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> anyhow::Result<Exit> {
    let output = &ui.output;
    let mut summaries: Vec<Summary> = Vec::new();
    let mut waiting: VecDeque<Arc<Stack>> = stacks.requested().cloned().collect();
    let mut keys: Vec<String> = Vec::new();
    while let Some(stack) = waiting.pop_front() {
        let mut access = session.unless_stopped(access_for_change(output, stacks, &stack, runs.lock)).await;
        if let Ok(access) = &mut access {
            access.journal_mode = runs.journal.journal.unwrap_or(access.journal_mode);
            access.begins_anew = runs.begins_anew;
        }
        if let Ok(access) = &access
            && runs.creates_keys
            && access.keyring.awaits_key()
            && let Some(key) = key_stack(&stack).filter(|key| !keys.contains(&key.name))
        {
            keys.push(key.name.clone());
            waiting.push_front(stack);
            waiting.push_front(key);
            continue;
        }
        let run = async { stack_run(stacks, &stack, access?, session, plugins, asked, runs).await };
        let ended = match session.unless_stopped(run).await {
            Ok(run) => {
                let ended = operation(&run, session).await;
                let _ending = RunningActivity::begin(&run.events, ActivityKind::End, &*stack.name);
                run.close().await;
                ended
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &ended {
            print_reasons(output, session, stacks, error);
            print_secrets_reason(output, session, stacks, &stack, error);
        }
        if !matches!(&ended, Ok(Some(report)) if report.summary.outcome == Outcome::Succeeded) {
            report_left_out(session, &stack.name, &waiting);
        }
        let Some(report) = ended? else { return Ok(declined(output, session, &summaries)) };
        let Report { summary, snapshot, diagnostics, .. } = report;
        if !summary.phase.preview {
            let environment = &stacks.process_context.environment;
            recorded_names::keep(environment, &stacks.repository.root, &stack.name, &snapshot);
        }
        drop_in_background(snapshot);
        if !diagnostics.is_empty() {
            session.pause();
            output.print_diagnostics(&diagnostics, &stacks.sources);
        }
        let outcome = summary.outcome;
        summaries.push(summary);
        if outcome != Outcome::Succeeded {
            break;
        }
    }
    let exit = Exit::of_runs(&summaries, runs.changes);
    report_end(session, &summaries, exit, ui.elapsed());
    Ok(exit)
}

/// Says what the runs on several stacks have done together, and why the command fails although each run succeeded.
fn report_end(session: &Session<'_>, summaries: &[Summary], exit: Exit, elapsed: Duration) {
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
fn print_secrets_reason(output: &Output, session: &Session<'_>, stacks: &Stacks, stack: &Stack, error: &anyhow::Error) {
    if let Some(found) = secrets_error(error).and_then(|error| secrets_diagnostic(stack, error)) {
        session.pause();
        output.print_diagnostics(&[found], &stacks.sources);
    }
}

/// Names the stacks that are left out, as the operation on one before them did not succeed.
fn report_left_out(session: &Session<'_>, stack: &str, left_out: &VecDeque<Arc<Stack>>) {
    let names: Vec<&str> = left_out.iter().map(|stack| stack.name.as_str()).collect();
    let (stacks, are) = match names[..] {
        [] => return,
        [_] => ("stack", "is"),
        _ => ("stacks", "are"),
    };
    let text =
        MessageText::new(format_args!("{stacks} {} {are} left out, because {stack} did not succeed", names.join(", ")));
    session.sink("", None).emit(Event::Message(Message::new(Severity::Warning, text)));
}

/// Returns the outcome of an operation that the user declined, or stopped at its question.
fn declined(output: &Output, session: &Session<'_>, earlier: &[Summary]) -> Exit {
    // What the end of the operation has waited for may be on the screen.
    session.pause();
    // The operation may have changed other stacks before.
    let declined = if earlier.is_empty() { prompt::decline(output) } else { Exit::Failed };
    if session.signals.stop.is_cancelled() { Exit::Canceled } else { declined }
}

async fn stack_run(
    stacks: &Stacks,
    stack: &Arc<Stack>,
    access: StackAccess,
    session: &Session<'_>,
    plugins: &PluginSettings,
    asked: &Arc<AskedSession>,
    runs: &Runs,
) -> anyhow::Result<StackRun> {
    let locate = locate(Arc::clone(&stacks.sources), stacks.program(stack));
    let events = session.sink(&stack.name, Some(locate));
    let missing = MissingGuard {
        stack: stack.name.clone(),
        accepts: runs.missing.accept_missing || stack.provisioner.accept_missing,
        limit: runs.guard.and_then(|args| Limit::new(&args, stack)).map(|limit| limit.of_missing(stacks)),
        question: asked.if_interactive(),
        events: Arc::clone(&events),
        count: AtomicUsize::default(),
    };
    let options = RunOptions {
        missing: Some(Arc::new(missing)),
        new_stack_question: asked.if_interactive(),
        pending: runs.pending_creates(stack, asked),
        ..runs.options_for(stack)
    };
    let inputs = RunInputs { plugins: plugins.clone(), events, signals: session.signals.clone(), options };
    Ok(stacks.run(stack, access, inputs).await?)
}

//! Runs of one operation on several stacks. Those that do not depend on each other run at the same time; what depends on one that did
//! not succeed is left out.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bridge::message_text::MessageText;
use config::Stack;
use engine::events::{ActivityKind, Event, Message, Outcome, Severity, Summary};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use provisioner::operation::{
    MissingGuard, OperationError, PluginSettings, Report, RunInputs, RunOptions, RunningActivity, StackRun, Stacks,
    key_stack,
};
use state::{StackAccess, drop_in_background};

use super::access::access_for_change;
use super::downloads::DownloadQuestions;
use super::exit::Exit;
use super::guard::Limit;
use super::plugins::overridden_plugins;
use super::prompt;
use super::questions::{AskedSession, Questions};
use super::recorded_names;
use super::run_origin;
use super::runs::{Runs, print_reasons, print_secrets_reason, provide_packages, report_end};
use super::session::{self, Session, SessionOptions};
use super::stack_queue::StackQueue;
use super::stacks::locate;
use super::ui::Ui;

/// Values that all runs of a command share.
#[derive(Clone, Copy)]
struct SharedRun<'r> {
    ui: &'r Ui,
    stacks: &'r Stacks,
    runs: &'r Runs,
    plugins: &'r PluginSettings,
    asked: &'r Arc<AskedSession>,
    /// Errors of several stacks, with the names of the stacks: to be printed after the session.
    errors: &'r RefCell<Vec<(String, anyhow::Error)>>,
}

/// Runs an operation on the stacks, several at the same time. The operation returns `None` if the user declined it.
///
/// # Errors
/// The error of the only stack with one. Errors of several stacks are printed, and the worst decides about the exit code.
pub(crate) async fn on_stacks(
    ui: &Ui,
    stacks: &Stacks,
    mut runs: Runs,
    operation: impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> anyhow::Result<Exit> {
    runs.check_resource_names(stacks)?;
    let has_turns = runs.parallel_stacks > 1 && stacks.requested().count() > 1;
    let options = SessionOptions { diff: runs.diff, secrets: runs.secrets, limit: runs.limit, has_turns };
    let mut plugins = overridden_plugins(stacks, &runs.overrides)?;
    let (approval, questions) = DownloadQuestions::new(&ui.output, runs.yes);
    plugins.packages.approval = approval;
    let (asked, session_questions) = Questions::new(&ui.output);
    // A preview has no history.
    let origin = runs.message.take().map(|args| run_origin::collection(stacks, args.message)).unwrap_or_default();
    runs.options.origin = origin.clone();
    let errors = RefCell::default();
    let ended = session::run(ui, options, async |session| {
        let work = async {
            provide_packages(&ui.output, stacks, &stacks.programs(), &plugins, session).await?;
            let shared = SharedRun { ui, stacks, runs: &runs, plugins: &plugins, asked: &asked, errors: &errors };
            on_each_stack(shared, session, operation).await
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
    .await;
    for (stack, error) in errors.take() {
        ui.output.fail(&error.context(MessageText::new(format_args!("stack {stack}"))));
    }
    ended
}

/// End of the operation on one stack, and on the key that it has asked for.
struct StackEnd {
    stack: String,
    summaries: Vec<Summary>,
    result: RunEnd,
}

enum RunEnd {
    Succeeded,
    /// Failed, with reported errors.
    Failed,
    /// The user has declined it.
    Declined,
    Error(anyhow::Error),
}

/// Runs an operation on the requested stacks, each once those before it have succeeded. The operation returns `None` if the user declined
/// it.
///
/// # Errors
/// The error of the only stack with one, if no other stack has a worse end.
async fn on_each_stack(
    shared: SharedRun<'_>,
    session: &Session<'_>,
    operation: impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> anyhow::Result<Exit> {
    let SharedRun { ui, stacks, runs, .. } = shared;
    let mut queue = StackQueue::new(&stacks.graph, stacks.requested().map(|stack| stack.name.as_str()), runs.direction);
    let is_only = stacks.requested().count() == 1;
    let (mut summaries, mut errors, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    let mut running = FuturesUnordered::new();
    loop {
        while !session.signals.stop.is_cancelled() && running.len() < runs.parallel_stacks {
            let Some(name) = queue.next() else { break };
            let Some(stack) = stacks.requested().find(|stack| stack.name == name) else { continue };
            running.push(Box::pin(run_stack(shared, session.of_stack(&name), Arc::clone(stack), &operation)));
        }
        let Some(StackEnd { stack, summaries: ended, result }) = running.next().await else { break };
        summaries.extend(ended);
        match result {
            RunEnd::Succeeded => {
                queue.succeed(&stack);
                continue;
            }
            RunEnd::Failed => {}
            RunEnd::Declined => exits.push(declined(shared, session, is_only)),
            RunEnd::Error(error) => errors.push((stack.clone(), error)),
        }
        report_left_out(session, &queue.leave_out(&stack), &format!("{stack} did not succeed"));
    }
    let rest = queue.rest();
    if !rest.is_empty() && summaries.is_empty() && errors.is_empty() && exits.is_empty() {
        return Err(OperationError::Stopped.into());
    }
    report_left_out(session, &rest, "the command was stopped");
    exits.extend((!rest.is_empty()).then_some(Exit::Canceled));
    let exit = exits.into_iter().fold(Exit::of_runs(&summaries, runs.changes), Exit::worst);
    match &mut errors[..] {
        [(_, error)] if Exit::of_error(error).worst(exit) == Exit::of_error(error) => {
            return errors.pop().map_or(Ok(exit), |(_, error)| Err(error));
        }
        _ => {}
    }
    let exit = errors.iter().map(|(_, error)| Exit::of_error(error)).fold(exit, Exit::worst);
    shared.errors.borrow_mut().append(&mut errors);
    report_end(session, &summaries, exit, ui.elapsed());
    Ok(exit)
}

/// Runs the operation on a stack, and before it on its key, if the stack asks for one that has not been created.
async fn run_stack(
    shared: SharedRun<'_>,
    session: Session<'_>,
    stack: Arc<Stack>,
    operation: &impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> StackEnd {
    let SharedRun { ui, stacks, runs, .. } = shared;
    let name = stack.name.clone();
    let mut summaries = Vec::new();
    let mut waiting = vec![stack];
    let mut result = RunEnd::Succeeded;
    while let Some(stack) = waiting.pop() {
        let mut access = session.unless_stopped(access_for_change(&ui.output, stacks, &stack, runs.lock)).await;
        if let Ok(access) = &mut access {
            access.journal_mode = runs.journal.journal.unwrap_or(access.journal_mode);
            access.begins_anew = runs.begins_anew;
        }
        if let Ok(access) = &access
            && runs.creates_keys
            && access.keyring.awaits_key()
            && summaries.is_empty()
            && let Some(key) = key_stack(&stack)
        {
            waiting.extend([stack, key]);
            continue;
        }
        let stack_session = session.of_stack(&stack.name);
        let (summary, ended) = run_one(shared, &stack_session, &stack, access, operation).await;
        stack_session.end_stack();
        summaries.extend(summary);
        result = ended;
        if !matches!(result, RunEnd::Succeeded) {
            break;
        }
    }
    if let Some(stack) = waiting.first() {
        // Only its key was run.
        let key = key_stack(stack).map(|key| key.name.clone()).unwrap_or_default();
        report_left_out(&session, std::slice::from_ref(&name), &format!("{key} did not succeed"));
    }
    StackEnd { stack: name, summaries, result }
}

/// Runs the operation on one stack. Prints the reasons of an error that are in the files.
async fn run_one(
    shared: SharedRun<'_>,
    session: &Session<'_>,
    stack: &Arc<Stack>,
    access: anyhow::Result<StackAccess>,
    operation: &impl AsyncFn(&StackRun, &Session<'_>) -> anyhow::Result<Option<Report>>,
) -> (Option<Summary>, RunEnd) {
    let SharedRun { ui, stacks, .. } = shared;
    let ended = match session.unless_stopped(stack_run(shared, session, stack, access)).await {
        Ok(run) => {
            let ended = operation(&run, session).await;
            let _ending = RunningActivity::begin(&run.events, ActivityKind::End, &*stack.name);
            run.close().await;
            ended
        }
        Err(error) => Err(error),
    };
    let report = match ended {
        Ok(Some(report)) => report,
        Ok(None) => return (None, RunEnd::Declined),
        Err(error) => {
            print_reasons(&ui.output, session, stacks, &error);
            print_secrets_reason(&ui.output, session, stacks, stack, &error);
            return (None, RunEnd::Error(error));
        }
    };
    let Report { summary, snapshot, diagnostics, .. } = report;
    stacks.keep_outputs(stack, &snapshot).await;
    if !summary.phase.preview {
        let environment = &stacks.process_context.environment;
        recorded_names::keep(environment, &stacks.repository.root, &stack.name, &snapshot);
    }
    drop_in_background(snapshot);
    if !diagnostics.is_empty() {
        session.pause();
        ui.output.print_diagnostics(&diagnostics, &stacks.sources);
    }
    let result = if summary.outcome == Outcome::Succeeded { RunEnd::Succeeded } else { RunEnd::Failed };
    (Some(summary), result)
}

/// Puts the run on a stack together: with the outputs of the stacks that it reads.
async fn stack_run(
    shared: SharedRun<'_>,
    session: &Session<'_>,
    stack: &Arc<Stack>,
    access: anyhow::Result<StackAccess>,
) -> anyhow::Result<StackRun> {
    let SharedRun { ui, stacks, runs, plugins, asked, .. } = shared;
    let access = access?;
    let warnings = session.sink(&stack.name, None);
    let warn = |text| warnings.emit(Event::Message(Message::new(Severity::Warning, text)));
    let read = stacks.with_outputs(stack, runs.missing_outputs, warn).await?;
    if !Arc::ptr_eq(&read, stack) {
        provide_packages(&ui.output, stacks, &[stacks.program(&read)], plugins, session).await?;
    }
    let (stack, asked) = (&read, &asked.of_stack(&stack.name));
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

/// Names the stacks that are left out.
fn report_left_out(session: &Session<'_>, names: &[String], reason: &str) {
    let (stacks, are) = match names {
        [] => return,
        [_] => ("stack", "is"),
        _ => ("stacks", "are"),
    };
    let text = MessageText::new(format_args!("{stacks} {} {are} left out, because {reason}", names.join(", ")));
    session.sink("", None).emit(Event::Message(Message::new(Severity::Warning, text)));
}

/// Returns the outcome of an operation that the user declined, or stopped at its question.
fn declined(shared: SharedRun<'_>, session: &Session<'_>, is_only: bool) -> Exit {
    let declined = if is_only {
        // What the end of the operation has waited for may be on the screen.
        session.pause();
        prompt::decline(&shared.ui.output)
    } else {
        Exit::Failed
    };
    if session.signals.stop.is_cancelled() { Exit::Canceled } else { declined }
}

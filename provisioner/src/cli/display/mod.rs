//! Display of a run: renders events as lines.
//!
//! The engine sends events to a channel without waiting; one thread owns the terminal and prints everything. Messages that
//! are not shown are not sent, and neither are lines of plugins if too many of them wait ([`queue`]). Progress goes to
//! standard error, results to standard output. This module does not make decisions, and shows secrets only
//! with `--show-secrets`.

mod activities;
mod diff;
mod earlier_phases;
mod ends;
mod groups;
mod json;
mod json_diagnostics;
mod live;
mod long_texts;
mod painter;
mod palette;
mod plain;
mod progress;
mod property_changes;
mod queue;
mod reasons;
mod redact;
mod report;
mod rows;
mod shown_names;
mod stack_turns;
mod stop;
mod text;
mod tree;
mod value;

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::events::{Event, EventSink, Message, Severity, SourceRef};
use engine::masking::SecretMasker;
use jiff::Timestamp;
use pulumi_proto::urn::Urn;

pub(crate) use diff::{DiffOptions, values};
pub(crate) use ends::total_text;
pub(crate) use json::{EventNumbers, JsonDisplay, write_event};
pub(crate) use json_diagnostics::{ErrorTexts, describe_diagnostic, describe_error};
pub(crate) use live::LiveDisplay;
pub(crate) use painter::SHOW_CURSOR;
pub(crate) use palette::Palette;
pub(crate) use plain::PlainDisplay;
pub(crate) use redact::Redactor;
pub(crate) use stack_turns::{NewRenderer, StackTurns};
pub(crate) use stop::StopNotice;
pub(crate) use text::{Line, bytes, duration};
pub(crate) use value::{DisplayValue, Secrets, map_to_json};

use queue::{MessageFilter, QueuedLogs};
use redact::cut;

/// Interval between repaints of moving parts.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);
/// Limit on the wait for more events before the events of a burst are rendered.
const BURST_INTERVAL: Duration = Duration::from_millis(5);

/// Settings of a display.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisplayOptions {
    /// Extent of the property diffs; `None`: only the names of changed properties are shown.
    pub(crate) diff: Option<DiffOptions>,
    /// Treatment of secrets.
    pub(crate) secrets: Secrets,
    /// True if debug messages are shown, too.
    pub(crate) verbose: bool,
    /// True if progress and messages are coloured.
    pub(crate) color: bool,
    /// True if results are coloured.
    pub(crate) results_color: bool,
    /// Time from the start of the command to the start of the display.
    pub(crate) before: Duration,
}

impl DisplayOptions {
    fn diff_options(&self) -> DiffOptions {
        self.diff.unwrap_or(DiffOptions { secrets: self.secrets, full: self.verbose })
    }
}

/// Time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// Duration since the start of the display.
    pub(crate) at: Duration,
    /// Time of day.
    pub(crate) time: Timestamp,
}

/// Subject of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventSubject<'a> {
    /// Name of the stack; empty if the event is not about a stack.
    pub(crate) stack: &'a str,
    /// Position in the user's files, if it is known.
    pub(crate) place: Option<&'a FilePosition>,
}

/// Position in the user's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePosition {
    /// Position as `file:line:column`.
    pub(crate) position: String,
    /// Line of the position with its part marked below; empty for files that contain secrets.
    pub(crate) excerpt: Vec<String>,
}

/// Function that returns the position of a resource, or of a property path within it, in the user's files.
pub(crate) type Locate = Arc<dyn Fn(SourceRef, Option<&str>) -> Option<FilePosition> + Send + Sync>;

/// Renderer of events. Only the thread of the display calls it.
pub(crate) trait Renderer: Send {
    /// Returns which messages are rendered. Others are not sent to the thread of the display.
    fn message_filter(&self) -> MessageFilter;
    /// Returns how secrets in values and in the names of properties are rendered.
    fn secrets(&self) -> Secrets;
    /// Renders an event.
    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()>;
    /// Renders that the run is being stopped.
    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()>;
    /// Prints a line of the log on standard error, above what is repainted there.
    fn log(&mut self, line: &str) -> io::Result<()>;
    /// Repaints moving parts.
    fn tick(&mut self, at: Duration) -> io::Result<()>;
    /// Leaves the terminal to other output until the next event.
    fn pause(&mut self) -> io::Result<()>;
    /// Shows the events of a stack from now on, which is about to ask a question.
    fn take_turn(&mut self, _stack: &str) -> io::Result<()> {
        Ok(())
    }
    /// Notes that no event of a stack follows.
    fn end_stack(&mut self, _stack: &str) -> io::Result<()> {
        Ok(())
    }
    /// Renders what waits, such as the rest of an interrupted phase. No event follows.
    fn finish(&mut self, at: Duration) -> io::Result<()>;
}

/// Command to the thread of the display.
enum DisplayCommand {
    Event {
        stamp: Stamp,
        stack: Arc<str>,
        place: Option<FilePosition>,
        event: Box<Event>,
        /// Memory that the event takes of that for lines of plugins.
        queued_bytes: usize,
    },
    /// Line of the log.
    Log(String),
    Pause(mpsc::Sender<()>),
    /// Shows a stack, which is about to ask a question.
    TakeTurn(String),
    /// No event of a stack follows.
    EndStack(String),
    /// Pauses until the sender of the second channel is dropped.
    Hold(mpsc::Sender<()>, mpsc::Receiver<()>),
    /// Notices of a stop wait in their own queue.
    Stop,
    Finish,
}

/// Lines of the log (`SC_LOG`) that a display prints.
pub(crate) struct LogLines(mpsc::Sender<DisplayCommand>);

impl LogLines {
    /// Prints a line after the earlier events. Returns it if the display has ended.
    pub(crate) fn send(&self, line: String) -> Option<String> {
        match self.0.send(DisplayCommand::Log(line)).err()?.0 {
            DisplayCommand::Log(line) => Some(line),
            _ => None,
        }
    }
}

/// Display that renders nothing until this is dropped.
pub(crate) struct HeldDisplay(#[expect(dead_code, reason = "its drop releases the display")] mpsc::Sender<()>);

/// Running display. It ends when it is finished or dropped; both restore the terminal.
#[derive(Debug)]
pub(crate) struct Display {
    commands: mpsc::Sender<DisplayCommand>,
    stops: mpsc::Sender<StopNotice>,
    began: Instant,
    filter: MessageFilter,
    logs: Arc<QueuedLogs>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Display {
    /// Starts a thread that renders events, with the secrets in their texts masked.
    pub(crate) fn start(mut renderer: Box<dyn Renderer>, masker: Arc<SecretMasker>) -> io::Result<Self> {
        let (commands, receiver) = mpsc::channel();
        let (stops, stop_receiver) = mpsc::channel();
        let began = Instant::now();
        let (filter, logs) = (renderer.message_filter(), Arc::<QueuedLogs>::default());
        let queued = Arc::clone(&logs);
        let display = move || {
            let renderer = renderer.as_mut();
            let redactor = Redactor::new(&masker, renderer.secrets());
            let thread =
                DisplayThread { renderer, began, masker: &masker, redactor, logs: &queued, stops: &stop_receiver };
            thread.run(&receiver)
        };
        let thread = std::thread::Builder::new().name("display".to_owned()).spawn(display)?;
        Ok(Self { commands, stops, began, filter, logs, thread: Some(thread) })
    }

    /// Returns the sink for the events of a stack. Messages have the positions that `locate` returns.
    pub(crate) fn sink(&self, stack: &str, locate: Option<Locate>) -> Arc<dyn EventSink> {
        Arc::new(StackSink {
            commands: self.commands.clone(),
            began: self.began,
            filter: self.filter,
            logs: Arc::clone(&self.logs),
            stack: stack.into(),
            locate,
            reported: Mutex::default(),
        })
    }

    /// Returns the receiver of the lines of the log.
    pub(crate) fn log_lines(&self) -> LogLines {
        LogLines(self.commands.clone())
    }

    /// Returns a function that renders a notice of a stop, before the events that still wait: a user sees at once that the
    /// signal was received.
    pub(crate) fn stop_notifier(&self) -> impl Fn(StopNotice) + Send + use<> {
        let (commands, stops) = (self.commands.clone(), self.stops.clone());
        move |notice| {
            // An error means that the display has ended.
            if stops.send(notice).is_ok() {
                commands.send(DisplayCommand::Stop).unwrap_or_default();
            }
        }
    }

    /// Returns once all earlier events are rendered and the terminal is free for a question.
    pub(crate) fn pause(&self) {
        let (done, shown) = mpsc::channel();
        if self.commands.send(DisplayCommand::Pause(done)).is_ok() {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
            // An error means that the display has ended, so the terminal is free as well.
            shown.recv().unwrap_or_default();
        }
    }

    /// Pauses like [`Display::pause`], and renders nothing until the returned value is dropped: events and moving parts would
    /// paint over a question within a phase.
    pub(crate) fn hold(&self) -> HeldDisplay {
        let (done, shown) = mpsc::channel();
        let (held, released) = mpsc::channel();
        if self.commands.send(DisplayCommand::Hold(done, released)).is_ok() {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
            // An error means that the display has ended, so the terminal is free as well.
            shown.recv().unwrap_or_default();
        }
        HeldDisplay(held)
    }

    /// Shows the events of a stack from now on, among those that run at the same time: it is about to ask a question.
    pub(crate) fn take_turn(&self, stack: &str) {
        // An error means that the display has ended.
        self.commands.send(DisplayCommand::TakeTurn(stack.to_owned())).unwrap_or_default();
    }

    /// Notes that no event of a stack follows.
    pub(crate) fn end_stack(&self, stack: &str) {
        self.commands.send(DisplayCommand::EndStack(stack.to_owned())).unwrap_or_default();
    }

    /// Renders the remaining events and ends the display.
    ///
    /// # Errors
    /// The first error of a write, such as a broken pipe. Nothing was printed after it.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // An error means that the thread has ended already.
        self.commands.send(DisplayCommand::Finish).unwrap_or_default();
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the display stopped working")))
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // Only `finish` reports the error.
        drop(self.end());
    }
}

/// Values of the thread of the display.
struct DisplayThread<'d> {
    renderer: &'d mut dyn Renderer,
    began: Instant,
    masker: &'d SecretMasker,
    redactor: Redactor<'d>,
    logs: &'d QueuedLogs,
    stops: &'d mpsc::Receiver<StopNotice>,
}

impl DisplayThread<'_> {
    /// Renders events until the display is finished. After an error of a write, renders none.
    fn run(mut self, receiver: &mpsc::Receiver<DisplayCommand>) -> io::Result<()> {
        let mut outcome = Ok(());
        let mut painted = Instant::now();
        loop {
            let command = match receiver.try_recv() {
                Err(TryRecvError::Empty) => {
                    // Not woken by each event of a burst: that would cost the engine a system call for each.
                    std::thread::park_timeout(BURST_INTERVAL);
                    receiver.recv_timeout(FRAME_INTERVAL.saturating_sub(painted.elapsed()))
                }
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                Ok(command) => Ok(command),
            };
            // A notice names the running steps, so the events of resources before it come first. Lines of plugins do not: there
            // may be many.
            let is_of_resource = matches!(command, Ok(DisplayCommand::Event { queued_bytes: 0, .. }));
            if outcome.is_ok() && !is_of_resource {
                outcome = self.render_stops();
            }
            let shown = match command {
                Ok(DisplayCommand::Event { stamp, stack, place, event, queued_bytes }) => {
                    self.logs.release(queued_bytes);
                    let is_last = matches!(*event, Event::PhaseEnded(_));
                    let dropped = self.logs.take_dropped(is_last);
                    if outcome.is_ok() {
                        self.report_dropped(dropped).and_then(|()| self.event(stamp, &stack, place, *event))
                    } else {
                        Ok(())
                    }
                }
                Ok(DisplayCommand::Log(line)) => {
                    if outcome.is_ok() {
                        self.renderer.log(&line)
                    } else {
                        Ok(())
                    }
                }
                Ok(DisplayCommand::TakeTurn(stack)) if outcome.is_ok() => self.renderer.take_turn(&stack),
                Ok(DisplayCommand::EndStack(stack)) if outcome.is_ok() => self.renderer.end_stack(&stack),
                Ok(DisplayCommand::TakeTurn(_) | DisplayCommand::EndStack(_)) => Ok(()),
                Ok(DisplayCommand::Pause(done)) => {
                    let shown = if outcome.is_ok() { self.renderer.pause() } else { Ok(()) };
                    // The caller may have been dropped; the error is ignored.
                    done.send(()).unwrap_or_default();
                    shown
                }
                Ok(DisplayCommand::Hold(done, released)) => {
                    let shown = if outcome.is_ok() { self.renderer.pause() } else { Ok(()) };
                    done.send(()).unwrap_or_default();
                    // Nothing is sent: the drop of the sender ends the wait.
                    released.recv().unwrap_or_default();
                    shown
                }
                Ok(DisplayCommand::Finish) | Err(RecvTimeoutError::Disconnected) => {
                    outcome?;
                    let dropped = self.logs.take_dropped(true);
                    return self.report_dropped(dropped).and_then(|()| self.renderer.finish(self.began.elapsed()));
                }
                Ok(DisplayCommand::Stop) | Err(RecvTimeoutError::Timeout) => Ok(()),
            };
            outcome = outcome.and(shown);
            if outcome.is_ok() && painted.elapsed() >= FRAME_INTERVAL {
                painted = Instant::now();
                outcome = self.renderer.tick(self.began.elapsed());
            }
        }
    }

    fn render_stops(&mut self) -> io::Result<()> {
        let stamp = Stamp { at: self.began.elapsed(), time: Timestamp::now() };
        self.stops.try_iter().try_for_each(|notice| self.renderer.stop(stamp, notice))
    }

    fn event(
        &mut self,
        stamp: Stamp,
        stack: &str,
        mut place: Option<FilePosition>,
        mut event: Event,
    ) -> io::Result<()> {
        self.redactor.redact(&mut event);
        let excerpt = place.iter_mut().flat_map(|place| &mut place.excerpt);
        excerpt.for_each(|line| self.masker.mask_in_place(line));
        self.renderer.event(stamp, EventSubject { stack, place: place.as_ref() }, &event)
    }

    /// Renders a warning about lines of plugins that were dropped, if there are any.
    fn report_dropped(&mut self, dropped: usize) -> io::Result<()> {
        if dropped == 0 {
            return Ok(());
        }
        let text = format!("plugins send messages faster than they can be shown; {dropped} of them were dropped");
        let stamp = Stamp { at: self.began.elapsed(), time: Timestamp::now() };
        self.event(stamp, "", None, Event::Message(Message::new(Severity::Warning, text)))
    }
}

/// Sink that sends the events of one stack to the display.
struct StackSink {
    commands: mpsc::Sender<DisplayCommand>,
    began: Instant,
    filter: MessageFilter,
    logs: Arc<QueuedLogs>,
    stack: Arc<str>,
    locate: Option<Locate>,
    /// Resources and texts of the repeated messages that were sent.
    reported: Mutex<HashSet<(Option<Urn>, String)>>,
}

impl StackSink {
    /// Returns whether a message repeats an earlier one. Otherwise remembers it, if it may be repeated.
    fn is_repetition(&self, message: &Message) -> bool {
        let reported = || self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        message.repeated && !reported().insert((message.urn.clone(), message.text.to_string()))
    }
}

impl EventSink for StackSink {
    fn emit(&self, mut event: Event) {
        cut(&mut event);
        let mut queued_bytes = 0;
        let mut place = None;
        if let Event::Message(message) = &event {
            if !self.filter.shows(message) || self.is_repetition(message) {
                return;
            }
            if message.logged {
                match self.logs.reserve(message) {
                    Some(bytes) => queued_bytes = bytes,
                    None => return,
                }
            }
            if let (Some(locate), Some(source)) = (&self.locate, message.source) {
                place = locate(source, message.property.as_deref());
            }
        }
        let stamp = Stamp { at: self.began.elapsed(), time: Timestamp::now() };
        let (stack, event) = (Arc::clone(&self.stack), Box::new(event));
        // An error means that the display has ended; the run continues without it.
        self.commands.send(DisplayCommand::Event { stamp, stack, place, event, queued_bytes }).unwrap_or_default();
    }
}

/// Prints lines, coloured if `color` is set.
pub(crate) fn print_lines(out: &mut impl Write, lines: &[Line], color: bool) -> io::Result<()> {
    let text: String = lines.iter().map(|line| line.render(color) + "\n").collect();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests;

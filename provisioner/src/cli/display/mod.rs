//! Shows a run: events in, lines out.
//!
//! The engine hands events to a channel and goes on; one thread owns the terminal and does all the printing. Progress goes
//! to standard error, results to standard output. Never here: decisions, and secrets that nobody asked to see.

mod diff;
mod json;
mod live;
mod painter;
mod palette;
mod plain;
mod property_changes;
mod redact;
mod report;
mod rows;
mod text;
mod tree;
mod value;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::events::{Event, EventSink, SourceRef};
use jiff::Timestamp;

pub(crate) use diff::{DiffOptions, values};
pub(crate) use json::JsonDisplay;
pub(crate) use live::LiveDisplay;
pub(crate) use palette::Palette;
pub(crate) use plain::PlainDisplay;
pub(crate) use text::Line;
pub(crate) use value::{Secrets, Shown, map_to_json};

use redact::Redactor;

/// How often what moves is painted.
const FRAME: Duration = Duration::from_millis(100);

/// What is shown, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisplayOptions {
    /// Show what changes about each resource; `None`: only the names of the properties.
    pub(crate) diff: Option<DiffOptions>,
    /// Whether secrets are shown.
    pub(crate) secrets: Secrets,
    /// Show what helps to look for a fault.
    pub(crate) verbose: bool,
    /// Colour for progress and messages.
    pub(crate) color: bool,
    /// Colour for results.
    pub(crate) results_color: bool,
}

impl DisplayOptions {
    fn diff_options(&self) -> DiffOptions {
        self.diff.unwrap_or(DiffOptions { secrets: self.secrets, full: self.verbose })
    }
}

/// When something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// Time since the display began.
    pub(crate) at: Duration,
    /// The time of day.
    pub(crate) time: Timestamp,
}

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    /// The stack; empty where it is about none.
    pub(crate) stack: &'a str,
    /// Where in the user's files, where that is known.
    pub(crate) place: Option<&'a Place>,
}

/// A place in the user's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `file:line:column`.
    pub(crate) position: String,
    /// The line, and a mark under the part of it that is meant; nothing of files that hold secrets.
    pub(crate) excerpt: Vec<String>,
}

/// Finds the place in the user's files of a resource and a property path within it.
pub(crate) type Locate = Arc<dyn Fn(SourceRef, Option<&str>) -> Option<Place> + Send + Sync>;

/// One way to show events. Called from the display's own thread only.
pub(crate) trait Renderer: Send {
    /// Takes an event.
    fn event(&mut self, stamp: Stamp, origin: Origin<'_>, event: &Event) -> io::Result<()>;
    /// Paints what moves.
    fn tick(&mut self, at: Duration) -> io::Result<()>;
    /// Leaves the terminal to somebody else, until the next event.
    fn pause(&mut self) -> io::Result<()>;
    /// Shows what is left where a phase was cut off, and leaves the terminal for good.
    fn finish(&mut self) -> io::Result<()> {
        self.pause()
    }
}

enum Order {
    Event { stamp: Stamp, stack: Arc<str>, place: Option<Place>, event: Box<Event> },
    Pause(mpsc::Sender<()>),
    Finish,
}

/// The running display. Ends when it is finished or dropped; both leave the terminal as it was found.
#[derive(Debug)]
pub(crate) struct Display {
    orders: mpsc::Sender<Order>,
    began: Instant,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Display {
    /// Starts a thread that shows what it is told.
    pub(crate) fn start(mut renderer: Box<dyn Renderer>, secrets: Secrets) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let began = Instant::now();
        let show = move || show(renderer.as_mut(), &inbox, began, secrets);
        let thread = std::thread::Builder::new().name("display".to_owned()).spawn(show)?;
        Ok(Self { orders, began, thread: Some(thread) })
    }

    /// Where the events of a stack go. Messages say the places that `locate` finds.
    pub(crate) fn sink(&self, stack: &str, locate: Option<Locate>) -> Arc<dyn EventSink> {
        Arc::new(StackSink { orders: self.orders.clone(), began: self.began, stack: stack.into(), locate })
    }

    /// Returns once all events so far are shown and the terminal is free for a question.
    pub(crate) fn pause(&self) {
        let (done, shown) = mpsc::channel();
        if self.orders.send(Order::Pause(done)).is_ok() {
            // An error means that the display has ended: the terminal is free then, too.
            shown.recv().unwrap_or_default();
        }
    }

    /// Shows what is left and ends.
    ///
    /// # Errors
    /// The first error that writing met, such as a broken pipe. Nothing was printed from there on.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // An error means that the thread has ended already.
        self.orders.send(Order::Finish).unwrap_or_default();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the display stopped working")))
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // Who wants to know calls `finish`.
        drop(self.end());
    }
}

fn show(
    renderer: &mut dyn Renderer,
    inbox: &mpsc::Receiver<Order>,
    began: Instant,
    secrets: Secrets,
) -> io::Result<()> {
    let mut redactor = (secrets == Secrets::Masked).then(Redactor::default);
    let mut outcome = Ok(());
    let mut painted = Instant::now();
    loop {
        let order = inbox.recv_timeout(FRAME.saturating_sub(painted.elapsed()));
        let shown = match order {
            Ok(Order::Event { stamp, stack, place, event }) => {
                let origin = Origin { stack: &stack, place: place.as_ref() };
                let event = match &mut redactor {
                    Some(redactor) => redactor.clean(*event),
                    None => *event,
                };
                // That one is for the redactor alone.
                let is_shown = outcome.is_ok() && !matches!(event, Event::SecretsTold(_));
                if is_shown { renderer.event(stamp, origin, &event) } else { Ok(()) }
            }
            Ok(Order::Pause(done)) => {
                let shown = if outcome.is_ok() { renderer.pause() } else { Ok(()) };
                // Who asked may have gone.
                done.send(()).unwrap_or_default();
                shown
            }
            Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => {
                return if outcome.is_ok() { renderer.finish() } else { outcome };
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
        };
        outcome = outcome.and(shown);
        if outcome.is_ok() && painted.elapsed() >= FRAME {
            painted = Instant::now();
            outcome = renderer.tick(began.elapsed());
        }
    }
}

/// Sends the events of one stack to the display.
struct StackSink {
    orders: mpsc::Sender<Order>,
    began: Instant,
    stack: Arc<str>,
    locate: Option<Locate>,
}

impl EventSink for StackSink {
    fn emit(&self, event: Event) {
        let stamp = Stamp { at: self.began.elapsed(), time: Timestamp::now() };
        let place = match (&event, &self.locate) {
            (Event::Message(message), Some(locate)) => {
                message.source.and_then(|source| locate(source, message.property.as_deref()))
            }
            _ => None,
        };
        let order = Order::Event { stamp, stack: Arc::clone(&self.stack), place, event: Box::new(event) };
        // A display that has ended shows nothing; the run goes on.
        self.orders.send(order).unwrap_or_default();
    }
}

/// Prints lines.
pub(crate) fn print_lines(out: &mut impl Write, lines: &[Line], color: bool) -> io::Result<()> {
    let text: String = lines.iter().map(|line| line.render(color) + "\n").collect();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests;

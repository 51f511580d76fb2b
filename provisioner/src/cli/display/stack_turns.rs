//! Display of several stacks that run at the same time: one after the other has the screen.
//!
//! The events of the others wait until the stack that has the screen has ended, so each stack is shown as if it ran alone. A stack that asks
//! a question gets the screen at once. A line says which others are at work.

use std::io;
use std::time::Duration;

use engine::events::{Activity, ActivityKind, ActivityStage, Event};

use super::queue::MessageFilter;
use super::{EventSubject, FilePosition, Renderer, Secrets, Stamp, StopNotice};

/// Creates the renderer of a stack. All write to the same terminal.
pub(crate) type NewRenderer = Box<dyn Fn() -> Box<dyn Renderer> + Send>;

/// Renderer of several stacks, each of which has a renderer of its own.
pub(crate) struct StackTurns {
    new_renderer: NewRenderer,
    /// Renderer of events of no stack while none has the screen.
    general: Box<dyn Renderer>,
    /// Stacks in the order of their first events.
    stacks: Vec<ShownStack>,
    /// Index of the stack that has the screen.
    current: Option<usize>,
    /// Time of the last event.
    now: Stamp,
}

struct ShownStack {
    name: String,
    renderer: Box<dyn Renderer>,
    waiting: Vec<WaitingEvent>,
    has_ended: bool,
    /// True once the end is on the screen.
    is_done: bool,
}

struct WaitingEvent {
    stamp: Stamp,
    place: Option<FilePosition>,
    event: Event,
}

impl StackTurns {
    /// Creates the renderer. `began` is the time of its creation.
    pub(crate) fn new(new_renderer: NewRenderer, began: Stamp) -> Self {
        let general = new_renderer();
        Self { new_renderer, general, stacks: Vec::new(), current: None, now: began }
    }

    /// Returns the renderer that has the screen.
    fn shown(&mut self) -> &mut dyn Renderer {
        match self.current {
            Some(index) => &mut *self.stacks[index].renderer,
            None => &mut *self.general,
        }
    }

    fn find(&mut self, name: &str) -> usize {
        if let Some(index) = self.stacks.iter().position(|stack| stack.name == name) {
            return index;
        }
        let (renderer, name) = ((self.new_renderer)(), name.to_owned());
        self.stacks.push(ShownStack { name, renderer, waiting: Vec::new(), has_ended: false, is_done: false });
        self.stacks.len() - 1
    }

    /// Gives the screen to a stack, and renders its events that have waited.
    fn give_turn(&mut self, index: usize) -> io::Result<()> {
        if self.current == Some(index) {
            return Ok(());
        }
        // What has ended is on the screen already.
        if self.current.is_none_or(|current| !self.stacks[current].is_done) {
            self.shown().pause()?;
            for other in 0..self.stacks.len() {
                self.tell_of(other, ActivityStage::Ended)?;
            }
        }
        self.current = Some(index);
        let ShownStack { name, renderer, waiting, .. } = &mut self.stacks[index];
        for WaitingEvent { stamp, place, event } in waiting.drain(..) {
            renderer.event(stamp, EventSubject { stack: name, place: place.as_ref() }, &event)?;
        }
        for other in 0..self.stacks.len() {
            self.tell_of(other, ActivityStage::Started)?;
        }
        Ok(())
    }

    /// Tells the stack that has the screen of the begin or the end of another one that is at work.
    fn tell_of(&mut self, other: usize, stage: ActivityStage) -> io::Result<()> {
        let Some(current) = self.current.filter(|current| *current != other) else { return Ok(()) };
        let is_told = !self.stacks[other].has_ended && !self.stacks[other].is_done;
        if !is_told {
            return Ok(());
        }
        let subject = self.stacks[other].name.clone();
        let event = Event::Activity(Activity { kind: ActivityKind::RunStack, subject, stage });
        let ShownStack { name, renderer, .. } = &mut self.stacks[current];
        renderer.event(self.now, EventSubject { stack: name, place: None }, &event)
    }

    /// Shows the end of the stack that has the screen, and gives the screen to the next one, until one is at work.
    fn go_on(&mut self) -> io::Result<()> {
        while let Some(index) = self.current.filter(|index| self.stacks[*index].has_ended) {
            self.stacks[index].renderer.pause()?;
            self.stacks[index].is_done = true;
            match self.stacks.iter().position(|stack| !stack.is_done) {
                Some(next) => self.give_turn(next)?,
                None => self.current = None,
            }
        }
        Ok(())
    }
}

impl Renderer for StackTurns {
    fn message_filter(&self) -> MessageFilter {
        self.general.message_filter()
    }

    fn secrets(&self) -> Secrets {
        self.general.secrets()
    }

    fn event(&mut self, stamp: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.now = stamp;
        if subject.stack.is_empty() {
            return self.shown().event(stamp, subject, event);
        }
        let known = self.stacks.len();
        let index = self.find(subject.stack);
        if self.current.is_none() {
            self.general.pause()?;
            self.current = Some(index);
        }
        if self.current == Some(index) {
            return self.stacks[index].renderer.event(stamp, subject, event);
        }
        if index == known {
            self.tell_of(index, ActivityStage::Started)?;
        }
        if !matches!(event, Event::Message(message) if message.ephemeral) {
            let waiting = WaitingEvent { stamp, place: subject.place.cloned(), event: event.clone() };
            self.stacks[index].waiting.push(waiting);
        }
        Ok(())
    }

    fn stop(&mut self, stamp: Stamp, notice: StopNotice) -> io::Result<()> {
        self.shown().stop(stamp, notice)
    }

    fn log(&mut self, line: &str) -> io::Result<()> {
        self.shown().log(line)
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.shown().tick(at)
    }

    fn pause(&mut self) -> io::Result<()> {
        self.shown().pause()
    }

    fn take_turn(&mut self, stack: &str) -> io::Result<()> {
        let index = self.find(stack);
        self.give_turn(index)
    }

    fn end_stack(&mut self, stack: &str) -> io::Result<()> {
        let index = self.find(stack);
        self.tell_of(index, ActivityStage::Ended)?;
        self.stacks[index].has_ended = true;
        if self.current.is_none() {
            self.current = Some(index);
        }
        self.go_on()
    }

    fn finish(&mut self, at: Duration) -> io::Result<()> {
        for index in 0..self.stacks.len() {
            if !self.stacks[index].is_done {
                self.give_turn(index)?;
                self.stacks[index].is_done = true;
                self.stacks[index].renderer.pause()?;
            }
        }
        self.current = None;
        self.general.finish(at)
    }
}

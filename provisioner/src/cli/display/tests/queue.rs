//! Tests of the events that wait for the thread of the display.

use super::*;

/// Renderer that renders the second event, and those after it, once the test allows it.
struct HeldRenderer {
    filter: MessageFilter,
    held: mpsc::Receiver<()>,
    shown: Arc<Mutex<Vec<Event>>>,
}

impl Renderer for HeldRenderer {
    fn message_filter(&self) -> MessageFilter {
        self.filter
    }

    fn secrets(&self) -> Secrets {
        Secrets::Masked
    }

    fn log(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, _: Stamp, _: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.shown.lock().unwrap().push(event.clone());
        // The error of a sender that was dropped means that nothing is held any more.
        self.held.recv().unwrap_or_default();
        Ok(())
    }

    fn stop(&mut self, _: Stamp, notice: StopNotice) -> io::Result<()> {
        self.shown.lock().unwrap().push(Event::Message(notice.message(None)));
        Ok(())
    }

    fn tick(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}

/// Emits events while the display renders the first one, and returns all that were rendered.
fn shown(filter: MessageFilter, emit: impl FnOnce(&dyn EventSink)) -> Vec<Event> {
    let (release, held) = mpsc::channel();
    let shown = Arc::default();
    let renderer = HeldRenderer { filter, held, shown: Arc::clone(&shown) };
    let display = Display::start(Box::new(renderer), Arc::default()).unwrap();
    emit(&*display.sink("dev", None));
    drop(release);
    display.finish().unwrap();
    let events = shown.lock().unwrap();
    events.clone()
}

fn log(severity: Severity, text: impl Into<bridge::message_text::MessageText>) -> Event {
    Event::Message(Message { plugin: Some("p".to_owned()), logged: true, ..Message::new(severity, text) })
}

#[test]
fn repeated_messages_are_shown_once_for_each_resource() {
    let all = MessageFilter { verbose: true, ephemeral: true };
    let interrupted = |name: &str, repeated| {
        let message = Message::new(Severity::Warning, "an earlier run was interrupted while creating it");
        Event::Message(Message { urn: Some(urn("a:b:C", name)), repeated, ..message })
    };
    let events = shown(all, |sink| {
        for (name, repeated) in [("a", true), ("a", true), ("b", true), ("a", true), ("c", false), ("c", false)] {
            sink.emit(interrupted(name, repeated));
        }
    });
    let names = events.iter().map(|event| match event {
        Event::Message(message) => message.urn.as_ref().unwrap().name(),
        other => panic!("{other:?}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c", "c"]);
}

/// Shows: events.md#long-and-many-messages "Only `message` events for texts that a plugin logged or printed are
///   dropped"
/// Shows: events.md#long-and-many-messages "`sc` drops further lines, and a warning tells how many"
#[test]
fn only_lines_of_plugins_are_dropped_if_too_many_events_wait() {
    const COUNT: usize = 300;
    let all = MessageFilter { verbose: true, ephemeral: true };
    let urn = urn("a:b:C", "c");
    let events = shown(all, |sink| {
        for number in 0..COUNT {
            sink.emit(log(Severity::Debug, "x".repeat(200_000)));
            sink.emit(Event::StepStarted(Arc::new(step(StepOp::Create, &urn, None, None))));
            sink.emit(Event::Message(Message::new(Severity::Info, number.to_string())));
        }
        sink.emit(log(Severity::Error, "why"));
    });
    let steps = events.iter().filter(|event| matches!(event, Event::StepStarted(_))).count();
    assert_eq!(steps, COUNT);
    let messages = events.iter().filter_map(|event| match event {
        Event::Message(message) => Some(message),
        _ => None,
    });
    let (logs, others): (Vec<_>, Vec<_>) = messages.partition(|message| message.logged);
    let texts: Vec<&str> = others.iter().map(|message| message.text.as_str()).collect();
    let numbers: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
    let dropped = COUNT + 1 - logs.len();
    let notice = format!("plugins send messages faster than they can be shown; {dropped} of them were dropped");
    let is_notice = |text: &&str| **text == notice;
    assert!(dropped > COUNT / 2 && logs.len() > 10, "{dropped} of {COUNT} lines were dropped");
    assert_eq!(texts.iter().filter(|text| is_notice(text)).count(), 1, "{texts:?}");
    assert!(texts.iter().filter(|text| !is_notice(text)).eq(numbers.iter()), "{texts:?}");
    assert_eq!(logs.last().unwrap().text, "why");
}

#[test]
fn messages_that_are_not_shown_do_not_wait() {
    for (verbose, ephemeral) in [(false, false), (false, true), (true, false), (true, true)] {
        let events = shown(MessageFilter { verbose, ephemeral }, |sink| {
            for severity in [Severity::Debug, Severity::Info] {
                for ephemeral in [false, true] {
                    sink.emit(Event::Message(Message { ephemeral, ..Message::new(severity, "x") }));
                }
            }
        });
        assert_eq!(events.len(), (1 + usize::from(verbose)) * (1 + usize::from(ephemeral)));
    }
}

#[test]
fn messages_of_the_displays_are_chosen_by_their_options() {
    let verbose = DisplayOptions { verbose: true, ..options(false) };
    let out = Shared::default;
    let filters = [
        JsonDisplay::new(out(), Secrets::Masked, true, EventNumbers::default()).message_filter(),
        PlainDisplay::new(out(), out(), None, options(false)).message_filter(),
        PlainDisplay::new(out(), out(), None, verbose).message_filter(),
        LiveDisplay::new(out(), out(), || None, options(false)).message_filter(),
        LiveDisplay::new(out(), out(), || None, verbose).message_filter(),
    ];
    let chosen = filters.map(|filter| (filter.verbose, filter.ephemeral));
    assert_eq!(chosen, [(true, true), (false, false), (true, false), (false, true), (true, true)]);
}

/// Shows: engine.md#stop-and-abort "`sc` shows at once that it is stopping, the steps that still run, and what the next
///   Ctrl-C does."
#[test]
fn notice_of_a_stop_is_shown_before_the_events_that_wait() {
    let (release, held) = mpsc::channel();
    let shown: Arc<Mutex<Vec<Event>>> = Arc::default();
    let filter = MessageFilter { verbose: true, ephemeral: true };
    let renderer = HeldRenderer { filter, held, shown: Arc::clone(&shown) };
    let display = Display::start(Box::new(renderer), Arc::default()).unwrap();
    let sink = display.sink("dev", None);
    for text in ["first", "second", "third"] {
        sink.emit(log(Severity::Info, text));
    }
    display.stop_notifier()(StopNotice::Stopping);
    drop(release);
    display.finish().unwrap();
    let shown = shown.lock().unwrap();
    let texts: Vec<&str> = shown
        .iter()
        .map(|event| if let Event::Message(message) = event { message.text.as_str() } else { "" })
        .collect();
    let place = texts.iter().position(|text| text.starts_with("stopping")).unwrap();
    // The display may have begun to render the first event.
    assert!(place < 2, "{texts:?}");
}

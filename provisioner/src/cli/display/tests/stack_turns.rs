//! Several stacks that run at the same time.

use engine::events::{Activity, ActivityKind, ActivityStage};

use super::*;

/// Renderer that writes what it is asked for into a list that all share.
struct Listed(Arc<Mutex<Vec<String>>>);

impl Listed {
    fn add(&self, text: String) -> io::Result<()> {
        self.0.lock().unwrap().push(text);
        Ok(())
    }
}

impl Renderer for Listed {
    fn message_filter(&self) -> MessageFilter {
        MessageFilter { verbose: false, ephemeral: true }
    }

    fn secrets(&self) -> Secrets {
        Secrets::Masked
    }

    fn event(&mut self, _: Stamp, subject: EventSubject<'_>, event: &Event) -> io::Result<()> {
        self.add(match event {
            Event::Message(message) => format!("{}:{}", subject.stack, message.text),
            Event::Activity(Activity { kind: ActivityKind::RunStack, subject: other, stage }) => {
                let sign = if *stage == ActivityStage::Started { '+' } else { '-' };
                format!("{}{sign}{other}", subject.stack)
            }
            _ => "other".to_owned(),
        })
    }

    fn stop(&mut self, _: Stamp, _: StopNotice) -> io::Result<()> {
        self.add("stop".to_owned())
    }

    fn log(&mut self, line: &str) -> io::Result<()> {
        self.add(line.to_owned())
    }

    fn tick(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn pause(&mut self) -> io::Result<()> {
        self.add("|".to_owned())
    }

    fn finish(&mut self, _: Duration) -> io::Result<()> {
        self.add("end".to_owned())
    }
}

/// Plays commands: `a1` an event of the stack `a`, `a?` a question of it, `a.` its end, `1` an event of no stack.
fn play(commands: &str) -> String {
    let list = Arc::<Mutex<Vec<String>>>::default();
    let shared = Arc::clone(&list);
    let stamp = Stamp { at: Duration::ZERO, time: Timestamp::UNIX_EPOCH };
    let mut turns = StackTurns::new(Box::new(move || Box::new(Listed(Arc::clone(&shared)))), stamp);
    for command in commands.split_whitespace() {
        let (stack, what) = command.split_at(command.len() - 1);
        match what {
            "?" => turns.take_turn(stack).unwrap(),
            "." => turns.end_stack(stack).unwrap(),
            text => {
                let event = Event::Message(Message::new(Severity::Info, text.to_owned()));
                turns.event(stamp, EventSubject { stack, place: None }, &event).unwrap();
            }
        }
    }
    turns.finish(Duration::ZERO).unwrap();
    std::mem::take(&mut *list.lock().unwrap()).join(" ")
}

/// Shows: server-yaml.md#several-stacks "one stack after the other is shown as if it ran alone"
/// Shows: server-yaml.md#several-stacks "One that asks a question is shown at once"
#[test]
fn stacks_are_shown_one_after_the_other() {
    for (commands, expected) in [
        ("1 a1 a2 a. 2", ":1 | a:1 a:2 | :2 end"),
        // The events of another stack wait.
        ("a1 b1 a2 a. b2 b.", "| a:1 a+b a:2 | b:1 b:2 | end"),
        ("a1 b1 b. a2 a.", "| a:1 a+b a-b a:2 | b:1 | end"),
        ("a1 b1 c1 b. c. a.", "| a:1 a+b a+c a-b a-c | b:1 | c:1 | end"),
        // A question does not.
        ("a1 b1 b? a2 b2 b. a3 a.", "| a:1 a+b | a-b b:1 b+a b:2 | a:2 a:3 | end"),
        // A stack without events.
        ("a. b1 b.", "| | b:1 | end"),
        // The end of the command.
        ("a1 b1", "| a:1 a+b | b:1 | end"),
    ] {
        assert_eq!(play(commands), expected, "{commands}");
    }
}

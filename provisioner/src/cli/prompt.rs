//! Questions to the user.

use std::io::{self, BufRead, Write};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::exit::CliError;
use super::ui::Ui;

/// How often an answer that is neither yes nor no is asked for again.
const TRIES: usize = 3;

/// What the user answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// Asks whether to go on; `yes` is the answer given on the command line. The display must be paused.
///
/// # Errors
/// Wrong usage, where there is no terminal to ask on. A stop while the question stands counts as no.
pub(crate) async fn confirm(ui: &Ui, stop: &CancellationToken, question: &str, yes: bool) -> anyhow::Result<Answer> {
    if yes {
        return Ok(Answer::Yes);
    }
    if !ui.can_ask() {
        let message = format!("there is no terminal to ask on: {question}");
        return Err(CliError::usage(message, "give --yes to go on without being asked").into());
    }
    let question = question.to_owned();
    let (tx, rx) = oneshot::channel();
    // A read from a terminal cannot be called off, so it has a thread that the process leaves behind when it ends.
    std::thread::Builder::new().name("question".to_owned()).spawn(move || {
        let answer = ask(&question, &mut io::stdin().lock(), &mut io::stderr().lock());
        // Whoever asked may have been stopped.
        tx.send(answer).unwrap_or_default();
    })?;
    tokio::select! {
        answer = rx => Ok(answer??),
        () = stop.cancelled() => Ok(Answer::No),
    }
}

fn ask(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<Answer> {
    for _ in 0..TRIES {
        write!(output, "{question} [y/N] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            break;
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Yes),
            "n" | "no" | "" => return Ok(Answer::No),
            _ => writeln!(output, "Please answer y or n.")?,
        }
    }
    Ok(Answer::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: Answer) -> String {
        let mut printed = Vec::new();
        assert_eq!(ask("Go on?", &mut typed.as_bytes(), &mut printed).unwrap(), expected, "{typed:?}");
        String::from_utf8(printed).unwrap()
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert_eq!(check("y\n", Answer::Yes), "Go on? [y/N] ");
        check("YES\n", Answer::Yes);
        check("\n", Answer::No);
        check("no\n", Answer::No);
        check("", Answer::No);
    }

    #[test]
    fn anything_else_is_asked_again_and_then_taken_for_a_no() {
        assert_eq!(check("perhaps\ny\n", Answer::Yes), "Go on? [y/N] Please answer y or n.\nGo on? [y/N] ");
        check("a\nb\nc\ny\n", Answer::No);
    }
}

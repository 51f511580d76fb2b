//! Questions to the user.

use std::io::{self, BufRead, Write};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::exit::CliError;
use super::ui::Ui;

/// Number of times that a question is asked if the reply is neither yes nor no.
const TRIES: usize = 3;

/// Reply of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// Asks for a confirmation; `yes` is the reply given on the command line. The display must be paused. A stop during the
/// question counts as no.
///
/// # Errors
/// Wrong usage, if there is no terminal to ask on.
pub(crate) async fn confirm(ui: &Ui, stop: &CancellationToken, question: &str, yes: bool) -> anyhow::Result<Answer> {
    if yes {
        return Ok(Answer::Yes);
    }
    if !ui.can_ask() {
        let message = format!("there is no terminal to ask on: {question}");
        return Err(CliError::usage(message, "give --yes to go on without being asked").into());
    }
    let question = question.to_owned();
    let answer = on_terminal(stop, move |input, output| ask(&question, input, output)).await?;
    Ok(answer.unwrap_or(Answer::No))
}

/// Asks for a line of text, and returns it without surrounding space. The display must be paused, and there must be a
/// terminal. Returns `None` after a stop, or at the end of the input.
///
/// # Errors
/// Errors of the terminal.
pub(crate) async fn line(stop: &CancellationToken, question: &str) -> anyhow::Result<Option<String>> {
    let question = question.to_owned();
    let answer = on_terminal(stop, move |input, output| {
        write!(output, "{question} ")?;
        output.flush()?;
        let mut line = String::new();
        Ok((input.read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
    });
    Ok(answer.await?.flatten())
}

/// Asks a question on a thread of its own, which the process leaves behind at its end, as a read from a terminal cannot
/// be cancelled. Returns `None` after a stop during the question.
async fn on_terminal<T: Send + 'static>(
    stop: &CancellationToken,
    put: impl FnOnce(&mut dyn BufRead, &mut dyn Write) -> io::Result<T> + Send + 'static,
) -> anyhow::Result<Option<T>> {
    let (tx, rx) = oneshot::channel();
    std::thread::Builder::new().name("question".to_owned()).spawn(move || {
        let answer = put(&mut io::stdin().lock(), &mut io::stderr().lock());
        // The receiver may have been dropped after a stop; the error is ignored.
        tx.send(answer).map_err(drop).unwrap_or_default();
    })?;
    tokio::select! {
        answer = rx => Ok(Some(answer??)),
        () = stop.cancelled() => Ok(None),
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

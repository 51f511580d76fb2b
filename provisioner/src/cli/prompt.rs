//! Questions to the user.

use std::io::{self, BufRead, Write};

use bridge::message_text::MessageText;
use config::diagnostics::escape_controls;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::display::Line;
use super::exit::{CliError, Exit};
use super::output::Output;
use super::signals::{QuestionGuard, SignalReceiver, end_question_line};

/// Number of times that a question is asked if the answer is neither yes nor no.
const TRIES: usize = 3;
/// Number of lines of a pipe that are read for a question, as in the Go program.
const PIPED_TRIES: usize = 4;

/// Reply of the user to a question for confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Yes,
    No,
}

/// Asks for a confirmation; `yes` is true if `--yes` was given. The display must be paused. A stop during the
/// question counts as no.
///
/// # Errors
/// Wrong usage, if standard input or standard error is not a terminal.
pub(crate) async fn confirm(
    output: &Output,
    signals: &SignalReceiver,
    stop: &CancellationToken,
    question: impl Into<MessageText>,
    yes: bool,
) -> anyhow::Result<Confirmation> {
    if yes {
        return Ok(Confirmation::Yes);
    }
    let question = question.into();
    if !output.can_ask() {
        let message = MessageText::new(format_args!("no terminal to ask for confirmation: {question}"));
        return Err(CliError::usage(message, "give --yes to proceed without confirmation").into());
    }
    let question = shown(output, &question);
    let asking = signals.begin_confirmation();
    let reply = ask_in_thread(asking, stop, move |input, output| ask(&question, input, output)).await?;
    Ok(reply.unwrap_or(Confirmation::No))
}

/// Asks for a confirmation like [`confirm`], also where the replies are piped into the command: one line for each
/// question.
///
/// # Errors
/// Wrong usage, if there is no reply, or none that is yes or no.
pub(crate) async fn confirm_or_read(
    output: &Output,
    signals: &SignalReceiver,
    stop: &CancellationToken,
    question: impl Into<MessageText>,
    yes: bool,
) -> anyhow::Result<Confirmation> {
    if yes || !output.reads_replies() {
        return confirm(output, signals, stop, question, yes).await;
    }
    let question = question.into();
    let reply = read_reply(&shown(output, &question), &mut io::stdin().lock(), &mut io::stderr())?;
    reply.ok_or_else(|| {
        let message = MessageText::new(format_args!("no reply of yes or no to the question: {question}"));
        CliError::usage(message, "give --yes to proceed without confirmation, or pipe `y` into the command").into()
    })
}

/// Asks for a secret like [`ask_secret`], also where the replies are piped into the command.
///
/// # Errors
/// Wrong usage, if there is neither a terminal nor a line.
pub(crate) async fn ask_or_read_secret(
    output: &Output,
    signals: &SignalReceiver,
    stop: &CancellationToken,
    question: impl Into<MessageText>,
) -> anyhow::Result<Option<Zeroizing<String>>> {
    let question = question.into();
    if output.can_ask() {
        return Ok(ask_secret(output, signals, stop, question).await?.map(Zeroizing::new));
    }
    let mut line = Zeroizing::new(String::new());
    if !output.reads_replies() || io::stdin().lock().read_line(&mut line)? == 0 {
        let message = MessageText::new(format_args!("no terminal to ask for a secret: {question}"));
        return Err(CliError::usage(message, "pipe it into the command: a line for each question").into());
    }
    Ok(Some(Zeroizing::new(without_line_end(&line).to_owned())))
}

/// Reads replies until one is yes or no. `None` at the end of the input, and after too many other replies.
fn read_reply(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<Option<Confirmation>> {
    for _ in 0..PIPED_TRIES {
        writeln!(output, "{question} [y/N]")?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(Confirmation::Yes)),
            "n" | "no" | "" => return Ok(Some(Confirmation::No)),
            _ => writeln!(output, "Please answer y or n.")?,
        }
    }
    Ok(None)
}

/// Reports that the user declined a question, and returns the outcome: a failure, so that a script does not continue.
pub(crate) fn decline(output: &Output) -> Exit {
    output.print_messages(&[Line::plain("nothing was changed")]);
    Exit::Failed
}

/// Asks for a line of text, and returns it without surrounding space. The display must be paused, and there must be a
/// terminal. Returns `None` after a stop, or at the end of the input.
///
/// # Errors
/// Errors of the terminal.
pub(crate) async fn ask_line(
    output: &Output,
    signals: &SignalReceiver,
    stop: &CancellationToken,
    question: impl Into<MessageText>,
) -> anyhow::Result<Option<String>> {
    let question = shown(output, &question.into());
    let reply = ask_in_thread(signals.begin_question(), stop, move |input, output| {
        write!(output, "{question} ")?;
        output.flush()?;
        let mut line = String::new();
        Ok((input.read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
    });
    Ok(reply.await?.flatten())
}

/// Asks for a secret, which the terminal does not show, and returns it without the end of its line. There must be a terminal.
/// Returns `None` after a stop, or at the end of the input.
///
/// # Errors
/// Errors of the terminal.
pub(crate) async fn ask_secret(
    output: &Output,
    signals: &SignalReceiver,
    stop: &CancellationToken,
    question: impl Into<MessageText>,
) -> anyhow::Result<Option<String>> {
    let question = shown(output, &question.into());
    let _hidden = signals.echo.hide()?;
    let reply = ask_in_thread(signals.begin_question(), stop, move |input, output| {
        write!(output, "{question} ")?;
        output.flush()?;
        let mut line = String::new();
        Ok((input.read_line(&mut line)? > 0).then(|| without_line_end(&line).to_owned()))
    });
    Ok(reply.await?.flatten())
}

/// Returns a question as it is shown: secrets are masked, and characters that a terminal obeys are escaped.
fn shown(output: &Output, question: &MessageText) -> String {
    escape_controls(&output.masker().mask_message(question)).into_owned()
}

pub(crate) fn without_line_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Asks a question on a separate thread, which is not joined, as a read from a terminal cannot be cancelled. Returns
/// `None` after a stop during the question.
async fn ask_in_thread<T: Send + 'static>(
    _asking: QuestionGuard,
    stop: &CancellationToken,
    ask: impl FnOnce(&mut dyn BufRead, &mut dyn Write) -> io::Result<T> + Send + 'static,
) -> anyhow::Result<Option<T>> {
    let (tx, rx) = oneshot::channel();
    std::thread::Builder::new().name("question".to_owned()).spawn(move || {
        // Standard error is not locked: the display prints its messages while the thread waits for a reply.
        let reply = ask(&mut io::stdin().lock(), &mut io::stderr());
        // The receiver may have been dropped after a stop; the error is ignored.
        tx.send(reply).map_err(drop).unwrap_or_default();
    })?;
    tokio::select! {
        reply = rx => Ok(Some(reply??)),
        () = stop.cancelled() => {
            end_question_line()?;
            Ok(None)
        }
    }
}

fn ask(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<Confirmation> {
    for _ in 0..TRIES {
        write!(output, "{question} [y/N] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            break;
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Confirmation::Yes),
            "n" | "no" | "" => return Ok(Confirmation::No),
            _ => writeln!(output, "Please answer y or n.")?,
        }
    }
    Ok(Confirmation::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: Confirmation) -> String {
        let mut printed = Vec::new();
        assert_eq!(ask("Go on?", &mut typed.as_bytes(), &mut printed).unwrap(), expected, "{typed:?}");
        String::from_utf8(printed).unwrap()
    }

    #[test]
    fn only_y_and_yes_confirm() {
        assert_eq!(check("y\n", Confirmation::Yes), "Go on? [y/N] ");
        check("YES\n", Confirmation::Yes);
        check("\n", Confirmation::No);
        check("no\n", Confirmation::No);
        check("", Confirmation::No);
    }

    #[test]
    fn each_line_of_a_pipe_is_a_reply() {
        let mut input = &b"maybe\nY\nn\n\na\nb\nc\nd\ny\n"[..];
        let mut read = || read_reply("Go on?", &mut input, &mut Vec::new()).unwrap();
        assert_eq!((read(), read(), read()), (Some(Confirmation::Yes), Some(Confirmation::No), Some(Confirmation::No)));
        assert_eq!((read(), read(), read()), (None, Some(Confirmation::Yes), None));
    }

    #[test]
    fn invalid_answer_is_asked_again_and_then_counts_as_no() {
        assert_eq!(check("perhaps\ny\n", Confirmation::Yes), "Go on? [y/N] Please answer y or n.\nGo on? [y/N] ");
        check("a\nb\nc\ny\n", Confirmation::No);
    }
}

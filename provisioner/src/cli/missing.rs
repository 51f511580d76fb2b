//! Questions whether resources that a refresh did not find leave the state.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::message_text::MessageText;
use provisioner::operation::{Approval, MissingQuestion};
use tokio::sync::{mpsc, oneshot};

use super::output::Output;
use super::session::Session;

/// Asks the session of a command.
#[derive(Debug)]
struct AskedSession(mpsc::Sender<Question>);

/// Question about these missing resources.
#[derive(Debug)]
struct Question {
    missing: MessageText,
    question: MessageText,
    reply: oneshot::Sender<Approval>,
}

#[async_trait]
impl MissingQuestion for AskedSession {
    async fn ask(&self, missing: &MessageText, question: &MessageText) -> Approval {
        let (reply, received) = oneshot::channel();
        let question = Question { missing: missing.clone(), question: question.clone(), reply };
        match self.0.send(question).await {
            Ok(()) => received.await.unwrap_or(Approval::Declined),
            Err(_) => Approval::Declined,
        }
    }
}

/// Questions of the operations of a command, which its session asks one after the other.
pub(crate) struct MissingQuestions(mpsc::Receiver<Question>);

impl MissingQuestions {
    /// Returns the question for operations, and the questions that arrive. There is no question if the user cannot be asked:
    /// without a terminal, and in a pipeline. `--yes` does not answer it.
    pub(crate) fn new(output: &Output) -> (Option<Arc<dyn MissingQuestion>>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        let question = output.is_interactive().then(|| Arc::new(AskedSession(sender)) as _);
        (question, Self(receiver))
    }

    /// Asks the questions that arrive. Does not return.
    pub(crate) async fn ask(mut self, output: &Output, session: &Session<'_>) -> std::convert::Infallible {
        while let Some(Question { missing, question, reply }) = self.0.recv().await {
            session.pause();
            // A terminal shows the messages of a phase at its end.
            output.warn(missing);
            // The operation may have been stopped; the error is ignored.
            reply.send(session.approve(&question).await).unwrap_or_default();
        }
        std::future::pending().await
    }
}

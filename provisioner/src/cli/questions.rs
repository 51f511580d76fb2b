//! Questions that operations ask the user while they run: whether resources that a refresh did not find leave the state, whether a new
//! stack begins, and what became of the resources of pending creates.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::install::SignerApproval;
use bridge::message_text::MessageText;
use provisioner::operation::{Approval, PendingQuestion, WarningQuestion};
use tokio::sync::{mpsc, oneshot};

use super::output::Output;
use super::session::Session;

/// Asks the session of a command.
#[derive(Debug)]
pub(crate) struct AskedSession {
    questions: mpsc::Sender<(String, Question)>,
    /// Stack that asks.
    stack: String,
    is_interactive: bool,
}

/// Question of an operation.
#[derive(Debug)]
enum Question {
    /// Question after a warning.
    Warning { warning: MessageText, question: MessageText, reply: oneshot::Sender<Approval> },
    /// Question what became of the resource of a pending create.
    Pending { question: MessageText, reply: oneshot::Sender<Option<String>> },
}

impl AskedSession {
    /// Returns the session as a stack asks it.
    pub(crate) fn of_stack(&self, stack: &str) -> Arc<Self> {
        let (questions, stack) = (self.questions.clone(), stack.to_owned());
        Arc::new(Self { questions, stack, is_interactive: self.is_interactive })
    }

    /// Returns the question after a warning, which `--yes` does not answer; `None` without a terminal, and in a pipeline.
    pub(crate) fn if_interactive(self: &Arc<Self>) -> Option<Arc<dyn WarningQuestion>> {
        self.is_interactive.then(|| Arc::clone(self) as _)
    }

    /// Returns the question about another signer; `None` without a terminal, and in a pipeline.
    pub(crate) fn signer_approval(self: &Arc<Self>) -> Option<Arc<dyn SignerApproval>> {
        self.is_interactive.then(|| Arc::clone(self) as _)
    }
}

#[async_trait]
impl SignerApproval for AskedSession {
    async fn accept(&self, change: &str) -> bool {
        let (warning, question) =
            (MessageText::from(change.to_owned()), MessageText::from("Record it with this signer?"));
        WarningQuestion::ask(self, &warning, &question).await == Approval::Granted
    }
}

#[async_trait]
impl WarningQuestion for AskedSession {
    async fn ask(&self, warning: &MessageText, question: &MessageText) -> Approval {
        let (reply, received) = oneshot::channel();
        let question = Question::Warning { warning: warning.clone(), question: question.clone(), reply };
        match self.questions.send((self.stack.clone(), question)).await {
            Ok(()) => received.await.unwrap_or(Approval::Declined),
            Err(_) => Approval::Declined,
        }
    }
}

#[async_trait]
impl PendingQuestion for AskedSession {
    async fn ask(&self, question: &MessageText) -> Option<String> {
        let (reply, received) = oneshot::channel();
        let question = Question::Pending { question: question.clone(), reply };
        self.questions.send((self.stack.clone(), question)).await.ok()?;
        received.await.ok().flatten()
    }
}

/// Questions of the operations of a command, which its session asks one after the other.
pub(crate) struct Questions(mpsc::Receiver<(String, Question)>);

impl Questions {
    /// Returns what operations ask, and the questions that arrive.
    pub(crate) fn new(output: &Output) -> (Arc<AskedSession>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        let asked = AskedSession { questions: sender, stack: String::new(), is_interactive: output.is_interactive() };
        (Arc::new(asked), Self(receiver))
    }

    /// Asks the questions that arrive. Does not return.
    pub(crate) async fn ask(mut self, output: &Output, session: &Session<'_>) -> std::convert::Infallible {
        while let Some((stack, question)) = self.0.recv().await {
            let session = session.of_stack(&stack);
            session.pause();
            // The operation may have been stopped, so errors of the replies are ignored.
            match question {
                Question::Warning { warning, question, reply } => {
                    // A terminal shows the messages of a phase at its end.
                    output.warn(warning);
                    reply.send(session.approve(&question).await).unwrap_or_default();
                }
                Question::Pending { question, reply } => {
                    reply.send(session.ask_line(&question).await).unwrap_or_default();
                }
            }
        }
        std::future::pending().await
    }
}

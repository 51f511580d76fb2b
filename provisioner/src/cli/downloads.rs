//! Questions whether packages of core types may be downloaded, and whether plugins that no stack declares may be used.

use std::sync::Arc;

use async_trait::async_trait;
use provisioner::operation::{Approval, DownloadApproval, PackageDownload, UndeclaredDownload};
use tokio::sync::{mpsc, oneshot};

use super::display::{Line, bytes as bytes_text};
use super::output::Output;
use super::session::Session;

/// Question to the user.
struct DownloadQuestion {
    /// Lines that precede it.
    lines: Vec<Line>,
    question: &'static str,
    reply: oneshot::Sender<Approval>,
}

/// Asks the session of a command.
struct AskedApproval(mpsc::Sender<DownloadQuestion>);

#[async_trait]
impl DownloadApproval for AskedApproval {
    async fn approve(&self, downloads: &[PackageDownload]) -> Approval {
        let lines = downloads.iter().map(|PackageDownload { package, bytes }| {
            let (name, version, repository) = (package.name, package.version, package.repository());
            Line::plain(format!("  {name} {version} ({}), a release of {repository}", bytes_text(*bytes)))
        });
        let head = Line::plain("The core types need packages that are not on this machine:");
        self.ask([head].into_iter().chain(lines).collect(), "Download them?").await
    }

    async fn approve_undeclared(&self, download: &UndeclaredDownload) -> Approval {
        let UndeclaredDownload { needed_by, item } = download;
        let head = Line::plain("The run needs what no stack declares:");
        self.ask(vec![head, Line::plain(format!("  {needed_by} {item}"))], "Download and run it?").await
    }
}

impl AskedApproval {
    async fn ask(&self, lines: Vec<Line>, question: &'static str) -> Approval {
        let (reply, received) = oneshot::channel();
        match self.0.send(DownloadQuestion { lines, question, reply }).await {
            Ok(()) => received.await.unwrap_or(Approval::Declined),
            Err(_) => Approval::Declined,
        }
    }
}

/// Questions of the operations of a command, which its session asks one after the other.
pub(crate) struct DownloadQuestions(mpsc::Receiver<DownloadQuestion>);

impl DownloadQuestions {
    /// Returns the approval for operations, and the questions that it asks. There is no approval, and no question, if `agreed`
    /// is true, or if the user cannot be asked: without a terminal, and in a pipeline.
    pub(crate) fn new(output: &Output, agreed: bool) -> (Option<Arc<dyn DownloadApproval>>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        let approval = (!agreed && output.is_interactive()).then(|| Arc::new(AskedApproval(sender)) as _);
        (approval, Self(receiver))
    }

    /// Asks the questions that arrive. Does not return.
    pub(crate) async fn ask(mut self, output: &Output, session: &Session<'_>) -> std::convert::Infallible {
        while let Some(DownloadQuestion { lines, question, reply }) = self.0.recv().await {
            session.pause();
            output.print_messages(&lines);
            // The operation may have been stopped; the error is ignored.
            reply.send(session.approve(question).await).unwrap_or_default();
        }
        std::future::pending().await
    }
}

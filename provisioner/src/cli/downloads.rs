//! Questions whether packages of core types may be downloaded.

use std::sync::Arc;

use async_trait::async_trait;
use provisioner::operation::{Approval, DownloadApproval, PackageDownload};
use tokio::sync::{mpsc, oneshot};

use super::display::{Line, bytes as bytes_text};
use super::output::Output;
use super::session::Session;

/// Question whether these packages may be downloaded.
struct DownloadQuestion {
    downloads: Vec<PackageDownload>,
    reply: oneshot::Sender<Approval>,
}

/// Asks the session of a command.
struct AskedApproval(mpsc::Sender<DownloadQuestion>);

#[async_trait]
impl DownloadApproval for AskedApproval {
    async fn approve(&self, downloads: &[PackageDownload]) -> Approval {
        let (reply, received) = oneshot::channel();
        let question = DownloadQuestion { downloads: downloads.to_vec(), reply };
        match self.0.send(question).await {
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
        while let Some(DownloadQuestion { downloads, reply }) = self.0.recv().await {
            session.pause();
            let lines = downloads.iter().map(|PackageDownload { package, bytes }| {
                let (name, version, repository) = (package.name, package.version, package.repository());
                Line::plain(format!("  {name} {version} ({}), a release of {repository}", bytes_text(*bytes)))
            });
            let head = Line::plain("The core types need packages that are not on this machine:");
            output.print_messages(&[head].into_iter().chain(lines).collect::<Vec<_>>());
            // The operation may have been stopped; the error is ignored.
            reply.send(session.approve("Download them?").await).unwrap_or_default();
        }
        std::future::pending().await
    }
}

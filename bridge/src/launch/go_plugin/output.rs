//! Output of a go-plugin server: log lines on standard error, lines before the handshake line.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::hclog::LogReader;
use crate::process::{OutputSink, OutputStream};

/// Sink that forwards the output of a plugin, and the messages of its log with their level. Lines of standard output also
/// go to the reader of the handshake line until it is dropped.
pub(super) struct GoPluginOutput {
    sink: Arc<dyn OutputSink>,
    log: Mutex<LogReader>,
    handshake: mpsc::Sender<String>,
}

impl GoPluginOutput {
    /// Returns the sink, and the receiver of at most `limit` lines of standard output after the first one.
    pub(super) fn new(sink: Arc<dyn OutputSink>, limit: usize) -> (Self, mpsc::Receiver<String>) {
        let (handshake, lines) = mpsc::channel(limit);
        (Self { sink, log: Mutex::default(), handshake }, lines)
    }
}

impl OutputSink for GoPluginOutput {
    fn line(&self, stream: OutputStream, line: &str) {
        match stream {
            OutputStream::Stdout => {
                let sent = self.handshake.try_send(line.to_owned());
                if sent.is_err() {
                    self.sink.line(stream, line);
                }
            }
            OutputStream::Stderr => {
                let message = self.log.lock().unwrap_or_else(PoisonError::into_inner).read(line);
                match message {
                    Some((level, text)) => self.sink.log(level, &text),
                    None => self.sink.line(stream, line),
                }
            }
        }
    }
}

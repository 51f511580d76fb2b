//! Calls of the services that a go-plugin server has besides those of the plugin itself (docs/spec/plugin-hosts.md#A.7).

use std::sync::Arc;
use std::time::Duration;

use pulumi_proto::go_plugin::{self, StdioData, stdio_data::Channel};
use tonic::Code;

use super::super::{CallError, Connection, Procedure};
use crate::process::{OutputSink, OutputStream};

/// Limit on the reply to Shutdown: a stopped plugin never replies.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of a line of StreamStdio. The rest of a longer line begins a new one.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckResponse {
    /// 2 is NOT_SERVING.
    #[prost(int32, tag = "1")]
    status: i32,
}

struct HealthCheck;

impl Procedure for HealthCheck {
    const PATH: &'static str = "/grpc.health.v1.Health/Check";
    type Request = HealthCheckRequest;
    type Reply = HealthCheckResponse;
}

struct Shutdown;

impl Procedure for Shutdown {
    const PATH: &'static str = "/plugin.GRPCController/Shutdown";
    type Request = go_plugin::Empty;
    type Reply = go_plugin::Empty;
}

struct StreamStdio;

impl Procedure for StreamStdio {
    const PATH: &'static str = "/plugin.GRPCStdio/StreamStdio";
    type Request = ();
    type Reply = StdioData;
}

/// Checks the health of the service `plugin`. A plugin without the service of health checks is healthy.
///
/// # Errors
/// Returns the error of the call, or that of a plugin that does not serve.
pub(super) async fn check_health(connection: &Connection) -> Result<(), CallError> {
    let request = HealthCheckRequest { service: "plugin".to_owned() };
    match connection.call::<HealthCheck>(&request).await {
        Ok(HealthCheckResponse { status: 2 }) => {
            Err(CallError::Status(tonic::Status::unavailable("it reports that it is not serving")))
        }
        Ok(_) => Ok(()),
        Err(CallError::Status(status)) if status.code() == Code::Unimplemented => Ok(()),
        Err(error) => Err(error),
    }
}

/// Requests the end of the plugin. Returns true if the plugin ends: a server that stops at once may close the connection
/// instead of a reply.
pub(super) async fn shut_down(connection: &Connection) -> bool {
    let reply = tokio::time::timeout(SHUTDOWN_LIMIT, connection.call::<Shutdown>(&go_plugin::Empty {})).await;
    match reply {
        Ok(Ok(_) | Err(CallError::Lost { .. })) => true,
        Ok(Err(CallError::Status(status))) => matches!(status.code(), Code::Unavailable | Code::Cancelled),
        Ok(Err(CallError::NotSent(_))) | Err(_) => false,
    }
}

/// Reads the output that the plugin redirects to StreamStdio, and passes its lines to a sink, until the stream ends. A
/// plugin waits once 68 KiB of its output are not read. A plugin without the service has no such output.
pub(super) async fn drain_stdio(connection: Connection, sink: Arc<dyn OutputSink>) {
    let Ok(mut chunks) = connection.call_streaming::<StreamStdio>(&()).await else { return };
    let (mut stdout, mut stderr) = (LineBuffer::default(), LineBuffer::default());
    while let Ok(Some(chunk)) = chunks.next().await {
        match chunk.channel() {
            Channel::Stdout => stdout.push(&chunk.data, |line| sink.line(OutputStream::Stdout, line)),
            Channel::Stderr => stderr.push(&chunk.data, |line| sink.line(OutputStream::Stderr, line)),
            Channel::Invalid => {}
        }
    }
    stdout.flush(|line| sink.line(OutputStream::Stdout, line));
    stderr.flush(|line| sink.line(OutputStream::Stderr, line));
}

/// Bytes of a line whose end has not been received.
#[derive(Default)]
struct LineBuffer(Vec<u8>);

impl LineBuffer {
    fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(part);
            if part.ends_with(b"\n") || self.0.len() >= MAX_LINE_BYTES {
                self.flush(&mut on_line);
            }
        }
    }

    fn flush(&mut self, mut on_line: impl FnMut(&str)) {
        if self.0.is_empty() {
            return;
        }
        let line = String::from_utf8_lossy(&self.0);
        on_line(line.trim_end_matches(['\n', '\r']));
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_to_lines_of_limited_length() {
        let mut lines = Vec::new();
        let mut buffer = LineBuffer::default();
        buffer.push(b"a\nb", |line| lines.push(line.to_owned()));
        buffer.push(b"c\r\n", |line| lines.push(line.to_owned()));
        buffer.push(&vec![b'x'; MAX_LINE_BYTES], |line| lines.push(line.len().to_string()));
        buffer.flush(|line| lines.push(line.to_owned()));
        assert_eq!(lines, ["a", "bc", &MAX_LINE_BYTES.to_string()]);
    }
}

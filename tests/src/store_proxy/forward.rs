//! Exchange with a store that speaks HTTP.

use std::io;
use std::net::SocketAddr;

use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::http::Request;

/// Reply of a store.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// Status line and headers without `Connection`, each with its end of line.
    head: String,
    body: Vec<u8>,
}

/// Sends a request on a connection of its own, and returns the whole reply.
pub(super) async fn forward(store: SocketAddr, request: &Request) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(store).await?;
    stream.set_nodelay(true)?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        if !matches!(name.as_str(), "connection" | "expect" | "transfer-encoding" | "content-length") {
            head += &format!("{name}: {value}\r\n");
        }
    }
    head += &format!("content-length: {}\r\nconnection: close\r\n\r\n", request.body.len());
    let mut bytes = head.into_bytes();
    bytes.extend(&request.body);
    stream.write_all(&bytes).await?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await?;
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("the store sent no whole reply"))?;
    let head = String::from_utf8_lossy(&received[..end + 2]);
    let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
    let head = head.split_inclusive("\r\n").filter(is_kept).collect();
    Ok(Reply { head, body: received.split_off(end + 4) })
}

impl Reply {
    /// Creates a reply with the error of a store, or of a key management service. One about another region names it.
    pub(super) fn refused(status: u16, code: &str) -> Self {
        let message = "Refused by the test.";
        // Errors of key management services are JSON.
        let (kind, body) = if code.ends_with("Exception") {
            ("x-amz-json-1.1", format!(r#"{{"__type":"{code}","message":"{message}"}}"#))
        } else {
            ("xml", format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
        };
        let region = if status == 301 { "x-amz-bucket-region: eu-west-1\r\n" } else { "" };
        let (length, body) = (body.len(), body.into_bytes());
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Type: application/{kind}\r\nContent-Length: {length}\r\n{region}");
        Self { head, body }
    }

    /// Returns the status.
    pub(super) fn status(&self) -> Option<u16> {
        self.head.split(' ').nth(1)?.parse().ok()
    }

    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Returns the bytes to send: all, or half of the content, or of the head if there is no content.
    pub(super) fn bytes(&self, is_cut: bool) -> Vec<u8> {
        let mut bytes = format!("{}Connection: close\r\n\r\n", self.head).into_bytes();
        bytes.extend(&self.body);
        if is_cut {
            let head = bytes.len() - self.body.len();
            bytes.truncate(if self.body.is_empty() { head / 2 } else { head + self.body.len() / 2 });
        }
        bytes
    }

    /// Returns the reply of a store whose clock is some seconds ahead: its headers with times, and the times in a listing.
    pub(super) fn with_clock_shift(mut self, seconds: i64) -> Self {
        if seconds == 0 {
            return self;
        }
        let by = SignedDuration::from_secs(seconds);
        if self.body.starts_with(b"<?xml") {
            self.body = shift_listing(&String::from_utf8_lossy(&self.body), by).into_bytes();
        }
        let length = self.body.len();
        let shift = |line: &str| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "date" | "last-modified" => {
                    let time = jiff::fmt::rfc2822::parse(value.trim()).map(|time| time.timestamp() + by);
                    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
                    let text = time.and_then(|time| printer.timestamp_to_rfc9110_string(&time));
                    text.map_or_else(|_| line.to_owned(), |text| format!("{name}: {text}\r\n"))
                }
                "content-length" if length > 0 => format!("{name}: {length}\r\n"),
                _ => line.to_owned(),
            }
        };
        self.head = self.head.split_inclusive("\r\n").map(shift).collect();
        self
    }
}

/// Adds a time to the times of the objects in a listing.
fn shift_listing(listing: &str, by: SignedDuration) -> String {
    const BEGIN: &str = "<LastModified>";
    let mut parts = listing.split(BEGIN);
    let mut shifted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (time, rest) = part.split_once('<').unwrap_or((part, ""));
        let time = time.parse::<Timestamp>().map_or_else(|_| time.to_owned(), |time| format!("{:.3}", time + by));
        shifted += &format!("{BEGIN}{time}<{rest}");
    }
    shifted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_shift_changes_each_time_of_a_reply() {
        let body = b"<?xml?><A><LastModified>2026-09-01T08:00:00.000Z</LastModified></A>".to_vec();
        let head = "HTTP/1.1 200 OK\r\nDate: Tue, 01 Sep 2026 08:00:00 GMT\r\n\
                    Last-Modified: Tue, 01 Sep 2026 07:59:59 GMT\r\nContent-Length: 7\r\n";
        let reply = Reply { head: head.to_owned(), body }.with_clock_shift(3600);
        assert_eq!(reply.header("date"), Some("Tue, 01 Sep 2026 09:00:00 GMT"));
        assert_eq!(reply.header("last-modified"), Some("Tue, 01 Sep 2026 08:59:59 GMT"));
        let body = String::from_utf8(reply.body.clone()).unwrap();
        assert_eq!(body, "<?xml?><A><LastModified>2026-09-01T09:00:00.000Z</LastModified></A>");
        assert_eq!(reply.header("content-length"), Some(body.len().to_string().as_str()));
    }
}

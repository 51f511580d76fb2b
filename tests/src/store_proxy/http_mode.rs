//! Requests of HTTP.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::forward::{Reply, forward};
use super::rules::{Conditions, Fault, Shared};
use crate::http::{self, Request};

/// Headers with conditions.
const CONDITIONS: [&str; 3] = ["if-match", "if-none-match", "x-goog-if-generation-match"];
/// Time after which a request is forwarded that nothing has overtaken.
const NO_FOLLOWER: Duration = Duration::from_millis(500);
/// Largest difference of the clocks that Amazon accepts, in seconds.
const LARGEST_SKEW: i64 = 15 * 60;

pub(super) async fn serve(client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut client = BufReader::new(client);
    let request = http::read(&mut client).await?;
    if request.method.is_empty() {
        return Ok(());
    }
    let conditions = request.headers.iter().filter(|(name, _)| CONDITIONS.contains(&name.as_str())).cloned();
    let (number, fault) = shared.begin(&request.method, &request.path, conditions.collect());
    sleep(shared.rule(|rules| rules.delay)).await;
    if fault == Some(Fault::CutBefore) || fault == Some(Fault::HeldBefore) && !hold(&mut client, shared).await {
        return Ok(());
    }
    if fault == Some(Fault::Overtaken) {
        let mut processed = shared.processed.subscribe();
        // Nothing follows if the time ends.
        drop(timeout(NO_FOLLOWER, processed.changed()).await);
    }
    let reply = match fault {
        Some(Fault::Refused(status, code)) => Reply::refused(status, code),
        _ => process(shared, &request).await?,
    };
    shared.processed.send_modify(|processed| *processed += 1);
    if fault == Some(Fault::CutAfter) || fault == Some(Fault::HeldAfter) && !hold(&mut client, shared).await {
        return Ok(());
    }
    if fault == Some(Fault::CutReply) {
        return send(&mut client, &reply.bytes(true)).await;
    }
    // The end is recorded before the client has the reply and can begin another request.
    shared.end(number, reply.status());
    send(&mut client, &reply.bytes(false)).await
}

/// Holds a request until the proxy recovers, and returns true; false if the client ends the connection before.
async fn hold(client: &mut BufReader<TcpStream>, shared: &Shared) -> bool {
    let mut byte = [0];
    tokio::select! {
        () = shared.hold() => true,
        _ = client.read(&mut byte) => false,
    }
}

async fn send(client: &mut BufReader<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.shutdown().await
}

/// Returns the reply of the store to a request, changed as the rules say.
async fn process(shared: &Shared, request: &Request) -> io::Result<Reply> {
    let (conditions, shift, checks_times) =
        shared.rule(|rules| (rules.conditions, rules.clock_shift, rules.checks_times));
    if checks_times && request_time(request).is_some_and(|time| (now() + shift - time).abs() > LARGEST_SKEW) {
        return Ok(Reply::refused(403, "RequestTimeTooSkewed"));
    }
    let has_condition = request.header("if-match").or(request.header("if-none-match")).is_some();
    let reply = match conditions {
        Conditions::Proxy if request.method == "PUT" && has_condition => {
            let _writing = shared.writing.lock().await;
            if !is_condition_met(shared, request).await? {
                return Ok(Reply::refused(412, "PreconditionFailed"));
            }
            forward(shared.store, request).await?
        }
        Conditions::Ignored if has_condition => {
            let mut request = request.clone();
            request.headers.retain(|(name, _)| !CONDITIONS.contains(&name.as_str()));
            forward(shared.store, &request).await?
        }
        Conditions::Proxy | Conditions::Ignored | Conditions::Store => forward(shared.store, request).await?,
    };
    Ok(reply.with_clock_shift(shift))
}

/// Compares the condition of a write with the object in the store.
async fn is_condition_met(shared: &Shared, request: &Request) -> io::Result<bool> {
    let is_of_request =
        |(name, _): &&(String, String)| matches!(name.as_str(), "host" | "authorization" | "x-amz-date");
    let headers = request.headers.iter().filter(is_of_request).cloned().collect();
    let head = Request { method: "HEAD".to_owned(), path: request.path.clone(), headers, body: Vec::new() };
    let found = forward(shared.store, &head).await?;
    let tag = found.header("etag").filter(|_| found.status() == Some(200));
    Ok(match (request.header("if-match"), request.header("if-none-match")) {
        (Some(expected), _) => tag == Some(expected),
        (None, Some(_)) => tag.is_none(),
        (None, None) => true,
    })
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// Returns the time of a signed request, in seconds.
fn request_time(request: &Request) -> Option<i64> {
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", request.header("x-amz-date")?).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

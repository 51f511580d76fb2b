//! Requests of PostgreSQL: the messages of a client up to a query or a Sync, and the messages of the server up to
//! ReadyForQuery.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::rules::{Fault, Number, Shared};

/// Longest text of a message in the record.
const LONGEST_TEXT: usize = 300;

/// Request that the server has received or will receive.
struct Sent {
    number: Number,
    fault: Option<Fault>,
}

pub(super) async fn serve(client: TcpStream, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(shared.store).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let (sent, replies) = mpsc::unbounded_channel();
    // The first end, such as that of a cut connection, ends all.
    tokio::select! {
        ended = receive(from_client, shared, &arrived) => ended,
        ended = send(to_server, shared, arrivals, &sent) => ended,
        ended = reply(from_server, to_client, shared, replies) => ended,
    }
}

type Arrival = (Instant, Vec<u8>, Option<Sent>);

/// Receives requests, and passes each on with the time at which the server receives it.
async fn receive(
    mut client: OwnedReadHalf,
    shared: &Shared,
    arrived: &mpsc::UnboundedSender<Arrival>,
) -> io::Result<()> {
    // The first message has no type.
    let mut message = client.read_u32().await?.to_be_bytes().to_vec();
    read_rest(&mut client, &mut message, 4).await?;
    let (mut bytes, mut statement) = (message, String::new());
    let mut is_startup = true;
    loop {
        let mut sent = None;
        if !is_startup {
            let (kind, message) = read_message(&mut client).await?;
            if let b'Q' | b'P' | b'B' = kind {
                statement += &texts(&message);
            }
            bytes.extend(message);
            match kind {
                b'Q' | b'S' => {
                    let (number, fault) = shared.begin("query", &std::mem::take(&mut statement), Vec::new());
                    sent = Some(Sent { number, fault });
                }
                // Passwords and the end of the connection.
                b'p' | b'X' => {}
                _ => continue,
            }
        }
        is_startup = false;
        let time = Instant::now() + shared.rule(|rules| rules.delay);
        let arrival = (time, std::mem::take(&mut bytes), sent);
        arrived.send(arrival).map_err(io::Error::other)?;
    }
}

/// Returns the readable texts of a message: the statement, and the parameters of text.
fn texts(message: &[u8]) -> String {
    let parts = message[5..].split(u8::is_ascii_control).filter(|part| part.len() > 1);
    parts
        .map(|part| format!("{} ", String::from_utf8_lossy(part)))
        .collect::<String>()
        .chars()
        .take(LONGEST_TEXT)
        .collect()
}

/// Sends requests to the server at their time.
async fn send(
    mut server: OwnedWriteHalf,
    shared: &Shared,
    mut arrivals: mpsc::UnboundedReceiver<Arrival>,
    sent: &mpsc::UnboundedSender<Sent>,
) -> io::Result<()> {
    while let Some((time, bytes, request)) = arrivals.recv().await {
        sleep_until(time).await;
        if let Some(request) = request {
            match request.fault {
                Some(Fault::CutBefore | Fault::Refused(..)) => return Ok(()),
                Some(Fault::HeldBefore) => shared.hold().await,
                _ => {}
            }
            sent.send(request).map_err(io::Error::other)?;
        }
        server.write_all(&bytes).await?;
    }
    Ok(())
}

/// Sends replies to the client.
async fn reply(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    shared: &Shared,
    mut sent: mpsc::UnboundedReceiver<Sent>,
) -> io::Result<()> {
    // Until the server is ready for the first time, its messages are those of the authentication.
    loop {
        let (kind, message) = read_message(&mut server).await?;
        client.write_all(&message).await?;
        if kind == b'Z' {
            break;
        }
    }
    let mut bytes = Vec::new();
    loop {
        let (kind, message) = read_message(&mut server).await?;
        bytes.extend(message);
        if kind != b'Z' {
            continue;
        }
        let Some(Sent { number, fault }) = sent.recv().await else { return Ok(()) };
        match fault {
            Some(Fault::CutAfter) => return Ok(()),
            Some(Fault::CutReply) => {
                client.write_all(&bytes[..bytes.len() / 2]).await?;
                return Ok(());
            }
            Some(Fault::HeldAfter) => shared.hold().await,
            _ => {}
        }
        shared.end(number, None);
        client.write_all(&std::mem::take(&mut bytes)).await?;
    }
}

/// Reads a message with its type and its length.
async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await?;
    let mut message = vec![kind];
    message.extend(stream.read_u32().await?.to_be_bytes());
    read_rest(stream, &mut message, 4).await?;
    Ok((kind, message))
}

/// Reads the content of a message after its length, which includes the `counted` bytes of the length itself.
async fn read_rest(stream: &mut (impl AsyncRead + Unpin), message: &mut Vec<u8>, counted: usize) -> io::Result<()> {
    let length: [u8; 4] = message[message.len() - 4..].try_into().map_err(io::Error::other)?;
    let begin = message.len();
    let rest = (u32::from_be_bytes(length) as usize).saturating_sub(counted);
    message.resize(begin + rest, 0);
    stream.read_exact(&mut message[begin..]).await.map(drop)
}

//! Requests to a database that cannot be used, with servers of the test.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cloud::postgres::{PostgresObjects, PostgresUrl, TimeLimits};
use futures_util::future::join_all;
use state::store::{Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, WriteCondition, WriteError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

const LIMITS: TimeLimits = TimeLimits {
    connect: Duration::from_millis(400),
    request: Duration::from_secs(6),
    repeat: Duration::ZERO,
    repeat_first_connection: Duration::ZERO,
};

fn open(port: u16, limits: TimeLimits) -> PostgresObjects {
    let url = format!("postgres://ada:hidden@127.0.0.1:{port}/reef?sslmode=disable");
    PostgresObjects::with_time_limits(
        PostgresUrl::parse(&url, &BTreeMap::new(), None).unwrap(),
        limits,
        OutageReport::default(),
    )
}

fn text(error: &ObjectError, port: u16) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(!text.contains("hidden") && !text.contains("ada"), "{text}");
    text.replace(&port.to_string(), "PORT")
}

/// Shows: state.md#in-postgresql "There is one connection, and a second one for the journal"
/// Shows: state.md#in-postgresql "A connection may take 15 seconds, a statement 30."
#[tokio::test(flavor = "multi_thread")]
async fn server_without_a_reply_fails_all_waiting_requests_at_once() {
    // The system accepts the connections; no program reads them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let objects = Arc::new(open(port, LIMITS));
    let began = Instant::now();
    let requests = (0..50).map(|_| {
        let objects = Arc::clone(&objects);
        async move { objects.read("a", 1).await.unwrap_err() }
    });
    for error in join_all(requests).await {
        assert_eq!(error.kind, ObjectErrorKind::Unreachable);
        let expected = "cannot read a in postgres://127.0.0.1:PORT/reef?table=pulumi_state: no connection within 400ms; check the \
                        host and the port of the URL, and the network";
        assert_eq!(text(&error, port), expected);
    }
    assert!(began.elapsed() < LIMITS.connect * 10, "{:?}", began.elapsed());
}

/// Shows: state.md#in-postgresql "There is one connection, and a second one for the journal"
/// Shows: state.md#in-postgresql "A connection may take 15 seconds, a statement 30."
#[tokio::test(flavor = "multi_thread")]
async fn server_that_closes_the_connection_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let mut attempts = 0;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            attempts += 1;
            let mut startup = [0; 8];
            stream.read_exact(&mut startup).await.unwrap();
            if attempts == 3 {
                // An error of the server: FATAL, code 3D000, the message.
                let fields = b"SFATAL\0VFATAL\0C3D000\0Mdatabase \"reef\" does not exist\0\0";
                let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
                stream.write_all(&[b"E", &length[..], fields].concat()).await.unwrap();
                return attempts;
            }
        }
    });
    let limits = TimeLimits { repeat_first_connection: Duration::from_secs(60), ..LIMITS };
    let objects = open(port, limits);
    // A conditional write as well: it was not sent.
    let written = objects.write("a", b"1".to_vec().into(), &WriteCondition::Missing, Durability::Immediate).await;
    let Err(WriteError::Request(error)) = written else { panic!("{written:?}") };
    assert_eq!(error.kind, ObjectErrorKind::NoStore);
    assert_eq!(
        text(&error, port),
        "cannot write a in postgres://127.0.0.1:PORT/reef?table=pulumi_state: the server replied: database \"reef\" does not \
         exist (SQLSTATE 3D000); create the database, or correct its name, which is the path of the URL"
    );
    assert_eq!(server.await.unwrap(), 3);
}

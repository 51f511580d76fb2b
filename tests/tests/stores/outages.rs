//! Reports of requests that are still tried, with a paused clock: nothing waits for the time that passes.

use std::collections::BTreeMap;
use std::path::Path;

use cloud::gcs::{GcsUrl, open_gcs};
use cloud::postgres::{PostgresObjects, PostgresUrl};
use cloud::s3::{S3Url, open_s3};
use state::store::{Durability, Objects, Outage, OutageReport, WriteCondition};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Writes an object, and returns the report about it with the seconds until it came. The request ends with the report.
async fn outage_of_a_write(objects: &dyn Objects, reports: &mut mpsc::UnboundedReceiver<Outage>) -> (u64, String) {
    let began = Instant::now();
    let written = async {
        // A request with a condition is not repeated: the caller looks what happened.
        loop {
            drop(objects.write("a.json", b"{}".to_vec().into(), &WriteCondition::None, Durability::Immediate).await);
        }
    };
    tokio::select! {
        outage = reports.recv() => (began.elapsed().as_secs(), outage.unwrap().to_string()),
        () = written => unreachable!("the request is repeated"),
    }
}

/// Shows: state.md#stores "After four seconds without a usable reply a warning names the request, the reason, and the
///   time for which this request is still tried"
#[tokio::test(start_paused = true)]
async fn store_that_does_not_reply_is_reported_within_five_seconds_with_the_time_left() {
    // The system accepts the connections; no program reads them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let (sender, mut reports) = mpsc::unbounded_channel();
    let report = OutageReport::new(move |outage: &Outage| sender.send(outage.clone()).unwrap());
    let variables = |names: &[(&str, &str)]| {
        let named = names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        named.collect::<BTreeMap<_, _>>()
    };
    let of_s3 = variables(&[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "r")]);
    let s3 = S3Url::parse(&format!("s3://reef/team?endpoint={url}"), &of_s3).unwrap();
    let s3 = open_s3(&s3, None, &of_s3, Some(Path::new("/nonexistent")), report.clone()).await.unwrap();
    let of_gcs = variables(&[("STORAGE_EMULATOR_HOST", &url)]);
    let gcs = open_gcs(&GcsUrl::parse("gs://reef/team").unwrap(), None, &of_gcs, None, report.clone()).unwrap();
    let postgres = PostgresUrl::parse(&format!("postgres://ada@127.0.0.1:{port}/reef?sslmode=disable"), &of_gcs, None);
    let postgres = PostgresObjects::new(postgres.unwrap(), report);
    let cases: [(&dyn Objects, &str, &str); 3] = [
        (&*s3, "cannot write s3://reef/team/a.json yet: ", "; the request is tried for up to 86 s more"),
        (&*gcs, "cannot write gs://reef/team/a.json yet: ", "; the request is tried for up to 86 s more"),
        (&postgres, "cannot write a.json in postgres://127.0.0.1:", "; the request is tried for up to 16 s more"),
    ];
    for (objects, beginning, end) in cases {
        let (seconds, text) = outage_of_a_write(objects, &mut reports).await;
        assert!(seconds < 5, "{seconds} s: {text}");
        assert!(text.starts_with(beginning) && text.ends_with(end), "{text}");
    }
}

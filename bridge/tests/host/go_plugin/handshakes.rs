//! Recorded output of go-plugin servers, printed by a process and read by the host.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bridge::error::{Hint as _, chain};
use bridge::host::{HostError, HostEvent, Severity};
use bridge::launch::{GoPluginError, HandshakeError, LaunchError};
use bridge::plugin::{Dialect, GoPlugin, GoPluginTls};
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use crate::TestRepository;
use crate::recordings::recordings;

/// Number of processes that run at once.
const AT_ONCE: usize = 8;

/// Returns the text of a recording: a string, or a list of strings and repetitions.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        part => part["repeat"].as_str().unwrap().repeat(part["times"].as_u64().unwrap() as usize),
    }
}

/// Returns the names of the fields of a host that no declaration in server.yaml has.
fn cannot_be_declared(host: &Value) -> bool {
    let is_negative = host["versions"].as_array().unwrap().iter().any(|version| version.as_u64().is_none());
    is_negative || !host["protocols"].as_array().unwrap().iter().any(|kind| kind == "grpc")
}

fn dialect(host: &Value) -> Dialect {
    let versions = host["versions"].as_array().unwrap().iter().map(|version| version.as_u64().unwrap() as u32);
    let tls = if host["mtls"] == true { GoPluginTls::Auto } else { GoPluginTls::None };
    Dialect::GoPlugin(GoPlugin { versions: versions.collect(), tls, ..GoPlugin::default() })
}

/// Returns why a plugin is not loaded.
fn reason(error: &HostError) -> &GoPluginError {
    let causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    let launch = causes.filter_map(|error| error.downcast_ref::<LaunchError>()).next().unwrap();
    let LaunchError::GoPlugin(reason) = launch else { panic!("{error:?}") };
    reason
}

/// Returns the verdict on a handshake. A plugin whose handshake was accepted fails later: nothing listens at its address.
fn verdict(reason: &GoPluginError) -> &'static str {
    match reason {
        GoPluginError::Unhealthy(_) | GoPluginError::NotConnected(_) => "ok",
        GoPluginError::NoLine { .. } | GoPluginError::NoHandshake(_) => "no-line",
        GoPluginError::TimedOut { .. } | GoPluginError::NoLineEnd { .. } => "timeout",
        GoPluginError::Tls(_) => "certificate",
        GoPluginError::Handshake { refusal, .. } => match refusal {
            HandshakeError::CoreVersion(_) => "core-version",
            HandshakeError::VersionSyntax(_) => "app-syntax",
            HandshakeError::Version { .. } => "app-version",
            HandshakeError::Network(_) => "network",
            HandshakeError::Address(_) => "address",
            HandshakeError::Protocol(_) => "protocol",
            HandshakeError::Certificate => "certificate",
            HandshakeError::CertificateMissing => "certificate-missing",
        },
        GoPluginError::NotExecuted(_) | GoPluginError::SocketFolder(_) => panic!("{reason:?}"),
    }
}

/// Returns the verdict of the host on a plugin that prints a recorded text.
async fn verdict_on(case: &Value) -> &'static str {
    let mut repository = TestRepository::new();
    let printed = repository.path("printed");
    std::fs::write(&printed, text(&case["stdout"])).unwrap();
    let end = match case["exits"].as_i64() {
        Some(code) => format!("exit {code}"),
        None if case["stays_alive"] == true => "exec sleep 100".to_owned(),
        None => "exec sleep 0.3".to_owned(),
    };
    let wait = case["line_after_s"].as_f64().unwrap_or_default();
    let config = repository.script("x", &format!("sleep {wait}\ncat '{}'\n{end}", printed.display()));
    config.dialect = dialect(&case["host"]);
    if let Some(limit) = case["start_timeout_s"].as_f64() {
        config.start_timeout = Duration::from_secs_f64(limit);
    }
    verdict(reason(&repository.load().await.unwrap_err()))
}

#[tokio::test]
async fn recorded_output_of_a_process_has_its_verdict() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let recordings = recordings("handshakes.json");
    let cases = recordings.iter().flat_map(|recording| recording["lines"].as_array().unwrap());
    let cases = cases.filter(|case| !cannot_be_declared(&case["host"]));
    let found = stream::iter(cases).map(|case| async move { (case, verdict_on(case).await) });
    let found: Vec<_> = found.buffer_unordered(AT_ONCE).collect().await;
    for (case, found) in found {
        let expected = match case.get("ours").unwrap_or(&case["go"]).as_str().unwrap() {
            // The multiplexed broker is never requested, so its field is not read.
            "mux-unsupported" | "mux-syntax" => "ok",
            "unrecognized" => "no-line",
            verdict => verdict,
        };
        assert_eq!(found, expected, "{}", case["name"]);
        *counts.entry(found).or_default() += 1;
    }
    assert!(counts["ok"] > 20 && counts["no-line"] > 10 && counts["timeout"] >= 3, "{counts:?}");
}

#[tokio::test]
async fn certificate_that_was_not_asked_for_is_reported() {
    for (certificate, is_reported) in [("A".repeat(52), true), (String::new(), false)] {
        let mut repository = TestRepository::new();
        let config = repository.script("x", &format!("echo '1|1|unix|/no/such/socket|grpc|{certificate}'"));
        config.dialect = Dialect::GoPlugin(GoPlugin { tls: GoPluginTls::None, ..GoPlugin::default() });
        assert_eq!(verdict(reason(&repository.load().await.unwrap_err())), "ok");
        let is_warning = |event: &HostEvent| {
            matches!(event, HostEvent::Log { message, .. } if message.severity == Severity::Warning
                && message.text.contains("it offers TLS"))
        };
        assert_eq!(repository.events.all().iter().any(is_warning), is_reported);
    }
}

#[tokio::test]
async fn recorded_end_without_a_line_is_reported_with_what_the_plugin_printed() {
    let mut checked = 0;
    for recording in recordings("handshakes.json") {
        for case in recording["no_line"].as_array().unwrap() {
            let mut repository = TestRepository::new();
            let printed = repository.path("printed");
            let lines: Vec<&str> =
                case["stderr"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
            std::fs::write(&printed, lines.join("\n") + "\n").unwrap();
            let code = case["exit_code"].as_i64().unwrap();
            let config = repository.script("x", &format!("cat '{}' >&2\nexit {code}", printed.display()));
            config.dialect = Dialect::GoPlugin(GoPlugin::default());
            let error = repository.load().await.unwrap_err();
            let GoPluginError::NoLine { status, .. } = reason(&error) else { panic!("{}: {error:?}", case["name"]) };
            assert_eq!(*status, format!("exit status {code}"), "{}", case["name"]);
            let message = chain(&error);
            for line in lines {
                let log: Option<Value> = serde_json::from_str(line).ok();
                let expected = match &log {
                    Some(log) => vec![log["@message"].as_str().unwrap().to_owned(), log["error"].to_string()],
                    None => vec![line.to_owned()],
                };
                for expected in expected {
                    assert!(message.contains(&expected), "{}: {expected} is not in {message}", case["name"]);
                }
            }
            let is_cookie_wrong = case["name"].as_str().unwrap().ends_with(" cookie");
            let names_cookie = error.hint().is_some_and(|hint| hint.contains("goPlugin.cookieKey"));
            assert_eq!(names_cookie, is_cookie_wrong, "{}", case["name"]);
            checked += 1;
        }
    }
    assert!(checked >= 8, "{checked} cases");
}

//! Tests of the settings of the log, and of the files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::file::{append, create};
use super::*;
use crate::cli::commands::Cli;
use crate::cli::exit::Exit;
use crate::cli::output::StreamProperties;
use bridge::error::Hint as _;

/// Starts a trace with these variables, and returns its error, if the variables are wrong.
fn error_of(variables: &[(&str, &str)]) -> Option<(Exit, String)> {
    let cli = Cli::try_parse_from(["sc", "stack", "ls"]).unwrap();
    let output = Output::new(&cli.global, &StreamProperties::default());
    let variable =
        |name: &str| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned());
    let error = Trace::start(&output, &cli.global, variable).err()?;
    Some((Exit::of_error(&error), error.to_string()))
}

#[test]
fn wrong_variable_is_named() {
    let usage = |message: &str| Some((Exit::Usage, message.to_owned()));
    assert_eq!(error_of(&[]), None);
    assert_eq!(error_of(&[("SC_LOG", ""), ("SC_LOG_FORMAT", "xml")]), None, "there is no log");
    assert_eq!(
        error_of(&[("SC_LOG", "engine=loud")]),
        usage(
            "the variable SC_LOG is not a filter: \"engine=loud\" is neither a level nor a part of the program with a level"
        )
    );
    assert_eq!(
        error_of(&[("SC_LOG", "info"), ("SC_LOG_FORMAT", "xml")]),
        usage("the variable SC_LOG_FORMAT is \"xml\"")
    );
}

#[test]
fn file_that_cannot_be_opened_is_named_with_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/log");
    let variables = [("SC_LOG", "info"), ("SC_LOG_FILE", path.to_str().unwrap())];
    let (exit, message) = error_of(&variables).unwrap();
    assert_eq!(exit, Exit::Failed);
    assert!(message.starts_with("the file of SC_LOG_FILE: ") && message.contains("none"), "{message}");

    let trace = ["sc", "--trace", folder.path().to_str().unwrap(), "stack", "ls"];
    let cli = Cli::try_parse_from(trace).unwrap();
    let output = Output::new(&cli.global, &StreamProperties::default());
    let error = Trace::start(&output, &cli.global, |_| None).unwrap_err();
    let hint = "give --trace a file of your own, or a new name in a folder that exists, or leave it out";
    assert_eq!(error.downcast_ref::<CliError>().unwrap().hint().unwrap().to_string(), hint);
}

#[test]
fn file_is_private_and_not_behind_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mode = |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777;
    drop(create(&root, Path::new("new")).unwrap());
    assert_eq!(mode("new"), 0o600);
    fs::write(root.join("old"), "before").unwrap();
    fs::set_permissions(root.join("old"), Permissions::from_mode(0o644)).unwrap();
    drop(append(&root, Path::new("old")).unwrap());
    assert_eq!((fs::read_to_string(root.join("old")).unwrap().as_str(), mode("old")), ("before", 0o600));
    drop(create(&root, Path::new("old")).unwrap());
    assert_eq!(fs::read(root.join("old")).unwrap(), b"");

    fs::write(root.join("mine"), "mine").unwrap();
    symlink(root.join("mine"), root.join("link")).unwrap();
    symlink(root.join("none"), root.join("dangling")).unwrap();
    fs::hard_link(root.join("mine"), root.join("second")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for refused in ["link", "dangling", "second", "folder", "pipe", "..", "none/file"] {
        assert!(create(&root, &PathBuf::from(refused)).is_err(), "{refused}");
    }
    assert_eq!(fs::read_to_string(root.join("mine")).unwrap(), "mine");
    assert!(!root.join("none").exists());
}

/// Shows: events.md#events-as-json-lines "they go to standard error, or to the file in `SC_LOG_FILE`"
/// Shows: README.md#what-it-does "without a value of a property, and with secrets masked"
#[test]
fn name_that_contains_a_secret_is_masked() {
    let folder = tempfile::tempdir().unwrap();
    let masker = Arc::<engine::masking::SecretMasker>::default();
    masker.add_text("swordfish");
    let chrome = ChromeTrace::new(create(folder.path(), Path::new("trace")).unwrap());
    let chrome = Arc::new(Mutex::new(chrome));
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let received = Arc::clone(&lines);
    let target = LogTarget::Lines(Box::new(move |line| received.lock().unwrap().push(line)));
    let log = Some((Filter::all(), Log { format: LogFormat::Text, target }));
    let layer = TraceLayer { masker, log, chrome: Some((Filter::all(), Arc::clone(&chrome))) };
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!(target: "engine", "step", urn = %"urn:swordfish", bytes = 3);
        span.in_scope(|| tracing::debug!(target: "engine", name = "swordfish 2", "decided"));
        tracing::info!(target: "h2", "header swordfish");
    });
    chrome.lock().unwrap().finish().unwrap();
    let trace = fs::read_to_string(folder.path().join("trace")).unwrap();
    assert!(!trace.contains("swordfish") && trace.contains("\"urn\":\"urn:[secret]\""), "{trace}");
    let lines: Vec<String> =
        lines.lock().unwrap().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    assert_eq!(
        lines[..2],
        ["INFO engine: begins=step urn=urn:[secret] bytes=3", "DEBUG engine: event=decided name=\"[secret] 2\"",]
    );
    assert!(lines[2].starts_with("INFO engine: ended=step ms="), "{lines:?}");
    assert_eq!(lines.len(), 3);
}

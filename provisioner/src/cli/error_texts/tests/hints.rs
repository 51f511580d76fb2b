//! Hint of each variant of the errors of a state, a store, a file format, a journal, a migration, an operation and its setup.

use std::io;

use bridge::host::HostError;
use config::ForeignOwner;
use jiff::Timestamp;
use provisioner::operation::{OperationError, PlanError, SetupError, UnsupportedTarget};
use provisioner::plan::PlanFileError;
use state::format::{FormatError, ValueError};
use state::integrity::IntegrityError;
use state::secrets::SecretsError;
use state::store::{
    CheckpointCopy, CopyKind, Damage, Effect, Expected, FileUrl, LockHolder, MigrationDirection, MigrationMark,
    ObjectError, ObjectErrorKind, StackReference, StateStore, StoreError, StoreOptions,
};
use state::{
    ImportProblem, JournalConflict, JournalError, KeptJournal, MigrationError, SettingsError, StateError,
    UnexplainedEmptyState,
};

use super::super::*;

fn stack() -> StackReference {
    StackReference::new("reef", "dev").unwrap()
}

fn io_error() -> io::Error {
    io::Error::other("oh")
}

fn json_error() -> serde_json::Error {
    serde_json::from_str::<u8>("x").unwrap_err()
}

fn integrity() -> IntegrityError {
    IntegrityError { violations: Vec::new() }
}

fn store_errors() -> Vec<StoreError> {
    let lost = ObjectError {
        operation: "read",
        location: "s3://reef/a".to_owned(),
        kind: ObjectErrorKind::Denied,
        effect: Effect::None,
        source: "no".into(),
    };
    let mark = MigrationMark {
        direction: MigrationDirection::From,
        url: "file:///old".to_owned(),
        location: "file:///old".to_owned(),
        digest: String::new(),
        replaces: None,
        outdated: Vec::new(),
        time: Timestamp::UNIX_EPOCH,
        user: "ada".to_owned(),
        host: "reefbox".to_owned(),
        run: None,
    };
    vec![
        StoreError::Request(lost),
        StoreError::Locked { stack: stack(), holders: Vec::new() },
        StoreError::LockLost { stack: stack(), holders: Vec::new() },
        StoreError::Replaced { stack: stack(), written: None },
        StoreError::Migrated { stack: stack(), mark: Box::new(mark), mark_location: "/old/mark".to_owned() },
        StoreError::BothNames { from: stack(), to: stack() },
        StoreError::MovePending { stack: stack(), other: stack().into(), is_source: true },
        StoreError::Exists(stack()),
        StoreError::NoFolder("/a".into()),
        StoreError::Damaged { location: "/a".to_owned(), source: Damage::NoVersion },
        StoreError::Legacy("/a".to_owned()),
        StoreError::TooNew { location: "/a".to_owned(), version: 2 },
    ]
}

fn format_errors() -> Vec<FormatError> {
    let (resource, member) = (String::new(), "a");
    vec![
        FormatError::Malformed(json_error()),
        FormatError::NotAState { expected: String::new(), found: String::new() },
        FormatError::TooDeep,
        FormatError::TooOld(1),
        FormatError::TooNew(9),
        FormatError::UnknownFeature("hearts".to_owned()),
        FormatError::Name {
            resource: resource.clone(),
            member,
            source: "x".parse::<pulumi_proto::urn::Urn>().unwrap_err(),
        },
        FormatError::Time {
            resource: resource.clone(),
            member,
            text: String::new(),
            source: "x".parse::<Timestamp>().unwrap_err(),
        },
        FormatError::Value { resource: resource.clone(), member, source: ValueError::Malformed(json_error()) },
        FormatError::OperationKind { resource, kind: String::new() },
        FormatError::Secret(SecretsError::WrongPassphrase),
    ]
}

fn journal_errors() -> Vec<JournalError> {
    let path = || "/journal".into();
    let file = bridge::fs::FileError { path: path(), action: "read", source: io_error() };
    vec![
        JournalError::Path(file),
        JournalError::Damaged { path: path(), line: 1, source: Box::new(FormatError::TooDeep) },
        JournalError::UnsupportedVersion { path: path(), version: 9 },
        JournalError::Removed { path: path() },
        JournalError::Unflushed { path: path() },
        JournalError::InFallback { journal: path() },
        JournalError::Unrecorded { changes: Vec::new(), reason: Box::new(JournalError::Removed { path: path() }) },
    ]
}

fn migration_errors() -> Vec<MigrationError> {
    let location = || "s3://reef".to_owned();
    let source = || Box::new(StoreError::Exists(stack()));
    vec![
        MigrationError::SameStore { stack: stack(), location: location() },
        MigrationError::TargetLocked { stack: stack(), location: location(), source: source() },
        MigrationError::TargetExists { stack: stack(), location: location() },
        MigrationError::TargetChanged { stack: stack(), location: location() },
        MigrationError::NotEqual { stack: stack(), location: location() },
        MigrationError::MarkNotChanged { stack: stack(), location: location(), source: source() },
        MigrationError::NotReleased { stack: stack(), location: location(), source: source() },
    ]
}

/// Returns a copy of a checkpoint, which only a store creates.
fn copy() -> CheckpointCopy {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = FileUrl::parse("file://.", folder.path(), None).unwrap();
        let store = StateStore::open_folder(&url, StoreOptions::default()).await.unwrap();
        let holder =
            LockHolder { pid: 1, username: String::new(), hostname: String::new(), process: None, lease: None };
        let lock = store.lock(&stack(), &holder).await.unwrap();
        for _ in 0..2 {
            store.save(&lock, "{}", &Expected::Any).await.unwrap();
        }
        store.copies(&stack(), &CopyKind::ALL).await.unwrap().remove(0)
    })
}

fn state_errors() -> Vec<StateError> {
    let problem = || ImportProblem::Integrity(integrity());
    let conflict = JournalConflict {
        stack: stack(),
        journal: "/journal".into(),
        base: None,
        found: None,
        created: Vec::new(),
        creating: Vec::new(),
    };
    let empty = UnexplainedEmptyState { stack: stack(), is_missing: true, copy: copy(), resources: None };
    let lost = || StoreError::LockLost { stack: stack(), holders: Vec::new() };
    let replaced = || StateError::Replaced {
        error: Box::new(StoreError::Replaced { stack: stack(), written: None }),
        newest: None,
    };
    let mut errors = vec![
        StateError::Integrity(integrity()),
        StateError::Store(lost()),
        StateError::Copy { location: "/a".to_owned(), source: Box::new(FormatError::TooDeep) },
        StateError::NotRestorable { location: "/a".to_owned(), source: problem() },
        StateError::Changed(stack()),
        StateError::UnexplainedEmpty(Box::new(empty)),
        StateError::NotAnExport(json_error()),
        StateError::Export(Box::new(FormatError::TooDeep)),
        StateError::Import(problem()),
        StateError::Interrupted { stack: stack(), journal: "/journal".into() },
        StateError::NoStack(stack()),
        StateError::RenamePending { from: stack(), to: stack(), source: Box::new(StateError::NoStack(stack())) },
        StateError::NotEmpty { stack: stack(), count: 1 },
        StateError::PendingCreates { stack: stack(), names: Vec::new() },
        StateError::History { stack: stack(), source: json_error() },
        StateError::Conflict(Box::new(conflict)),
        StateError::SavedInvalid(integrity()),
        replaced(),
        StateError::HistoryNotWritten { stack: stack(), source: Box::new(StoreError::Exists(stack())) },
        StateError::NotReleased { stack: stack(), source: Box::new(lost()) },
        StateError::NotReleased { stack: stack(), source: Box::new(StoreError::Exists(stack())) },
        StateError::Secrets(SecretsError::NoPassphrase),
    ];
    let checkpoint =
        |source| StateError::Checkpoint { stack: stack(), file: "file".to_owned(), source: Box::new(source) };
    errors.extend(format_errors().into_iter().map(checkpoint));
    errors.extend(store_errors().into_iter().map(StateError::Store));
    errors.extend(journal_errors().into_iter().map(StateError::Journal));
    errors.extend(migration_errors().into_iter().map(StateError::Migration));
    let kept = |is_fallback| Some(KeptJournal { path: "/journal".into(), is_fallback, lacks_changes: false });
    for kept in [None, kept(false), kept(true)] {
        for source in [StateError::Store(lost()), replaced(), StateError::Changed(stack())] {
            errors.push(StateError::Unsaved { stack: stack(), kept: kept.clone(), source: Box::new(source) });
        }
    }
    errors
}

fn setup_errors() -> Vec<SetupError> {
    let (name, path) = (|| "dev".to_owned(), || "/settings".into());
    let foreign =
        |user| SetupError::ForeignRepository { root: path(), foreign: ForeignOwner { path: path(), owner: 7 }, user };
    let unknown = |name: &str| SetupError::UnknownStack { name: name.to_owned(), existing: vec!["reef".to_owned()] };
    vec![
        foreign(0),
        foreign(1),
        SetupError::EmptyName,
        SetupError::NoStacks,
        unknown("ref"),
        unknown("mountains"),
        SetupError::ClientStack { name: name() },
        SetupError::SeveralStacks(Vec::new()),
        SetupError::TwoCompressions { gzip: "A", zstd: "B" },
        SetupError::Verification { variable: "A", value: String::new() },
        SetupError::LeaseSeconds { variable: "A", value: String::new(), valid: 1..=2 },
        SetupError::Reference(StackReference::new("", "").unwrap_err()),
        SetupError::Url { stack: name(), source: "no".into() },
        SetupError::Bucket { stack: name(), source: "no".into() },
        SetupError::NoClients { stack: name(), scheme: "s3".to_owned() },
        SetupError::UnsupportedTarget { url: String::new(), reason: UnsupportedTarget::Service },
        SetupError::Store { stack: name(), source: StoreError::Legacy("/a".to_owned()) },
        SetupError::Renamed { from: stack(), to: StackReference::new("shore", "west").unwrap() },
        SetupError::SettingsExist { old: path(), new: path() },
        SetupError::SettingsNotMoved { old: path(), source: io_error() },
        SetupError::InvalidSettings { path: path(), source: SettingsError::Key("a".to_owned()) },
        SetupError::UnreadableSettings { path: path(), source: io_error() },
        SetupError::PassphraseFile { variable: "A", path: path(), source: io_error() },
        SetupError::KeyStack { stack: name(), source: Box::new(StateError::NoStack(stack())) },
        SetupError::Config(SecretsError::WrongPassphrase),
    ]
    .into_iter()
    .chain(store_errors().into_iter().map(SetupError::Rename))
    .collect()
}

fn operation_errors() -> Vec<OperationError> {
    let host = || HostError::new("failed").with_hint("start it");
    vec![
        OperationError::Plugins { error: host(), found: Vec::new() },
        OperationError::SeveralPlugins(Vec::new()),
        OperationError::Packages(Vec::new()),
        OperationError::DownloadDeclined(Vec::new()),
        OperationError::State(StateError::NoStack(stack())),
        OperationError::Stopped,
        OperationError::NotPending { name: "a".to_owned(), pending: Vec::new() },
        OperationError::NotPending { name: "a".to_owned(), pending: vec!["b".to_owned(), "c".to_owned()] },
        OperationError::Namesake { warning: "both".into(), hint: "choose".into() },
        OperationError::NamesakeDeclined { hint: "choose".into() },
        OperationError::MayExist(vec!["urn:pulumi:dev::reef::t:m:T::a".parse().unwrap()]),
        OperationError::Schema(host()),
        OperationError::Types(Vec::new()),
        OperationError::Unserved { package: "a".to_owned(), urns: Vec::new() },
        OperationError::Plan(PlanError::Expired("now".to_owned())),
        OperationError::Plan(PlanError::Text(PlanFileError::Malformed)),
        OperationError::Plan(PlanError::OtherProfile { planned: "a".to_owned(), now: "b".to_owned() }),
        OperationError::Plan(PlanError::Drift { stack: "a".to_owned(), names: Vec::new() }),
        OperationError::Plan(PlanError::NoKey { stack: "a".to_owned(), key_stack: "a--sc".to_owned() }),
    ]
}

#[test]
fn each_variant_has_its_hint_or_none() {
    fn lines<E: std::error::Error + Send + Sync + 'static>(errors: Vec<E>) -> String {
        let line = |error: E| {
            // The beginning of the debug form names the variant, and that of the error in it.
            let text: String = format!("{error:?}").split_whitespace().collect();
            let name: String = text.chars().take(44).collect();
            let error = anyhow::Error::new(error);
            let hints: Vec<String> = error.chain().filter_map(hint).map(MessageText::into_string).collect();
            format!("{name}\n{}", hints.iter().map(|hint| format!("    {hint}\n")).collect::<String>())
        };
        errors.into_iter().map(line).collect()
    }
    let table = [
        ("state", lines(state_errors())),
        ("store", lines(store_errors())),
        ("format", lines(format_errors())),
        ("setup", lines(setup_errors())),
        ("operation", lines(operation_errors())),
    ];
    let text: String = table.iter().map(|(name, lines)| format!("# {name}\n{lines}")).collect();
    insta::assert_snapshot!("hints", text);
}

//! Texts of errors.

mod hints;

use anyhow::Context as _;
use provisioner::operation::SetupError;
use state::store::StackReference;
use state::{JournalError, KeptJournal};

use super::super::exit::Exit;
use super::*;

fn printed(error: SetupError) -> String {
    let error = anyhow::Error::new(error);
    let lines = error_lines(&error_texts(&error, &SecretMasker::default()));
    let code = Exit::of_error(&error).code();
    lines.iter().map(|line| line.render(false) + "\n").collect::<String>() + &format!("exit {code}\n")
}

#[test]
fn selection_errors_name_the_stacks_and_exit_as_wrong_usage() {
    let existing = || vec!["reef".to_owned(), "shore".to_owned()];
    let errors = [
        SetupError::UnknownStack { name: "ref".to_owned(), existing: existing() },
        SetupError::UnknownStack { name: "mountains".to_owned(), existing: existing() },
        SetupError::ClientStack { name: "shop".to_owned() },
        SetupError::SeveralStacks(existing()),
        SetupError::NoStacks,
        SetupError::EmptyName,
    ];
    insta::assert_snapshot!(errors.map(printed).concat(), @"
    error: there is no stack ref
      hint: did you mean reef?
    exit 2
    error: there is no stack mountains
      hint: the stacks are: reef, shore
    exit 2
    error: shop is a client stack: its folder has a client.yaml and no server.yaml
      hint: `sc` provisions stacks with a server.yaml; Simple Container's own program deploys client stacks
    exit 2
    error: there are 2 stacks: reef, shore
      hint: choose one with --stack
    exit 2
    error: there are no stacks
      hint: a stack is a folder with a server.yaml below `.sc/stacks`; `sc init` writes a first one
    exit 2
    error: the name of a stack is empty
      hint: an unset variable may have been passed; leave the option out for the default
    exit 2
    ");
}

#[test]
fn lost_lock_has_hints_about_what_the_run_left() {
    let stack = StackReference::new("reef", "aquarium").unwrap();
    let lost = || StoreError::LockLost { stack: stack.clone(), holders: vec![] };
    let kept = Some(KeptJournal { path: "file".into(), is_fallback: false, lacks_changes: false });
    let unsaved = StateError::Unsaved { stack: stack.clone(), kept, source: Box::new(lost().into()) };
    let saved = StateError::NotReleased { stack: stack.clone(), source: Box::new(lost()) };
    let printed = [unsaved, saved, lost().into()].map(|error| {
        let error = anyhow::Error::new(error);
        assert_eq!(Exit::of_error(&error), Exit::Locked);
        let hints: Vec<String> = error.chain().filter_map(hint).map(MessageText::into_string).collect();
        hints.join("\n") + "\n"
    });
    insta::assert_snapshot!(printed.join("\n"), @"
    the next run merges the journal into the state, or reports a conflict if the state has changed since; in a bucket or a database that is also a run on another machine, unless `journal` is `local`
    run again once no other run uses the stack

    nothing of this run is lost: its state is complete, and the next run adds what its history lacks. Find out who removed the lock while the run was active

    run again once no other run uses the stack
    ");
}

#[test]
fn unrecorded_changes_are_printed_as_urn_and_id() {
    use state::ChangeKind;
    let change = |kind, id| UnrecordedChange {
        kind,
        urn: "urn:pulumi:dev::reef::t:m:T::a".parse().unwrap(),
        id: pulumi_proto::resource_id::ResourceId::new(id).unwrap(),
    };
    let changes = [change(ChangeKind::Added, "a-2"), change(ChangeKind::Removed, "a-1")];
    let text: Vec<String> = unrecorded_lines(&changes).iter().map(|line| line.render(false)).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    error: 2 changes are recorded neither in the state nor in a journal:
    urn:pulumi:dev::reef::t:m:T::a = a-2
    urn:pulumi:dev::reef::t:m:T::a = a-1 (removed)
    ");
}

#[test]
fn journal_in_a_fallback_folder_is_found_with_the_same_variables() {
    let unsaved = |is_fallback| {
        let stack = StackReference::new("reef", "dev").unwrap();
        let kept = Some(KeptJournal { path: "file".into(), is_fallback, lacks_changes: false });
        let source = Box::new(StateError::Changed(stack.clone()));
        StateError::Unsaved { stack, kept, source }.hint().unwrap().into_string()
    };
    let names_variables = |hint: String| ["HOME", "XDG_STATE_HOME", "TMPDIR"].iter().all(|name| hint.contains(name));
    assert_eq!([unsaved(true), unsaved(false)].map(names_variables), [true, false]);
}

#[test]
fn file_of_a_newer_version_has_a_hint() {
    let path = || "file".into();
    let checkpoint = |source| StateError::Checkpoint {
        stack: StackReference::new("reef", "dev").unwrap(),
        file: "file".to_owned(),
        source: Box::new(source),
    };
    let table: [anyhow::Error; 6] = [
        checkpoint(FormatError::TooNew(9)).into(),
        checkpoint(FormatError::UnknownFeature("hearts".to_owned())).into(),
        StateError::Export(Box::new(FormatError::TooNew(9))).into(),
        StateError::from(JournalError::UnsupportedVersion { path: path(), version: 2 }).into(),
        StateError::from(StoreError::TooNew { location: "file".to_owned(), version: 2 }).into(),
        StoreError::TooNew { location: "file".to_owned(), version: 2 }.into(),
    ];
    for error in table {
        let hints: Vec<String> = error.chain().filter_map(hint).map(MessageText::into_string).collect();
        assert!(hints.len() == 1 && hints[0].starts_with("a newer version of "), "{error:?}: {hints:?}");
    }
}

#[test]
fn error_is_printed_with_causes_and_hint() {
    let error = Err::<(), _>(CliError::usage("there are two stacks:\nreef, shore", "choose one with --stack"))
        .context("nothing was changed")
        .unwrap_err();
    let text: Vec<String> =
        error_lines(&error_texts(&error, &SecretMasker::default())).iter().map(|line| line.render(false)).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    error: nothing was changed
      caused by: there are two stacks:
        reef, shore
      hint: choose one with --stack
    ");
}

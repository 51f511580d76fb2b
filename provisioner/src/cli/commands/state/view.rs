//! Recorded state for the commands that show it: loading, and the choice of a resource by name.

use bridge::error::closest_resource;
use bridge::message_text::MessageText;
use engine::{UrnPattern, names_of_key};
use provisioner::operation::{Stacks, obsolete_text, recovery_text};
use pulumi_proto::urn::Urn;
use state::secrets::Provider;
use state::{Snapshot, StackView};

use crate::cli::access::{access, opening_text};
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::exit::CliError;
use crate::cli::recorded_names;
use crate::cli::stacks::{not_provisioned, only, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Need of a command for the secrets of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decryption {
    /// The command shows no values.
    None,
    /// The command masks secrets, also at other paths of the state if a passphrase decrypts them. It calls no key management service.
    WithPassphrase,
    /// The command shows secrets.
    Required,
}

/// Maximum number of names in a hint.
const MAX_NAMES: usize = 10;

/// Loads the state of a stack to show it, with warnings about an interrupted run and an invalid state. Adds the secrets that it
/// decrypts to those that are masked.
///
/// # Errors
/// Errors of the configuration and of the state; the stack was never provisioned.
pub(super) async fn load_for_display(
    ui: &Ui,
    global: &GlobalArgs,
    stack: &StackArgs,
    decryption: Decryption,
) -> anyhow::Result<(Stacks, Snapshot)> {
    let stacks = read_stack_of_state(ui, global, stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let opened = async {
        match decryption {
            Decryption::WithPassphrase if matches!(access.keyring.provider(), Some(Provider::Passphrase)) => {
                match StackView::open(&access).await {
                    Ok(view) => Ok(view),
                    Err(_) => StackView::open_without_secrets(&access).await,
                }
            }
            Decryption::Required => StackView::open(&access).await,
            Decryption::None | Decryption::WithPassphrase => StackView::open_without_secrets(&access).await,
        }
    };
    let view = show_while(&ui.output, &opening_text(access.stack.stack()), opened).await?;
    if let Some(recovered) = &view.recovered {
        ui.output.warn(recovery_text(recovered, view.is_idle));
    }
    if !view.late.is_empty() {
        ui.output.warn(MessageText::of(&view.late));
    }
    view.obsolete.iter().for_each(|started| ui.output.warn(obsolete_text(started)));
    if let Some(conflict) = &view.conflict {
        ui.output.warn(format_args!("these resources are from the checkpoint only: {conflict}"));
    }
    if let Some(error) = &view.integrity_error {
        ui.output.warn(format_args!("the state is invalid: {error}\n`sc state repair` can repair it"));
    }
    let Some(snapshot) = view.snapshot else { return Err(not_provisioned(&access.stack).into()) };
    snapshot.resources.iter().for_each(|resource| ui.output.masker().add_resource(resource));
    let environment = &stacks.process_context.environment;
    recorded_names::keep(environment, &stacks.repository.root, &only(&stacks)?.name, &snapshot);
    Ok((stacks, snapshot))
}

/// Returns the URNs of a snapshot, also those that only pending operations have.
pub(super) fn urns(snapshot: &Snapshot) -> Vec<&Urn> {
    let mut urns: Vec<&Urn> = snapshot.all_resources().map(|state| &state.urn).collect();
    urns.sort();
    urns.dedup();
    urns
}

/// Returns the resource that a text names: by name or URN, also with wildcards, by `TYPE::NAME`, by the key of its
/// declaration, or by `ENV/KEY`.
///
/// # Errors
/// No resource has this name, or several have it.
pub(super) fn find_resource(snapshot: &Snapshot, text: &str) -> Result<Urn, CliError> {
    let urns = urns(snapshot);
    let pattern = UrnPattern::new(text);
    let mut found: Vec<&&Urn> = urns.iter().filter(|urn| pattern.matches(urn)).collect();
    // A name takes precedence over a key.
    if found.is_empty() {
        let names = names_of_key(text, urns.iter().map(|urn| urn.name()));
        found.extend(urns.iter().filter(|urn| names.contains(urn.name())));
    }
    match &found[..] {
        [urn] => Ok((**urn).clone()),
        [] => Err(unknown_resource(text, &urns)),
        several => {
            let candidates: Vec<String> = several.iter().take(MAX_NAMES).map(|urn| urn.to_string()).collect();
            let hint =
                MessageText::new(format_args!("give the URN of one of them: {}", list(candidates, several.len())));
            Err(CliError::failed(format_args!("{} resources match {text}", several.len()), hint))
        }
    }
}

/// Returns a pattern that selects the resources that a text names. A text without stars that is no name of a resource may be the key
/// of one.
///
/// # Errors
/// No resource has this name, or several have this key.
pub(super) fn pattern_of(urns: &[&Urn], text: &str) -> Result<UrnPattern, CliError> {
    let pattern = UrnPattern::new(text);
    if urns.iter().any(|urn| pattern.matches(urn)) {
        return Ok(pattern);
    }
    let names: Vec<&str> = names_of_key(text, urns.iter().map(|urn| urn.name())).into_iter().collect();
    match names[..] {
        [name] => Ok(UrnPattern::new(name)),
        [] => Err(unknown_resource(text, urns)),
        _ => {
            let shown = names.iter().take(MAX_NAMES).map(|name| (*name).to_owned()).collect();
            let hint = MessageText::new(format_args!("give the name of one of them: {}", list(shown, names.len())));
            Err(CliError::failed(format_args!("{} resources match {text}", names.len()), hint))
        }
    }
}

/// Returns the error for a name that no resource has.
pub(super) fn unknown_resource(text: &str, urns: &[&Urn]) -> CliError {
    let names: Vec<&str> = urns.iter().map(|urn| urn.name()).collect();
    let hint = match closest_resource(text, &names) {
        Some(name) => MessageText::new(format_args!("did you mean {name}?")),
        None if urns.is_empty() => "the state has no resources".into(),
        None if urns.len() <= MAX_NAMES => MessageText::new(format_args!("the resources are: {}", names.join(", "))),
        None => "`sc state ls` lists the resources".into(),
    };
    CliError::failed(format_args!("no resource of this stack is called {text}"), hint)
}

fn list(shown: Vec<String>, count: usize) -> String {
    let more = count - shown.len();
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use state::ResourceState;

    use engine::masking::SecretMasker;

    use super::*;
    use crate::cli::error_texts::error_texts;

    fn snapshot(urns: &[&str]) -> Snapshot {
        let entry = |urn: &&str| {
            let urn = format!("urn:pulumi:dev::reef::{urn}").parse().unwrap();
            Arc::new(ResourceState::new(urn, true))
        };
        Snapshot { resources: urns.iter().map(entry).collect(), ..Snapshot::default() }
    }

    /// Shows: state.md#recorded-resources "`NAME` is the name that previews show (`KEY--ENV`), the key, `ENV/KEY`,
    ///   `TYPE::NAME` or a URN."
    #[test]
    fn resource_is_found_by_name_key_type_and_urn() {
        let snapshot =
            snapshot(&["t:m:A::web--prod", "t:m:B::web--prod", "t:m:A::db--prod", "t:m:A::db", "t:m:A::log--test"]);
        let found = |text: &str| find_resource(&snapshot, text).map(|urn| urn.as_str()[22..].to_owned());
        let table = [
            ("db--prod", "t:m:A::db--prod"),
            // The name of a resource takes precedence over the key of another one.
            ("db", "t:m:A::db"),
            ("log", "t:m:A::log--test"),
            ("test/log", "t:m:A::log--test"),
            ("log*", "t:m:A::log--test"),
            ("t:m:B::web--prod", "t:m:B::web--prod"),
            ("urn:pulumi:dev::reef::t:m:A::web--prod", "t:m:A::web--prod"),
        ];
        for (text, expected) in table {
            assert_eq!(found(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn pattern_selects_by_name_or_by_the_key_of_one_resource() {
        let snapshot = snapshot(&["t:m:A::web--prod", "t:m:B::web--prod", "t:m:A::db--prod", "t:m:A::db--test"]);
        let all = urns(&snapshot);
        let count = |text: &str| {
            let pattern = pattern_of(&all, text)?;
            Ok::<_, CliError>(all.iter().filter(|urn| pattern.matches(urn)).count())
        };
        for (text, expected) in [("web", 2), ("t:m:A::web--prod", 1), ("test/db", 1), ("db--*", 2), ("db--prod", 1)] {
            assert_eq!(count(text).unwrap(), expected, "{text}");
        }
        let texts = |text: &str| error_texts(&count(text).unwrap_err().into(), &SecretMasker::default());
        assert_eq!(texts("db").message, "2 resources match db");
        assert_eq!(texts("db").hints, ["give the name of one of them: db--prod, db--test"]);
        assert_eq!(texts("web--pord").hints, ["did you mean web--prod?"]);
    }

    /// Shows: state.md#recorded-resources "A name that several resources have is an error, which lists them."
    #[test]
    fn ambiguous_or_unknown_name_is_an_error_with_candidates() {
        let snapshot = snapshot(&["t:m:A::web--prod", "t:m:B::web--prod", "t:m:A::db--prod"]);
        let error = |text: &str| {
            let error = find_resource(&snapshot, text).unwrap_err();
            let texts = error_texts(&error.into(), &SecretMasker::default());
            format!("{}\n{}", texts.message, texts.hints.join("\n"))
        };
        insta::assert_snapshot!(error("web"), @"
        2 resources match web
        give the URN of one of them: urn:pulumi:dev::reef::t:m:A::web--prod, urn:pulumi:dev::reef::t:m:B::web--prod
        ");
        insta::assert_snapshot!(error("db--pord"), @"
        no resource of this stack is called db--pord
        did you mean db--prod?
        ");
        insta::assert_snapshot!(error("x"), @"
        no resource of this stack is called x
        the resources are: db--prod, web--prod, web--prod
        ");
    }
}

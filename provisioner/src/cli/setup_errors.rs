//! Hints for errors about the inputs of an operation.

use bridge::message_text::MessageText;
use config::diagnostics::closest;
use provisioner::operation::SetupError;
use state::store::StackReference;

/// User id of the administrator.
const ROOT: u32 = 0;

/// Returns whether the arguments of the command or its environment are wrong.
pub(crate) fn is_usage(error: &SetupError) -> bool {
    matches!(
        error,
        SetupError::EmptyName
            | SetupError::NoStacks
            | SetupError::UnknownStack { .. }
            | SetupError::SeveralStacks(_)
            | SetupError::TwoCompressions { .. }
            | SetupError::LeaseSeconds { .. }
            | SetupError::UnsupportedTarget { .. }
    )
}

/// Returns the hint for an error, if there is one.
pub(crate) fn hint(error: &SetupError) -> Option<MessageText> {
    match error {
        SetupError::ForeignRepository { foreign, user, .. } => {
            let owner = foreign.owner;
            let accept = match *user {
                ROOT => MessageText::new(format_args!("set SUDO_UID={owner} to accept its files as root")),
                _ => "change the owner with `chown`".into(),
            };
            Some(MessageText::new(format_args!(
                "its files name programs that `sc` runs. If you trust user {owner}, run `sc` as that user, or {accept}; \
                 else choose another folder with --cwd"
            )))
        }
        SetupError::EmptyName => {
            Some("an unset variable may have been passed; leave the option out for the default".into())
        }
        SetupError::NoStacks => Some("a stack is a folder with a server.yaml below `.sc/stacks`".into()),
        SetupError::UnknownStack { name, existing } => Some(match closest(name, existing.iter().map(String::as_str)) {
            Some(close) => MessageText::new(format_args!("did you mean {close}?")),
            None => MessageText::new(format_args!("the stacks are: {}", existing.join(", "))),
        }),
        SetupError::SeveralStacks(_) => Some("choose one with --stack".into()),
        SetupError::TwoCompressions { .. } => Some("only one compression can be used: unset one of them".into()),
        SetupError::NoClients { .. } => Some(
            "use a build with the feature `cloud`, which is on by default, or keep the state in a folder (`file://…`)".into(),
        ),
        SetupError::Bucket { .. } => Some(
            "give the account the permission storage.buckets.create (role `Storage Admin`), or create the bucket yourself".into(),
        ),
        SetupError::Renamed { from, to } => Some(rename_hint(from, to)),
        SetupError::SettingsExist { .. } => Some("remove or move one of them".into()),
        SetupError::UnsupportedTarget { .. } => Some(
            "write `file:///absolute/folder`, `file://~/folder`, `s3://bucket/prefix`, `gs://bucket/prefix` or \
             `postgres://host/database`, with the parameters that `pulumi login` takes"
                .into(),
        ),
        SetupError::Reference(_)
        | SetupError::LeaseSeconds { .. }
        | SetupError::Url { .. }
        | SetupError::Store { .. }
        | SetupError::Rename(_)
        | SetupError::SettingsNotMoved { .. }
        | SetupError::InvalidSettings { .. }
        | SetupError::UnreadableSettings { .. }
        | SetupError::PassphraseFile { .. }
        | SetupError::SecretsProvider(_)
        | SetupError::KeyStack { .. }
        | SetupError::Config(_) => None,
    }
}

/// Returns what else the user has to rename.
pub(crate) fn rename_hint(from: &StackReference, to: &StackReference) -> MessageText {
    let mut steps = Vec::new();
    if from.stack() != to.stack() {
        steps.push(MessageText::new(format_args!("rename the folder of its server.yaml to {}", to.stack())));
    }
    if from.project() != to.project() {
        steps.push(MessageText::new(format_args!("set `projectName: {}` in the profile", to.project())));
    }
    let mut text = MessageText::default();
    for (index, step) in steps.iter().enumerate() {
        text.push_text(&if index == 0 { "".into() } else { " and ".into() });
        text.push_text(step);
    }
    text.push_text(&" before the next provision".into());
    text
}

#[cfg(test)]
mod tests {
    use engine::masking::SecretMasker;

    use super::super::exit::{Exit, error_lines, error_texts};
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
        error: there are 2 stacks: reef, shore
          hint: choose one with --stack
        exit 2
        error: there are no stacks
          hint: a stack is a folder with a server.yaml below `.sc/stacks`
        exit 2
        error: the name of a stack is empty
          hint: an unset variable may have been passed; leave the option out for the default
        exit 2
        ");
    }
}

//! Texts about a stack that has moved to another state storage.

use bridge::message_text::MessageText;
use engine::masking::MASK;
use state::MigrationError;
use state::store::{MigrationDirection, MigrationMark};

/// Returns what to do about the mark of a stack.
pub(crate) fn hint(mark: &MigrationMark, mark_location: &str) -> MessageText {
    let url = &mark.url;
    match mark.direction {
        MigrationDirection::To => MessageText::new(format_args!(
            "set the state storage in server.yaml:\n{}\nwith that, `sc stack migrate --to URL` moves the stack back. The state \
             that was left here may be outdated: `sc` uses it again if you remove {mark_location}",
            state_storage(url, false)
        )),
        MigrationDirection::From => MessageText::new(format_args!(
            "the stack is complete in the old state storage. Let server.yaml name {url}, and run `sc stack migrate` again, \
             which continues"
        )),
    }
}

/// Returns what to do about a migration that has failed.
pub(crate) fn migration_hint(error: &MigrationError) -> Option<&'static str> {
    match error {
        MigrationError::SameStore { .. } => Some("give the URL of another state storage"),
        MigrationError::TargetLocked { .. } => Some(
            "the lock is in the new state storage; `sc cancel` removes it there if server.yaml names that one for the moment",
        ),
        MigrationError::TargetExists { .. } => Some(
            "nothing was changed. Compare both with `sc stack export`, with server.yaml for each of them. If the one in the \
             new state storage is not needed, remove it there with `sc stack rm --force`, which deletes no resources",
        ),
        MigrationError::TargetChanged { .. } => Some(
            "nothing was changed. A program that ignores the mark has worked there, such as `pulumi`: compare both with \
             `pulumi stack export`. If the one there is not needed, remove it with `pulumi stack rm --force`, which deletes \
             no resources",
        ),
        MigrationError::NotEqual { .. } => {
            Some("the stack is used where it was. Find out which program writes into the new one, and run again")
        }
        MigrationError::MarkNotChanged { .. } => Some("run the command again: it only changes the mark then"),
        MigrationError::NotReleased { .. } => Some(
            "name the new state storage in server.yaml; if the next command finds the lock there, `sc cancel` removes it",
        ),
    }
}

/// Returns the lines of server.yaml that name a state storage.
pub(crate) fn state_storage(url: &str, is_private: bool) -> String {
    let private = if is_private { ", private: true" } else { "" };
    let password = if url.contains(MASK) { format!(" # with the password in place of {MASK}") } else { String::new() };
    let url = serde_json::Value::from(url);
    format!("  state-storage: {{ type: fs, config: {{ path: {url}{private} }} }}{password}")
}

/// Returns the status of a stack with a mark, for a list.
pub(crate) fn status(mark: &MigrationMark) -> String {
    match mark.direction {
        MigrationDirection::To => format!("moved to {}", mark.url),
        MigrationDirection::From => format!("incomplete, migrated from {}", mark.url),
    }
}

#[cfg(test)]
mod tests {
    use engine::masking::SecretMasker;
    use jiff::Timestamp;
    use state::store::{StackReference, StoreError};

    use super::super::exit::{Exit, error_lines, error_texts};
    use super::*;

    fn printed(direction: MigrationDirection, url: &str) -> String {
        let mark = MigrationMark {
            direction,
            url: url.to_owned(),
            location: url.to_owned(),
            digest: String::new(),
            replaces: None,
            outdated: Vec::new(),
            time: Timestamp::UNIX_EPOCH,
            user: "ada".to_owned(),
            host: "reefbox".to_owned(),
            run: None,
        };
        let stack = StackReference::new("tank", "reef").unwrap();
        let error = StoreError::Migrated {
            stack,
            mark: Box::new(mark),
            mark_location: "/a/.sc/moved/tank/reef.json".to_owned(),
        };
        let error = anyhow::Error::new(state::StateError::from(error));
        let lines = error_lines(&error_texts(&error, &SecretMasker::default()));
        lines.iter().map(|line| line.render(false) + "\n").collect::<String>()
            + &format!("exit {}\n", Exit::of_error(&error).code())
    }

    #[test]
    fn migrated_stack_fails_with_the_state_storage_to_write() {
        let printed = printed(MigrationDirection::To, "postgres://ada:[secret]@host/db?table=\"x\"")
            + &printed(MigrationDirection::From, "file:///old");
        insta::assert_snapshot!(printed, @r#"
        error: organization/tank/reef has moved to postgres://ada:[secret]@host/db?table="x": ada@reefbox migrated it at 1970-01-01T00:00:00Z
          hint: set the state storage in server.yaml:
              state-storage: { type: fs, config: { path: "postgres://ada:[secret]@host/db?table=\"x\"" } } # with the password in place of [secret]
            with that, `sc stack migrate --to URL` moves the stack back. The state that was left here may be outdated: `sc` uses it again if you remove /a/.sc/moved/tank/reef.json
        exit 1
        error: organization/tank/reef is incomplete here: ada@reefbox began to migrate it from file:///old at 1970-01-01T00:00:00Z
          hint: the stack is complete in the old state storage. Let server.yaml name file:///old, and run `sc stack migrate` again, which continues
        exit 1
        "#);
    }
}

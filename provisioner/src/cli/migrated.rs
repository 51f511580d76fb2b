//! Texts about a stack that has moved to another state storage or name.

use bridge::message_text::MessageText;
use engine::masking::MASK;
use provisioner::operation::rename_hint;
use state::store::{MigrationDirection, MigrationMark, StackReference};

/// Returns what to do about the mark of a stack.
pub(crate) fn hint(stack: &StackReference, mark: &MigrationMark, mark_location: &str) -> MessageText {
    let url = &mark.url;
    match mark.direction {
        MigrationDirection::To => MessageText::new(format_args!(
            "set the state storage in server.yaml:\n{}\nwith that, `sc stack migrate --to URL` moves the stack back. The state \
             that was left here may be outdated: `sc` uses it again if you remove {mark_location}",
            state_storage(url, false)
        )),
        MigrationDirection::Renamed => {
            let to = StackReference::parse(url, stack.project());
            let mut text = to.as_ref().map(|to| rename_hint(stack, to)).unwrap_or_default();
            text.push_text(
                &"; `sc stack rename` takes the old name back, once the folder has the new one; `sc provision --new` begins another stack under the old"
                    .into(),
            );
            text
        }
        MigrationDirection::From => MessageText::new(format_args!(
            "the stack is complete in the old state storage. Let server.yaml name {url}, and run `sc stack migrate` again, \
             which continues"
        )),
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
        MigrationDirection::Renamed => format!("renamed to {}", mark.url),
        MigrationDirection::From => format!("incomplete, migrated from {}", mark.url),
    }
}

#[cfg(test)]
mod tests {
    use engine::masking::SecretMasker;
    use jiff::Timestamp;
    use state::store::{StackReference, StoreError};

    use super::super::error_texts::{error_lines, error_texts};
    use super::super::exit::Exit;
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

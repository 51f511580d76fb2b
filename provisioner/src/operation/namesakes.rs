//! Guard of new stacks: a stack of the same name below another project, with equal resources, is likely to be the same stack, whose
//! project was renamed in the profile. A run would create everything a second time.

use std::collections::BTreeSet;

use bridge::message_text::MessageText;
use engine::events::{Event, Message, Operation, Severity};
use state::Namesake;

use super::error::names;
use super::{Approval, OperationError, StackRun};

impl StackRun {
    /// Warns if a run would begin a stack that seems to be one of the namesakes, and asks. `is_preview`: only warns.
    ///
    /// # Errors
    /// [`OperationError::Namesake`] if nobody can be asked; [`OperationError::NamesakeDeclined`] if the user declines.
    pub(super) async fn check_new_stack(
        &self,
        operation: Operation,
        namesakes: &[Namesake],
        is_preview: bool,
    ) -> Result<(), OperationError> {
        if operation != Operation::Update || self.access.begins_anew {
            return Ok(());
        }
        let declared = self.program.resource_names().await;
        let Some(namesake) = equal(namesakes, &declared) else { return Ok(()) };
        let (own, other) = (&self.access.stack, &namesake.stack);
        let warning = MessageText::new(format_args!(
            "{own} would be a new stack, and {other} in the same store has equal resources: {}",
            names(&namesake.resources)
        ));
        let hint = MessageText::new(format_args!(
            "if it is the same stack, set `projectName: {}` in the profile; to begin another one, give --new",
            other.project()
        ));
        if is_preview {
            self.events.emit(Event::Message(Message { hint: Some(hint), ..Message::new(Severity::Warning, warning) }));
            return Ok(());
        }
        let Some(question) = &self.options.new_stack_question else {
            return Err(OperationError::Namesake { warning, hint });
        };
        let text = MessageText::new(format_args!("Begin the new stack {own}?"));
        match question.ask(&warning, &text).await {
            Approval::Granted => Ok(()),
            Approval::Declined => Err(OperationError::NamesakeDeclined { hint }),
        }
    }
}

/// Returns the first stack that has at least half of the declared resources, with these resources.
fn equal(namesakes: &[Namesake], declared: &BTreeSet<String>) -> Option<Namesake> {
    namesakes.iter().cloned().find_map(|mut namesake| {
        namesake.resources.retain(|urn| declared.contains(urn.name()));
        let found: BTreeSet<&str> = namesake.resources.iter().map(|urn| urn.name()).collect();
        (!found.is_empty() && found.len() * 2 >= declared.len()).then_some(namesake)
    })
}

#[cfg(test)]
mod tests {
    use state::store::StackReference;

    use super::*;

    #[test]
    fn stack_with_half_of_the_declared_resources_is_equal() {
        let declared: BTreeSet<String> = ["a--prod", "b--prod", "c--prod"].map(str::to_owned).into();
        let table: [(&[&str], bool); 5] = [
            (&["a--prod", "b--prod", "c--prod"], true),
            (&["a--prod", "b--prod", "x--prod", "y--prod"], true),
            (&["a--prod"], false),
            (&["x--prod"], false),
            (&[], false),
        ];
        for (recorded, expected) in table {
            let urn = |name: &&str| format!("urn:pulumi:reef::tank::t:m:T::{name}").parse().unwrap();
            let stack = StackReference::new("tank", "reef").unwrap();
            let namesake = Namesake { stack, resources: recorded.iter().map(urn).collect() };
            assert_eq!(equal(&[namesake], &declared).is_some(), expected, "{recorded:?}");
        }
        assert_eq!(equal(&[], &BTreeSet::new()), None);
    }
}

//! Changes of state edits, and rejected edits.

use bridge::message_text::MessageText;
use pulumi_proto::urn::Urn;
use state::ResourceState;
use state::state_edit::StateEditError;

use crate::cli::display::Line;
use crate::cli::exit::CliError;

/// Change of a state edit, shown as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Verb of the change.
    pub(super) verb: &'static str,
    /// Resource that changes; `None` if the change is not about a resource.
    pub(super) urn: Option<Urn>,
    pub(super) detail: String,
    /// Next step of the user, shown in a line of its own; empty if there is none.
    pub(super) advice: String,
}

impl Change {
    pub(super) fn new(verb: &'static str, urn: &Urn) -> Self {
        Self { verb, urn: Some(urn.clone()), ..Self::default() }
    }

    pub(super) fn with_id(self, state: &ResourceState) -> Self {
        Self { detail: state.id_text().to_owned(), ..self }
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        let urn = self.urn.as_ref().map(Urn::as_str);
        let mut object = serde_json::json!({ "do": self.verb, "urn": urn, "detail": self.detail });
        if !self.advice.is_empty() {
            object["advice"] = self.advice.as_str().into();
        }
        object
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let resource =
            self.urn.as_ref().map(|urn| format!(" {} ({})", urn.name(), urn.type_token())).unwrap_or_default();
        let mut lines = vec![Line::plain(format!("  {}{resource} {}", self.verb, self.detail).trim_end())];
        if !self.advice.is_empty() {
            lines.push(Line::plain(format!("    {}", self.advice)));
        }
        lines
    }
}

/// Converts a rejected edit to an error with a hint.
pub(super) fn edit_error(error: StateEditError) -> CliError {
    let hint = match &error {
        StateEditError::Protected(_) => "unprotect them with `sc state unprotect`, or give --force",
        StateEditError::HasDependents(_) => "remove these as well, or give --target-dependents",
        StateEditError::Ambiguous { ids, .. } if ids.iter().any(|id| *id != ids[0]) => "select one with --id",
        StateEditError::NoSuchId(_) => "`sc state ls` shows the ids",
        StateEditError::NameTaken(_) => "choose another name, or remove that resource from the state first",
        StateEditError::InvalidName(..) => "give only the new name, such as web--prod",
        StateEditError::Ambiguous { .. } | StateEditError::Cycle(_) | StateEditError::Unrepairable(_) => {
            "export the state with `sc stack export`, repair the file, and import it with `sc stack import`"
        }
    };
    CliError::failed(MessageText::of(&error), hint)
}

//! `sc state ls`: lists the recorded resources.

use clap::Args;
use engine::UrnPattern;
use pulumi_proto::urn::Urn;
use state::{OperationKind, PendingOperation, ResourceState, Snapshot};

use super::view::{Decryption, load_for_display, unknown_resource, urns};
use crate::cli::args::{GlobalArgs, StackArgs};
use crate::cli::display::Line;
use crate::cli::exit::Exit;
use crate::cli::listing::table;
use crate::cli::ui::Ui;

/// List the recorded resources with their types and ids
///
/// The order is that of the state: each resource comes after those that it depends on. The status shows protected,
/// tainted and external resources, pending deletes and replacements, and pending operations. No passphrase is needed,
/// unless an interrupted run has left a journal with secrets.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  List the buckets of a stack:
      sc state ls -s aquarium '**:Bucket::*'")]
pub(crate) struct LsArgs {
    /// Resources to list, by name or URN; `*` is a wildcard [default: all]
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    #[command(flatten)]
    stack: StackArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &LsArgs) -> anyhow::Result<Exit> {
    let (_, snapshot) = load_for_display(ui, global, &args.stack, Decryption::None).await?;
    let pattern = args.pattern.as_ref().map(UrnPattern::new);
    let rows: Vec<Row<'_>> = rows(&snapshot, |urn| pattern.as_ref().is_none_or(|pattern| pattern.matches(urn)));
    if let Some(pattern) = pattern.filter(|pattern| rows.is_empty() && pattern.is_literal()) {
        return Err(unknown_resource(pattern.as_str(), &urns(&snapshot)).into());
    }
    let lines = if ui.output.results_are_json() {
        rows.iter().map(|row| Line::plain(row.as_json())).collect()
    } else {
        let rows: Vec<Vec<String>> = rows.iter().map(Row::as_row).collect();
        table(&["NAME", "TYPE", "ID", "STATUS"], &rows)
    };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

/// Row of the list: an entry of the state, or a pending operation on a resource that has no entry yet.
struct Row<'s> {
    state: &'s ResourceState,
    pending: Option<OperationKind>,
}

/// Returns the rows of the entries, then those of the pending operations that belong to no entry.
fn rows(snapshot: &Snapshot, is_listed: impl Fn(&Urn) -> bool) -> Vec<Row<'_>> {
    let operations = &snapshot.pending_operations;
    let entries = snapshot.resources.iter().map(|state| {
        let pending = operations.iter().find(|operation| is_on_entry(operation, state));
        Row { state, pending: pending.map(|operation| operation.kind) }
    });
    let has_entry = |operation: &PendingOperation| snapshot.resources.iter().any(|state| is_on_entry(operation, state));
    let others = operations.iter().filter(|operation| !has_entry(operation));
    let others = others.map(|operation| Row { state: &operation.resource, pending: Some(operation.kind) });
    entries.chain(others).filter(|row| is_listed(&row.state.urn)).collect()
}

/// Returns whether a pending operation is on the physical resource of an entry. A pending create is on a new one.
pub(super) fn is_on_entry(operation: &PendingOperation, state: &ResourceState) -> bool {
    operation.kind != OperationKind::Creating
        && (&operation.resource.urn, &operation.resource.id) == (&state.urn, &state.id)
}

impl Row<'_> {
    fn as_row(&self) -> Vec<String> {
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        vec![
            self.state.urn.name().to_owned(),
            self.state.type_token.to_string(),
            or_dash(self.state.id_text()),
            or_dash(&status(self.state, self.pending).join(", ")),
        ]
    }

    fn as_json(&self) -> String {
        let state = self.state;
        serde_json::json!({
            "name": state.urn.name(),
            "type": state.type_token.as_str(),
            "id": state.id.as_ref().map(|_| state.id_text()),
            "urn": state.urn.as_str(),
            "status": status(state, self.pending),
        })
        .to_string()
    }
}

/// Returns the words for what distinguishes an entry from one that is up to date and can be changed.
pub(super) fn status(state: &ResourceState, pending: Option<OperationKind>) -> Vec<String> {
    let marks = [
        (state.protect, "protected"),
        (state.taint, "tainted"),
        (state.external, "external"),
        (state.delete, "pending delete"),
        (state.pending_replacement, "pending replacement"),
        (!state.init_errors.is_empty(), "not initialized"),
    ];
    let marks = marks.into_iter().filter(|(applies, _)| *applies).map(|(_, mark)| mark.to_owned());
    marks.chain(pending.map(|kind| format!("pending operation: {}", kind.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulumi_proto::resource_id::ResourceId;

    use super::*;

    fn entry(name: &str, id: &str, change: impl FnOnce(&mut ResourceState)) -> Arc<ResourceState> {
        let urn = format!("urn:pulumi:dev::reef::t:m:T::{name}").parse().unwrap();
        let mut state = ResourceState { id: ResourceId::new(id), ..ResourceState::new(urn, true) };
        change(&mut state);
        Arc::new(state)
    }

    /// Shows: state.md#recorded-resources "lists the recorded resources with their types, ids and status: protected,
    ///   tainted or external, pending deletes and replacements, pending operations"
    #[test]
    fn status_shows_marks_and_pending_operations() {
        let operation = |kind, resource| PendingOperation { resource, kind };
        let snapshot = Snapshot {
            resources: vec![
                entry("a", "a-1", |state| (state.protect, state.taint) = (true, true)),
                entry("b", "b-1", |state| state.external = true),
                entry("c", "c-2", |_| {}),
                entry("c", "c-1", |state| state.delete = true),
                entry("d", "d-1", |state| state.pending_replacement = true),
                entry("e", "e-1", |state| state.init_errors = vec!["oh".to_owned()]),
            ],
            pending_operations: vec![
                operation(OperationKind::Deleting, entry("c", "c-1", |state| state.delete = true)),
                operation(OperationKind::Creating, entry("d", "", |_| {})),
                operation(OperationKind::Updating, entry("e", "e-1", |_| {})),
            ],
            ..Snapshot::default()
        };
        let shown = |rows: Vec<Row<'_>>| -> Vec<String> { rows.iter().map(|row| row.as_row().join(" | ")).collect() };
        insta::assert_snapshot!(shown(rows(&snapshot, |_| true)).join("\n"), @"
        a | t:m:T | a-1 | protected, tainted
        b | t:m:T | b-1 | external
        c | t:m:T | c-2 | -
        c | t:m:T | c-1 | pending delete, pending operation: deleting
        d | t:m:T | d-1 | pending replacement
        e | t:m:T | e-1 | not initialized, pending operation: updating
        d | t:m:T | - | pending operation: creating
        ");
        let pattern = UrnPattern::new("d");
        assert_eq!(shown(rows(&snapshot, |urn| pattern.matches(urn))).len(), 2);
    }
}

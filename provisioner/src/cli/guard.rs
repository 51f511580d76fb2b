//! Guard of `sc provision`: decides after the preview whether changes that destroy something need a confirmation, or are
//! refused.

use std::collections::BTreeSet;

use bridge::message_text::MessageText;
use config::{Confirm, MaxDeletes, Stack};
use engine::DeletionLimit;
use engine::events::{Deletions, StepOp, Summary};
use provisioner::operation::{Agreement, MissingLimit, Report, Stacks};
use pulumi_proto::urn::Urn;

use super::args::GuardArgs;
use super::exit::CliError;
use super::output::Output;
use super::prompt::Confirmation;
use super::session::Session;

/// Rules for the changes of one stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    confirm: Confirm,
    /// True if the user has agreed to all changes, with `--yes` or by skipping the preview.
    agreed: bool,
    /// True if the user can be asked: on a terminal, and not in a pipeline.
    is_interactive: bool,
    limit: Option<Limit>,
}

/// Limit on the resources that are deleted, replaced or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// `--max-deletes`.
    Argument(u64),
    /// `maxDeletes` in server.yaml.
    File(MaxDeletes),
}

/// Decision about the changes of a preview.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Proceed,
    /// Asks this question.
    Ask(MessageText),
    /// Fails, as more resources than the limit allows would be deleted or replaced.
    Refuse(Limit),
}

/// Numbers of resources that an update changes.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    deletions: Deletions,
    /// Resources that the refresh did not find.
    missing: usize,
    /// True if anything is changed.
    any: bool,
}

impl Guard {
    /// Returns the guard of a stack.
    ///
    /// # Errors
    /// Wrong usage, if the stack demands a confirmation and there is neither a terminal nor `--yes`.
    pub(crate) fn new(output: &Output, args: &GuardArgs, stack: &Stack) -> Result<Self, CliError> {
        let provisioner = &stack.provisioner;
        let limit = Limit::new(args, stack);
        let is_interactive = output.is_interactive();
        if provisioner.confirm == Confirm::Always && !args.yes && !is_interactive {
            let message =
                format!("stack {} demands a confirmation (`confirm: always`), and nobody can be asked", stack.name);
            return Err(CliError::usage(message, "give --yes to apply the changes without a question"));
        }
        let agreed = args.yes || args.skip_preview;
        Ok(Self { confirm: provisioner.confirm, agreed, is_interactive, limit })
    }

    /// Returns whether the guard needs a preview, even if the user skips it.
    pub(crate) fn needs_preview(&self) -> bool {
        self.limit.is_some()
    }

    /// Decides about the changes of a preview, and how many resources the update may delete. Asks the user if necessary.
    /// `missing` is the number of resources that the refresh before it did not find.
    ///
    /// # Errors
    /// The changes are above the limit; errors of the terminal.
    pub(crate) async fn approve(
        &self,
        session: &Session<'_>,
        stacks: &Stacks,
        stack: &str,
        preview: &Report,
        missing: usize,
    ) -> anyhow::Result<Agreement> {
        let counts = Counts::of(&preview.summary, missing);
        match self.decide(stack, counts) {
            Decision::Proceed => {
                Ok(Agreement::Granted(self.deletion_limit(&preview.deleted, missing, |limit| limit.setting(stacks))))
            }
            Decision::Ask(question) => Ok(match session.confirm(&question, false).await? {
                Confirmation::Yes => {
                    Agreement::Granted(self.deletion_limit(&preview.deleted, missing, |limit| limit.setting(stacks)))
                }
                Confirmation::No => Agreement::Declined,
            }),
            Decision::Refuse(limit) => Err(limit.error(stack, counts, stacks).into()),
        }
    }

    /// Returns the limit on the deletions of a run by a saved plan: the user has agreed to the plan.
    pub(crate) fn limit_of_plan(&self, stacks: &Stacks) -> Option<DeletionLimit> {
        let agreed = Self { agreed: true, ..*self };
        agreed.deletion_limit(&BTreeSet::new(), 0, |limit| limit.setting(stacks))
    }

    /// Returns whether the user is asked before a resource is deleted.
    fn asks_about_deletions(&self) -> bool {
        self.confirm != Confirm::Never && !self.agreed && self.is_interactive
    }

    /// Returns the limit on the deletions of an update: an output that its preview does not know may replace more than the
    /// preview has shown. A user who is asked about deletions has agreed to these only.
    fn deletion_limit(
        &self,
        shown: &BTreeSet<Urn>,
        missing: usize,
        setting: impl FnOnce(Limit) -> String,
    ) -> Option<DeletionLimit> {
        if self.asks_about_deletions() {
            return Some(DeletionLimit::Shown(shown.clone()));
        }
        let limit = self.limit?;
        let count = limit.count().saturating_sub(missing as u64);
        Some(DeletionLimit::Count {
            count: usize::try_from(count).unwrap_or(usize::MAX),
            origin: MessageText::new(format_args!("{} allows", setting(limit))),
            hint: "the preview did not know that; if this is what you want, give a higher --max-deletes".into(),
        })
    }

    fn decide(&self, stack: &str, counts: Counts) -> Decision {
        let destroyed = counts.deletions.total();
        if let Some(limit) = self.limit.filter(|limit| counts.limited() > limit.count()) {
            return Decision::Refuse(limit);
        }
        let asks = match self.confirm {
            Confirm::Never => false,
            Confirm::Deletes => destroyed > 0,
            Confirm::Always => counts.any,
        };
        if !asks || !self.asks_about_deletions() {
            return Decision::Proceed;
        }
        Decision::Ask(match counts.destroyed() {
            None => MessageText::new(format_args!("Apply these changes to stack {stack}?")),
            Some(destroyed) => {
                MessageText::new(format_args!("These changes {destroyed}. Apply them to stack {stack}?"))
            }
        })
    }
}

impl Limit {
    /// Returns the limit of a stack. `--max-deletes` takes precedence.
    pub(crate) fn new(args: &GuardArgs, stack: &Stack) -> Option<Self> {
        args.max_deletes.map(Self::Argument).or(stack.provisioner.max_deletes.map(Self::File))
    }

    /// Returns the limit for refreshes.
    pub(crate) fn of_missing(self, stacks: &Stacks) -> MissingLimit {
        MissingLimit { count: self.count(), setting: self.setting(stacks) }
    }

    fn setting(self, stacks: &Stacks) -> String {
        match self {
            Self::Argument(count) => format!("--max-deletes {count}"),
            Self::File(MaxDeletes { count, span }) => {
                format!("maxDeletes {count} ({})", stacks.sources.position(span))
            }
        }
    }

    fn count(self) -> u64 {
        match self {
            Self::Argument(count) => count,
            Self::File(MaxDeletes { count, .. }) => count,
        }
    }

    fn error(self, stack: &str, counts: Counts, stacks: &Stacks) -> CliError {
        let changes = counts.destroyed().unwrap_or_default();
        let missing = match counts.missing {
            0 => String::new(),
            1 => ", and the refresh did not find 1".to_owned(),
            missing => format!(", and the refresh did not find {missing}"),
        };
        let allowed = self.setting(stacks);
        CliError::failed(
            format_args!(
                "the changes of stack {stack} would {changes}{missing}, more than {allowed} allows; nothing was changed"
            ),
            format_args!("if this is what you want, give --max-deletes {}", counts.limited()),
        )
    }
}

impl Counts {
    fn of(summary: &Summary, missing: usize) -> Self {
        // Also a read resource that leaves the state, which `--expect-no-changes` does not count.
        let is_change = |op: StepOp| !matches!(op, StepOp::Same | StepOp::Read);
        Self {
            deletions: summary.deletions,
            missing,
            any: summary.deletions.total() > 0
                || summary.changes.iter().any(|(op, count)| *count > 0 && is_change(*op)),
        }
    }

    /// Returns the number of resources to which the limit applies.
    fn limited(self) -> u64 {
        (self.deletions.total() + self.missing) as u64
    }

    /// Returns the changes that destroy something: `delete 2 resources and replace 1`.
    fn destroyed(self) -> Option<String> {
        let resources = |count| if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") };
        match (self.deletions.removed, self.deletions.replaced) {
            (0, 0) => None,
            (deleted, 0) => Some(format!("delete {}", resources(deleted))),
            (0, replaced) => Some(format!("replace {}", resources(replaced))),
            (deleted, replaced) => Some(format!("delete {} and replace {replaced}", resources(deleted))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_destroy_something_are_asked_for_on_a_terminal() {
        let created = Counts { any: true, ..Counts::default() };
        let counts = |removed, replaced| Counts { deletions: Deletions { removed, replaced }, ..created };
        let (deleted, replaced, both) = (counts(2, 0), counts(0, 1), counts(2, 3));
        let missing = Counts { missing: 1, ..both };
        let guard = Guard { confirm: Confirm::Deletes, agreed: false, is_interactive: true, limit: None };
        let ask = |text: &str| Decision::Ask(format!("{text} to stack s?").into());
        let limited = |count| Guard { limit: Some(Limit::Argument(count)), ..guard };
        let table = [
            (guard, Counts::default(), Decision::Proceed),
            (guard, created, Decision::Proceed),
            (guard, deleted, ask("These changes delete 2 resources. Apply them")),
            (guard, replaced, ask("These changes replace 1 resource. Apply them")),
            (guard, both, ask("These changes delete 2 resources and replace 3. Apply them")),
            (Guard { is_interactive: false, ..guard }, both, Decision::Proceed),
            (Guard { agreed: true, ..guard }, both, Decision::Proceed),
            (Guard { confirm: Confirm::Never, ..guard }, both, Decision::Proceed),
            (Guard { confirm: Confirm::Always, ..guard }, Counts::default(), Decision::Proceed),
            (Guard { confirm: Confirm::Always, ..guard }, created, ask("Apply these changes")),
            (limited(5), both, ask("These changes delete 2 resources and replace 3. Apply them")),
            (limited(4), both, Decision::Refuse(Limit::Argument(4))),
            (limited(6), missing, ask("These changes delete 2 resources and replace 3. Apply them")),
            (limited(5), missing, Decision::Refuse(Limit::Argument(5))),
            (limited(0), created, Decision::Proceed),
            (
                Guard { agreed: true, is_interactive: false, ..limited(1) },
                deleted,
                Decision::Refuse(Limit::Argument(1)),
            ),
            (Guard { confirm: Confirm::Never, ..limited(1) }, deleted, Decision::Refuse(Limit::Argument(1))),
        ];
        for (guard, counts, expected) in table {
            assert_eq!(guard.decide("s", counts), expected, "{guard:?} {counts:?}");
        }
    }

    #[test]
    fn update_deletes_no_more_than_its_preview_has_shown_or_the_limit_allows() {
        let shown: BTreeSet<Urn> = ["urn:pulumi:s::p::t:m:T::a".parse().unwrap()].into();
        let guard = Guard { confirm: Confirm::Deletes, agreed: false, is_interactive: true, limit: None };
        let limited = |count, guard| Guard { limit: Some(Limit::Argument(count)), ..guard };
        let agreed = Guard { agreed: true, ..guard };
        let allowed = Some((6, "--max-deletes 7 allows"));
        let table = [
            (guard, true, None),
            (limited(7, guard), true, None),
            (Guard { confirm: Confirm::Always, ..guard }, true, None),
            (agreed, false, None),
            (Guard { is_interactive: false, ..guard }, false, None),
            (Guard { confirm: Confirm::Never, ..guard }, false, None),
            // The refresh of the run has used one of them up.
            (limited(7, agreed), false, allowed),
            (limited(7, Guard { is_interactive: false, ..guard }), false, allowed),
            (limited(7, Guard { confirm: Confirm::Never, ..guard }), false, allowed),
        ];
        for (guard, is_held_to_shown, expected) in table {
            let limit = guard.deletion_limit(&shown, 1, |limit| format!("--max-deletes {}", limit.count()));
            let found = match &limit {
                Some(DeletionLimit::Count { count, origin, .. }) => Some((*count, &**origin)),
                Some(DeletionLimit::Shown(_)) | None => None,
            };
            let is_shown = matches!(&limit, Some(DeletionLimit::Shown(urns)) if *urns == shown);
            assert_eq!((is_shown, found), (is_held_to_shown, expected), "{guard:?}");
        }
    }
}

//! Moves of resources between stacks that were interrupted: the next command on either stack completes or undoes them.

use std::fmt;
use std::sync::Arc;

use config::diagnostics::has_errors;
use config::{Reading, Stack};
use state::store::{MoveRecord, MoveSide, StackReference};
use state::{LockSettings, MoveOutcome, StackAccess};

use super::stack_selection::Selection;
use super::stacks::{Stacks, StacksRead, StacksRequest};
use super::{OtherStackError, SetupError};

/// Interrupted move of resources that was completed or undone. `Display` says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedMove {
    /// Stack that has the resources, or had them.
    pub from: StackReference,
    /// Stack that was to get the resources.
    pub to: StackReference,
    /// Outcome.
    pub outcome: MoveOutcome,
    /// Number of resources.
    pub count: usize,
}

impl fmt::Display for ResumedMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, outcome, count } = self;
        let done = match outcome {
            MoveOutcome::Completed => "completed",
            MoveOutcome::Undone => "undid",
        };
        let resources = if *count == 1 { "a resource".to_owned() } else { format!("{count} resources") };
        write!(f, "{done} an interrupted move of {resources} from {from} to {to}")
    }
}

impl Stacks {
    /// Completes or undoes the interrupted move of a record. Opens the other stack as its server.yaml says. Returns `None` if its
    /// process has ended it meanwhile.
    ///
    /// # Errors
    /// [`SetupError::Move`], [`SetupError::OtherStack`].
    pub(super) async fn resume_move(
        &self,
        access: &StackAccess,
        record: MoveRecord,
        configure: impl Fn(&mut LockSettings),
    ) -> Result<Option<ResumedMove>, SetupError> {
        let (own, other) = (access.stack.clone(), record.other.clone());
        let failed = |source| SetupError::OtherStack {
            stack: own.clone(),
            other: other.clone(),
            record: access.store.mark_location(&own).into(),
            source: Box::new(source),
        };
        let mut other_access = self.open_other(other.stack()).await.map_err(failed)?;
        let location = other_access.store.location();
        let of_other = other_access.store.move_record(&other_access.stack).await.map_err(SetupError::Rename)?;
        // The folder of a store may have another path on another machine: the records of both stacks belong together by their id.
        let is_same = location == record.other_location || of_other.is_some_and(|found| found.id == record.id);
        if other_access.stack != other || !is_same {
            let (found, expected) = (other_access.stack, record.other_location);
            return Err(failed(OtherStackError::Elsewhere { found, location, expected }));
        }
        configure(&mut other_access.locks);
        let resumed = state::resume_move(access, &other_access, &self.holder()).await;
        let Some(outcome) = resumed.map_err(|error| SetupError::Move(Box::new(error)))? else { return Ok(None) };
        let (from, to) = if record.side == MoveSide::Target { (other, own) } else { (own, other) };
        Ok(Some(ResumedMove { from, to, outcome, count: record.resources.len() }))
    }

    /// Opens the access to another stack of the repository, which need not be among the requested ones.
    async fn open_other(&self, name: &str) -> Result<StackAccess, OtherStackError> {
        let setup = |error| OtherStackError::Setup(Box::new(error));
        if let Some(stack) = self.stacks.iter().find(|stack| stack.name == name) {
            return self.open_access(stack).await.map_err(setup);
        }
        let stacks = self.read_other(name)?;
        let found: Option<Arc<Stack>> = stacks.requested().next().cloned();
        let stack = found.ok_or_else(|| OtherStackError::Unreadable(name.into()))?;
        stacks.open_access(&stack).await.map_err(setup)
    }

    /// Reads another stack of the repository, as far as its state needs it.
    fn read_other(&self, name: &str) -> Result<Box<Self>, OtherStackError> {
        let request = StacksRequest {
            folder: &self.folder,
            profile: &self.profile,
            stacks_dir: Some(&self.stacks_folder),
            reading: Reading::StateOnly,
            process_context: self.process_context.clone(),
            process: self.process.clone(),
            masker: Arc::clone(&self.masker),
            unrecorded: self.unrecorded.clone(),
            outages: self.outages.clone(),
            fetch_rules: self.fetch_rules,
            accepts_errors: false,
        };
        let read = Self::read(request, Selection::One(Some(name)));
        match read.map_err(|error| OtherStackError::Setup(Box::new(error)))? {
            StacksRead::Stacks(stacks, _) => Ok(stacks),
            StacksRead::Errors(found, _) => {
                let mut errors = found.iter().filter(|diagnostic| has_errors(std::slice::from_ref(diagnostic)));
                let first = errors.next().map(|diagnostic| diagnostic.summary.clone());
                Err(OtherStackError::Unreadable(first.unwrap_or_default()))
            }
        }
    }
}

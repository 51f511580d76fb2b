//! Record of a move of resources from one stack to another: in the stores of both while the move has not ended.
//!
//! The record stands in the place of the mark of a migration, so that no command reads or changes a stack whose move has not ended, and
//! has another version, so that earlier versions of this program refuse the stack, too.

use bridge::json;
use jiff::Timestamp;
use pulumi_proto::urn::Urn;
use serde::{Deserialize, Serialize};

use super::error::{Damage, StoreError};
use super::reference::StackReference;
use super::rename_intent::StackName;
use super::state_store::StateStore;
use crate::MAX_STATE_BYTES;

/// Version of a record, in place of that of a mark.
const VERSION: u32 = 2;

/// Record of a move in the store of one of its stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRecord {
    /// Id of the move, which the records of both stacks have.
    pub id: String,
    /// Part of the stack in the move.
    pub side: MoveSide,
    /// The other stack.
    pub other: StackReference,
    /// Location of the store of the other stack.
    pub other_location: String,
    /// Moved resources, with their URNs in the source.
    pub resources: Vec<Urn>,
    /// SHA-256 of the checkpoint of the stack before the move; `None` if there was none.
    pub before: Option<String>,
    /// SHA-256 of its checkpoint after the move.
    pub after: String,
    /// Time of the move.
    pub time: Timestamp,
    /// User of the move.
    pub user: String,
    /// Machine of the move.
    pub host: String,
}

/// Part of a stack in a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveSide {
    /// The resources leave the stack.
    Source {
        /// Checkpoint of the stack after the move. Its secrets are encrypted.
        checkpoint: String,
    },
    /// The resources come to the stack.
    Target,
}

/// Stored form of a record.
#[derive(Serialize, Deserialize)]
struct StoredRecord {
    version: u32,
    id: String,
    side: StoredSide,
    other: StackName,
    location: String,
    resources: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    after: String,
    time: String,
    user: String,
    host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredSide {
    Source,
    Target,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl MoveRecord {
    /// Returns the text of the record.
    fn write(&self) -> String {
        let (side, checkpoint) = match &self.side {
            MoveSide::Source { checkpoint } => (StoredSide::Source, Some(checkpoint.clone())),
            MoveSide::Target => (StoredSide::Target, None),
        };
        let stored = StoredRecord {
            version: VERSION,
            id: self.id.clone(),
            side,
            other: StackName::new(&self.other),
            location: self.other_location.clone(),
            resources: self.resources.iter().map(Urn::to_string).collect(),
            before: self.before.clone(),
            after: self.after.clone(),
            time: self.time.to_string(),
            user: self.user.clone(),
            host: self.host.clone(),
            checkpoint,
        };
        serde_json::to_string(&stored).expect("texts and numbers are always JSON")
    }

    /// Parses the record at a location; `None` if the text is the mark of a migration.
    pub(super) fn read(text: &[u8], location: &str) -> Result<Option<Self>, StoreError> {
        let is_record = json::from_slice(text).is_ok_and(|Version { version }| version == VERSION);
        if !is_record {
            return Ok(None);
        }
        let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
        let stored: StoredRecord = json::from_slice(text).map_err(|error| damaged(Damage::Move(error)))?;
        let resources: Result<Vec<Urn>, _> = stored.resources.iter().map(|urn| urn.parse()).collect();
        let side = match (stored.side, stored.checkpoint) {
            (StoredSide::Source, Some(checkpoint)) => Some(MoveSide::Source { checkpoint }),
            (StoredSide::Target, _) => Some(MoveSide::Target),
            (StoredSide::Source, None) => None,
        };
        let StoredRecord { id, location, before, after, user, host, .. } = stored;
        let (Ok(resources), Some(other), Some(side), Ok(time)) =
            (resources, stored.other.reference(), side, stored.time.parse())
        else {
            return Err(damaged(Damage::MoveNames));
        };
        Ok(Some(Self { id, side, other, other_location: location, resources, before, after, time, user, host }))
    }
}

impl StateStore {
    /// Returns the record of a move from or to a stack that has not ended; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`] if the record cannot be read.
    pub async fn move_record(&self, stack: &StackReference) -> Result<Option<MoveRecord>, StoreError> {
        let key = self.layout.mark(stack);
        match self.objects.read(&key, MAX_STATE_BYTES).await? {
            Some(object) => MoveRecord::read(&object.content, &self.location_of(&key)),
            None => Ok(None),
        }
    }

    /// Writes the record of a move from or to a locked stack.
    pub(crate) async fn write_move_record(
        &self,
        stack: &StackReference,
        record: &MoveRecord,
    ) -> Result<(), StoreError> {
        self.replace(&self.layout.mark(stack), record.write().into()).await
    }

    /// Removes the record of a move; a missing one is no error.
    pub(crate) async fn remove_move_record(&self, stack: &StackReference) -> Result<(), StoreError> {
        Ok(self.objects.remove(&self.layout.mark(stack)).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::compliance::{error_chain, stack};
    use super::*;

    #[test]
    fn record_is_read_as_it_was_written_and_is_no_mark() {
        let record = |side| MoveRecord {
            id: "m1".to_owned(),
            side,
            other: stack("west"),
            other_location: "s3://reef".to_owned(),
            resources: vec!["urn:pulumi:dev::reef::t:m:T::a".parse().unwrap()],
            before: None,
            after: "d1".to_owned(),
            time: Timestamp::UNIX_EPOCH,
            user: "ada".to_owned(),
            host: "reefbox".to_owned(),
        };
        let source = record(MoveSide::Source { checkpoint: "{}".to_owned() });
        let text = concat!(
            r#"{"version":2,"id":"m1","side":"source","other":{"project":"reef","stack":"west"},"location":"s3://reef","#,
            r#""resources":["urn:pulumi:dev::reef::t:m:T::a"],"after":"d1","time":"1970-01-01T00:00:00Z","#,
            r#""user":"ada","host":"reefbox","checkpoint":"{}"}"#
        );
        assert_eq!(source.write(), text);
        for record in [source, record(MoveSide::Target)] {
            assert_eq!(MoveRecord::read(record.write().as_bytes(), "here").unwrap(), Some(record));
        }
        for mark in ["{", r#"{"version":1,"to":"s3://reef"}"#, r#"{"version":3}"#] {
            assert_eq!(MoveRecord::read(mark.as_bytes(), "here").unwrap(), None, "{mark}");
        }
        let table = [
            (r#"{"version":2}"#.to_owned(), "here is damaged: it does not describe a move of resources: missing field"),
            (text.replace("urn:pulumi", "urn"), "here is damaged: it lacks the names of resources and stacks"),
            (text.replace(r#","checkpoint":"{}""#, ""), "here is damaged: it lacks the names of resources and stacks"),
        ];
        for (text, expected) in table {
            let error = error_chain(&MoveRecord::read(text.as_bytes(), "here").unwrap_err());
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

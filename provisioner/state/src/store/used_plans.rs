//! Records of used plans: `.sc/plans/<project>/<stack>/<digest>`, each written once, and removed once its plan has expired.

use bridge::fs::MAX_DOCUMENT_BYTES;
use bridge::json;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::StoreError;
use super::objects::{Durability, Effect, ObjectError, WriteCondition, WriteError};
use super::reference::StackReference;
use super::state_store::StateStore;

/// Number of attempts to write a record that a store with a condition refuses, although there is none.
const ATTEMPTS: usize = 3;

/// Record of a plan that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedPlan {
    /// Id of the run that has used the plan.
    run: String,
    /// Time of use, RFC 3339.
    pub time: String,
    /// User and machine.
    pub by: String,
    /// Time from which on the plan cannot be used and the record is not needed, RFC 3339.
    expires: String,
}

impl UsedPlan {
    /// Creates the record of a plan that is used now.
    pub fn now(by: String, expires: Timestamp) -> Self {
        let (run, time) = (Uuid::new_v4().to_string(), format!("{:.0}", Timestamp::now()));
        Self { run, time, by, expires: expires.to_string() }
    }

    /// Returns whether the plan can no longer be used. A record that is not understood stays.
    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.parse::<Timestamp>().is_ok_and(|expires| expires < now)
    }
}

impl StateStore {
    /// Returns the record of a plan of a stack, if the plan was used.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn used_plan(&self, stack: &StackReference, digest: &str) -> Result<Option<UsedPlan>, StoreError> {
        let found = self.objects.read(&self.used_plan_key(stack, digest), MAX_DOCUMENT_BYTES).await?;
        Ok(found.map(|found| parsed(&found.content)))
    }

    /// Records that a plan of a stack is used, and returns `None`; or the record of the run that has used it before. The caller holds
    /// the lock of the stack.
    ///
    /// # Errors
    /// [`StoreError`]: the plan may not be used, as nothing says that it was.
    pub async fn use_plan(
        &self,
        stack: &StackReference,
        digest: &str,
        used: &UsedPlan,
    ) -> Result<Option<UsedPlan>, StoreError> {
        let key = self.used_plan_key(stack, digest);
        let content = Bytes::from(serde_json::to_vec(used).expect("texts are always JSON"));
        for _ in 0..ATTEMPTS {
            let written =
                self.objects.write(&key, content.clone(), &WriteCondition::Missing, Durability::Immediate).await;
            match written {
                Ok(_) => return Ok(None),
                Err(WriteError::Request(error)) if error.effect != Effect::Unknown => return Err(error.into()),
                Err(WriteError::Request(_) | WriteError::Condition) => {}
            }
            // The reply to the write may be lost, so the content says whose record it is.
            if let Some(found) = self.objects.read(&key, MAX_DOCUMENT_BYTES).await? {
                return Ok((found.content != content).then(|| parsed(&found.content)));
            }
        }
        Err(ObjectError::unexpected_condition(self.location_of(&key)).into())
    }

    /// Removes the records of the plans of a stack that have expired.
    ///
    /// # Errors
    /// [`StoreError`]. What stays is removed by a later run.
    pub async fn remove_expired_plans(&self, stack: &StackReference, now: Timestamp) -> Result<(), StoreError> {
        let folder = self.layout.used_plans(stack);
        for object in self.objects.list(&folder).await? {
            let key = format!("{folder}/{}", object.name);
            let found = self.objects.read(&key, MAX_DOCUMENT_BYTES).await?;
            if found.is_some_and(|found| parsed(&found.content).is_expired(now)) {
                self.objects.remove(&key).await?;
            }
        }
        Ok(())
    }

    fn used_plan_key(&self, stack: &StackReference, digest: &str) -> String {
        format!("{}/{digest}", self.layout.used_plans(stack))
    }
}

/// Returns the record in an object. One that is not understood counts as that of an unknown run.
fn parsed(content: &[u8]) -> UsedPlan {
    let unknown = || "unknown".to_owned();
    let unknown = || UsedPlan { run: unknown(), time: unknown(), by: unknown(), expires: unknown() };
    json::from_slice(content).unwrap_or_else(|_| unknown())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::store::{FileUrl, StoreOptions};

    #[tokio::test]
    async fn plan_is_used_once_and_its_record_goes_after_its_expiry() {
        let folder = tempfile::tempdir().unwrap();
        let url = FileUrl::parse("file://.", folder.path(), None).unwrap();
        let store = StateStore::open_folder(&url, StoreOptions::default()).await.unwrap();
        let (stack, now) = (StackReference::new("reef", "dev").unwrap(), Timestamp::now());
        assert_eq!(store.used_plan(&stack, "1").await.unwrap(), None);
        let used = UsedPlan::now("ada@reefbox".to_owned(), now + SignedDuration::from_hours(1));
        assert_eq!(store.use_plan(&stack, "1", &used).await.unwrap(), None);
        // The same run asks again, as the reply was lost.
        assert_eq!(store.use_plan(&stack, "1", &used).await.unwrap(), None);
        let second = UsedPlan::now("bob@reefbox".to_owned(), now + SignedDuration::from_hours(1));
        assert_eq!(store.use_plan(&stack, "1", &second).await.unwrap(), Some(used.clone()));
        assert_eq!(store.use_plan(&stack, "2", &second).await.unwrap(), None);
        store.remove_expired_plans(&stack, now).await.unwrap();
        assert_eq!(store.used_plan(&stack, "1").await.unwrap(), Some(used));
        store.remove_expired_plans(&stack, now + SignedDuration::from_hours(2)).await.unwrap();
        assert_eq!(store.used_plan(&stack, "1").await.unwrap(), None);
    }
}

//! Saved plans as values of an operation: read, checked against the repository and the state, without a lock and without a change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bridge::fs::{MAX_DOCUMENT_BYTES, read_if_exists, read_named};
use bridge::host::AssetHashes;
use config::Stack;
use jiff::Timestamp;
use pulumi_proto::property::{Archive, ArchiveContent, Asset, PropertyMap, PropertyValue};
use sha2::{Digest as _, Sha256};
use state::secrets::{Provider, SecretsManager};
use state::store::UsedPlan;
use state::{SecretsDescription, Snapshot, StackAccess, StackView, StateError, content_digest};

use super::plan_error::PlanError;
use super::settings_file::settings_file;
use super::{OperationError, Stacks};
use crate::plan::{MAX_PLAN_BYTES, PlanFile, PlanFileError, PlanHeader, PlannedStackName, StackPlan, Surroundings};

/// Version of the program, which a plan is bound to.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Plan of a stack that was opened.
#[derive(Debug)]
pub struct OpenedPlan {
    /// Plan of the stack.
    pub plan: Arc<StackPlan>,
    /// Differences between what the plan was made with and what there is now, one sentence each. Plugins are not compared.
    pub differences: Vec<String>,
    /// Record of the run that has used the plan.
    pub used: Option<UsedPlan>,
}

impl OpenedPlan {
    /// Checks that the plan can be carried out, as far as it is known without plugins.
    ///
    /// # Errors
    /// [`PlanError::Used`], [`PlanError::Stale`].
    pub fn check(&self, stack: &str) -> Result<(), PlanError> {
        if let Some(UsedPlan { time, by, .. }) = &self.used {
            return Err(PlanError::Used { time: time.clone(), by: by.clone() });
        }
        if self.differences.is_empty() {
            return Ok(());
        }
        Err(PlanError::Stale { stack: stack.to_owned(), differences: self.differences.clone() })
    }
}

/// Reads the file of a plan.
///
/// # Errors
/// [`PlanError::File`], [`PlanError::Text`].
pub fn read_plan(path: &Path) -> Result<PlanFile, PlanError> {
    let content = read_named(path, MAX_PLAN_BYTES).map_err(PlanError::File)?;
    let text = String::from_utf8(content).map_err(|_| PlanError::Text(PlanFileError::Malformed))?;
    PlanFile::parse(text).map_err(PlanError::Text)
}

/// Checks what the header of a plan says: version, expiry, profile.
///
/// # Errors
/// [`PlanError::OtherVersion`], [`PlanError::Expired`], [`PlanError::OtherProfile`].
pub fn check_header(header: &PlanHeader, profile: &str, now: Timestamp) -> Result<(), PlanError> {
    if header.version != VERSION {
        return Err(PlanError::OtherVersion { planned: header.version.clone(), now: VERSION.to_owned() });
    }
    if header.expired_for(now).is_some() {
        return Err(PlanError::Expired(format!("{:.0}", header.expires)));
    }
    if header.profile != profile {
        return Err(PlanError::OtherProfile { planned: header.profile.clone(), now: profile.to_owned() });
    }
    Ok(())
}

impl Stacks {
    /// Opens the plan of a stack, and compares what it was made with: state, files and assets. Takes no lock.
    ///
    /// # Errors
    /// [`PlanError`] if the plan is for another stack, or is not sealed with the key of the stack; errors of the state.
    pub async fn open_plan(
        &self,
        file: &PlanFile,
        stack: &Stack,
        access: &StackAccess,
    ) -> Result<OpenedPlan, OperationError> {
        let now = stack_name(access);
        let planned = file.header.stacks.iter().find(|planned| planned.stack == stack.name);
        let planned = planned.ok_or_else(|| PlanError::Text(PlanFileError::NoStack(stack.name.clone())))?;
        if *planned != now {
            return Err(PlanError::OtherStack { planned: full_name(planned), now: full_name(&now) }.into());
        }
        let (manager, snapshot) = self.plan_key(file, stack, access).await?;
        let crypter = manager.crypter().await.map_err(|error| PlanError::Text(error.into()))?;
        let plan = file.open(&stack.name, &*crypter).map_err(PlanError::Text)?;
        let state = Some(content_digest(&snapshot).map_err(|error| PlanError::Text(error.into()))?);
        let surroundings = Surroundings { state, files: self.file_digests(&stack.name)?, plugins: None };
        let mut differences = plan.surroundings.differences(&surroundings);
        differences.extend(asset_differences(&plan, &self.repository.root).await);
        let used = access.store.used_plan(&access.stack, &file.digest).await.map_err(StateError::from)?;
        Ok(OpenedPlan { plan: Arc::new(plan), differences, used })
    }

    /// Returns the digests of all files that were read, by path, and of the settings file of a stack. A file that was read twice with
    /// different texts has both.
    pub(super) fn file_digests(&self, stack: &str) -> Result<BTreeMap<String, String>, PlanError> {
        let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut add = |path: &str, content: &[u8]| {
            texts.entry(path.to_owned()).or_default().insert(hex::encode(Sha256::digest(content)));
        };
        self.sources.iter().for_each(|file| add(file.path(), file.text().as_bytes()));
        let settings = settings_file(&self.repository.root, stack);
        if let Some(content) = read_if_exists(&settings, MAX_DOCUMENT_BYTES).map_err(PlanError::File)? {
            add(&self.repository.display_path(&settings), &content);
        }
        let joined = |digests: BTreeSet<String>| digests.into_iter().collect::<Vec<_>>().join(" ");
        Ok(texts.into_iter().map(|(path, digests)| (path, joined(digests))).collect())
    }

    /// Returns the key that a plan is sealed with, and the recorded state. The key must be that of the stack: a file could name one
    /// that whoever has changed the file can use.
    async fn plan_key(
        &self,
        file: &PlanFile,
        stack: &Stack,
        access: &StackAccess,
    ) -> Result<(Arc<dyn SecretsManager>, Snapshot), OperationError> {
        let view = StackView::open(access).await?;
        let description = file.secrets(&stack.name).map_err(PlanError::Text)?;
        let recorded = access.configured_secrets.clone().or_else(|| view.secrets().map(|manager| manager.describe()));
        let is_key_of_stack = match &recorded {
            Some(recorded) => *recorded == description,
            None => is_chosen(access.keyring.provider(), &description),
        };
        if !is_key_of_stack {
            return Err(PlanError::Text(PlanFileError::OtherKey(stack.name.clone())).into());
        }
        let manager = access.keyring.manager(&description).map_err(|error| PlanError::Text(error.into()))?;
        Ok((manager, view.snapshot.unwrap_or_default()))
    }
}

/// Returns whether a manager is of the provider that the user chose for a stack without a state; without a choice, a passphrase.
fn is_chosen(chosen: Option<&Provider>, description: &SecretsDescription) -> bool {
    Provider::of(description).as_ref() == Some(chosen.unwrap_or(&Provider::Passphrase))
}

/// Returns the name of a stack, and the place of its state, as plans have them.
pub(super) fn stack_name(access: &StackAccess) -> PlannedStackName {
    PlannedStackName {
        project: access.stack.project().to_owned(),
        stack: access.stack.stack().to_owned(),
        store: access.store.location(),
    }
}

fn full_name(name: &PlannedStackName) -> String {
    format!("stack {} of project {} in {}", name.stack, name.project, name.store)
}

/// Returns the resources whose assets or archives have another content than planned, a sentence each.
async fn asset_differences(plan: &StackPlan, root: &Path) -> Vec<String> {
    let hashes = AssetHashes::new(root);
    let mut found = Vec::new();
    for resource in &plan.resources {
        let Some(registration) = &resource.registration else { continue };
        let assets = registration.inputs.iter().filter(|(_, value)| has_asset(value));
        let planned: PropertyMap = assets.map(|(name, value)| (name.clone(), value.clone())).collect();
        if planned.is_empty() {
            continue;
        }
        let unhashed = planned.iter().map(|(name, value)| (name.clone(), without_hashes(value))).collect();
        let name = resource.urn.name();
        match hashes.add_to(unhashed).await {
            Ok(now) => found.extend(
                planned
                    .iter()
                    .filter(|(key, value)| now.get(*key) != Some(*value))
                    .map(|(key, _)| format!("the content of an asset of {name} has changed: its property {key}")),
            ),
            Err((key, reason)) => {
                found.push(format!("an asset of {name} cannot be read: its property {key}: {reason}"))
            }
        }
    }
    found
}

fn has_asset(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Asset(_) | PropertyValue::Archive(_) => true,
        PropertyValue::List(items) => items.iter().any(has_asset),
        PropertyValue::Map(members) => members.values().any(has_asset),
        PropertyValue::Secret(secret) => has_asset(secret.expose()),
        _ => false,
    }
}

fn without_hashes(value: &PropertyValue) -> PropertyValue {
    let of_map =
        |members: &PropertyMap| members.iter().map(|(name, value)| (name.clone(), without_hashes(value))).collect();
    match value {
        PropertyValue::Asset(asset) => PropertyValue::Asset(Asset { hash: None, content: asset.content.clone() }),
        PropertyValue::Archive(archive) => {
            let content = match &archive.content {
                ArchiveContent::Assets(members) => ArchiveContent::Assets(of_map(members)),
                content => content.clone(),
            };
            PropertyValue::Archive(Archive { hash: None, content })
        }
        PropertyValue::List(items) => PropertyValue::List(items.iter().map(without_hashes).collect()),
        PropertyValue::Map(members) => PropertyValue::Map(of_map(members)),
        PropertyValue::Secret(secret) => PropertyValue::secret(without_hashes(secret.expose())),
        value => value.clone(),
    }
}

//! Guard of a run: gives each registration its seed, and may refuse steps before they begin.
//!
//! Input: what the engine has decided. Output: seeds, and refusals. Excluded: the decisions. A saved plan is recorded and
//! enforced by a guard outside of the engine, so there is no second planner.

use std::fmt;

use async_trait::async_trait;
use pulumi_proto::urn::Urn;
use sha2::{Digest as _, Sha256};

use crate::events::{Message, StepInfo};
use crate::goal::Goal;

/// Guard of a run. Several deployments may have one guard, such as the preview and the update of a command.
///
/// The engine asks before it carries out what it has decided. A refusal is a fatal error: nothing new starts, and steps that
/// have begun end and are recorded.
#[async_trait]
pub trait PlanGuard: fmt::Debug + Send + Sync {
    /// Returns the seed of a registration, from which the engine and the provider derive random properties. A URN always has the same
    /// seed, so the names that a preview has proposed are those that the update creates.
    fn seed(&self, urn: &Urn) -> [u8; 32];

    /// Returns whether the engine asks before steps begin. If not, the methods below are not called.
    fn approves_steps(&self) -> bool {
        false
    }

    /// Decides about the steps of a registration, before the first of them begins.
    ///
    /// # Errors
    /// The message that refuses them.
    async fn approve_registration(&self, _: &DecidedRegistration<'_>) -> Result<(), Box<Message>> {
        Ok(())
    }

    /// Decides about a step that belongs to no decided registration: the deletion of an entry that was not registered, a read, or
    /// the import at the start of a registration. The engine asks about all deletions before the first of them.
    ///
    /// # Errors
    /// The message that refuses the step.
    async fn approve_step(&self, _: &StepInfo) -> Result<(), Box<Message>> {
        Ok(())
    }

    /// Decides about the registration of a default provider, before its configuration is checked.
    ///
    /// # Errors
    /// The message that refuses the provider.
    async fn approve_default_provider(&self, _: &Urn) -> Result<(), Box<Message>> {
        Ok(())
    }
}

/// Registration whose steps are decided.
#[derive(Debug)]
pub struct DecidedRegistration<'a> {
    /// URN of the resource.
    pub urn: &'a Urn,
    /// Goal, with the options that it inherits.
    pub goal: &'a Goal,
    /// Steps in their order. A replacement that deletes first also has the deletions of the dependents. The new entry of a step has
    /// the inputs that Check has returned.
    pub steps: Vec<StepInfo>,
}

/// Guard of a run without a plan: gives random seeds, and refuses nothing.
#[derive(Clone, Debug)]
pub struct RandomSeeds {
    key: SeedKey,
}

impl RandomSeeds {
    /// Creates a guard with a random key.
    pub fn draw() -> Self {
        Self { key: SeedKey::draw() }
    }
}

impl PlanGuard for RandomSeeds {
    fn seed(&self, urn: &Urn) -> [u8; 32] {
        self.key.seed(urn)
    }
}

/// Random key from which the seeds of a run are derived.
#[derive(Clone, PartialEq, Eq)]
pub struct SeedKey([u8; 32]);

impl SeedKey {
    /// Returns a key of random bytes.
    pub fn draw() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system has random bytes for each process");
        Self(bytes)
    }

    /// Returns the key with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key. A provider must not see them: they determine the seeds of all resources.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the seed of a URN: 32 bytes, the length of the seeds of Pulumi's engine.
    pub fn seed(&self, urn: &Urn) -> [u8; 32] {
        let of_urn = Sha256::new().chain_update(self.0).chain_update(urn.as_str()).finalize();
        // A second hash, so that a provider cannot extend the seed of a URN to that of a longer one.
        Sha256::new().chain_update(self.0).chain_update(of_urn).finalize().into()
    }
}

/// Shows no bytes of the key.
impl fmt::Debug for SeedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_depends_on_the_key_and_the_urn_alone() {
        let urn = |name: &str| format!("urn:pulumi:s::p::t:m:T::{name}").parse::<Urn>().unwrap();
        let guard = RandomSeeds::draw();
        assert_eq!(guard.seed(&urn("a")), guard.clone().seed(&urn("a")));
        assert_ne!(guard.seed(&urn("a")), guard.seed(&urn("b")));
        assert_ne!(guard.seed(&urn("a")), RandomSeeds::draw().seed(&urn("a")));
        let SeedKey(bytes) = guard.key.clone();
        assert_eq!(SeedKey::from_bytes(bytes).seed(&urn("a")), guard.seed(&urn("a")));
        assert!(!guard.approves_steps());
    }
}

//! Goals of the resources that a program registers, found without a deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bridge::host::PackageTypes;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;

use super::{Program, positions, run};
use crate::registry::recipe::Effects;
use config::Stack;
use engine::{Goal, Halted, InvokeGoal, ProgramGoals, ReadGoal, Registered, Registrar, RegistrationResult};

#[async_trait]
impl ProgramGoals for Program {
    async fn goals(&self) -> Vec<Goal> {
        let mut goals = self.collect_goals().await;
        goals.retain(|goal| goal.custom);
        goals
    }
}

impl Program {
    /// Returns the goals that the core resources register, as far as the configuration determines them.
    pub(super) async fn goals_of_core_resources(&self) -> Vec<Goal> {
        if self.core_resources().packages.is_empty() {
            return Vec::new();
        }
        let is_of_core =
            |goal: &Goal| goal.source.is_some_and(|source| positions::is_core_resource(self.stack(), source));
        let mut goals = self.collect_goals().await;
        goals.retain(is_of_core);
        goals
    }

    async fn collect_goals(&self) -> Vec<Goal> {
        let collector = GoalCollector { stack: self.stack(), goals: Mutex::default() };
        // Errors of the program are reported when a deployment runs it.
        drop(run::run(self.parts(None), Vec::new(), &collector, &NoEffects).await);
        collector.goals.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registrar that collects goals. It replies as in the preview of a stack that is not provisioned yet: ids and outputs are
/// unknown.
struct GoalCollector<'p> {
    stack: &'p Stack,
    goals: Mutex<Vec<Goal>>,
}

impl GoalCollector<'_> {
    fn unknown(&self, parent: Option<&Urn>, type_token: &str, name: &str) -> Registered {
        let urn = Urn::new(&self.stack.name, &self.stack.project, parent, type_token, name);
        Registered::without_outputs(urn, RegistrationResult::Succeeded)
    }
}

#[async_trait]
impl Registrar for GoalCollector<'_> {
    fn is_preview(&self) -> bool {
        true
    }

    fn changes_resources(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        usize::MAX
    }

    async fn package_types(&self, _: BTreeSet<String>) -> Result<BTreeMap<String, PackageTypes>, Halted> {
        Ok(BTreeMap::new())
    }

    async fn register(&self, goal: Goal) -> Result<Registered, Halted> {
        let registered = self.unknown(goal.parent.as_ref(), goal.type_token.as_str(), &goal.name);
        self.goals.lock().unwrap_or_else(PoisonError::into_inner).push(goal);
        Ok(registered)
    }

    async fn register_outputs(&self, _: &Urn, _: PropertyMap) -> Result<(), Halted> {
        Ok(())
    }

    async fn read(&self, goal: ReadGoal) -> Result<Registered, Halted> {
        Ok(self.unknown(goal.parent.as_ref(), goal.type_token.as_str(), &goal.name))
    }

    async fn invoke(&self, _: InvokeGoal) -> Result<PropertyMap, Halted> {
        Ok(PropertyMap::new())
    }
}

/// Effects of a program that changes nothing.
struct NoEffects;

#[async_trait]
impl Effects for NoEffects {
    async fn enable_google_api(&self, _: &str, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

//! Registrations that several recipes of a run share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use config::diagnostics::Span;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::urn::Urn;
use tokio::sync::OnceCell;

use engine::{Halted, InvokeGoal, Registered};

/// Registrations of a run by type and name. Two recipes that would register one resource with equal inputs share it.
#[derive(Default)]
pub struct SharedRegistrations {
    registrations: Mutex<BTreeMap<(String, String), SharedRegistration>>,
    /// Effects by what identifies them.
    effects: Mutex<BTreeMap<Vec<String>, Arc<SharedEffect>>>,
    /// Results of functions by token, URN of the provider, and arguments.
    functions: Mutex<Vec<(FunctionCall, Arc<SharedReply>)>>,
}

/// Token, URN of the provider, and arguments.
type FunctionCall = (String, Option<Urn>, PropertyMap);

/// Result of a function, which the first recipe that needs it calls.
pub(super) type SharedReply = OnceCell<Result<PropertyMap, Halted>>;

/// Result of an effect, which the first recipe that needs it makes.
pub(super) type SharedEffect = OnceCell<Result<(), String>>;

/// Result of a registration, which the first recipe that needs it makes.
pub(super) type SharedResult = OnceCell<Result<Registered, Halted>>;

struct SharedRegistration {
    inputs: PropertyMap,
    /// Inputs of the provider.
    provider: PropertyMap,
    /// Position of the `config` of the first recipe, and its resource in words.
    claimant: (Span, String),
    result: Arc<SharedResult>,
}

impl SharedRegistrations {
    /// Returns the registration of a resource, by its type and name.
    ///
    /// # Errors
    /// Position and resource of another recipe that registers a resource of this type and name with other inputs, or with another
    /// provider.
    pub(super) fn claim(
        &self,
        key: (String, String),
        inputs: &PropertyMap,
        provider: &PropertyMap,
        claimant: &(Span, String),
    ) -> Result<Arc<SharedResult>, (Span, String)> {
        let mut registrations = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        let first = registrations.entry(key).or_insert_with(|| SharedRegistration {
            inputs: inputs.clone(),
            provider: provider.clone(),
            claimant: claimant.clone(),
            result: Arc::default(),
        });
        match first.inputs == *inputs && first.provider == *provider {
            true => Ok(Arc::clone(&first.result)),
            false => Err(first.claimant.clone()),
        }
    }

    /// Returns the result of a function.
    pub(super) fn function(&self, goal: &InvokeGoal) -> Arc<SharedReply> {
        let provider = goal.provider.as_ref().map(|provider| provider.urn.clone());
        let call = (goal.token.as_str().to_owned(), provider, goal.arguments.clone());
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reply)) = functions.iter().find(|(other, _)| *other == call) {
            return Arc::clone(reply);
        }
        let reply = Arc::default();
        functions.push((call, Arc::clone(&reply)));
        reply
    }

    /// Returns the result of an effect, by what identifies it.
    pub(super) fn effect(&self, key: &[&str]) -> Arc<SharedEffect> {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(effects.entry(key.iter().map(|part| (*part).to_owned()).collect()).or_default())
    }
}

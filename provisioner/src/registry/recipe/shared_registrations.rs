//! Registrations that several recipes of a run share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use config::diagnostics::Span;
use pulumi_proto::property::PropertyMap;
use tokio::sync::OnceCell;

use engine::{Halted, Registered};

/// Registrations of a run by type and name. Two recipes that would register one resource with equal inputs share it.
#[derive(Default)]
pub struct SharedRegistrations {
    registrations: Mutex<BTreeMap<(String, String), SharedRegistration>>,
    /// Effects by what identifies them.
    effects: Mutex<BTreeMap<Vec<String>, Arc<SharedEffect>>>,
}

/// Result of an effect, which the first recipe that needs it makes.
pub(super) type SharedEffect = OnceCell<Result<(), String>>;

/// Result of a registration, which the first recipe that needs it makes.
pub(super) type SharedResult = OnceCell<Result<Registered, Halted>>;

struct SharedRegistration {
    inputs: PropertyMap,
    /// Inputs of the provider.
    provider: PropertyMap,
    /// Position of the `config` of the first recipe.
    span: Span,
    result: Arc<SharedResult>,
}

impl SharedRegistrations {
    /// Returns the registration of a resource, by its type and name.
    ///
    /// # Errors
    /// Position of another recipe that registers a resource of this type and name with other inputs, or with another
    /// provider.
    pub(super) fn claim(
        &self,
        key: (String, String),
        inputs: &PropertyMap,
        provider: &PropertyMap,
        span: Span,
    ) -> Result<Arc<SharedResult>, Span> {
        let mut registrations = self.registrations.lock().unwrap_or_else(PoisonError::into_inner);
        let first = registrations.entry(key).or_insert_with(|| SharedRegistration {
            inputs: inputs.clone(),
            provider: provider.clone(),
            span,
            result: Arc::default(),
        });
        match first.inputs == *inputs && first.provider == *provider {
            true => Ok(Arc::clone(&first.result)),
            false => Err(first.span),
        }
    }

    /// Returns the result of an effect, by what identifies it.
    pub(super) fn effect(&self, key: &[&str]) -> Arc<SharedEffect> {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(effects.entry(key.iter().map(|part| (*part).to_owned()).collect()).or_default())
    }
}

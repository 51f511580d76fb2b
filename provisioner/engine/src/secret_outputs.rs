//! Outputs that must be secret even if the provider returned them as plain values (docs/spec/engine-semantics.md#7).

use std::sync::Arc;

use pulumi_proto::property::PropertyValue;
use state::ResourceState;

/// Marks the outputs that must be secret: those whose inputs are, and those that `additionalSecretOutputs` names.
pub(crate) fn mark_secrets(state: &mut ResourceState) {
    let must_be_secret = |key: &String, value: &PropertyValue| {
        // The output `id` cannot be marked as secret by name.
        let is_named = || key != "id" && state.additional_secret_outputs.contains(key);
        !value.is_secret() && (state.inputs.get(key).is_some_and(PropertyValue::is_secret) || is_named())
    };
    if !state.outputs.iter().any(|(key, value)| must_be_secret(key, value)) {
        return;
    }
    let marked = state.outputs.iter().map(|(key, value)| {
        let value = value.clone();
        let secret = must_be_secret(key, &value);
        (key.clone(), if secret { PropertyValue::secret(value) } else { value })
    });
    state.outputs = Arc::new(marked.collect());
}

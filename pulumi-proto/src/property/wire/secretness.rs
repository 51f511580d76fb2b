//! Secretness of values that a provider returns without secrets.

use crate::property::{PropertyMap, PropertyValue};

/// Marks a received value as secret if the sent value with the same key contains a secret, for providers that do not
/// support secrets (docs/spec/provider-protocol.md#5.5). Maps are compared member by member. Any other value becomes
/// secret as a whole: one secret item makes a list secret.
pub fn copy_secretness(sent: &PropertyMap, received: &mut PropertyMap) {
    for (key, sent) in sent {
        let Some(received) = received.get_mut(key) else { continue };
        match (sent, received) {
            (PropertyValue::Map(sent), PropertyValue::Map(received)) => copy_secretness(sent, received),
            (sent, received) if sent.contains_secrets() => {
                let value = std::mem::replace(received, PropertyValue::Null);
                *received = PropertyValue::secret(value);
            }
            _ => (),
        }
    }
}

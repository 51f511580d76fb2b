//! Secretness of values that a provider returns without secrets.

use super::{PropertyMap, PropertyValue};

/// Marks a received value as secret if the sent value with the same key contains a secret
/// (docs/spec/provider-protocol.md#5.5). See [`copy_value_secretness`].
pub fn copy_secretness(sent: &PropertyMap, received: &mut PropertyMap) {
    for (key, sent) in sent {
        if let Some(received) = received.get_mut(key) {
            copy_value_secretness(sent, received);
        }
    }
}

/// Marks a received value as secret if the sent value contains a secret. Maps are compared member by member. Any other
/// value becomes secret as a whole: one secret item makes a list secret, unless the received list has the same secret
/// items.
pub fn copy_value_secretness(sent: &PropertyValue, received: &mut PropertyValue) {
    match (sent, received) {
        (PropertyValue::Map(sent), PropertyValue::Map(received)) => copy_secretness(sent, received),
        (sent, received) if sent.contains_secrets() && !has_same_secrets(sent, received) => {
            let value = std::mem::replace(received, PropertyValue::Null);
            *received = PropertyValue::secret(value);
        }
        _ => (),
    }
}

/// Returns whether each place of a secret in `sent` is secret in `received`.
fn has_same_secrets(sent: &PropertyValue, received: &PropertyValue) -> bool {
    match (sent, received) {
        (_, received) if received.is_secret() => true,
        (PropertyValue::List(sent), PropertyValue::List(received)) => {
            sent.len() == received.len() && sent.iter().zip(received).all(|(sent, item)| has_same_secrets(sent, item))
        }
        (PropertyValue::Map(sent), PropertyValue::Map(received)) => sent.iter().all(|(key, sent)| {
            !sent.contains_secrets() || received.get(key).is_some_and(|member| has_same_secrets(sent, member))
        }),
        (sent, _) => !sent.contains_secrets(),
    }
}

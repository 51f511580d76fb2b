//! What was secret when it was sent is secret when it comes back.

use crate::property::{PropertyMap, PropertyValue};

/// Marks as secret what came back under a key that held a secret when it was sent, for providers that do not take
/// secrets (provider protocol, section 5.5). Maps are compared member by member; of anything else the whole becomes
/// secret, so one secret item makes a list secret.
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

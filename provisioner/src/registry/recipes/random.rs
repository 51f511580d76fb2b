//! Passwords that recipes generate.

use serde_json::{Value, json};

use crate::registry::packages::RANDOM;
use crate::registry::recipe::{Hole, Provider, Recipe};

/// Adds a password, and returns it.
pub(super) fn password(name: &str, inputs: Value, r: &mut Recipe<'_>) -> Hole {
    let token = "random:index/randomPassword:RandomPassword";
    r.add(Provider::default_of(RANDOM).resource(token, name, inputs)).out("result")
}

/// Adds the password of an administrator, and returns it.
pub(super) fn root_password(name: &str, r: &mut Recipe<'_>) -> Hole {
    password(name, json!({ "length": 16, "special": true, "overrideSpecial": "-_" }), r)
}

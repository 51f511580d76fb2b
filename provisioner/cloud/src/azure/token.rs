//! Access tokens in the replies of their issuers.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use zeroize::Zeroizing;

/// Rest of the validity with which a token is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

/// Access token.
#[derive(Clone)]
pub(super) struct AccessToken {
    pub(super) text: Zeroizing<String>,
    expires: SystemTime,
}

impl AccessToken {
    pub(super) fn new(text: &str, lifetime: Duration) -> Self {
        // A lifetime that no clock can count never ends.
        let far = Duration::from_secs(365 * 24 * 60 * 60);
        Self { text: Zeroizing::new(text.to_owned()), expires: SystemTime::now() + lifetime.min(far) }
    }

    /// Reads the token of a reply. It has its lifetime in seconds (`expires_in`), or its end in seconds since 1970 (`expires_on`),
    /// each as a number or as a text. A token whose end is not known is used once.
    pub(super) fn of_reply(reply: &Value) -> Option<Self> {
        let text = reply.get("access_token").or(reply.get("accessToken")).and_then(Value::as_str)?;
        let seconds = |member: &str| {
            let value = reply.get(member)?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok()).map(Duration::from_secs)
        };
        let until = |end: Duration| match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(now) => end.saturating_sub(now),
            Err(_) => Duration::ZERO,
        };
        let lifetime = seconds("expires_in").or_else(|| seconds("expires_on").map(until));
        is_token(text).then(|| Self::new(text, lifetime.unwrap_or_default()))
    }

    /// Returns whether the token can be used for some minutes.
    pub(super) fn is_fresh(&self) -> bool {
        self.rest() > RENEW_BEFORE
    }

    /// Returns whether the token can be used now.
    pub(super) fn is_valid(&self) -> bool {
        !self.rest().is_zero()
    }

    fn rest(&self) -> Duration {
        self.expires.duration_since(SystemTime::now()).unwrap_or_default()
    }
}

/// Returns whether a text can be sent in a header.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn end_of_a_token_is_a_lifetime_or_a_time() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let minutes = |reply: Value| {
            let token = AccessToken::of_reply(&reply).unwrap();
            assert_eq!((token.text.as_str(), format!("{token:?}").contains("ey.hidden")), ("ey.hidden", false));
            (token.rest().as_secs() + 30) / 60
        };
        assert_eq!(minutes(json!({ "access_token": "ey.hidden", "expires_in": 3600 })), 60);
        assert_eq!(minutes(json!({ "access_token": "ey.hidden", "expires_in": "3600", "expires_on": "0" })), 60);
        assert_eq!(minutes(json!({ "access_token": "ey.hidden", "expires_on": (now + 1200).to_string() })), 20);
        assert_eq!(minutes(json!({ "accessToken": "ey.hidden", "expires_on": now + 600 })), 10);
        assert_eq!(minutes(json!({ "access_token": "ey.hidden", "expires_on": "2026-11-29" })), 0);
        for text in ["", "ey\nX-Other: 1", "e y"] {
            assert!(AccessToken::of_reply(&json!({ "access_token": text })).is_none());
        }
        assert!(AccessToken::of_reply(&json!({ "access_token": "ey", "expires_in": u64::MAX })).unwrap().is_fresh());
    }
}

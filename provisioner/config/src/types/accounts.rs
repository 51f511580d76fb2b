//! Accounts of clouds in the `config` of core types: the credentials of one cloud are refused where those of another belong, because
//! the provider would ignore them and look for an account in its environment.

use serde_json::Value as Json;

use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Node, Value};

const CREDENTIALS: Code = Code("credentials");

/// Kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Account {
    Aws,
    Google,
    Kubernetes,
}

impl Account {
    /// Returns the kind of the account that a text is; `None` if the text does not tell.
    fn of_text(text: &str) -> Option<Self> {
        match serde_json::from_str::<Json>(text) {
            Ok(json) if json.get("accessKey").is_some() || json.get("secretAccessKey").is_some() => Some(Self::Aws),
            Ok(json) if json["type"] == "service_account" || json.get("client_email").is_some() => Some(Self::Google),
            Ok(_) => None,
            Err(_) => (text.contains("apiVersion:") && text.contains("clusters:")).then_some(Self::Kubernetes),
        }
    }

    /// Returns the kind that a key needs in the types of a provider, and the type of the entries of secrets.yaml that have it; `None` for
    /// other keys, and for the types on AWS, which read the members of their account themselves.
    fn of_key(provider: &str, key: &str) -> Option<(Self, &'static str)> {
        match (provider, key) {
            (_, "kubeconfig") => Some((Self::Kubernetes, "kubernetes")),
            ("gcp", "credentials") => Some((Self::Google, "gcp-service-account")),
            _ => None,
        }
    }

    fn cloud(self) -> &'static str {
        match self {
            Self::Aws => "AWS",
            Self::Google => "Google Cloud",
            Self::Kubernetes => "a Kubernetes cluster",
        }
    }
}

/// Reports the accounts in a `config` that are of another kind than its type needs.
pub(super) fn check(provider: &str, config: &Node, diagnostics: &mut Vec<Diagnostic>) {
    for key in ["credentials", "kubeconfig"] {
        let Some((needed, entry)) = Account::of_key(provider, key) else { continue };
        let Some(value) = config.get_path([key]) else { continue };
        let text = match &value.value {
            Value::Interpolated(text) => text.known(),
            Value::Scalar(scalar) => Some(scalar.text.to_string()),
            Value::Sequence(_) | Value::Mapping(_) => None,
        };
        let Some(found) = text.and_then(|text| Account::of_text(&text)).filter(|found| *found != needed) else {
            continue;
        };
        let (found, cloud) = (found.cloud(), needed.cloud());
        let summary = format_args!("these are the credentials of {found}, and not of {cloud}");
        let help = format_args!("write `${{auth:NAME}}`, where NAME is of type `{entry}` in the stack's secrets.yaml");
        diagnostics.push(Diagnostic::error(CREDENTIALS, value.span, summary).help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_an_account_is_told_by_its_text() {
        let table = [
            (r#"{"account":"1","accessKey":"","secretAccessKey":"","region":""}"#, Some(Account::Aws)),
            (r#"{"type":"service_account","client_email":"a@b"}"#, Some(Account::Google)),
            ("apiVersion: v1\nkind: Config\nclusters: []\n", Some(Account::Kubernetes)),
            (r#"{"region":"eu"}"#, None),
            ("hush", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Account::of_text(text), expected, "{text}");
        }
    }
}

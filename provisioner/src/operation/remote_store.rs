//! Secrets in the settings of stores in buckets and databases.

use std::collections::BTreeMap;

use config::CloudAccount;
use percent_encoding::percent_decode_str;

/// Returns the secrets of a URL, of its account and of the environment, which must not be displayed.
pub(super) fn secrets(url: &str, account: &CloudAccount, environment: &BTreeMap<String, String>) -> Vec<String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let parameters = query.split('&').filter_map(|parameter| parameter.strip_prefix("password="));
    let in_url = user.map(|(_, password)| password).into_iter().chain(parameters);
    let passwords = in_url.flat_map(|password| {
        let decoded = percent_decode_str(password).decode_utf8_lossy().into_owned();
        [password.to_owned(), decoded]
    });
    let passwords = passwords.chain(environment.get("PGPASSWORD").cloned());
    let of_account = match account {
        CloudAccount::Environment => None,
        CloudAccount::Aws(account) => account.access_key.as_ref().map(|(_, secret)| secret),
        CloudAccount::Google(json) => Some(json),
    };
    let of_account = of_account.map(|secret| secret.expose().to_owned());
    passwords.chain(of_account).filter(|secret| !secret.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use config::{AwsAccount, SecretText};

    use super::*;

    #[test]
    fn secrets_of_a_store_are_its_password_and_its_keys() {
        let access_key = Some((SecretText::new("AK"), SecretText::new("SK")));
        let aws = CloudAccount::Aws(AwsAccount { access_key, region: None });
        let table = [
            ("postgres://ada:t%40p@host/db?table=x", CloudAccount::Environment, vec!["t%40p", "t@p"]),
            ("postgres://ada@host/db", CloudAccount::Environment, vec![]),
            ("postgres://ada@host/db?a=b&password=p%2Fw", CloudAccount::Environment, vec!["p%2Fw", "p/w"]),
            ("postgres://host/a:b@c", CloudAccount::Environment, vec![]),
            ("s3://bucket", aws, vec!["SK"]),
            ("gs://bucket", CloudAccount::Google(SecretText::new("{}")), vec!["{}"]),
        ];
        for (url, account, expected) in table {
            assert_eq!(secrets(url, &account, &BTreeMap::new()), expected, "{url}");
        }
        let environment = BTreeMap::from([("PGPASSWORD".to_owned(), "hush".to_owned())]);
        assert_eq!(secrets("postgres://ada@host/db", &CloudAccount::Environment, &environment), ["hush"]);
    }
}

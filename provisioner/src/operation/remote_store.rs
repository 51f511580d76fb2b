//! Secrets in the settings of stores in buckets and databases.

use std::collections::BTreeMap;

use config::CloudAccount;
use engine::masking::MASK;
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

/// Returns a URL with `[secret]` in place of its passwords.
pub(super) fn masked_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?.0, host))) {
        Some((user, host)) => format!("{user}:{MASK}@{host}"),
        None => authority.to_owned(),
    };
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let masked = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if name.contains("password") => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    };
    let query = query.map(|query| query.split('&').map(masked).collect::<Vec<_>>().join("&"));
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{scheme}://{authority}{path}{query}")
}

#[cfg(test)]
mod tests {
    use config::{AwsAccount, SecretText};

    use super::*;

    #[test]
    fn passwords_of_a_url_are_masked() {
        let table = [
            ("postgres://ada:t%40p@host/db?table=x", "postgres://ada:[secret]@host/db?table=x"),
            (
                "postgres://ada:a@b:c@host?password=p&sslpassword=q",
                "postgres://ada:[secret]@host?password=[secret]&sslpassword=[secret]",
            ),
            ("postgres://ada@host/a:b@c", "postgres://ada@host/a:b@c"),
            ("s3://bucket/prefix?region=eu", "s3://bucket/prefix?region=eu"),
            ("file://a:b@c/d?password=e", "file://a:b@c/d?password=e"),
        ];
        for (url, expected) in table {
            assert_eq!(masked_url(url), expected);
        }
    }

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

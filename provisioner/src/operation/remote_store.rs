//! Secrets in the settings of stores in buckets and databases.

use std::collections::BTreeMap;
use std::ops::Range;

use config::CloudAccount;
use engine::masking::MASK;
use percent_encoding::percent_decode_str;

/// Variables of the environment with secrets of stores.
const VARIABLES: [&str; 6] = [
    "PGPASSWORD",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGEBLOB_CONNECTIONSTRING",
    "AZURE_CLIENT_SECRET",
];
/// Parts of a connection string that are secrets.
const SECRET_PARTS: [&str; 2] = ["AccountKey", "SharedAccessSignature"];

/// Returns the secrets of a URL, of its account and of the environment, which must not be displayed.
pub(super) fn secrets(url: &str, account: &CloudAccount, environment: &BTreeMap<String, String>) -> Vec<String> {
    let passwords = passwords(url).into_iter().flat_map(|range| {
        let password = &url[range];
        let decoded = percent_decode_str(password).decode_utf8_lossy().into_owned();
        [password.to_owned(), decoded]
    });
    let of_environment = VARIABLES.iter().filter_map(|name| environment.get(*name)).flat_map(|value| {
        // A connection string has its key between others of its parts.
        let parts = value.split(';').filter_map(|part| part.split_once('='));
        let keys = parts.filter(|(name, _)| SECRET_PARTS.contains(name)).map(|(_, key)| key.to_owned());
        std::iter::once(value.clone()).chain(keys).collect::<Vec<_>>()
    });
    let passwords = passwords.chain(of_environment);
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
    let mut masked = url.to_owned();
    for range in passwords(url).into_iter().rev() {
        masked.replace_range(range, MASK);
    }
    masked
}

/// Returns where the passwords of a URL are, in their order: after the user, and in parameters. The URL of a folder has none.
fn passwords(url: &str) -> Vec<Range<usize>> {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
        return Vec::new();
    };
    let begin = scheme.len() + "://".len();
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let login = authority.rsplit_once('@').and_then(|(login, _)| Some((login.find(':')? + 1, login.len())));
    let mut found: Vec<_> = login.map(|(from, to)| begin + from..begin + to).into_iter().collect();
    let mut from = url.find('?').map_or(url.len(), |question| question + 1);
    for parameter in url[from..].split('&') {
        let to = from + parameter.len();
        if let Some((name, _)) = parameter.split_once('=').filter(|(name, _)| name.contains("password")) {
            found.push(from + name.len() + "=".len()..to);
        }
        from = to + "&".len();
    }
    found
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
            ("postgres://host/db?sslpassword=q", CloudAccount::Environment, vec!["q", "q"]),
            ("s3://bucket", aws, vec!["SK"]),
            ("gs://bucket", CloudAccount::Google(SecretText::new("{}")), vec!["{}"]),
        ];
        for (url, account, expected) in table {
            assert_eq!(secrets(url, &account, &BTreeMap::new()), expected, "{url}");
        }
        let environment = BTreeMap::from([("PGPASSWORD".to_owned(), "hush".to_owned())]);
        assert_eq!(secrets("postgres://ada@host/db", &CloudAccount::Environment, &environment), ["hush"]);
        let string = "AccountName=reef;AccountKey=aHVzaA==;BlobEndpoint=https://reef.example";
        let environment = BTreeMap::from([("AZURE_STORAGE_CONNECTION_STRING".to_owned(), string.to_owned())]);
        assert_eq!(secrets("azblob://state", &CloudAccount::Environment, &environment), [string, "aHVzaA=="]);
    }
}

//! Stores in buckets and databases: from a URL to the client of the cloud or of the database.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use cloud::aws::AwsKeys;
use cloud::gcs::{GcsUrl, open_gcs};
use cloud::google::GoogleCredentials;
use cloud::postgres::{PostgresObjects, PostgresUrl};
use cloud::s3::{S3Url, open_s3};
use config::CloudAccount;
use percent_encoding::percent_decode_str;
use state::store::Objects;

/// Returns the client of a store, which connects on first use.
///
/// # Errors
/// The error of the URL, or of the settings of the cloud: a part or a parameter is invalid or not supported.
pub(super) async fn objects(
    url: &str,
    account: &CloudAccount,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<Arc<dyn Objects>, Box<dyn Error + Send + Sync>> {
    match url.split_once("://").map_or(url, |(scheme, _)| scheme) {
        "s3" => {
            let keys = match account {
                CloudAccount::Aws(account) => account.access_key.as_ref(),
                CloudAccount::Environment | CloudAccount::Google(_) => None,
            };
            let keys = keys.map(|(key, secret)| AwsKeys::new(key.expose(), secret.expose()));
            Ok(open_s3(&S3Url::parse(url, environment)?, keys.as_ref(), environment, home).await?)
        }
        "gs" => {
            let credentials = match account {
                CloudAccount::Google(json) => Some(GoogleCredentials::new(json.expose())),
                CloudAccount::Environment | CloudAccount::Aws(_) => None,
            };
            Ok(open_gcs(&GcsUrl::parse(url)?, credentials.as_ref(), environment, home)?)
        }
        "postgres" => Ok(Arc::new(PostgresObjects::new(PostgresUrl::parse(url, environment, home)?))),
        scheme => Err(format!("a state storage at {scheme}:// is not supported").into()),
    }
}

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

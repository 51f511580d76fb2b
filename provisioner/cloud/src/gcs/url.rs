//! `gs://` URLs of stores (docs/spec/state-and-secrets.md#1).

use url::form_urlencoded;

use crate::bucket::parse_prefix;
use crate::google::PUBLIC_CLOUD;

/// Content of a `gs://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcsUrl {
    /// Name of the bucket.
    pub bucket: String,
    /// Beginning of all keys: empty, or with a slash at its end.
    pub prefix: String,
    /// Sends no credentials.
    pub is_anonymous: bool,
    /// Domain of another cloud of Google (Trusted Partner Cloud).
    pub universe_domain: Option<String>,
}

/// Reason why a text is not the URL of a store in a bucket. It never contains a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GcsUrlError {
    /// Other scheme.
    #[error("the URL of a bucket begins with `gs://`")]
    Scheme,
    /// Credentials before the name of the bucket.
    #[error("a URL has no credentials: set GOOGLE_CREDENTIALS or GOOGLE_APPLICATION_CREDENTIALS")]
    Credentials,
    /// Invalid name of a bucket.
    #[error("`{0}` is no name of a bucket: expected `gs://BUCKET/PREFIX`")]
    Bucket(String),
    /// Prefix that keys cannot have.
    #[error("`{prefix}` is no prefix of keys: {reason}")]
    Prefix {
        /// Prefix as it stands in the URL.
        prefix: String,
        /// Rule that it does not fulfil.
        reason: &'static str,
    },
    /// Unknown parameter.
    #[error(
        "the URL of a bucket has no parameter `{0}`: expected access_id, private_key_path, anonymous, universe_domain"
    )]
    Unknown(String),
    /// Parameter with an invalid value.
    #[error("the parameter `{name}` cannot be `{value}`: expected {expected}")]
    Value {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
}

impl GcsUrl {
    /// Parses a URL as Pulumi does. `access_id` and `private_key_path` are accepted and have no effect, apart from
    /// `access_id=-`, which means anonymous: they are for signed URLs, which no store needs.
    ///
    /// # Errors
    /// [`GcsUrlError`].
    pub fn parse(url: &str) -> Result<Self, GcsUrlError> {
        let rest = url.strip_prefix("gs://").ok_or(GcsUrlError::Scheme)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(GcsUrlError::Credentials);
        }
        if !is_bucket_name(bucket) {
            return Err(GcsUrlError::Bucket(bucket.to_owned()));
        }
        if !fragment.is_empty() {
            let prefix = format!("{path}#{fragment}");
            return Err(GcsUrlError::Prefix { prefix, reason: "write `#` as `%23`" });
        }
        let prefix = parse_prefix(path).map_err(|reason| GcsUrlError::Prefix { prefix: path.to_owned(), reason })?;
        let mut parsed = Self { bucket: bucket.to_owned(), prefix, is_anonymous: false, universe_domain: None };
        parsed.set_parameters(query)?;
        Ok(parsed)
    }

    /// Like Pulumi, uses the first value of a repeated parameter, and takes an empty value for a missing one.
    fn set_parameters(&mut self, query: &str) -> Result<(), GcsUrlError> {
        let mut known: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if known.iter().any(|known| *known == name) {
                continue;
            }
            match &*name {
                "access_id" => self.is_anonymous |= value == "-",
                "anonymous" => self.is_anonymous |= parse_bool(&value)?,
                "universe_domain" if value.is_empty() => {}
                "universe_domain" => self.universe_domain = Some(parse_domain(&value)?),
                "private_key_path" => {}
                other => return Err(GcsUrlError::Unknown(other.to_owned())),
            }
            known.push(name.into_owned());
        }
        Ok(())
    }

    pub(super) fn service(&self) -> String {
        format!("https://storage.{}", self.universe_domain.as_deref().unwrap_or(PUBLIC_CLOUD))
    }

    /// Returns the URL to which a key is appended.
    pub(super) fn base(&self) -> String {
        format!("gs://{}/{}", self.bucket, self.prefix)
    }

    /// Returns the URL with those parameters that identify the store: names of buckets are unique within a cloud, and
    /// within an emulator.
    pub(super) fn location(&self, emulator: Option<&str>) -> String {
        let base = self.base();
        let base = base.trim_end_matches('/');
        match (emulator, &self.universe_domain) {
            (Some(emulator), _) => format!("{base}?emulator={emulator}"),
            (None, Some(domain)) => format!("{base}?universe_domain={domain}"),
            (None, None) => base.to_owned(),
        }
    }
}

/// Accepts the names of <https://cloud.google.com/storage/docs/buckets#naming>, roughly: the service decides.
fn is_bucket_name(name: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    (3..=222).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with(['.', '-', '_'])
}

/// Parses a bool like Go's `strconv.ParseBool`.
fn parse_bool(value: &str) -> Result<bool, GcsUrlError> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => {
            let value = value.to_owned();
            Err(GcsUrlError::Value { name: "anonymous", value, expected: "`true` or `false`" })
        }
    }
}

fn parse_domain(value: &str) -> Result<String, GcsUrlError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    if value != PUBLIC_CLOUD && (!value.contains('.') || !value.bytes().all(is_allowed)) {
        let (value, expected) = (value.to_owned(), "the name of a domain, such as `googleapis.com`");
        return Err(GcsUrlError::Value { name: "universe_domain", value, expected });
    }
    Ok(value.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> GcsUrl {
        GcsUrl::parse(url).unwrap()
    }

    #[test]
    fn path_is_the_beginning_of_every_key() {
        let rows = [
            ("gs://reef-state", "", "gs://reef-state"),
            ("gs://reef-state/", "", "gs://reef-state"),
            ("gs://reef-state/team/a%20b", "team/a b/", "gs://reef-state/team/a b"),
            ("gs://reef-state//team/?access_id=x&private_key_path=/key.pem", "team/", "gs://reef-state/team"),
        ];
        for (url, prefix, location) in rows {
            let parsed = parse(url);
            assert_eq!((&*parsed.bucket, &*parsed.prefix), ("reef-state", prefix), "{url}");
            assert_eq!(parsed.location(None), location, "{url}");
            assert!(!parsed.is_anonymous && parsed.universe_domain.is_none(), "{url}");
        }
    }

    /// Shows: state.md#in-google-cloud-storage "The parameters are those of `pulumi`: `anonymous=true` or `access_id=-`
    ///   sends no credentials"
    /// Shows: state.md#stores "A parameter that `sc` cannot honour is refused by name."
    #[test]
    fn parameters_are_those_of_pulumi() {
        for (query, is_anonymous) in [
            ("anonymous=true", true),
            ("anonymous=T", true),
            ("access_id=-", true),
            ("anonymous=false", false),
            ("anonymous=false&anonymous=true", false),
            ("anonymous=", false),
        ] {
            assert_eq!(parse(&format!("gs://reef?{query}")).is_anonymous, is_anonymous, "{query}");
        }
        let parsed = parse("gs://reef?universe_domain=apis-tpczero.goog");
        assert_eq!(parsed.service(), "https://storage.apis-tpczero.goog");
        assert_eq!(parsed.location(None), "gs://reef?universe_domain=apis-tpczero.goog");
        assert_eq!(parse("gs://reef").service(), "https://storage.googleapis.com");
        let emulator = Some("http://127.0.0.1:4443");
        assert_eq!(parse("gs://reef/a").location(emulator), "gs://reef/a?emulator=http://127.0.0.1:4443");
    }

    /// Shows: state.md#in-google-cloud-storage "The parameters are those of `pulumi`: `anonymous=true` or `access_id=-`
    ///   sends no credentials"
    /// Shows: state.md#stores "A parameter that `sc` cannot honour is refused by name."
    #[test]
    fn invalid_urls_are_refused() {
        let urls = [
            "s3://reef",
            "gs://ada:pw@reef",
            "gs://",
            "gs://Reef",
            "gs://reef/a//b",
            "gs://reef/../b",
            "gs://reef/a#b",
            "gs://reef?colour=red",
            "gs://reef?anonymous=maybe",
            "gs://reef?universe_domain=evil.example/path",
        ];
        let messages = urls.map(|url| GcsUrl::parse(url).unwrap_err().to_string());
        assert!(messages.iter().all(|message| !message.contains("pw")));
        insta::assert_snapshot!(messages.join("\n"), @"
    the URL of a bucket begins with `gs://`
    a URL has no credentials: set GOOGLE_CREDENTIALS or GOOGLE_APPLICATION_CREDENTIALS
    `` is no name of a bucket: expected `gs://BUCKET/PREFIX`
    `Reef` is no name of a bucket: expected `gs://BUCKET/PREFIX`
    `a//b` is no prefix of keys: two slashes follow each other
    `../b` is no prefix of keys: a folder is `.` or `..`
    `a#b` is no prefix of keys: write `#` as `%23`
    the URL of a bucket has no parameter `colour`: expected access_id, private_key_path, anonymous, universe_domain
    the parameter `anonymous` cannot be `maybe`: expected `true` or `false`
    the parameter `universe_domain` cannot be `evil.example/path`: expected the name of a domain, such as `googleapis.com`
    ");
    }
}

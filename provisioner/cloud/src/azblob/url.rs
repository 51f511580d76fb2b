//! `azblob://` URLs of stores (docs/spec/state-and-secrets.md#1).

use url::form_urlencoded;

use crate::bucket::parse_prefix;

/// Content of an `azblob://` URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AzblobUrl {
    /// Name of the container.
    pub container: String,
    /// Beginning of all keys: empty, or with a slash at its end.
    pub prefix: String,
    /// Name of the storage account.
    pub storage_account: Option<String>,
    /// Domain that the name of the account precedes; empty: that of the public cloud.
    pub domain: Option<String>,
    /// Scheme of the URLs of requests; empty: `https`.
    pub protocol: Option<String>,
    /// The domain is that of a content delivery network, without the name of the account.
    pub is_cdn: Option<bool>,
    /// The name of the account follows the domain, as in an emulator.
    pub is_emulator: Option<bool>,
}

/// Reason why a text is not the URL of a store in a container. It never contains a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AzblobUrlError {
    /// Other scheme.
    #[error("the URL of a container begins with `azblob://`")]
    Scheme,
    /// Credentials before the name of the container.
    #[error("a URL has no credentials: set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or log in with `az login`")]
    Credentials,
    /// Invalid name of a container.
    #[error("`{0}` is no name of a container: expected `azblob://CONTAINER/PREFIX`")]
    Container(String),
    /// Prefix that keys cannot have.
    #[error("`{prefix}` is no prefix of keys: {reason}")]
    Prefix {
        /// Prefix as it stands in the URL.
        prefix: String,
        /// Rule that it does not fulfil.
        reason: &'static str,
    },
    /// Unknown parameter.
    #[error("the URL of a container has no parameter `{0}`: expected storage_account, domain, protocol, cdn, localemu")]
    Unknown(String),
    /// Parameter that stands twice.
    #[error("the parameter `{0}` has two values")]
    Repeated(String),
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

impl AzblobUrl {
    /// Parses a URL as Pulumi does.
    ///
    /// # Errors
    /// [`AzblobUrlError`].
    pub fn parse(url: &str) -> Result<Self, AzblobUrlError> {
        let rest = url.strip_prefix("azblob://").ok_or(AzblobUrlError::Scheme)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (container, path) = rest.split_once('/').unwrap_or((rest, ""));
        if container.contains('@') {
            return Err(AzblobUrlError::Credentials);
        }
        if !is_container_name(container) {
            return Err(AzblobUrlError::Container(container.to_owned()));
        }
        if !fragment.is_empty() {
            let prefix = format!("{path}#{fragment}");
            return Err(AzblobUrlError::Prefix { prefix, reason: "write `#` as `%23`" });
        }
        let prefix = parse_prefix(path).map_err(|reason| AzblobUrlError::Prefix { prefix: path.to_owned(), reason })?;
        let mut parsed = Self { container: container.to_owned(), prefix, ..Self::default() };
        parsed.set_parameters(query)?;
        Ok(parsed)
    }

    fn set_parameters(&mut self, query: &str) -> Result<(), AzblobUrlError> {
        let mut known: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if known.iter().any(|known| *known == name) {
                return Err(AzblobUrlError::Repeated(name.into_owned()));
            }
            let text = || Some(value.clone().into_owned());
            match &*name {
                "storage_account" if is_account_name(&value) => self.storage_account = text(),
                "storage_account" => {
                    return Err(invalid("storage_account", &value, "3 to 24 lower-case letters and digits"));
                }
                "domain" if is_domain(&value) => self.domain = text(),
                "domain" => {
                    return Err(invalid("domain", &value, "the name of a domain, such as `blob.core.windows.net`"));
                }
                "protocol" if matches!(&*value, "" | "http" | "https") => self.protocol = text(),
                "protocol" => return Err(invalid("protocol", &value, "`https` or `http`")),
                "cdn" => self.is_cdn = Some(bool_of("cdn", &value)?),
                "localemu" => self.is_emulator = Some(bool_of("localemu", &value)?),
                other => return Err(AzblobUrlError::Unknown(other.to_owned())),
            }
            known.push(name.into_owned());
        }
        Ok(())
    }

    /// Returns the parameters that select the service, for messages.
    pub(super) fn service_parameters(&self) -> Vec<&'static str> {
        let parameters = [
            ("storage_account", self.storage_account.is_some()),
            ("domain", self.domain.is_some()),
            ("protocol", self.protocol.is_some()),
            ("cdn", self.is_cdn.is_some()),
            ("localemu", self.is_emulator.is_some()),
        ];
        parameters.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    /// Returns the URL to which a key is appended.
    pub(super) fn base(&self) -> String {
        format!("azblob://{}/{}", self.container, self.prefix)
    }

    /// Returns the beginning of all keys as Pulumi's client stores it: with an escape for each character that the service does
    /// not take well. The keys of states have no such character.
    pub(super) fn stored_prefix(&self) -> String {
        let mut stored = String::new();
        for character in self.prefix.chars() {
            match character {
                '\\' | '"' | '#' | '%' | '?' => stored += &format!("__0x{:x}__", u32::from(character)),
                _ => stored.push(character),
            }
        }
        stored
    }
}

fn invalid(name: &'static str, value: &str, expected: &'static str) -> AzblobUrlError {
    AzblobUrlError::Value { name, value: bridge::error::shorten(value).into_owned(), expected }
}

/// Accepts the names of
/// <https://learn.microsoft.com/en-us/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>, roughly:
/// the service decides.
fn is_container_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_usual = (3..=63).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with('-');
    is_usual || matches!(name, "$web" | "$root")
}

/// Accepts the names of accounts, which become part of a host.
pub(super) fn is_account_name(name: &str) -> bool {
    // The secondary location of an account has a suffix.
    let name = name.strip_suffix("-secondary").unwrap_or(name);
    (3..=24).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Accepts a domain, with a port, so that a value cannot add a path or a user.
pub(super) fn is_domain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'))
}

/// Parses a bool like Go's `strconv.ParseBool`.
pub(super) fn parse_bool(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn bool_of(name: &'static str, value: &str) -> Result<bool, AzblobUrlError> {
    parse_bool(value).ok_or_else(|| invalid(name, value, "`true` or `false`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> AzblobUrl {
        AzblobUrl::parse(url).unwrap()
    }

    #[test]
    fn path_is_the_beginning_of_every_key() {
        let rows = [
            ("azblob://reef-state", "", ""),
            ("azblob://reef-state/", "", ""),
            ("azblob://reef-state/team/a%20b", "team/a b/", "team/a b/"),
            ("azblob://reef-state//team/?storage_account=reef", "team/", "team/"),
            ("azblob://reef-state/50%25/%22%23%3F%5C", "50%/\"#?\\/", "50__0x25__/__0x22____0x23____0x3f____0x5c__/"),
        ];
        for (url, prefix, stored) in rows {
            let parsed = parse(url);
            assert_eq!((&*parsed.container, &*parsed.prefix), ("reef-state", prefix), "{url}");
            assert_eq!(parsed.stored_prefix(), stored, "{url}");
        }
    }

    /// Shows: state.md#in-azure-blob-storage "The parameters are those of `pulumi`"
    #[test]
    fn parameters_are_those_of_pulumi() {
        let parsed = parse("azblob://reef?storage_account=reef7&domain=127.0.0.1:10000&protocol=http&cdn=F&localemu=1");
        let expected = AzblobUrl {
            container: "reef".to_owned(),
            prefix: String::new(),
            storage_account: Some("reef7".to_owned()),
            domain: Some("127.0.0.1:10000".to_owned()),
            protocol: Some("http".to_owned()),
            is_cdn: Some(false),
            is_emulator: Some(true),
        };
        assert_eq!(parsed, expected);
        assert_eq!(parsed.service_parameters(), ["storage_account", "domain", "protocol", "cdn", "localemu"]);
        assert_eq!(parse("azblob://reef?domain=&protocol=").domain, Some(String::new()));
        assert_eq!(parse("azblob://reef").service_parameters(), [""; 0]);
    }

    /// Shows: state.md#stores "A parameter that `sc` cannot honour is refused by name."
    #[test]
    fn invalid_urls_are_refused() {
        let urls = [
            "gs://reef",
            "azblob://ada:pw@reef",
            "azblob://",
            "azblob://Reef",
            "azblob://reef/a//b",
            "azblob://reef/a#b",
            "azblob://reef?colour=red",
            "azblob://reef?cdn=true&cdn=true",
            "azblob://reef?cdn=",
            "azblob://reef?localemu=maybe",
            "azblob://reef?protocol=ftp",
            "azblob://reef?domain=evil.example/path",
            "azblob://reef?storage_account=",
            "azblob://reef?storage_account=evil.example",
        ];
        let messages = urls.map(|url| AzblobUrl::parse(url).unwrap_err().to_string());
        assert!(messages.iter().all(|message| !message.contains("pw")));
        insta::assert_snapshot!(messages.join("\n"), @"
        the URL of a container begins with `azblob://`
        a URL has no credentials: set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or log in with `az login`
        `` is no name of a container: expected `azblob://CONTAINER/PREFIX`
        `Reef` is no name of a container: expected `azblob://CONTAINER/PREFIX`
        `a//b` is no prefix of keys: two slashes follow each other
        `a#b` is no prefix of keys: write `#` as `%23`
        the URL of a container has no parameter `colour`: expected storage_account, domain, protocol, cdn, localemu
        the parameter `cdn` has two values
        the parameter `cdn` cannot be ``: expected `true` or `false`
        the parameter `localemu` cannot be `maybe`: expected `true` or `false`
        the parameter `protocol` cannot be `ftp`: expected `https` or `http`
        the parameter `domain` cannot be `evil.example/path`: expected the name of a domain, such as `blob.core.windows.net`
        the parameter `storage_account` cannot be ``: expected 3 to 24 lower-case letters and digits
        the parameter `storage_account` cannot be `evil.example`: expected 3 to 24 lower-case letters and digits
        ");
    }
}

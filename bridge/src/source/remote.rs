//! Address and credentials of a git repository.
//!
//! git receives the declared address without the user and password of an http(s) URL: every user of the machine can
//! read command lines.

use std::path::Path;

use percent_encoding::percent_decode_str;
use url::Url;

use super::address::{parse, without_credentials};
use super::error::FetchError;
use crate::plugin::{SourceToken, Transport, is_loopback};

/// User name that is sent with a token. GitHub and GitLab accept it, other servers ignore it.
const TOKEN_USER: &str = "x-access-token";

/// Name of the password in an address, for messages.
const OF_ADDRESS: &str = "its address";

/// Address and credentials of a git repository.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Address without credentials, except for the user name of an ssh URL.
    pub(super) url: String,
    /// Parsed `url`. `None` for a path and for `user@host:path`.
    parsed: Option<Url>,
    pub(super) transport: Transport,
    pub(super) login: Option<Credentials>,
}

/// User and password or token.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: SourceToken,
    /// Name for messages.
    pub(super) name: &'static str,
}

impl Remote {
    /// Creates the remote of a URL, or of a path that is relative to `root`.
    ///
    /// # Errors
    /// [`FetchError::InvalidAddress`]; [`FetchError::UnusableToken`] if a token is invalid or would be sent without
    /// https.
    pub fn new(url: &str, root: &Path, token: Option<SourceToken>) -> Result<Self, FetchError> {
        let address =
            |reason: &str| FetchError::InvalidAddress { address: without_credentials(url), reason: reason.to_owned() };
        if let Some(reason) = invalid_credentials_reason(url) {
            return Err(address(reason));
        }
        if is_option(url) {
            return Err(address("it looks like an option"));
        }
        if url.contains(char::is_control) {
            return Err(address("it contains invalid characters"));
        }
        let Some(transport) = Transport::of(url) else {
            return Err(address(
                "it is neither a path nor an address for https, http, ssh or git; remote helpers are not supported",
            ));
        };
        let is_address = url.split('/').next().is_some_and(|first| first.contains(':'));
        let url = if is_address { url.to_owned() } else { root.join(url).to_string_lossy().into_owned() };
        let url_credentials = parse(&url).filter(is_web).as_ref().and_then(credentials_of);
        let url = if url_credentials.is_some() { without_credentials(&url) } else { url };
        let login = token
            .map(|password| Credentials { user: TOKEN_USER.to_owned(), password, name: "source.token" })
            .or(url_credentials);
        // The credential helper writes them as lines, so they must not contain line ends.
        if login.as_ref().is_some_and(|login| (login.user.clone() + login.password.expose()).contains(char::is_control))
        {
            let host = without_credentials(&url);
            return Err(FetchError::UnusableToken { host, reason: "it contains invalid characters" });
        }
        let remote = Self { parsed: parse(&url), url, transport, login };
        if remote.login.is_some() {
            match remote.parsed.as_ref().map(Url::scheme) {
                Some("https") => {}
                Some("http") if is_loopback(&remote.host()) => {}
                _ => {
                    return Err(FetchError::UnusableToken {
                        host: remote.host(),
                        reason: "it would be sent without https",
                    });
                }
            }
        }
        Ok(remote)
    }

    /// Returns the address without credentials, for messages and for cache keys.
    pub fn display_url(&self) -> String {
        without_credentials(&self.url)
    }

    /// Returns whether it is a path, or an address of a file.
    pub fn is_on_this_machine(&self) -> bool {
        self.transport == Transport::File
    }

    /// Returns the host without user and port. Empty for a path.
    fn host(&self) -> String {
        self.parsed.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned()
    }

    /// Returns `https://host:port`, the scope of git settings for this host. `None` if the address is not a URL.
    pub(super) fn origin(&self) -> Option<String> {
        self.parsed.as_ref().map(|url| url.origin().ascii_serialization())
    }
}

/// Returns true if an address, or the user or host in it, begins with `-`: ssh could take it for an option.
fn is_option(address: &str) -> bool {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split(['/', ':']).next().unwrap_or_default();
    address.starts_with('-') || authority.split('@').any(|part| part.starts_with('-'))
}

/// Returns true if the scheme of a URL is http or https.
fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http")
}

/// Returns the reason why the credentials in an address cannot be used, or `None` if they can.
fn invalid_credentials_reason(address: &str) -> Option<&'static str> {
    match parse(address) {
        Some(url) if url.password().is_some() && !is_web(&url) => Some("a password is supported with https only"),
        Some(_) => None,
        None => {
            let (_, rest) = address.split_once("://")?;
            match rest.split('/').next().unwrap_or_default().rsplit_once('@') {
                Some((login, _)) if login.contains(':') => Some("it contains a password and is not a valid URL"),
                Some(_) => None,
                None if without_credentials(address) == address => None,
                None => Some("write / and @ in a user or password as %2F and %40"),
            }
        }
    }
}

/// Returns user and password of a URL. A user without a password is treated as a token.
fn credentials_of(url: &Url) -> Option<Credentials> {
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(url.username());
    match SourceToken::new(decoded(url.password().unwrap_or_default())) {
        Some(password) => Some(Credentials { user, password, name: OF_ADDRESS }),
        None => Some(Credentials { user: TOKEN_USER.to_owned(), password: SourceToken::new(user)?, name: OF_ADDRESS }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, token: Option<&str>) -> Result<Remote, FetchError> {
        Remote::new(url, Path::new("/repo"), token.and_then(|token| SourceToken::new(token.into())))
    }

    #[test]
    fn address_is_a_url_or_a_path_relative_to_the_root() {
        let cases = [
            ("https://me:word@git.example:99/a/b.git", "https://git.example:99/a/b.git", "git.example"),
            ("git@git.example:a/b.git", "git@git.example:a/b.git", ""),
            ("../plugins", "/repo/../plugins", ""),
            ("/srv/plugins.git", "/srv/plugins.git", ""),
            ("file:///srv/plugins.git", "file:///srv/plugins.git", ""),
            ("http://[::1]:8/a", "http://[::1]:8/a", "[::1]"),
        ];
        for (url, display_url, host) in cases {
            let remote = remote(url, None).unwrap();
            assert_eq!((remote.display_url().as_str(), remote.host().as_str()), (display_url, host));
        }
        for (url, origin) in [
            ("https://git.example:99/a/b.git", Some("https://git.example:99")),
            ("HTTPS://Git.example:443/a/b.git", Some("https://git.example")),
            ("git@git.example:a/b.git", None),
        ] {
            assert_eq!(remote(url, None).unwrap().origin().as_deref(), origin);
        }
        for bad in [
            "--upload-pack=touch x",
            "ext::sh -c x",
            "ext::sh -c 'touch x' https://git.example/a",
            "ftp://git.example/a",
            "ssh://-oProxyCommand=touch x/a",
            "ssh://git@-oProxyCommand=x/a",
            "git@-oProxyCommand=x:a",
            "-oProxyCommand=x:a",
            "https://git.example/a\nb",
            "ssh://me:word@git.example/a",
            "https://me:word@h:99999/a",
        ] {
            assert!(matches!(remote(bad, None), Err(FetchError::InvalidAddress { .. })), "{bad}");
        }
    }

    #[test]
    fn token_is_sent_over_https_only() {
        for good in ["https://git.example/a", "http://127.0.0.1:80/a"] {
            assert!(remote(good, Some("t")).is_ok(), "{good}");
        }
        for bad in [
            "http://git.example/a",
            "git@git.example:a",
            "ssh://git.example/a",
            "/srv/a",
            "http://127.0.0.1.example/",
            "http://127.0.0.1\\@git.example/a",
        ] {
            assert!(matches!(remote(bad, Some("t")), Err(FetchError::UnusableToken { .. })), "{bad}");
        }
    }

    #[test]
    fn credentials_are_extracted_from_an_address() {
        let login = |url: &str| {
            let remote = remote(url, None).unwrap();
            let login = remote.login.map(|login| (login.user, login.password.expose().to_owned()));
            (remote.url, login)
        };
        let some = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        let clean = "https://git.example/a".to_owned();
        assert_eq!(login("https://me:w%40rd@git.example/a"), (clean.clone(), some("me", "w@rd")));
        assert_eq!(login("https://t0ken@git.example/a"), (clean.clone(), some("x-access-token", "t0ken")));
        assert_eq!(login(&clean), (clean.clone(), None));
        assert_eq!(login("ssh://git@git.example/a"), ("ssh://git@git.example/a".to_owned(), None));
        assert!(matches!(remote("http://me:word@git.example/a", None), Err(FetchError::UnusableToken { .. })));
    }
}

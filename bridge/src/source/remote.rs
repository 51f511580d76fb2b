//! Where a git repository is, and what authenticates us there.
//!
//! git gets the address as it was written, without a user and a password for the web: those would stand on its command
//! line, where every user of the machine can read them.

use std::path::Path;

use percent_encoding::percent_decode_str;
use url::Url;

use super::address::{is_loopback, parse, without_credentials};
use super::error::FetchError;
use crate::plugin::SourceToken;

/// The user that goes with a token: what GitHub and GitLab take, and others ignore.
const TOKEN_USER: &str = "x-access-token";

/// A repository, and what authenticates us there.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Without credentials, unless they are a user's name for ssh.
    pub(super) url: String,
    /// The same, taken apart; `None` for a path and for `user@host:path`.
    parsed: Option<Url>,
    pub(super) login: Option<Login>,
}

/// A user and a password, which may be a token.
#[derive(Clone, Debug)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: SourceToken,
}

impl Remote {
    /// The repository at a URL, or at a path that is relative to `root`.
    ///
    /// # Errors
    /// [`FetchError::Address`], [`FetchError::Token`] where a token would travel in plain text.
    pub fn new(url: &str, root: &Path, token: Option<SourceToken>) -> Result<Self, FetchError> {
        let address =
            |reason: &str| FetchError::Address { address: without_credentials(url), reason: reason.to_owned() };
        if let Some(reason) = unusable_login(url) {
            return Err(address(reason));
        }
        if url.starts_with('-') {
            return Err(address("it looks like an option"));
        }
        if url.contains("::") && !url.contains("://") {
            return Err(address("remote helpers are not used"));
        }
        let host_comes_first = url.split('/').next().is_some_and(|first| first.contains(':'));
        let url = if host_comes_first { url.to_owned() } else { root.join(url).to_string_lossy().into_owned() };
        let written = parse(&url).filter(is_web).as_ref().and_then(login_in);
        let url = if written.is_some() { without_credentials(&url) } else { url };
        let login = token.map(|password| Login { user: TOKEN_USER.to_owned(), password }).or(written);
        // They are said to git in lines.
        if login.as_ref().is_some_and(|login| (login.user.clone() + login.password.expose()).contains(char::is_control))
        {
            let host = without_credentials(&url);
            return Err(FetchError::Token { host, reason: "it holds characters that no token has" });
        }
        let remote = Self { parsed: parse(&url), url, login };
        if remote.login.is_some() {
            match remote.parsed.as_ref().map(Url::scheme) {
                Some("https") => {}
                Some("http") if is_loopback(&remote.host()) => {}
                _ => return Err(FetchError::Token { host: remote.host(), reason: "it would not go by https" }),
            }
        }
        Ok(remote)
    }

    /// Returns the address without credentials: for messages, and as the name of the repository.
    pub fn shown(&self) -> String {
        without_credentials(&self.url)
    }

    /// Returns the host, without user and port; nothing for a path.
    fn host(&self) -> String {
        self.parsed.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned()
    }

    /// Returns `https://host:port`, for settings that hold there only; `None` for what is no URL.
    pub(super) fn origin(&self) -> Option<String> {
        self.parsed.as_ref().map(|url| url.origin().ascii_serialization())
    }
}

/// Whether a URL is one of a web server.
fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http")
}

/// Why the credentials in an address cannot be taken out of it.
fn unusable_login(address: &str) -> Option<&'static str> {
    match parse(address) {
        Some(url) if url.password().is_some() && !is_web(&url) => Some("a password in it goes by https only"),
        Some(_) => None,
        None => {
            let (_, rest) = address.split_once("://")?;
            match rest.split('/').next().unwrap_or_default().rsplit_once('@') {
                Some((login, _)) if login.contains(':') => Some("it holds a password and is no valid URL"),
                Some(_) => None,
                None if without_credentials(address) == address => None,
                None => Some("write / and @ in a user or password as %2F and %40"),
            }
        }
    }
}

/// User and password in a URL. A user alone may be a token, and goes as one.
fn login_in(url: &Url) -> Option<Login> {
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decoded(url.username());
    match SourceToken::new(decoded(url.password().unwrap_or_default())) {
        Some(password) => Some(Login { user, password }),
        None => Some(Login { user: TOKEN_USER.to_owned(), password: SourceToken::new(user)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, token: Option<&str>) -> Result<Remote, FetchError> {
        Remote::new(url, Path::new("/repo"), token.and_then(|token| SourceToken::new(token.into())))
    }

    #[test]
    fn an_address_is_a_url_or_a_path_from_the_root() {
        let table = [
            ("https://me:word@git.example:99/a/b.git", "https://git.example:99/a/b.git", "git.example"),
            ("git@git.example:a/b.git", "git@git.example:a/b.git", ""),
            ("../plugins", "/repo/../plugins", ""),
            ("/srv/plugins.git", "/srv/plugins.git", ""),
            ("file:///srv/plugins.git", "file:///srv/plugins.git", ""),
            ("http://[::1]:8/a", "http://[::1]:8/a", "[::1]"),
        ];
        for (url, shown, host) in table {
            let remote = remote(url, None).unwrap();
            assert_eq!((remote.shown().as_str(), remote.host().as_str()), (shown, host));
        }
        for (url, origin) in [
            ("https://git.example:99/a/b.git", Some("https://git.example:99")),
            ("HTTPS://Git.example:443/a/b.git", Some("https://git.example")),
            ("git@git.example:a/b.git", None),
        ] {
            assert_eq!(remote(url, None).unwrap().origin().as_deref(), origin);
        }
        for bad in ["--upload-pack=touch x", "ext::sh -c x", "ssh://me:word@git.example/a", "https://me:word@h:99999/a"]
        {
            assert!(matches!(remote(bad, None), Err(FetchError::Address { .. })), "{bad}");
        }
    }

    #[test]
    fn a_token_goes_by_https_only() {
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
            assert!(matches!(remote(bad, Some("t")), Err(FetchError::Token { .. })), "{bad}");
        }
    }

    #[test]
    fn credentials_in_an_address_leave_it() {
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
        assert!(matches!(remote("http://me:word@git.example/a", None), Err(FetchError::Token { .. })));
    }
}

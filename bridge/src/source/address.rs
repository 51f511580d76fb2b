//! Addresses of package sources: parsing, removal of credentials, paths below a base address.

use url::Url;

/// Parses an address as a URL. Returns `None` for paths, for `user@host:path`, for invalid URLs, and for addresses that
/// this parser and the parser of git may resolve to different hosts.
pub(super) fn parse(address: &str) -> Option<Url> {
    let is_ambiguous = |c: char| c == '\\' || c.is_control();
    if !address.contains("://") || address.contains(is_ambiguous) {
        return None;
    }
    Url::parse(address).ok()
}

/// Returns an address without user and password. Everything before the last `@` is removed, because a password may
/// contain characters that end a host.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    // `me:wo/rd@host`: the text after the colon is no port number, so it is the beginning of a password that contains a
    // slash.
    let password_has_slash =
        !authority.contains('@') && !authority.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit());
    let end = if password_has_slash { rest.rfind('@') } else { authority.rfind('@') };
    end.map_or_else(|| url.to_owned(), |at| format!("{scheme}://{}", &rest[at + 1..]))
}

/// Returns true if a URL is `base` or below it: of the same scheme, host and port, with the path of `base` or a path
/// that continues it after a slash.
pub(super) fn is_below(base: &Url, url: &Url) -> bool {
    let rest = url.path().strip_prefix(base.path().trim_end_matches('/'));
    url.origin() == base.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_an_address() {
        let cases = [
            ("https://me:word@git.example/a@b.git", "https://git.example/a@b.git"),
            ("https://git.example:443/@a.git", "https://git.example:443/@a.git"),
            ("https://me:wo/rd@git.example/a.git", "https://git.example/a.git"),
            ("http://[::1]:80/@a", "http://[::1]:80/@a"),
            ("git@git.example:a.git", "git@git.example:a.git"),
            ("../plugins", "../plugins"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_credentials(url), shown);
        }
    }

    #[test]
    fn path_is_below_a_base_at_a_slash_only() {
        let is_below = |base: &str, url: &str| is_below(&Url::parse(base).unwrap(), &Url::parse(url).unwrap());
        for base in ["https://git.example/api", "https://git.example/api/"] {
            for below in ["/api", "/api/", "/api/v3/x", "/api?x=y"] {
                assert!(is_below(base, &format!("https://git.example{below}")), "{base} {below}");
            }
            for other in ["/", "/apiX", "/apiX/y", "/api%2Fx", "/api/../x", "/api/%2e%2e/x", "/x/api"] {
                assert!(!is_below(base, &format!("https://git.example{other}")), "{base} {other}");
            }
            for other in ["http://git.example/api", "https://git.example:8443/api", "https://git.example.org/api"] {
                assert!(!is_below(base, other), "{base} {other}");
            }
        }
        assert!(is_below("https://git.example", "https://git.example/x"));
    }
}

//! Addresses of package sources: parsing, removal of credentials, detection of loopback hosts.

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

/// Returns true if a host is this machine. Plain-text requests to it do not leave the machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
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
    fn loopback_hosts_are_recognized() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.example", "10.0.0.1", "0.0.0.0", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

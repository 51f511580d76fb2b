//! Addresses of places: what of them may be shown, and whether they lead elsewhere.

use url::Url;

/// Takes an address apart. `None` for paths and for `user@host:path`, for what is no valid URL, and for what this parser
/// and that of git may take for different hosts.
pub(super) fn parse(address: &str) -> Option<Url> {
    let is_ambiguous = |c: char| c == '\\' || c.is_control();
    if !address.contains("://") || address.contains(is_ambiguous) {
        return None;
    }
    Url::parse(address).ok()
}

/// An address without user and password: all that stands before the last `@` is left out, for a password may hold what
/// ends a host.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    // `me:wo/rd@host`: what looks like a port is no number.
    let hidden =
        !authority.contains('@') && !authority.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit());
    let end = if hidden { rest.rfind('@') } else { authority.rfind('@') };
    end.map_or_else(|| url.to_owned(), |at| format!("{scheme}://{}", &rest[at + 1..]))
}

/// Whether a host is this machine: what goes to it in plain text is seen by nobody else.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_not_shown() {
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
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.example", "10.0.0.1", "0.0.0.0", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

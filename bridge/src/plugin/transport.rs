//! Transport of the address of a source: the supported ones, and whether they are encrypted.

use url::Url;

/// Transport that an address of a source selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Path of this machine, or `file://`.
    File,
    /// `https://`.
    Https,
    /// `http://`, which is not encrypted.
    Http,
    /// `ssh://`, or `user@host:path`.
    Ssh,
    /// `git://`, which is not encrypted.
    Git,
}

impl Transport {
    /// Returns the transport of an address in the grammar of git, where `HOST:PATH` is SSH; other kinds of sources have their own. Returns `None` for every other one, among them
    /// `NAME::ADDRESS` and `NAME://ADDRESS`, for which git runs the program `git-remote-NAME`, and `ext::COMMAND`, for
    /// which it runs the command.
    pub fn of(address: &str) -> Option<Self> {
        let is_scheme_character = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if address.trim_start_matches(is_scheme_character).starts_with("::") {
            return None;
        }
        // Only what precedes the first slash can be a scheme or a host.
        if !address.split('/').next().is_some_and(|first| first.contains(':')) {
            return Some(Self::File);
        }
        let Some((scheme, _)) = address.split_once("://") else { return Some(Self::Ssh) };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => Some(Self::File),
            "https" => Some(Self::Https),
            "http" => Some(Self::Http),
            "ssh" | "git+ssh" | "ssh+git" => Some(Self::Ssh),
            "git" => Some(Self::Git),
            _ => None,
        }
    }

    fn is_encrypted(self) -> bool {
        match self {
            Self::File | Self::Https | Self::Ssh => true,
            Self::Http | Self::Git => false,
        }
    }
}

/// Returns true if the content behind an address travels to this machine without encryption.
pub fn is_plain_text(address: &str) -> bool {
    let leaves_machine = || {
        let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        host.is_none_or(|host| !is_loopback(&host))
    };
    Transport::of(address).is_some_and(|transport| !transport.is_encrypted()) && leaves_machine()
}

/// Returns true if a host is this machine. Plain-text requests to it do not leave the machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_is_one_of_a_list() {
        let cases = [
            ("https://git.example/a", Some(Transport::Https)),
            ("HTTPS://git.example/a", Some(Transport::Https)),
            ("http://git.example/a", Some(Transport::Http)),
            ("ssh://git@git.example/a", Some(Transport::Ssh)),
            ("git+ssh://git@git.example/a", Some(Transport::Ssh)),
            ("git@git.example:a", Some(Transport::Ssh)),
            ("[::1]:a", Some(Transport::Ssh)),
            ("git://git.example/a", Some(Transport::Git)),
            ("file:///srv/a", Some(Transport::File)),
            ("/srv/a", Some(Transport::File)),
            ("../a", Some(Transport::File)),
            ("a/b::c", Some(Transport::File)),
            ("a/b:c://d", Some(Transport::File)),
            ("ext::sh -c x", None),
            ("ext::sh -c 'x' https://git.example", None),
            ("EXT::sh://x", None),
            ("::x", None),
            ("fd::17", None),
            ("https::https://git.example/a", None),
            ("sh x://git.example/a", None),
            ("ftp://git.example/a", None),
            ("ext://sh -c x", None),
        ];
        for (address, expected) in cases {
            assert_eq!(Transport::of(address), expected, "{address}");
        }
    }

    #[test]
    fn plain_text_to_another_machine_is_detected() {
        for plain in ["http://git.example/a", "HTTP://10.0.0.1/a", "git://git.example/a", "http://localhost.example/"] {
            assert!(is_plain_text(plain), "{plain}");
        }
        for other in ["https://git.example", "http://127.0.0.1:8/a", "http://[::1]/a", "git://localhost/a", "/a", "h:a"]
        {
            assert!(!is_plain_text(other), "{other}");
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

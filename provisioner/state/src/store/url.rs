//! `file://` URLs of stores (docs/spec/state-and-secrets.md#1).
//!
//! The query is parsed like that of any URL. The path is not: like Pulumi it is all text up to the question mark, so
//! `file://a/b` and `file://~/b` have a path and no host, and `%20`, `#` and `..` are not special.

use std::path::{Path, PathBuf};

use url::form_urlencoded;

/// Content of a `file://` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUrl {
    /// Folder that contains `.pulumi`.
    pub folder: PathBuf,
    /// Creates the folder if it does not exist.
    pub create: bool,
    /// Permissions of created folders, before the umask.
    pub folder_mode: u32,
    /// Writes a sidecar (`.attrs`) beside each file.
    pub sidecars: bool,
}

/// Reason why a text is not the URL of a supported store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Unsupported scheme.
    #[error("{0:?}: only file:// stores are supported")]
    Scheme(String),
    /// Unknown parameter.
    #[error("unknown parameter {parameter:?} in {url:?}")]
    Parameter {
        /// The parameter.
        parameter: String,
        /// The whole URL.
        url: String,
    },
    /// Parameter with an invalid value.
    #[error("parameter {parameter:?} in {url:?} cannot be {value:?}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// Value of the parameter.
        value: String,
        /// The whole URL.
        url: String,
    },
    /// Parameter without its counterpart: `base_url` and `secret_key_path` are valid only together.
    #[error("{0:?} has one of base_url and secret_key_path without the other")]
    UnpairedParameter(String),
    /// The URL has `~`, and the home directory is unknown.
    #[error("{0:?}: the home directory is not known")]
    NoHome(String),
}

impl FileUrl {
    /// Parses a URL. Relative paths start at `current`, `~` is `home`.
    ///
    /// # Errors
    /// [`UrlError`].
    pub fn parse(url: &str, current: &Path, home: Option<&Path>) -> Result<Self, UrlError> {
        let rest = url.strip_prefix("file://").ok_or_else(|| UrlError::Scheme(url.to_owned()))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let folder = match path.strip_prefix('~') {
            Some(below) if below.is_empty() || below.starts_with('/') => {
                let home = home.ok_or_else(|| UrlError::NoHome(url.to_owned()))?;
                home.join(below.trim_start_matches('/'))
            }
            _ => current.join(path),
        };
        let mut parsed = Self { folder, create: false, folder_mode: 0o777, sidecars: true };
        let (mut base_url, mut secret_key_path) = (false, false);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = &*value;
            let refuse = |parameter| UrlError::Value { parameter, value: value.to_owned(), url: url.to_owned() };
            match &*name {
                "create_dir" => parsed.create = parse_bool(value).ok_or_else(|| refuse("create_dir"))?,
                "dir_file_mode" => parsed.folder_mode = parse_mode(value).ok_or_else(|| refuse("dir_file_mode"))?,
                "metadata" if value == "skip" => parsed.sidecars = false,
                "metadata" if value.is_empty() => {}
                "metadata" => return Err(refuse("metadata")),
                // Temporary files are always beside their targets.
                "no_tmp_dir" => {}
                "base_url" => base_url = true,
                "secret_key_path" => secret_key_path = true,
                other => {
                    return Err(UrlError::Parameter { parameter: other.to_owned(), url: url.to_owned() });
                }
            }
        }
        if base_url == secret_key_path { Ok(parsed) } else { Err(UrlError::UnpairedParameter(url.to_owned())) }
    }
}

/// Parses a bool like Go's `strconv.ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a number whose prefix determines its base, like Go.
fn parse_mode(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    for (prefix, base) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return u32::from_str_radix(digits, base).ok();
        }
    }
    match lower.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => lower.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(url: &str) -> String {
        let parsed = FileUrl::parse(url, Path::new("/here"), Some(Path::new("/home/ada"))).unwrap();
        parsed.folder.display().to_string()
    }

    fn refused(url: &str) -> UrlError {
        FileUrl::parse(url, Path::new("/here"), None).unwrap_err()
    }

    #[test]
    fn path_is_all_text_up_to_the_question_mark() {
        assert_eq!(folder("file:///a/b"), "/a/b");
        assert_eq!(folder("file://a/b"), "/here/a/b");
        assert_eq!(folder("file://~"), "/home/ada/");
        assert_eq!(folder("file://~/x?create_dir=true"), "/home/ada/x");
        assert_eq!(folder("file://~bob/x"), "/here/~bob/x");
    }

    #[test]
    fn parameters_are_parsed_or_refused() {
        let parse = |query: &str| FileUrl::parse(&format!("file:///a?{query}"), Path::new("/"), None);
        let parsed = parse("create_dir=1&dir_file_mode=0750&metadata=skip&no_tmp_dir=true").unwrap();
        assert_eq!((parsed.create, parsed.folder_mode, parsed.sidecars), (true, 0o750, false));
        assert_eq!(parse("dir_file_mode=448").unwrap().folder_mode, 0o700);
        assert!(parse("base_url=x&secret_key_path=y").is_ok());
        assert!(matches!(parse("base_url=x"), Err(UrlError::UnpairedParameter(_))));
        assert!(matches!(parse("colour=red"), Err(UrlError::Parameter { .. })));
        assert!(matches!(parse("create_dir=maybe"), Err(UrlError::Value { parameter: "create_dir", .. })));
    }

    #[test]
    fn parameters_are_percent_decoded_but_the_path_is_not() {
        let parsed = FileUrl::parse("file:///a%20b/../c#d?create%5fdir=%74rue&&", Path::new("/"), None).unwrap();
        assert_eq!((parsed.folder.to_str(), parsed.create), (Some("/a%20b/../c#d"), true));
        assert!(matches!(refused("file:///a?metadata=s%20p"), UrlError::Value { value, .. } if value == "s p"));
        assert!(matches!(refused("file:///a?=x"), UrlError::Parameter { parameter, .. } if parameter.is_empty()));
    }

    #[test]
    fn unsupported_urls_are_refused() {
        assert!(matches!(refused("s3://bucket"), UrlError::Scheme(_)));
        assert!(matches!(refused("file://~"), UrlError::NoHome(_)));
    }
}

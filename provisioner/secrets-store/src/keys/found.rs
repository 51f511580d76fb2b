//! Private keys inside of texts: a profile, a manifest or an environment file may hold one.

use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN ";
const MARK: &str = "PRIVATE KEY-----";

/// Returns whether a text has a private key of any kind.
pub fn has_private_key(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    (text.contains(BEGIN) && text.contains(MARK)) || text.contains("PuTTY-User-Key-File-")
}

/// Returns the private keys in a text as PEM: also those that are indented, quoted, or on one line.
pub(crate) fn private_keys(text: &[u8]) -> Vec<Zeroizing<String>> {
    let text = Zeroizing::new(String::from_utf8_lossy(text).into_owned());
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(BEGIN) {
        rest = &rest[at + BEGIN.len()..];
        let Some((label, behind)) = rest.split_once("-----") else { break };
        let is_label = label.ends_with("PRIVATE KEY") && label.len() <= 64;
        let body = behind.split_once(&format!("-----END {label}-----")).map(|(body, _)| body);
        if let Some(body) = body.filter(|_| is_label) {
            found.push(pem(label, body));
        }
    }
    found
}

/// Returns PEM without the indentation and the quotes of a surrounding text.
fn pem(label: &str, body: &str) -> Zeroizing<String> {
    let body = Zeroizing::new(body.replace("\\n", "\n").replace("\\r", "\n"));
    // Headers precede an empty line: `DEK-Info` names the encryption.
    let lines: Vec<&str> = body.lines().map(str::trim).collect();
    let headers: Vec<&str> = lines.iter().copied().filter(|line| line.contains(": ")).collect();
    let content = lines.iter().filter(|line| !line.contains(": "));
    let content: Zeroizing<String> = Zeroizing::new(
        content.flat_map(|line| line.chars()).filter(|c| c.is_ascii_alphanumeric() || "+/=".contains(*c)).collect(),
    );
    let headers = if headers.is_empty() { String::new() } else { format!("{}\n\n", headers.join("\n")) };
    Zeroizing::new(format!("{BEGIN}{label}-----\n{headers}{}\n-----END {label}-----\n", content.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyPair, PublicKey, public_part};

    #[test]
    fn key_is_found_in_each_form_of_a_text() {
        let pair = KeyPair::generate().unwrap();
        let public = PublicKey::of_line(&pair.public).recipient().unwrap();
        let key = pair.private.trim_end();
        let indented = key.replace('\n', "\n    ");
        for text in [
            key.to_owned(),
            format!("projectName: x\nprivateKey: |\n    {indented}\npublicKey: y\n"),
            key.replace('\n', "\r\n"),
            format!("KEY=\"{}\"\n", key.replace('\n', "\\n")),
            format!("KEY='{}'", key.replace('\n', " ")),
            format!("# {}", key.replace('\n', "\n# ")),
            format!("-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n{key}"),
            format!("\u{feff}{key}"),
        ] {
            let found = private_keys(text.as_bytes());
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(public_part(&found[0], None), Some(public.clone()), "{text}");
            assert!(has_private_key(text.as_bytes()), "{text}");
        }
        for text in [
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----BEGIN ",
            "-----BEGIN PUBLIC KEY-----\nAA\n-----END PUBLIC KEY-----",
        ] {
            assert!(private_keys(text.as_bytes()).is_empty(), "{text}");
        }
        assert!(!has_private_key(b"password: hush"));
    }
}

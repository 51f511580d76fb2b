//! Files of a release that publish the checksums of its assets, such as `checksums.txt`, `SHA256SUMS` and `NAME.sha256`.

use crate::plugin::Sha256Digest;
use crate::source::{Asset, Release};

/// Maximum size of a checksum file in bytes.
pub(super) const MAX_CHECKSUM_FILE: u64 = 1 << 20;

/// Returns the asset of a release that publishes the checksum of another asset, if there is one: its own file, else one for
/// several assets.
pub(super) fn find<'r>(release: &'r Release, asset: &str) -> Option<&'r Asset> {
    let is_own = |name: &str| {
        let suffix = name.strip_prefix(asset).map(str::to_ascii_lowercase);
        suffix.is_some_and(|suffix| matches!(suffix.as_str(), ".sha256" | ".sha256sum" | ".sha256.txt"))
    };
    let is_list = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["checksums", "checksums.txt", "sha256sums", "sha256sums.txt", "sha256sum.txt", "checksums_sha256.txt"]
            .iter()
            .any(|known| {
                name.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.']))
            })
    };
    let usable = || release.assets.iter().filter(|file| file.size <= MAX_CHECKSUM_FILE && file.name != asset);
    usable().find(|file| is_own(&file.name)).or_else(|| usable().find(|file| is_list(&file.name)))
}

/// Returns the SHA-256 of an asset in a checksum file: in a line `DIGEST  NAME` or `SHA256 (NAME) = DIGEST`, or the digest
/// that is the first word of the only line.
pub(super) fn digest_of(asset: &str, text: &str) -> Option<Sha256Digest> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let named = lines.iter().find_map(|line| {
        if let Some((name, digest)) = line.strip_prefix("SHA256 (").and_then(|rest| rest.split_once(") = ")) {
            return digest.parse().ok().filter(|_| name == asset);
        }
        let (digest, name) = line.split_once([' ', '\t'])?;
        let name = name.trim_start().trim_start_matches('*');
        digest.parse().ok().filter(|_| name.strip_prefix("./").unwrap_or(name) == asset)
    });
    match (named, lines.as_slice()) {
        (None, [line]) if !line.contains([' ', '\t']) => line.parse().ok(),
        (named, _) => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_read_from_each_form_of_line() {
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        for text in [
            format!("{two}  other.tar.gz\n{one}  reef.tar.gz\n"),
            format!("{one} *reef.tar.gz\r\n"),
            format!("{one}  ./reef.tar.gz"),
            format!("SHA256 (other.tar.gz) = {two}\nSHA256 (reef.tar.gz) = {one}\n"),
            format!("{one}\n"),
        ] {
            assert_eq!(digest_of("reef.tar.gz", &text).map(Sha256Digest::to_hex), Some(one.clone()), "{text}");
        }
        for text in ["", "x", &format!("{one}  other.tar.gz"), &format!("{one}\n{two}\n"), "<html>"] {
            assert_eq!(digest_of("reef.tar.gz", text), None, "{text}");
        }
    }

    #[test]
    fn own_file_of_an_asset_precedes_the_list_of_all() {
        let release = |names: &[(&str, u64)]| -> Release {
            let asset = |(name, size): &(&str, u64)| serde_json::json!({ "id": 1, "name": name, "size": size });
            let assets: Vec<_> = names.iter().map(asset).collect();
            serde_json::from_value(serde_json::json!({ "tag_name": "v1", "assets": assets })).unwrap()
        };
        let found = |names: &[(&str, u64)]| find(&release(names), "reef.tar.gz").map(|asset| asset.name.clone());
        for (names, expected) in [
            (&[("reef.tar.gz", 9), ("reef_1.0.0_checksums.txt", 9)][..], Some("reef_1.0.0_checksums.txt")),
            (&[("SHA256SUMS", 9), ("reef.tar.gz.sha256", 9)], Some("reef.tar.gz.sha256")),
            (&[("SHA256SUMS", 9)], Some("SHA256SUMS")),
            (&[("SHA256SUMS", MAX_CHECKSUM_FILE + 1)], None),
            (&[("other.tar.gz.sha256", 9), ("mychecksums.txt", 9), ("SHA256SUMS.sig", 9)], None),
        ] {
            assert_eq!(found(names).as_deref(), expected, "{names:?}");
        }
    }
}

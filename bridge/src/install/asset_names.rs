//! Choice of the asset of a release for a platform, by the words that authors and their tools use for platforms: those of goreleaser
//! (`Darwin`, `x86_64`, `all`) and of Rust (`x86_64-unknown-linux-gnu`, `aarch64-apple-darwin`).

use crate::plugin::{Arch, Os, Platform};

/// Ends of names of files that are about another asset, or that are for the package manager of a system.
const NOT_PACKAGES: [&str; 25] = [
    ".sha256",
    ".sha512",
    ".sha256sum",
    ".md5",
    ".sig",
    ".asc",
    ".pem",
    ".cert",
    ".crt",
    ".sbom",
    ".json",
    ".txt",
    ".yaml",
    ".deb",
    ".rpm",
    ".apk",
    ".msi",
    ".pkg",
    ".sha1",
    ".sha512sum",
    ".md5sum",
    ".minisig",
    ".sigstore",
    ".jsonl",
    ".spdx",
];

/// Returns the assets that fit a platform by the words in their names. If several do, those whose names have one of these words are
/// returned, if there are any.
pub(super) fn fitting<'a>(
    assets: impl Iterator<Item = &'a str>,
    platform: Platform,
    preferred: &[&str],
) -> Vec<&'a str> {
    let found: Vec<&str> = assets.filter(|name| fits(name, platform)).collect();
    let named: Vec<&str> =
        found.iter().copied().filter(|name| preferred.iter().any(|word| has_name(name, word))).collect();
    if found.len() > 1 && !named.is_empty() { named } else { found }
}

fn fits(name: &str, platform: Platform) -> bool {
    let name = name.to_lowercase();
    if NOT_PACKAGES.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    // The only word with a separator in it.
    let name = name.replace("x86_64", "amd64").replace("x86-64", "amd64");
    let has_one_of =
        |words: &[&str]| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| words.contains(&word));
    let os: &[&str] = match platform.os {
        Os::Linux => &["linux"],
        Os::Darwin => &["darwin", "macos", "apple", "osx"],
        Os::Windows => &["windows", "win", "win64"],
    };
    let arch: &[&str] = match (platform.arch, platform.os) {
        (Arch::Amd64, Os::Darwin) => &["amd64", "x64", "all", "universal"],
        (Arch::Arm64, Os::Darwin) => &["arm64", "aarch64", "all", "universal"],
        (Arch::Amd64, _) => &["amd64", "x64"],
        (Arch::Arm64, _) => &["arm64", "aarch64"],
    };
    has_one_of(os) && has_one_of(arch) && !has_one_of(&["android", "ios", "tvos", "watchos"])
}

/// Returns whether an asset is named after a plugin: `pulumi-resource-NAME…`, `NAME_1.2.0_…`, `sc-NAME-provider…`.
fn has_name(asset: &str, name: &str) -> bool {
    let (asset, name) = (asset.to_lowercase(), name.to_lowercase());
    let (mut rest, name) = (asset.as_str(), name.as_str());
    while let Some(at) = rest.find(name) {
        let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
        if is_end(rest[..at].chars().next_back()) && is_end(rest[at + name.len()..].chars().next()) {
            return true;
        }
        rest = &rest[at + name.len()..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: plugins.md#github-release "the only one that fits the platform counts, found by the words of
    ///   goreleaser and of Rust for platforms"
    #[test]
    fn asset_of_a_platform_is_found_by_its_words() {
        let goreleaser = [
            "reef_1.2.0_checksums.txt",
            "reef_1.2.0_Darwin_all.tar.gz",
            "reef_1.2.0_Linux_arm64.tar.gz",
            "reef_1.2.0_Linux_x86_64.tar.gz",
            "reef_1.2.0_Linux_x86_64.tar.gz.sig",
            "reef_1.2.0_linux_amd64.deb",
            "reef_1.2.0_Windows_x86_64.zip",
        ];
        let rust = [
            "reef-aarch64-apple-darwin.tar.gz",
            "reef-x86_64-apple-darwin.tar.gz",
            "reef-x86_64-unknown-linux-gnu.tar.gz",
            "reef-x86_64-unknown-linux-musl.tar.gz",
            "reef-aarch64-unknown-linux-gnu.tar.zst",
            "reef-x86_64-pc-windows-msvc.zip",
        ];
        let several = ["cli-linux-amd64", "sc-reef-provider-linux-amd64", "pulumi-resource-reefs-linux-amd64"];
        let table: [(&[&str], &str, &[&str]); 9] = [
            (&goreleaser, "linux-amd64", &["reef_1.2.0_Linux_x86_64.tar.gz"]),
            (&goreleaser, "linux-arm64", &["reef_1.2.0_Linux_arm64.tar.gz"]),
            (&goreleaser, "darwin-arm64", &["reef_1.2.0_Darwin_all.tar.gz"]),
            (&goreleaser, "windows-amd64", &["reef_1.2.0_Windows_x86_64.zip"]),
            (&goreleaser, "windows-arm64", &[]),
            (&rust, "linux-amd64", &["reef-x86_64-unknown-linux-gnu.tar.gz", "reef-x86_64-unknown-linux-musl.tar.gz"]),
            (&rust, "darwin-amd64", &["reef-x86_64-apple-darwin.tar.gz"]),
            (&rust, "linux-arm64", &["reef-aarch64-unknown-linux-gnu.tar.zst"]),
            (&several, "linux-amd64", &["sc-reef-provider-linux-amd64"]),
        ];
        for (assets, platform, expected) in table {
            let found = fitting(assets.iter().copied(), platform.parse().unwrap(), &["reef"]);
            assert_eq!(found, expected, "{platform}");
        }
    }
}

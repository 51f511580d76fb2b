//! `source` with `type: github-release`. `path` is an alias of `repository`, and `ref` of `version`.

use bridge::message_text::MessageText;
use bridge::plugin::{GithubReleaseSource, WantedVersion};

use super::section::SourceSection;

pub(super) const KEYS: [&str; 13] = [
    "type",
    "repository",
    "path",
    "version",
    "ref",
    "minimumAge",
    "platform",
    "checksum",
    "asset",
    "token",
    "apiUrl",
    "build",
    "insecure",
];

pub(super) fn read(source: &mut SourceSection<'_, '_>) -> Option<GithubReleaseSource> {
    let repository = source.required_or_alias("repository", "path");
    let tag = source.required_or_alias("version", "ref");
    let platform = source.platform();
    let checksum = source.checksum();
    let token = source.token();
    let insecure = source.insecure();
    let build = source.build();
    let asset = source.text("asset").map(|(asset, _)| asset);
    let api_url = source.text("apiUrl");
    let minimum_age = source.minimum_age();
    let ((repository, repository_span), (text, tag_span)) = (repository?, tag?);
    let version = source.wanted((text, tag_span), WantedVersion::of_release)?;
    if !is_repository(&repository) {
        source.fail(repository_span, "source.repository must be `owner/name` or an https URL of a repository");
        return None;
    }
    if !matches!(version, WantedVersion::Named(_)) && checksum.is_some() {
        let text = MessageText::new(format_args!(
            "source.version `{version}` cannot have a checksum: name the version that has this checksum"
        ));
        source.fail(tag_span, text);
        return None;
    }
    let address_span = api_url.as_ref().map_or(repository_span, |(_, span)| *span);
    let api_url = api_url.map(|(url, _)| url);
    let release = GithubReleaseSource::new(repository, version);
    let release =
        GithubReleaseSource { minimum_age, platform, checksum, asset, token, api_url, insecure, build, ..release };
    if release.unprotected_address().is_some() {
        source.report_unprotected(address_span);
        return None;
    }
    Some(release)
}

/// Returns true for `owner/name` or the https URL of a repository.
fn is_repository(text: &str) -> bool {
    let path = match text.strip_prefix("https://") {
        Some(rest) => rest.split_once('/').filter(|(host, _)| !host.is_empty()).map(|(_, path)| path),
        None => Some(text),
    };
    let path = path.map(|path| path.strip_suffix('/').unwrap_or(path));
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    path.and_then(|path| path.split_once('/')).is_some_and(|(owner, name)| word(owner) && word(name))
}

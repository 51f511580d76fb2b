//! `source` with `type: git`. `path` is an alias of `repository`, and `ref` of `version`.

use std::path::PathBuf;

use bridge::plugin::{GitSource, WantedVersion};

use super::section::SourceSection;

pub(super) const KEYS: [&str; 11] =
    ["type", "repository", "path", "version", "ref", "platform", "checksum", "token", "subdir", "build", "insecure"];

pub(super) fn read(source: &mut SourceSection<'_, '_>) -> Option<GitSource> {
    let repository = source.required_or_alias("repository", "path");
    let revision = source.required_or_alias("version", "ref");
    let platform = source.platform();
    let checksum = source.checksum();
    let token = source.token();
    let insecure = source.insecure();
    let build = source.build();
    let subdir = source.text("subdir").map(|(subdir, _)| PathBuf::from(subdir)).unwrap_or_default();
    let ((url, url_span), revision) = (repository?, revision?);
    let version = source.wanted(revision, WantedVersion::of_git)?;
    if source.namespaces.root_has_reserved(&url, '%') {
        let text = "the path of the repository contains `%`, and git decodes `%` in a `file://` URL";
        let error = source.error(url_span, text);
        source.diagnostics.push(error.help("write the path without `file://`"));
        return None;
    }
    let git = GitSource { url, version, subdir, platform, checksum, token, insecure, build };
    if git.unprotected_address().is_some() {
        source.report_unprotected(url_span);
        return None;
    }
    Some(git)
}

//! `source` with `type: installed`. `ref` is an alias of `version`.

use bridge::plugin::{InstalledSource, WantedVersion};

use super::section::SourceSection;

pub(super) const KEYS: [&str; 5] = ["type", "path", "version", "ref", "checksum"];

pub(super) fn read(source: &mut SourceSection<'_, '_>) -> Option<InstalledSource> {
    let path = source.required("path");
    let version = source.optional_or_alias("version", "ref");
    let checksum = source.checksum();
    let (path, span) = path?;
    let version = match version {
        Some(version) => Some(source.wanted(version, WantedVersion::of_release)?),
        None => None,
    };
    if !is_path(&path) {
        let error = source.error(span, "source.path must be `owner/name` or `host/owner/name`");
        source.diagnostics.push(error.help("it is a folder below one of the folders of plugins (SC_PLUGIN_PATH)"));
        return None;
    }
    Some(InstalledSource { path, version, checksum })
}

/// Returns true for two parts or more, none of which leads elsewhere.
fn is_path(text: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty()
            && !matches!(part, "." | "..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    text.split('/').count() >= 2 && text.split('/').all(is_name)
}

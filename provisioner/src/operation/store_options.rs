//! Options of the storage of states, from environment variables, with the names of Pulumi's command line.

use std::collections::BTreeMap;

use bridge::fs::Access;
use state::store::{Compression, Layout, LegacyStores, StoreOptions};

use super::SetupError;

/// Names of an environment variable: the current name, and an older name that is read if the current one is not set.
type Variable = &'static [&'static str];

const GZIP: Variable = &["PULUMI_DIY_BACKEND_GZIP", "PULUMI_SELF_MANAGED_STATE_GZIP"];
const ZSTD: Variable = &["PULUMI_DIY_BACKEND_ZSTD", "PULUMI_SELF_MANAGED_STATE_ZSTD"];
const RETAIN: Variable = &["PULUMI_DIY_BACKEND_RETAIN_CHECKPOINTS", "PULUMI_RETAIN_CHECKPOINTS"];
const SKIP_BACKUPS: Variable = &["PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS", "PULUMI_DISABLE_CHECKPOINT_BACKUPS"];
const NEW_LEGACY: Variable = &["PULUMI_DIY_BACKEND_LEGACY_LAYOUT", "PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT"];
const ACCEPT_LEGACY: Variable = &["PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR"];

/// Returns the storage options that the environment selects.
///
/// # Errors
/// [`SetupError::TwoCompressions`] if two variables select different compressions.
pub(super) fn store_options(environment: &BTreeMap<String, String>) -> Result<StoreOptions, SetupError> {
    let compression = match (is_set(environment, GZIP), is_set(environment, ZSTD)) {
        (false, false) => Compression::None,
        (true, false) => Compression::Gzip,
        (false, true) => Compression::Zstd,
        (true, true) => return Err(SetupError::TwoCompressions { gzip: GZIP[0], zstd: ZSTD[0] }),
    };
    Ok(StoreOptions {
        access: Access::default(),
        compression,
        retain_checkpoints: is_set(environment, RETAIN),
        skip_backups: is_set(environment, SKIP_BACKUPS),
        new_layout: if is_set(environment, NEW_LEGACY) { Layout::Legacy } else { Layout::Projects },
        legacy_stores: if is_set(environment, ACCEPT_LEGACY) { LegacyStores::Accepted } else { LegacyStores::Refused },
    })
}

/// Returns whether a variable is set to `1`, or to `true` in any case.
fn is_set(environment: &BTreeMap<String, String>, names: Variable) -> bool {
    let value = names.iter().find_map(|name| environment.get(*name));
    value.is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options<const N: usize>(variables: [(&str, &str); N]) -> StoreOptions {
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        store_options(&environment.into()).unwrap()
    }

    #[test]
    fn states_are_not_compressed_by_default() {
        assert_eq!(options([]), StoreOptions::default());
        for no in ["", "0", "yes", "false"] {
            assert_eq!(options([(GZIP[0], no)]), StoreOptions::default(), "{no:?}");
        }
    }

    #[test]
    fn one_compression_can_be_selected() {
        assert_eq!(options([(GZIP[0], "1")]).compression, Compression::Gzip);
        assert_eq!(options([(ZSTD[0], "True")]).compression, Compression::Zstd);
        let both = [GZIP[0], ZSTD[0]].map(|name| (name.to_owned(), "true".to_owned()));
        assert_eq!(
            store_options(&both.into()).unwrap_err().to_string(),
            "PULUMI_DIY_BACKEND_GZIP and PULUMI_DIY_BACKEND_ZSTD are both set"
        );
    }

    #[test]
    fn checkpoint_copies_and_backups_can_be_configured() {
        assert!(options([(RETAIN[0], "1")]).retain_checkpoints);
        assert!(options([(RETAIN[1], "TRUE")]).retain_checkpoints);
        assert!(options([(SKIP_BACKUPS[0], "true")]).skip_backups);
        assert!(options([(SKIP_BACKUPS[1], "1")]).skip_backups);
    }

    #[test]
    fn legacy_layout_can_be_selected_and_accepted() {
        assert_eq!(options([(NEW_LEGACY[0], "1")]).new_layout, Layout::Legacy);
        assert_eq!(options([(NEW_LEGACY[1], "1")]).new_layout, Layout::Legacy);
        assert_eq!(options([(ACCEPT_LEGACY[0], "true")]).legacy_stores, LegacyStores::Accepted);
    }

    #[test]
    fn older_variable_name_is_used_if_the_current_one_is_not_set() {
        assert_eq!(options([(GZIP[1], "1")]).compression, Compression::Gzip);
        assert_eq!(options([(GZIP[0], "0"), (GZIP[1], "1")]).compression, Compression::None);
    }
}

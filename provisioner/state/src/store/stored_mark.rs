//! Stored form of the mark of a migration.

use bridge::json;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::error::{Damage, StoreError};
use super::migration_mark::{MigrationDirection, MigrationMark};

const VERSION: u32 = 1;

/// Stored form of a mark. It has one of `to`, `from` and `renamed`.
#[derive(Serialize, Deserialize)]
struct StoredMark {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renamed: Option<String>,
    location: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outdated: Vec<String>,
    time: String,
    user: String,
    host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// Version of a mark, which is read first: another version may have other members.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Returns the text of the mark.
pub(super) fn write(mark: &MigrationMark) -> String {
    let mark = mark.clone();
    let (to, from, renamed) = match mark.direction {
        MigrationDirection::To => (Some(mark.url), None, None),
        MigrationDirection::From => (None, Some(mark.url), None),
        MigrationDirection::Renamed => (None, None, Some(mark.url)),
    };
    let MigrationMark { location, digest, replaces, outdated, time, user, host, run, .. } = mark;
    let time = time.to_string();
    let stored =
        StoredMark { version: VERSION, to, from, renamed, location, digest, replaces, outdated, time, user, host, run };
    serde_json::to_string(&stored).expect("texts and numbers are always JSON")
}

/// Parses the mark at a location.
pub(super) fn read(text: &[u8], location: &str) -> Result<MigrationMark, StoreError> {
    let malformed = |error| StoreError::Damaged { location: location.to_owned(), source: Damage::MigrationMark(error) };
    let Version { version } = json::from_slice(text).map_err(malformed)?;
    if version != VERSION {
        return Err(StoreError::TooNew { location: location.to_owned(), version: version.into() });
    }
    let stored: StoredMark = json::from_slice(text).map_err(malformed)?;
    let (direction, url) = match (stored.to, stored.from, stored.renamed) {
        (Some(url), None, None) => (MigrationDirection::To, url),
        (None, Some(url), None) => (MigrationDirection::From, url),
        (None, None, Some(url)) => (MigrationDirection::Renamed, url),
        _ => {
            return Err(malformed(serde_json::Error::custom("expected one of `to`, `from` and `renamed`")));
        }
    };
    let StoredMark { location, digest, replaces, outdated, time, user, host, run, .. } = stored;
    let time = time.parse().map_err(|error| malformed(serde_json::Error::custom(error)))?;
    Ok(MigrationMark { direction, url, location, digest, replaces, outdated, time, user, host, run })
}

#[cfg(test)]
mod tests {
    use super::super::compliance::{error_chain, mark};
    use super::*;

    #[test]
    fn mark_has_one_direction_and_a_version() {
        let to = mark(MigrationDirection::To);
        let text = concat!(
            r#"{"version":1,"to":"s3://reef","location":"s3://reef","digest":"d1","time":"1970-01-01T00:00:00Z","#,
            r#""user":"ada","host":"reefbox","run":"r"}"#
        );
        assert_eq!(write(&to), text);
        assert_eq!(to.to_string(), "has moved to s3://reef: ada@reefbox migrated it at 1970-01-01T00:00:00Z");
        let (replaces, outdated) = (Some("d0".to_owned()), vec!["d2".to_owned()]);
        let from = MigrationMark { replaces, outdated, ..mark(MigrationDirection::From) };
        let renamed = MigrationMark { url: "tank/west".to_owned(), run: None, ..mark(MigrationDirection::Renamed) };
        assert_eq!(renamed.to_string(), "is now tank/west: ada@reefbox renamed it at 1970-01-01T00:00:00Z");
        for written in [to, from, renamed] {
            assert_eq!(read(write(&written).as_bytes(), "here").unwrap(), written);
        }
        let table = [
            ("{", "here is damaged: it does not describe a migration: "),
            (r#"{"version":1,"to":"s3://reef"}"#, "here is damaged: it does not describe a migration: missing field"),
            (
                &text.replace(r#""to":"#, r#""at":"#),
                "here is damaged: it does not describe a migration: expected one of `to`, `from` and `renamed`",
            ),
            (r#"{"version":2}"#, "here has layout version 2, which is newer than the supported ones"),
        ];
        for (text, expected) in table {
            let error = error_chain(&read(text.as_bytes(), "here").unwrap_err());
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

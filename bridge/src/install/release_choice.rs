//! Choice of a release among those of a repository: the highest one in a range, or the latest one. What is passed over is told.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use super::release_assets::AssetChoice;
use super::{FetchEvent, FetchEvents, InstallError};
use crate::plugin::{Platform, TagRange, tag_version};
use crate::source::{Github, Release};

/// Rules for the choice of a release.
pub(super) struct ReleaseChoice<'a> {
    pub(super) assets: AssetChoice<'a>,
    /// Age from which on a release is accepted.
    pub(super) minimum_age: Duration,
    pub(super) platform: Platform,
    pub(super) now: SystemTime,
    pub(super) events: &'a dyn FetchEvents,
}

/// Reason why a release is passed over.
enum Passed {
    /// The release is younger than the declared age.
    TooYoung(Duration),
    /// The release has no asset for the platform.
    NoAsset(Platform),
    /// The upload of its asset is not complete.
    NotUploaded,
}

impl ReleaseChoice<'_> {
    /// Returns the newest release that is neither a draft nor a pre-release, and old enough.
    ///
    /// # Errors
    /// [`InstallError::Fetch`]; [`InstallError::NoRelease`].
    pub(super) async fn latest(&self, github: &Github) -> Result<Release, InstallError> {
        let latest = github.release(None).await?;
        let Some(age) = self.too_young(&latest) else { return Ok(latest) };
        self.tell(&latest.tag, &Passed::TooYoung(age));
        let prefix = |tag: &str| tag.rsplit_once('/').map_or("", |(prefix, _)| prefix).to_owned();
        let version = |release: &Release| tag_version(&release.tag);
        let is_older = |release: &Release| match (version(release), version(&latest)) {
            (Some(version), Some(latest)) => version < latest,
            (None, Some(_)) => false,
            (_, None) => release.published_at < latest.published_at,
        };
        let mut published: Vec<Release> = github.releases().await?.into_iter().filter(is_published).collect();
        // A release above the latest one was not made the latest on purpose; one with another prefix is of another plugin.
        published
            .retain(|release| !release.prerelease && prefix(&release.tag) == prefix(&latest.tag) && is_older(release));
        // A repository may still repair an older version after it has published a newer one.
        published.sort_by_key(|release| Reverse((version(release), release.published_at.clone())));
        let mut passed = 1;
        for release in published {
            match self.reason_to_pass(&release)? {
                None => return Ok(release),
                Some(reason) => {
                    passed += usize::from(matches!(reason, Passed::TooYoung(_)));
                    self.tell(&release.tag, &reason);
                }
            }
        }
        Err(self.none(github, "latest", format!("{passed} are younger than {}", in_words(self.minimum_age)), true))
    }

    /// Returns the release with the highest version in a range that is old enough and has an asset for the platform.
    ///
    /// # Errors
    /// [`InstallError::Fetch`]; [`InstallError::NoRelease`].
    pub(super) async fn newest_in(&self, github: &Github, range: &TagRange) -> Result<Release, InstallError> {
        let published: Vec<Release> = github.releases().await?.into_iter().filter(is_published).collect();
        let in_range = |release: Release| Some((range.version_in(&release.tag)?, release));
        let highest = published.iter().filter_map(|release| range.version_of(&release.tag)).max();
        let mut found: Vec<_> = published.into_iter().filter_map(in_range).collect();
        // Its author calls it a pre-release, although its version does not.
        found.retain(|(version, release)| !release.prerelease || !version.as_semver().pre.is_empty());
        found.sort_by(|(first, _), (second, _)| second.cmp(first));
        let count = found.len();
        let (mut young, mut without) = (0, 0);
        for (_, release) in found {
            let Some(reason) = self.reason_to_pass(&release)? else { return Ok(release) };
            match reason {
                Passed::TooYoung(_) => young += 1,
                Passed::NoAsset(_) | Passed::NotUploaded => without += 1,
            }
            self.tell(&release.tag, &reason);
        }
        let age = in_words(self.minimum_age);
        let reason = match (count, young, without, highest) {
            (0, _, _, None) => "none has a tag of three numbers, such as v1.2.3".to_owned(),
            (0, _, _, Some(highest)) => format!("the highest version is {highest}"),
            (_, _, 0, _) => format!("{young} in the range are younger than {age}"),
            (_, 0, _, _) => format!("{without} in the range have no asset for {}", self.platform),
            _ => format!(
                "{young} in the range are younger than {age}, and {without} have no asset for {}",
                self.platform
            ),
        };
        Err(self.none(github, &range.to_string(), reason, young > 0))
    }

    fn none(&self, github: &Github, wanted: &str, reason: String, is_too_young: bool) -> InstallError {
        InstallError::NoRelease {
            repository: self.assets.repository.to_owned(),
            host: github.host(),
            wanted: wanted.to_owned(),
            reason,
            is_too_young,
        }
    }

    /// Returns the reason why a release is passed over, if there is one.
    fn reason_to_pass(&self, release: &Release) -> Result<Option<Passed>, InstallError> {
        if let Some(age) = self.too_young(release) {
            return Ok(Some(Passed::TooYoung(age)));
        }
        match self.assets.find(release, self.platform) {
            Ok(_) => Ok(None),
            Err(InstallError::NoAsset { .. }) => Ok(Some(Passed::NoAsset(self.platform))),
            Err(InstallError::NotUploaded { .. }) => Ok(Some(Passed::NotUploaded)),
            Err(error) => Err(error),
        }
    }

    /// Returns the age of a release if that is not enough.
    fn too_young(&self, release: &Release) -> Option<Duration> {
        release.age(self.now).filter(|age| *age < self.minimum_age)
    }

    fn tell(&self, tag: &str, passed: &Passed) {
        let reason = match passed {
            Passed::TooYoung(age) => {
                format!(
                    "it was published {} ago, and source.minimumAge is {}",
                    in_words(*age),
                    in_words(self.minimum_age)
                )
            }
            Passed::NoAsset(platform) => format!("it has no asset for {platform}"),
            Passed::NotUploaded => "the upload of its asset is not complete".to_owned(),
        };
        self.events.emit(FetchEvent::Note(format!("{tag} of {} is passed over: {reason}", self.assets.repository)));
    }
}

fn is_published(release: &Release) -> bool {
    !release.draft
}

/// Returns a time in the greatest unit in which it is at least one, rounded down: `2 days`, `5 hours`, `0 seconds`.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    // A time below two days is told in hours.
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= 2 * unit).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_its_greatest_unit() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (86_400, "24 hours"),
            (172_800, "2 days"),
            (200_000, "2 days"),
        ] {
            assert_eq!(in_words(Duration::from_secs(seconds)), expected);
        }
    }
}

//! Choice of a release among those of a repository: the highest one in a range, or the latest one. What is passed over is told.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use super::release_assets::AssetChoice;
use super::{FetchEvent, FetchEvents, InstallError};
use crate::plugin::{AgeRule, Platform, TagRange, tag_version};
use crate::source::{Github, Release};

/// Rules for the choice of a release.
pub(super) struct ReleaseChoice<'a> {
    pub(super) assets: AssetChoice<'a>,
    /// Age from which on a release is accepted, and the rule that demands it.
    pub(super) minimum_age: (Duration, AgeRule),
    /// True if a release without a time of publication is passed over.
    pub(super) needs_time: bool,
    pub(super) platform: Platform,
    pub(super) now: SystemTime,
    pub(super) events: &'a dyn FetchEvents,
}

/// Reason why a release is passed over.
enum Passed {
    /// The release is younger than the age that a rule demands.
    TooYoung(Duration),
    /// The server tells no time of its publication.
    Undated,
    /// The release has no asset for the platform.
    NoAsset(Platform),
    /// The upload of its asset is not complete.
    NotUploaded,
}

/// Numbers of releases that were passed over, by reason.
#[derive(Clone, Copy, Default)]
struct PassedCounts {
    young: usize,
    undated: usize,
    without_asset: usize,
}

impl PassedCounts {
    fn add(&mut self, passed: &Passed) {
        match passed {
            Passed::TooYoung(_) => self.young += 1,
            Passed::Undated => self.undated += 1,
            Passed::NoAsset(_) | Passed::NotUploaded => self.without_asset += 1,
        }
    }

    /// Returns the reasons in words. `among` follows the first number.
    fn reason(self, among: &str, choice: &ReleaseChoice<'_>) -> String {
        let parts = [
            (self.young, format!("are younger than {}", in_words(choice.minimum_age.0))),
            (self.undated, "have no time of publication, which the policy demands".to_owned()),
            (self.without_asset, format!("have no asset for {}", choice.platform)),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0).enumerate();
        let part = |(at, (count, text)): (usize, (usize, String))| match at {
            0 => format!("{count}{among} {text}"),
            _ => format!("{count} {text}"),
        };
        parts.map(part).collect::<Vec<_>>().join(", and ")
    }
}

impl ReleaseChoice<'_> {
    /// Returns the newest release that is neither a draft nor a pre-release, and old enough.
    ///
    /// # Errors
    /// [`InstallError::Fetch`]; [`InstallError::NoRelease`].
    pub(super) async fn latest(&self, github: &Github) -> Result<Release, InstallError> {
        let latest = github.release(None).await?;
        let Some(passed) = self.passed_by_age(&latest) else { return Ok(latest) };
        self.tell(&latest.tag, &passed);
        let mut counts = PassedCounts::default();
        counts.add(&passed);
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
        for release in published {
            let Some(passed) = self.reason_to_pass(&release)? else { return Ok(release) };
            counts.add(&passed);
            self.tell(&release.tag, &passed);
        }
        // An older release without an asset is not the reason.
        let reason = PassedCounts { without_asset: 0, ..counts }.reason("", self);
        Err(self.none(github, "latest", reason, counts))
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
        let is_empty = found.is_empty();
        let mut counts = PassedCounts::default();
        for (_, release) in found {
            let Some(passed) = self.reason_to_pass(&release)? else { return Ok(release) };
            counts.add(&passed);
            self.tell(&release.tag, &passed);
        }
        let reason = match (is_empty, highest) {
            (true, None) => "none has a tag of three numbers, such as v1.2.3".to_owned(),
            (true, Some(highest)) => format!("the highest version is {highest}"),
            (false, _) => counts.reason(" in the range", self),
        };
        Err(self.none(github, &range.to_string(), reason, counts))
    }

    /// Returns the copy of a release with the highest version in a range, or of all, if it is old enough and has an asset for the
    /// platform; `None` if there is none. One whose time is not known is old enough.
    ///
    /// # Errors
    /// [`InstallError`] if an asset cannot be chosen.
    pub(super) fn highest(
        &self,
        releases: Vec<Release>,
        range: Option<&TagRange>,
    ) -> Result<Option<Release>, InstallError> {
        let version = |release: &Release| match range {
            Some(range) => range.version_in(&release.tag),
            None => tag_version(&release.tag).filter(|version| version.as_semver().pre.is_empty()),
        };
        let mut found: Vec<_> =
            releases.into_iter().filter_map(|release| Some((version(&release)?, release))).collect();
        found.sort_by(|(first, _), (second, _)| second.cmp(first));
        for (_, release) in found {
            match self.reason_to_pass(&release)? {
                None => return Ok(Some(release)),
                // That of a folder without assets of this plugin needs no word.
                Some(Passed::NoAsset(_)) => {}
                Some(reason) => self.tell(&release.tag, &reason),
            }
        }
        Ok(None)
    }

    fn none(&self, github: &Github, wanted: &str, reason: String, counts: PassedCounts) -> InstallError {
        let passed_by = match counts {
            PassedCounts { undated: 1.., .. } => Some(AgeRule::Policy),
            PassedCounts { young: 1.., .. } => Some(self.minimum_age.1),
            _ => None,
        };
        InstallError::NoRelease {
            repository: self.assets.repository.to_owned(),
            host: github.host(),
            wanted: wanted.to_owned(),
            reason,
            passed_by,
        }
    }

    /// Returns the reason why a release is passed over, if there is one.
    fn reason_to_pass(&self, release: &Release) -> Result<Option<Passed>, InstallError> {
        if let Some(passed) = self.passed_by_age(release) {
            return Ok(Some(passed));
        }
        match self.assets.find(release, self.platform) {
            Ok(_) => Ok(None),
            Err(InstallError::NoAsset { .. }) => Ok(Some(Passed::NoAsset(self.platform))),
            Err(InstallError::NotUploaded { .. }) => Ok(Some(Passed::NotUploaded)),
            Err(error) => Err(error),
        }
    }

    /// Returns the reason why the age of a release is not enough, if it is not.
    fn passed_by_age(&self, release: &Release) -> Option<Passed> {
        match release.age(self.now) {
            Some(age) => Some(Passed::TooYoung(age)).filter(|_| age < self.minimum_age.0),
            None => Some(Passed::Undated).filter(|_| self.needs_time),
        }
    }

    fn tell(&self, tag: &str, passed: &Passed) {
        let reason = match passed {
            Passed::TooYoung(age) => {
                let (minimum, rule) = self.minimum_age;
                format!("it was published {} ago, and {rule} is {}", in_words(*age), in_words(minimum))
            }
            Passed::Undated => "its place tells no time of its publication, and the policy has a minimumAge".to_owned(),
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

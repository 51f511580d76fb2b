//! Work that a run waits for beside the steps of a phase: plugins that start, a lock, a key.

use std::time::Duration;

use engine::events::{Activity, ActivityKind, ActivityStage};

use super::text::duration;

/// Age from which an activity is shown: shorter ones would flicker.
pub(super) const SHOWN_AFTER: Duration = Duration::from_millis(150);

/// Activities in progress, in the order of their begins.
#[derive(Debug, Default)]
pub(super) struct Activities(Vec<RunningKind>);

/// Activities of one kind about one subject, such as several processes of a plugin that start.
#[derive(Debug)]
pub(super) struct RunningKind {
    pub(super) kind: ActivityKind,
    pub(super) subject: String,
    pub(super) began: Duration,
    count: usize,
    /// True once an event has reported it to a program.
    is_reported: bool,
}

impl Activities {
    /// Applies the begin or the end of an activity. Returns true if it has ended the last one of its kind, whose begin was reported
    /// to a program.
    pub(super) fn apply(&mut self, at: Duration, activity: &Activity) -> bool {
        let Activity { kind, subject, stage } = activity;
        let index = self.0.iter().position(|running| running.kind == *kind && running.subject == *subject);
        match (stage, index) {
            (ActivityStage::Started, Some(index)) => self.0[index].count += 1,
            (ActivityStage::Started, None) => {
                let (kind, subject) = (*kind, subject.clone());
                self.0.push(RunningKind { kind, subject, began: at, count: 1, is_reported: false });
            }
            (ActivityStage::Ended, Some(index)) if self.0[index].count > 1 => self.0[index].count -= 1,
            (ActivityStage::Ended, Some(index)) => return self.0.remove(index).is_reported,
            (ActivityStage::Ended, None) => {}
        }
        false
    }

    /// Returns the activities that are old enough to be shown. Where a plugin is built, its package is prepared, too, which is left
    /// out.
    pub(super) fn shown(&self, at: Duration) -> impl Iterator<Item = &RunningKind> {
        let all = &self.0;
        let is_built =
            move |subject: &str| all.iter().any(|it| it.kind == ActivityKind::Build && it.subject == subject);
        all.iter().filter(move |running| {
            let is_part = running.kind == ActivityKind::Prepare && is_built(&running.subject);
            !is_part && at.saturating_sub(running.began) >= SHOWN_AFTER
        })
    }

    /// Returns what the run waits for, in one line; `None` if there is nothing to show.
    pub(super) fn text(&self, at: Duration) -> Option<String> {
        let texts: Vec<String> = self.shown(at).map(|running| running.text(at)).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// Returns the activities that have lasted for a time and that were not reported to a program, and marks them as reported.
    pub(super) fn report(&mut self, at: Duration, age: Duration) -> impl Iterator<Item = &RunningKind> {
        self.0.iter_mut().filter(move |running| !running.is_reported && at.saturating_sub(running.began) >= age).map(
            |running| {
                running.is_reported = true;
                &*running
            },
        )
    }
}

impl RunningKind {
    pub(super) fn text(&self, at: Duration) -> String {
        let (kind, subject, took) = (self.kind, &self.subject, duration(at.saturating_sub(self.began)));
        format!("{kind} {subject} ({took})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_of_one_kind_and_subject_are_one_line_until_all_have_ended() {
        let mut activities = Activities::default();
        let activity = |kind, stage| Activity { kind, subject: "rec".to_owned(), stage };
        let seconds = Duration::from_secs;
        let started = activity(ActivityKind::Start, ActivityStage::Started);
        let ended = activity(ActivityKind::Start, ActivityStage::Ended);
        activities.apply(seconds(1), &started);
        activities.apply(seconds(2), &started);
        assert_eq!(activities.text(seconds(1)), None);
        assert_eq!(activities.text(seconds(4)).unwrap(), "starting plugin rec (3.0s)");
        assert_eq!(activities.report(seconds(4), seconds(1)).count(), 1);
        assert_eq!(activities.report(seconds(5), seconds(1)).count(), 0);
        assert!(!activities.apply(seconds(5), &ended));
        assert_eq!(activities.text(seconds(5)).unwrap(), "starting plugin rec (4.0s)");
        assert!(activities.apply(seconds(6), &ended));
        assert_eq!(activities.text(seconds(6)), None);
        assert!(!activities.apply(seconds(6), &ended));
        activities.apply(seconds(6), &activity(ActivityKind::Prepare, ActivityStage::Started));
        activities.apply(seconds(7), &activity(ActivityKind::Build, ActivityStage::Started));
        assert_eq!(activities.text(seconds(8)).unwrap(), "building plugin rec (1.0s)");
    }
}

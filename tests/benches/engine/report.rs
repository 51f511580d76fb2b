//! Report of the results as tables.

use std::fmt;

use crate::figures::{ADDED_RESOURCES, CommandFigures, EngineFigures, Figures, median};
use crate::workload::{Shape, Workload};

/// Limit of the time of a run, relative to the bare loop.
const TIME_LIMIT: f64 = 1.5;
/// Limit of the time for one resource in a large stack, relative to a small stack.
const GROWTH_LIMIT: f64 = 1.2;
/// Limit of the additional time of a creation with a slow store, in seconds.
const SLOW_STORE_LIMIT: f64 = 1.0;
/// Limit of the bytes for one step in a large stack, relative to a small stack. The bytes must not grow, except for the
/// digits of larger numbers.
const BYTES_LIMIT: f64 = 1.05;

/// Time of an operation.
type Time = fn(&Figures) -> f64;
/// Result of a program.
type CommandFigure = fn(&Figures, &CommandFigures) -> f64;
/// Format of a result.
type Format = fn(f64) -> String;

/// Results of all measurements.
#[derive(Default)]
pub(crate) struct Report {
    cases: Vec<Case>,
}

struct Case {
    workload: Workload,
    rounds: Vec<Round>,
}

/// Results of all programs for one workload.
pub(crate) struct Round {
    /// Engine.
    pub(crate) ours: Figures,
    /// Bare loop on one thread for each processor, like most programs with tonic.
    pub(crate) bare: Figures,
    /// Bare loop on one thread.
    pub(crate) single: Figures,
    /// Program `sc`, if it is measured.
    pub(crate) command: Option<Figures>,
    /// Pulumi, if it is installed.
    pub(crate) pulumi: Option<Figures>,
    /// Pulumi without checkpoints.
    pub(crate) without_checkpoints: Option<Figures>,
}

impl Report {
    /// Adds a round.
    pub(crate) fn add(&mut self, workload: Workload, round: Round) {
        let is_same_workload =
            |case: &&mut Case| (case.workload.resources, case.workload.shape) == (workload.resources, workload.shape);
        match self.cases.iter_mut().find(is_same_workload) {
            Some(case) => case.rounds.push(round),
            None => self.cases.push(Case { workload, rounds: vec![round] }),
        }
    }

    fn time_row(f: &mut fmt::Formatter<'_>, case: &Case, label: &str, time: Time) -> fmt::Result {
        let (ours, bare) = (case.ours(time), case.median(|round| time(&round.bare)));
        let row = format!("{label} {}", case.name());
        write_comparison(f, &row, &milliseconds(ours), &milliseconds(bare), ours / bare, TIME_LIMIT)
    }

    fn single_row(f: &mut fmt::Formatter<'_>, case: &Case, label: &str, time: Time) -> fmt::Result {
        let (ours, single) = (case.ours(time), case.median(|round| time(&round.single)));
        let (row, ratio) = (format!("{label} {}", case.name()), ours / single);
        writeln!(f, "{row:<36}{:>12}{:>12}{ratio:>8.2}", milliseconds(ours), milliseconds(single))
    }

    /// Writes the results of the program from start to exit.
    fn commands(f: &mut fmt::Formatter<'_>, cases: &[Case]) -> fmt::Result {
        writeln!(f, "\n{:<36}{:>12}{:>12}{:>8}", "start to exit", "sc", "bare loop", "ratio")?;
        for case in cases.iter().filter(|case| case.rounds.iter().any(|round| round.command.is_some())) {
            let times: [(&str, Time); 3] =
                [("create", |run| run.create), ("no-op", |run| run.no_op), ("destroy", |run| run.destroy)];
            for (label, time) in times {
                let (sc, bare) = (case.command(|run, _| time(run)), case.median(|round| time(&round.bare)));
                let (row, ratio) = (format!("{label} {}", case.name()), sc / bare);
                writeln!(f, "{row:<36}{:>12}{:>12}{ratio:>8.2}", milliseconds(sc), milliseconds(bare))?;
            }
            for (label, figure) in [
                ("preview", milliseconds(case.command(|_, command| command.preview))),
                ("refresh", milliseconds(case.command(|_, command| command.refresh))),
                ("refresh, preview, no-op", milliseconds(case.command(|_, command| command.combined))),
                ("memory", megabytes(case.command(|_, command| command.peak_memory as f64))),
            ] {
                writeln!(f, "{:<36}{figure:>12}", format!("{label} {}", case.name()))?;
            }
        }
        Ok(())
    }

    /// Writes the comparison of the program with Pulumi, from start to exit.
    fn pulumi(f: &mut fmt::Formatter<'_>, cases: &[Case]) -> fmt::Result {
        let has_pulumi = |case: &&Case| case.rounds.iter().any(|round| round.pulumi.is_some());
        if !cases.iter().any(|case| has_pulumi(&case)) {
            return writeln!(f, "\npulumi and pulumi-language-yaml are not both on PATH, so they are not compared");
        }
        let label = "against pulumi";
        writeln!(f, "\n{label:<36}{:>12}{:>12}{:>8}{:>16}{:>8}", "sc", "pulumi", "times", "no checkpoints", "times")?;
        for case in cases.iter().filter(has_pulumi) {
            let rows: [(&str, CommandFigure, Format); 7] = [
                ("create", |run, _| run.create, milliseconds),
                ("no-op", |run, _| run.no_op, milliseconds),
                ("preview", |_, command| command.preview, milliseconds),
                ("refresh", |_, command| command.refresh, milliseconds),
                ("refresh, preview, no-op", |_, command| command.combined, milliseconds),
                ("destroy", |run, _| run.destroy, milliseconds),
                ("memory", |_, command| command.peak_memory as f64, megabytes),
            ];
            for (label, figure, format_value) in rows {
                let sc = case.command(figure);
                let median_of = |round: fn(&Round) -> Option<&Figures>| {
                    let runs = case.rounds.iter().filter_map(round);
                    median(runs.filter_map(|run| Some(figure(run, run.command.as_ref()?))))
                };
                let (pulumi, without_checkpoints) =
                    (median_of(|round| round.pulumi.as_ref()), median_of(|round| round.without_checkpoints.as_ref()));
                writeln!(
                    f,
                    "{:<36}{:>12}{:>12}{:>8.1}{:>16}{:>8.1}",
                    format!("{label} {}", case.name()),
                    format_value(sc),
                    format_value(pulumi),
                    pulumi / sc,
                    format_value(without_checkpoints),
                    without_checkpoints / sc
                )?;
            }
        }
        Ok(())
    }
}

impl Case {
    fn name(&self) -> String {
        match self.workload.shape {
            Shape::Independent => self.workload.resources.to_string(),
            Shape::Layers if self.workload.resources == 1 => "one resource".to_owned(),
            Shape::Layers => format!("{} in layers", self.workload.resources),
        }
    }

    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    fn ours(&self, time: Time) -> f64 {
        self.median(|round| time(&round.ours))
    }

    fn engine(&self, figure: impl Fn(&EngineFigures) -> f64) -> f64 {
        median(self.rounds.iter().filter_map(|round| round.ours.engine.as_ref()).map(figure))
    }

    fn command(&self, figure: impl Fn(&Figures, &CommandFigures) -> f64) -> f64 {
        let commands = self.rounds.iter().filter_map(|round| round.command.as_ref());
        median(commands.filter_map(|run| Some(figure(run, run.command.as_ref()?))))
    }

    fn each(&self, seconds: f64) -> f64 {
        seconds / self.workload.resources as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.cases.first() else { return Ok(()) };
        let rounds: Vec<_> = self.cases.iter().map(|case| format!("{}: {}", case.name(), case.rounds.len())).collect();
        writeln!(f, "medians; rounds: {}\n", rounds.join(", "))?;
        header(f, "time of a run", "engine", "bare loop")?;
        let times: [(&str, Time); 3] =
            [("create", |run| run.create), ("no-op", |run| run.no_op), ("destroy", |run| run.destroy)];
        // The workload with one resource is for the program only: most of its time is the start and the end of a run.
        let cases_with_many_resources = || self.cases.iter().filter(|case| case.workload.resources > 1);
        for case in cases_with_many_resources() {
            times.iter().try_for_each(|(label, time)| Self::time_row(f, case, label, *time))?;
        }

        writeln!(f, "\n{:<36}{:>12}{:>12}{:>8}", "the loop on one thread", "engine", "bare loop", "ratio")?;
        for case in cases_with_many_resources() {
            times.iter().try_for_each(|(label, time)| Self::single_row(f, case, label, *time))?;
        }
        Self::commands(f, &self.cases)?;
        Self::pulumi(f, &self.cases)?;
        let (name, small) = (first.name(), first);
        let larger: Vec<_> = self.cases[1..].iter().filter(|case| case.workload.shape == Shape::Independent).collect();

        header(f, "time for one resource", "large", &name)?;
        for case in &larger {
            for (label, time) in times {
                let (large, small) = (case.each(case.ours(time)), small.each(small.ours(time)));
                let row = format!("{label} {}", case.name());
                write_comparison(f, &row, &microseconds(large), &microseconds(small), large / small, GROWTH_LIMIT)?;
            }
        }

        header(f, "bytes written for one step", "large", &name)?;
        for case in &larger {
            let create = |case: &Case| case.each(case.engine(|engine| engine.create_written as f64));
            let step = |case: &Case| case.engine(|engine| engine.grow_written as f64 / engine.grow_steps as f64);
            let change = |case: &Case| case.engine(|engine| engine.grow_written as f64 / ADDED_RESOURCES as f64);
            let rows = [("create", create(case), create(small)), ("step of a run that adds", step(case), step(small))];
            for (label, large, small) in rows {
                write_comparison(
                    f,
                    &format!("{label} {}", case.name()),
                    &bytes(large),
                    &bytes(small),
                    large / small,
                    BYTES_LIMIT,
                )?;
            }
            let label = format!("resource added to {}", case.name());
            write_comparison(
                f,
                &label,
                &bytes(change(case)),
                &bytes(change(small)),
                change(case) / change(small),
                BYTES_LIMIT,
            )?;
        }

        header(f, "each write of the store 50 ms later", "slow", "as it is")?;
        for case in &self.cases {
            let slow = median(case.rounds.iter().filter_map(|round| round.ours.engine.as_ref()?.slow_create));
            if slow > 0.0 {
                let create = case.ours(|run| run.create);
                let result = if slow - create <= SLOW_STORE_LIMIT { "holds" } else { "OVER" };
                let row = format!("create {}, at most {} more", case.name(), milliseconds(SLOW_STORE_LIMIT));
                writeln!(f, "{row:<36}{:>12}{:>12}{:>16}  {result}", milliseconds(slow), milliseconds(create), "")?;
            }
        }

        writeln!(
            f,
            "\n{:<36}{:>12}{:>12}{:>14}{:>12}{:>12}",
            "apart", "provider", "key", "add 100", "checkpoint", "memory"
        )?;
        for case in &self.cases {
            writeln!(
                f,
                "{:<36}{:>12}{:>12}{:>14}{:>12}{:>12}",
                case.name(),
                milliseconds(case.engine(|engine| engine.provider_start)),
                milliseconds(case.engine(|engine| engine.key)),
                milliseconds(case.engine(|engine| engine.grow)),
                megabytes(case.engine(|engine| engine.checkpoint as f64)),
                megabytes(case.engine(|engine| engine.peak_memory as f64)),
            )?;
        }
        Ok(())
    }
}

fn header(f: &mut fmt::Formatter<'_>, label: &str, ours: &str, baseline: &str) -> fmt::Result {
    writeln!(f, "\n{label:<36}{ours:>12}{baseline:>12}{:>8}{:>8}", "ratio", "limit")
}

fn write_comparison(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    ours: &str,
    baseline: &str,
    ratio: f64,
    limit: f64,
) -> fmt::Result {
    let result = if ratio <= limit { "holds" } else { "OVER" };
    writeln!(f, "{label:<36}{ours:>12}{baseline:>12}{ratio:>8.2}{limit:>8.2}  {result}")
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

fn microseconds(seconds: f64) -> String {
    format!("{:.1} us", seconds * 1e6)
}

fn bytes(bytes: f64) -> String {
    format!("{bytes:.0} B")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

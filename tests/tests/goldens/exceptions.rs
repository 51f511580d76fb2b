//! What does not hold yet, or is different on purpose.

use std::path::PathBuf;

use crate::run::Held;

/// The lists of all folders together.
pub(crate) struct Exceptions(Vec<Exception>);

struct Exception {
    scenario: String,
    /// `None`: every step.
    step: Option<usize>,
    reason: String,
}

impl Exceptions {
    /// Reads `exceptions.tsv` of each folder that has one.
    pub(crate) fn read(folders: &[PathBuf]) -> Self {
        let mut exceptions = Vec::new();
        for path in folders.iter().map(|folder| folder.join("exceptions.tsv")).filter(|path| path.exists()) {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let mut columns = line.splitn(3, '\t');
                let (Some(scenario), Some(step), Some(reason)) = (columns.next(), columns.next(), columns.next())
                else {
                    panic!("{}: {line:?} has not three columns", path.display());
                };
                let step = (step != "*").then(|| step.parse().unwrap_or_else(|_| panic!("{step:?} is no step")));
                exceptions.push(Exception { scenario: scenario.to_owned(), step, reason: reason.to_owned() });
            }
        }
        Self(exceptions)
    }

    /// Why a step need not hold.
    pub(crate) fn reason(&self, scenario: &str, step: usize) -> Option<&str> {
        let covers =
            |exception: &&Exception| exception.scenario == scenario && exception.step.is_none_or(|only| only == step);
        self.0.iter().find(covers).map(|exception| exception.reason.as_str())
    }

    /// Steps (or `*`) that are listed although they hold.
    pub(crate) fn stale(&self, held: &Held<'_>) -> Vec<String> {
        let holds = |step: Option<usize>| match step {
            Some(step) => held.steps.get(step).is_none_or(Vec::is_empty),
            None => held.steps.iter().all(Vec::is_empty),
        };
        let stale = self.0.iter().filter(|exception| exception.scenario == held.scenario.name && holds(exception.step));
        stale.map(|exception| exception.step.map_or("*".to_owned(), |step| step.to_string())).collect()
    }
}

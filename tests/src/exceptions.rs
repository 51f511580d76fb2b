//! Recorded steps that our engine does not match yet, or differs from on purpose.

use std::path::PathBuf;

/// Exceptions of all folders.
#[derive(Debug)]
pub struct Exceptions(Vec<Exception>);

#[derive(Debug)]
struct Exception {
    scenario: String,
    /// Index of the step; `None`: every step.
    step: Option<usize>,
    kind: ExceptionKind,
    reason: String,
}

/// Kind of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionKind {
    /// The step differs in any way.
    Different,
    /// The step differs in secrets only: a value of ours is secret where the recorded one is plain.
    MoreSecrets,
}

impl Exceptions {
    /// Reads `exceptions.tsv` of each folder that has one.
    ///
    /// # Errors
    /// Returns a text with the file and its mistake.
    pub fn read(folders: &[PathBuf]) -> Result<Self, String> {
        let mut exceptions = Vec::new();
        for path in folders.iter().map(|folder| folder.join("exceptions.tsv")).filter(|path| path.exists()) {
            let error_text = |what: &str| format!("{}: {what}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| error_text(&error.to_string()))?;
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let columns: Vec<&str> = line.splitn(4, '\t').collect();
                let [scenario, step, kind, reason] = columns[..] else {
                    return Err(error_text(&format!("{line:?} does not have four columns")));
                };
                let kind = match kind {
                    "different" => ExceptionKind::Different,
                    "secrets" => ExceptionKind::MoreSecrets,
                    _ => return Err(error_text(&format!("{kind:?} is neither \"different\" nor \"secrets\""))),
                };
                let step = match step {
                    "*" => None,
                    step => Some(step.parse().map_err(|_| error_text(&format!("{step:?} is not a step number")))?),
                };
                exceptions.push(Exception { scenario: scenario.to_owned(), step, kind, reason: reason.to_owned() });
            }
        }
        Ok(Self(exceptions))
    }

    /// Returns the kind of the exception for a step, and the reason that it need not match.
    pub fn get(&self, scenario: &str, step: usize) -> Option<(ExceptionKind, &str)> {
        let applies =
            |exception: &&Exception| exception.scenario == scenario && exception.step.is_none_or(|only| only == step);
        self.0.iter().find(applies).map(|exception| (exception.kind, exception.reason.as_str()))
    }

    /// Returns the listed steps (or `*`) of a scenario that match. `differences`: those of each step.
    pub fn stale(&self, scenario: &str, differences: &[Vec<String>]) -> Vec<String> {
        let matches = |step: Option<usize>| match step {
            Some(step) => differences.get(step).is_none_or(Vec::is_empty),
            None => differences.iter().all(Vec::is_empty),
        };
        let stale = self.0.iter().filter(|exception| exception.scenario == scenario && matches(exception.step));
        stale.map(|exception| exception.step.map_or("*".to_owned(), |step| step.to_string())).collect()
    }
}

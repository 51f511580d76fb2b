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
    reason: String,
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
                let mut columns = line.splitn(3, '\t');
                let (Some(scenario), Some(step), Some(reason)) = (columns.next(), columns.next(), columns.next())
                else {
                    return Err(error_text(&format!("{line:?} does not have three columns")));
                };
                let step = match step {
                    "*" => None,
                    step => Some(step.parse().map_err(|_| error_text(&format!("{step:?} is not a step number")))?),
                };
                exceptions.push(Exception { scenario: scenario.to_owned(), step, reason: reason.to_owned() });
            }
        }
        Ok(Self(exceptions))
    }

    /// Returns the reason that a step need not match.
    pub fn reason(&self, scenario: &str, step: usize) -> Option<&str> {
        let applies =
            |exception: &&Exception| exception.scenario == scenario && exception.step.is_none_or(|only| only == step);
        self.0.iter().find(applies).map(|exception| exception.reason.as_str())
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

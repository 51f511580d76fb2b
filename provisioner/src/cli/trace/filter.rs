//! The filter of `SC_LOG`: levels by part of the program, as `RUST_LOG` of other programs.

use std::str::FromStr;

use tracing::Metadata;
use tracing::level_filters::LevelFilter;

/// Crates that have spans and events. Those of other crates are never written: they may contain headers and bodies of requests.
const CRATES: [&str; 3] = ["engine", "bridge", "state"];

/// Levels by module. The longest name that a module begins with decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter(Vec<(String, LevelFilter)>);

/// Text that is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a level nor a part of the program with a level")]
pub(super) struct FilterError(String);

impl Filter {
    /// Returns the filter that everything passes.
    pub(super) fn all() -> Self {
        Self(CRATES.map(|name| (name.to_owned(), LevelFilter::TRACE)).to_vec())
    }

    /// Returns whether a span or an event passes.
    pub(super) fn passes(&self, metadata: &Metadata<'_>) -> bool {
        self.level_of(metadata.target()) >= *metadata.level()
    }

    /// Returns the level of the most detailed spans and events that pass.
    pub(super) fn max_level(&self) -> LevelFilter {
        self.0.iter().map(|(_, level)| *level).max().unwrap_or(LevelFilter::OFF)
    }

    fn level_of(&self, module: &str) -> LevelFilter {
        let is_within =
            |name: &str| module.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        let matching = self.0.iter().filter(|(name, _)| is_within(name));
        matching.max_by_key(|(name, _)| name.len()).map_or(LevelFilter::OFF, |(_, level)| *level)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut levels = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || FilterError(part.to_owned());
            let (module, level) = match part.split_once('=') {
                Some((module, level)) => (module, level),
                None if is_module(part) => (part, "trace"),
                None => ("", part),
            };
            let level = LevelFilter::from_str(level).map_err(|_| wrong())?;
            match module {
                "" if !part.contains('=') => {
                    // A level alone counts for what no other part names, wherever it stands.
                    levels.splice(..0, CRATES.map(|name| (name.to_owned(), level)));
                }
                module if is_module(module) => levels.push((module.to_owned(), level)),
                _ => return Err(wrong()),
            }
        }
        if levels.is_empty() { Err(FilterError(text.to_owned())) } else { Ok(Self(levels)) }
    }
}

fn is_module(name: &str) -> bool {
    CRATES.contains(&name.split("::").next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_name_decides_the_level() {
        let level = |filter: &str, module: &str| filter.parse::<Filter>().unwrap().level_of(module);
        assert_eq!(level("debug", "engine::context"), LevelFilter::DEBUG);
        assert_eq!(level("engine", "engine::context"), LevelFilter::TRACE);
        assert_eq!(level("engine", "bridge::host"), LevelFilter::OFF);
        let filter = "engine=debug, info,state::store=OFF,";
        assert_eq!(level(filter, "engine::context"), LevelFilter::DEBUG);
        assert_eq!(level(filter, "bridge::host"), LevelFilter::INFO);
        assert_eq!(level(filter, "state::journal"), LevelFilter::INFO);
        assert_eq!(level(filter, "state::store::traced"), LevelFilter::OFF);
        assert_eq!(level(filter, "state::stores"), LevelFilter::INFO);
        assert_eq!(level("trace", "h2::codec"), LevelFilter::OFF);
        assert_eq!(filter.parse::<Filter>().unwrap().max_level(), LevelFilter::DEBUG);
    }

    #[test]
    fn text_that_is_no_filter_is_refused() {
        for (text, wrong) in [
            ("", ""),
            ("loud", "loud"),
            ("debug,engine=loud", "engine=loud"),
            ("h2=trace", "h2=trace"),
            ("=info", "=info"),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(FilterError(wrong.to_owned())), "{text}");
        }
    }
}

//! Names by which the user selects resources for a run: keys of declarations are replaced by the names of their resources.

use std::collections::BTreeSet;

use engine::{UrnPattern, names_of_key};
use pulumi_proto::urn::Urn;
use state::Snapshot;

use super::{OperationError, StackRun};

impl StackRun {
    /// Replaces each pattern in the options that selects nothing, and is the key of one resource, by the name of this resource.
    /// The resources are the recorded ones and those that the stack declares. A pattern that selects nothing stays: a plugin may
    /// register its resource, or the engine reports it.
    ///
    /// # Errors
    /// [`OperationError::SeveralNames`]: the key is one of several resources.
    pub(super) async fn resolve_names(&mut self, recorded: &Snapshot) -> Result<(), OperationError> {
        let options = &self.options.deployment;
        let patterns = options.scope.targets.iter().chain(&options.scope.excludes).chain(&options.replace);
        if patterns.clone().all(|pattern| recorded.all_resources().any(|state| pattern.matches(&state.urn))) {
            return Ok(());
        }
        let declared = self.program.resource_names().await;
        let options = &mut self.options.deployment;
        let (scope, replace) = (&mut options.scope, &mut options.replace);
        let urns: Vec<&Urn> = recorded.all_resources().map(|state| &state.urn).collect();
        for pattern in scope.targets.iter_mut().chain(&mut scope.excludes).chain(replace) {
            *pattern = resolve(pattern, urns.iter().copied(), &declared)?;
        }
        Ok(())
    }
}

fn resolve<'u>(
    pattern: &UrnPattern,
    recorded: impl Iterator<Item = &'u Urn> + Clone,
    declared: &'u BTreeSet<String>,
) -> Result<UrnPattern, OperationError> {
    let is_selecting = recorded.clone().any(|urn| pattern.matches(urn));
    if is_selecting || declared.iter().any(|name| pattern.matches_name(name)) {
        return Ok(pattern.clone());
    }
    let names = recorded.map(Urn::name).chain(declared.iter().map(String::as_str));
    let names: Vec<&str> = names_of_key(pattern.as_str(), names).into_iter().collect();
    match names[..] {
        [] => Ok(pattern.clone()),
        [name] => Ok(UrnPattern::new(name)),
        _ => Err(OperationError::SeveralNames {
            key: pattern.as_str().to_owned(),
            names: names.into_iter().map(str::to_owned).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_one_recorded_or_declared_resource_selects_it() {
        let recorded: Vec<Urn> = ["web--prod", "db--prod", "db", "log--old"]
            .map(|name| format!("urn:pulumi:s::p::t:m:T::{name}").parse().unwrap())
            .into();
        let declared = ["web--prod", "web--test", "new--prod", "log--prod"].map(str::to_owned).into();
        let resolved = |text: &str| {
            let resolved = resolve(&UrnPattern::new(text), recorded.iter(), &declared);
            resolved.map(|pattern| pattern.as_str().to_owned()).map_err(|error| error.to_string())
        };
        let table = [
            ("web--prod", Ok("web--prod")),
            ("new", Ok("new--prod")),
            ("prod/new", Ok("new--prod")),
            ("db", Ok("db")),
            ("prod/db", Ok("db--prod")),
            ("t:m:T::db", Ok("t:m:T::db")),
            ("w*", Ok("w*")),
            ("unknown", Ok("unknown")),
            ("web", Err("2 resources match web: web--prod, web--test")),
            ("log", Err("2 resources match log: log--old, log--prod")),
        ];
        for (text, expected) in table {
            assert_eq!(resolved(text), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}

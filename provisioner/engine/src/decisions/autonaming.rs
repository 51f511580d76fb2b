//! The physical names that a stack's configuration proposes to providers: `pulumi:autonaming`
//! (docs/spec/engine-semantics.md#2.6).
//!
//! The value is JSON: `mode` (`default`, `verbatim`, `disabled`), or `pattern` with or without `enforce`; the same
//! under `providers.<package>` and under `providers.<package>.resources.<type>`. The most specific rule applies. A
//! pattern holds `${name}`, `${project}`, `${stack}`, `${organization}`, `${config.KEY}`, and the random parts
//! `${hex(N)}`, `${alphanum(N)}`, `${string(N)}`, `${num(N)}` and `${uuid}`.

use std::collections::BTreeMap;

use bridge::provider::Autonaming;
use pulumi_proto::urn::{TypeToken, Urn};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::goal::ConfigEntry;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &[u8] = b"0123456789abcdef";

/// Maximal length of a random part. No cloud accepts longer names.
const MAX_RANDOM_LENGTH: usize = 1024;

/// Autonaming configuration of a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct AutonamingConfig {
    rules: Option<Rules>,
    /// Values of the placeholders, by name.
    variables: BTreeMap<String, String>,
}

/// Physical name that is proposed for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Autonaming options that the provider receives.
    pub(crate) autonaming: Autonaming,
    /// True if the name has no random part, or autonaming is disabled: the old resource must be deleted before its
    /// replacement is created.
    pub(crate) is_fixed: bool,
    /// True if the user must be warned in case the provider does not support autonaming.
    pub(crate) warn_if_unsupported: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    mode: Option<NamingMode>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    providers: BTreeMap<String, PackageRules>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageRules {
    mode: Option<NamingMode>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    resources: BTreeMap<String, Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    mode: Option<NamingMode>,
    pattern: Option<String>,
    enforce: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NamingMode {
    Default,
    Verbatim,
    Disabled,
}

impl AutonamingConfig {
    /// Reads the configuration of a stack.
    ///
    /// # Errors
    /// The text of the error in the configuration.
    pub(crate) fn read(config: &[ConfigEntry], project: &str, stack: &str) -> Result<Self, String> {
        let is_autonaming = |entry: &&ConfigEntry| entry.namespace == "pulumi" && entry.name == "autonaming";
        let Some(entry) = config.iter().find(is_autonaming) else { return Ok(Self::default()) };
        let rules: Rules = serde_json::from_str(&entry.value).map_err(|error| error.to_string())?;
        let mut variables: BTreeMap<String, String> = config
            .iter()
            .filter(|entry| entry.namespace == project)
            .map(|entry| (format!("config.{}", entry.name), entry.value.clone()))
            .collect();
        let built_in = [("project", project), ("stack", stack), ("organization", "organization")];
        variables.extend(built_in.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let config = Self { rules: Some(rules), variables };
        config.all_rules().try_for_each(|rule| config.check(&rule))?;
        Ok(config)
    }

    fn all_rules(&self) -> impl Iterator<Item = Rule> {
        let packages = self.rules.iter().flat_map(|rules| rules.providers.values());
        let stack = self.rules.iter().map(Rules::rule);
        stack
            .chain(packages.clone().map(PackageRules::rule))
            .chain(packages.flat_map(|it| it.resources.values().cloned()))
    }

    fn check(&self, rule: &Rule) -> Result<(), String> {
        if rule.mode.is_some() && (rule.pattern.is_some() || rule.enforce.is_some()) {
            return Err("mode cannot be combined with pattern or enforce".to_owned());
        }
        let Some(pattern) = &rule.pattern else { return Ok(()) };
        match self.expand(pattern, "name", &mut Random::new(&[])) {
            Ok(_) => Ok(()),
            Err(name) => Err(format!("the pattern {pattern:?} contains ${{{name}}}, which is not a known placeholder")),
        }
    }

    /// Returns the proposal for a resource, which depends only on the configuration and the seed; `None` if the
    /// configuration leaves the name to the provider.
    pub(crate) fn propose(&self, urn: &Urn, seed: &[u8]) -> Option<Proposal> {
        let rules = self.rules.as_ref()?;
        let token = TypeToken::new(urn.type_token());
        let package = rules.providers.get(token.package());
        let (rule, specific) = match package {
            Some(package) => (package.resources.get(token.as_str()).cloned().unwrap_or_else(|| package.rule()), true),
            None => (rules.rule(), false),
        };
        let name = urn.name().to_owned();
        Some(match (&rule.pattern, rule.mode) {
            (Some(pattern), _) => {
                let (name, random) = self.expand(pattern, urn.name(), &mut Random::new(seed)).ok()?;
                let enforce = rule.enforce.unwrap_or_default();
                let autonaming = if enforce { Autonaming::Enforce(name) } else { Autonaming::Propose(name) };
                Proposal { autonaming, is_fixed: !random, warn_if_unsupported: enforce || specific }
            }
            (None, Some(NamingMode::Verbatim)) => {
                Proposal { autonaming: Autonaming::Enforce(name), is_fixed: true, warn_if_unsupported: specific }
            }
            (None, Some(NamingMode::Disabled)) => {
                Proposal { autonaming: Autonaming::Disable, is_fixed: true, warn_if_unsupported: specific }
            }
            (None, Some(NamingMode::Default) | None) => return None,
        })
    }

    /// Expands the placeholders of a pattern. Returns the name, and whether it has a random part.
    ///
    /// # Errors
    /// The name of the first unknown placeholder, or the text after a `${` without `}`.
    fn expand(&self, pattern: &str, name: &str, random: &mut Random<'_>) -> Result<(String, bool), String> {
        let (mut expanded, mut is_random, mut rest) = (String::new(), false, pattern);
        while let Some((before, after)) = rest.split_once("${") {
            let (placeholder, remaining) = after.split_once('}').ok_or(after)?;
            expanded.push_str(before);
            rest = remaining;
            if placeholder == "name" {
                expanded.push_str(name);
            } else if let Some(value) = self.variables.get(placeholder) {
                expanded.push_str(value);
            } else {
                expanded.push_str(&random.expand(placeholder).ok_or(placeholder)?);
                is_random = true;
            }
        }
        expanded.push_str(rest);
        Ok((expanded, is_random))
    }
}

impl Rules {
    /// Returns the rule for resources without a more specific one.
    fn rule(&self) -> Rule {
        Rule { mode: self.mode, pattern: self.pattern.clone(), enforce: self.enforce }
    }
}

impl PackageRules {
    /// Returns the rule for resources without a more specific one.
    fn rule(&self) -> Rule {
        Rule { mode: self.mode, pattern: self.pattern.clone(), enforce: self.enforce }
    }
}

/// Pseudorandom bytes: the hashes of a seed with a counter.
struct Random<'s> {
    seed: &'s [u8],
    block: u64,
    bytes: Vec<u8>,
}

impl<'s> Random<'s> {
    fn new(seed: &'s [u8]) -> Self {
        Self { seed, block: 0, bytes: Vec::new() }
    }

    fn byte(&mut self) -> u8 {
        loop {
            if let Some(byte) = self.bytes.pop() {
                return byte;
            }
            let hash = Sha256::new().chain_update(self.seed).chain_update(self.block.to_be_bytes()).finalize();
            self.bytes = hash.to_vec();
            self.block += 1;
        }
    }

    /// Returns one of these characters, each with the same probability.
    fn pick(&mut self, letters: &[u8]) -> char {
        let limit = 256 - 256 % letters.len();
        loop {
            let byte = usize::from(self.byte());
            if byte < limit {
                return char::from(letters[byte % letters.len()]);
            }
        }
    }

    /// Expands the placeholder of a random part, such as `hex(4)`; returns `None` if the placeholder is unknown.
    fn expand(&mut self, placeholder: &str) -> Option<String> {
        if placeholder == "uuid" {
            let bytes: [u8; 16] = std::array::from_fn(|_| self.byte());
            return Some(uuid::Uuid::from_bytes(bytes).to_string());
        }
        let (kind, count) = placeholder.strip_suffix(')')?.split_once('(')?;
        let letters = match kind {
            "hex" => HEX,
            "alphanum" => LETTERS_AND_DIGITS,
            "string" => LETTERS,
            "num" => DIGITS,
            _ => return None,
        };
        let count: usize = count.parse().ok().filter(|count| *count <= MAX_RANDOM_LENGTH)?;
        Some((0..count).map(|_| self.pick(letters)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Result<AutonamingConfig, String> {
        let entry = |namespace: &str, name: &str, value: &str| ConfigEntry {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
            secret: false,
        };
        let entries = [entry("pulumi", "autonaming", json), entry("reef", "team", "blue"), entry("aws", "team", "red")];
        AutonamingConfig::read(&entries, "reef", "dev")
    }

    fn proposed(json: &str, token: &str) -> Option<Proposal> {
        let urn = Urn::new("dev", "reef", None, token, "web");
        config(json).unwrap().propose(&urn, b"seed")
    }

    fn proposal(autonaming: Autonaming, is_fixed: bool, warn_if_unsupported: bool) -> Option<Proposal> {
        Some(Proposal { autonaming, is_fixed, warn_if_unsupported })
    }

    #[test]
    fn modes_match_pulumi() {
        assert_eq!(proposed(r#"{"mode": "default"}"#, "a:b:C"), None);
        let verbatim = proposal(Autonaming::Enforce("web".into()), true, false);
        assert_eq!(proposed(r#"{"mode": "verbatim"}"#, "a:b:C"), verbatim);
        assert_eq!(proposed(r#"{"mode": "disabled"}"#, "a:b:C"), proposal(Autonaming::Disable, true, false));
    }

    #[test]
    fn pattern_placeholders_are_expanded() {
        let json = r#"{"pattern": "${organization}-${project}-${stack}-${config.team}-${name}"}"#;
        let name = "organization-reef-dev-blue-web".to_owned();
        assert_eq!(proposed(json, "a:b:C"), proposal(Autonaming::Propose(name), true, false));
        let enforced = proposed(r#"{"pattern": "x-${name}", "enforce": true}"#, "a:b:C");
        assert_eq!(enforced, proposal(Autonaming::Enforce("x-web".into()), true, true));
    }

    #[test]
    fn random_parts_depend_on_the_seed_and_the_name_is_not_fixed() {
        let json = r#"{"pattern": "${name}-${hex(5)}-${alphanum(3)}-${string(2)}-${num(4)}-${uuid}"}"#;
        let Some(Proposal { autonaming: Autonaming::Propose(name), is_fixed: false, .. }) = proposed(json, "a:b:C")
        else {
            panic!("a random name is proposed");
        };
        let parts: Vec<&str> = name.splitn(6, '-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 5, 3, 2, 4, 36]);
        assert!(parts[1].bytes().all(|byte| HEX.contains(&byte)) && parts[4].bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!(proposed(json, "a:b:C").unwrap().autonaming, Autonaming::Propose(name.clone()));
        let urn = Urn::new("dev", "reef", None, "a:b:C", "web");
        assert_ne!(config(json).unwrap().propose(&urn, b"other").unwrap().autonaming, Autonaming::Propose(name));
    }

    #[test]
    fn most_specific_rule_applies() {
        let json = r#"{"mode": "verbatim", "providers": {
            "aws": {"pattern": "aws-${name}", "resources": {"aws:s3:Bucket": {"mode": "disabled"}}}, "gcp": {}}}"#;
        assert_eq!(proposed(json, "a:b:C"), proposal(Autonaming::Enforce("web".into()), true, false));
        assert_eq!(proposed(json, "aws:ec2:Vpc"), proposal(Autonaming::Propose("aws-web".into()), true, true));
        assert_eq!(proposed(json, "aws:s3:Bucket"), proposal(Autonaming::Disable, true, true));
        assert_eq!(proposed(json, "gcp:a:B"), None, "an empty rule means the mode default");
    }

    #[test]
    fn invalid_configuration_is_reported() {
        for (json, text) in [
            (r#"{"mode": "loud"}"#, "unknown variant"),
            (r#"{"modes": "verbatim"}"#, "unknown field"),
            (r#"{"mode": "verbatim", "pattern": "x"}"#, "combined with pattern"),
            (r#"{"providers": {"aws": {"pattern": "${config.nothing}"}}}"#, "not a known placeholder"),
            (r#"{"pattern": "${hex(9999)}"}"#, "not a known placeholder"),
            (r#"{"pattern": "${name"}"#, "not a known placeholder"),
            ("verbatim", "expected value"),
        ] {
            let error = config(json).unwrap_err();
            assert!(error.contains(text), "{json}: {error}");
        }
        assert!(AutonamingConfig::read(&[], "p", "s").unwrap().rules.is_none());
    }
}

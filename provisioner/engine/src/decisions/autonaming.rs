//! The physical names that a stack's configuration proposes to providers: `pulumi:autonaming` (engine semantics, section
//! 2.6).
//!
//! The value is JSON: `mode` (`default`, `verbatim`, `disabled`), or `pattern` with or without `enforce`; the same under
//! `providers.<package>` and under `providers.<package>.resources.<type>`. The most specific that is written counts. A
//! pattern holds `${name}`, `${project}`, `${stack}`, `${organization}`, `${config.KEY}`, and the random parts `${hex(N)}`,
//! `${alphanum(N)}`, `${string(N)}`, `${num(N)}` and `${uuid}`.

use std::collections::BTreeMap;

use bridge::provider::Autonaming;
use pulumi_proto::urn::{TypeToken, Urn};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::config_entry::ConfigEntry;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const LETTERS_AND_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &[u8] = b"0123456789abcdef";

/// The longest random part: no cloud takes longer names.
const LONGEST: usize = 1024;

/// What a stack says about physical names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    rules: Option<Rules>,
    words: BTreeMap<String, String>,
}

/// What is proposed for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// What the provider is told.
    pub(crate) autonaming: Autonaming,
    /// The name has nothing random: the old resource must go before the new one comes.
    pub(crate) fixed: bool,
    /// The user will want to know if the provider takes no names.
    pub(crate) meant: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    mode: Option<Mode>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    providers: BTreeMap<String, OfPackage>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfPackage {
    mode: Option<Mode>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    resources: BTreeMap<String, Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    mode: Option<Mode>,
    pattern: Option<String>,
    enforce: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Default,
    Verbatim,
    Disabled,
}

impl Naming {
    /// Reads the configuration of a stack.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn read(config: &[ConfigEntry], project: &str, stack: &str) -> Result<Self, String> {
        let is_it = |entry: &&ConfigEntry| entry.namespace == "pulumi" && entry.name == "autonaming";
        let Some(entry) = config.iter().find(is_it) else { return Ok(Self::default()) };
        let rules: Rules = serde_json::from_str(&entry.value).map_err(|error| error.to_string())?;
        let mut words: BTreeMap<String, String> = config
            .iter()
            .filter(|entry| entry.namespace == project)
            .map(|entry| (format!("config.{}", entry.name), entry.value.clone()))
            .collect();
        let own = [("project", project), ("stack", stack), ("organization", "organization")];
        words.extend(own.map(|(word, value)| (word.to_owned(), value.to_owned())));
        let naming = Self { rules: Some(rules), words };
        naming.all_rules().try_for_each(|rule| naming.check(&rule))?;
        Ok(naming)
    }

    fn all_rules(&self) -> impl Iterator<Item = Rule> {
        let packages = self.rules.iter().flat_map(|rules| rules.providers.values());
        let own = self.rules.iter().map(Rules::own);
        own.chain(packages.clone().map(OfPackage::own)).chain(packages.flat_map(|it| it.resources.values().cloned()))
    }

    fn check(&self, rule: &Rule) -> Result<(), String> {
        if rule.mode.is_some() && (rule.pattern.is_some() || rule.enforce.is_some()) {
            return Err("mode cannot stand beside pattern or enforce".to_owned());
        }
        let Some(pattern) = &rule.pattern else { return Ok(()) };
        match self.fill(pattern, "name", &mut Random::new(&[])) {
            Ok(_) => Ok(()),
            Err(word) => Err(format!("the pattern {pattern:?} holds ${{{word}}}, which stands for nothing")),
        }
    }

    /// What is proposed for a resource; `None` where the user said nothing of it. The same for the same seed.
    pub(crate) fn propose(&self, urn: &Urn, seed: &[u8]) -> Option<Proposal> {
        let rules = self.rules.as_ref()?;
        let token = TypeToken::new(urn.type_token());
        let package = rules.providers.get(token.package());
        let (rule, specific) = match package {
            Some(package) => (package.resources.get(token.as_str()).cloned().unwrap_or_else(|| package.own()), true),
            None => (rules.own(), false),
        };
        let name = urn.name().to_owned();
        Some(match (&rule.pattern, rule.mode) {
            (Some(pattern), _) => {
                let (name, random) = self.fill(pattern, urn.name(), &mut Random::new(seed)).ok()?;
                let enforce = rule.enforce.unwrap_or_default();
                let autonaming = if enforce { Autonaming::Enforce(name) } else { Autonaming::Propose(name) };
                Proposal { autonaming, fixed: !random, meant: enforce || specific }
            }
            (None, Some(Mode::Verbatim)) => {
                Proposal { autonaming: Autonaming::Enforce(name), fixed: true, meant: specific }
            }
            (None, Some(Mode::Disabled)) => Proposal { autonaming: Autonaming::Disable, fixed: true, meant: specific },
            (None, Some(Mode::Default) | None) => return None,
        })
    }

    /// The name that a pattern stands for, and whether anything in it is random. The word that stands for nothing is the
    /// error.
    fn fill(&self, pattern: &str, name: &str, random: &mut Random<'_>) -> Result<(String, bool), String> {
        let (mut filled, mut is_random, mut rest) = (String::new(), false, pattern);
        while let Some((before, after)) = rest.split_once("${") {
            let (word, left) = after.split_once('}').ok_or(after)?;
            filled.push_str(before);
            rest = left;
            if word == "name" {
                filled.push_str(name);
            } else if let Some(value) = self.words.get(word) {
                filled.push_str(value);
            } else {
                filled.push_str(&random.part(word).ok_or(word)?);
                is_random = true;
            }
        }
        filled.push_str(rest);
        Ok((filled, is_random))
    }
}

impl Rules {
    fn own(&self) -> Rule {
        Rule { mode: self.mode, pattern: self.pattern.clone(), enforce: self.enforce }
    }
}

impl OfPackage {
    fn own(&self) -> Rule {
        Rule { mode: self.mode, pattern: self.pattern.clone(), enforce: self.enforce }
    }
}

/// Bytes that follow from a seed: the hashes of the seed with a running number.
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

    /// One of these, all equally likely.
    fn one_of(&mut self, letters: &[u8]) -> char {
        let fair = 256 - 256 % letters.len();
        loop {
            let byte = usize::from(self.byte());
            if byte < fair {
                return char::from(letters[byte % letters.len()]);
            }
        }
    }

    /// What a random part such as `hex(4)` comes to.
    fn part(&mut self, word: &str) -> Option<String> {
        if word == "uuid" {
            let bytes: [u8; 16] = std::array::from_fn(|_| self.byte());
            return Some(uuid::Uuid::from_bytes(bytes).to_string());
        }
        let (kind, count) = word.strip_suffix(')')?.split_once('(')?;
        let letters = match kind {
            "hex" => HEX,
            "alphanum" => LETTERS_AND_DIGITS,
            "string" => LETTERS,
            "num" => DIGITS,
            _ => return None,
        };
        let count: usize = count.parse().ok().filter(|count| *count <= LONGEST)?;
        Some((0..count).map(|_| self.one_of(letters)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(json: &str) -> Result<Naming, String> {
        let entry = |namespace: &str, name: &str, value: &str| ConfigEntry {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
            secret: false,
        };
        let config = [entry("pulumi", "autonaming", json), entry("reef", "team", "blue"), entry("aws", "team", "red")];
        Naming::read(&config, "reef", "dev")
    }

    fn proposed(json: &str, token: &str) -> Option<Proposal> {
        let urn = Urn::new("dev", "reef", None, token, "web");
        naming(json).unwrap().propose(&urn, b"seed")
    }

    fn proposal(autonaming: Autonaming, fixed: bool, meant: bool) -> Option<Proposal> {
        Some(Proposal { autonaming, fixed, meant })
    }

    #[test]
    fn modes_are_those_of_pulumi() {
        assert_eq!(proposed(r#"{"mode": "default"}"#, "a:b:C"), None);
        let verbatim = proposal(Autonaming::Enforce("web".into()), true, false);
        assert_eq!(proposed(r#"{"mode": "verbatim"}"#, "a:b:C"), verbatim);
        assert_eq!(proposed(r#"{"mode": "disabled"}"#, "a:b:C"), proposal(Autonaming::Disable, true, false));
    }

    #[test]
    fn a_pattern_is_filled_with_what_is_known() {
        let json = r#"{"pattern": "${organization}-${project}-${stack}-${config.team}-${name}"}"#;
        let name = "organization-reef-dev-blue-web".to_owned();
        assert_eq!(proposed(json, "a:b:C"), proposal(Autonaming::Propose(name), true, false));
        let enforced = proposed(r#"{"pattern": "x-${name}", "enforce": true}"#, "a:b:C");
        assert_eq!(enforced, proposal(Autonaming::Enforce("x-web".into()), true, true));
    }

    #[test]
    fn random_parts_follow_from_the_seed_and_make_the_name_no_fixed_one() {
        let json = r#"{"pattern": "${name}-${hex(5)}-${alphanum(3)}-${string(2)}-${num(4)}-${uuid}"}"#;
        let Some(Proposal { autonaming: Autonaming::Propose(name), fixed: false, .. }) = proposed(json, "a:b:C") else {
            panic!("a random name is proposed");
        };
        let parts: Vec<&str> = name.splitn(6, '-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 5, 3, 2, 4, 36]);
        assert!(parts[1].bytes().all(|byte| HEX.contains(&byte)) && parts[4].bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!(proposed(json, "a:b:C").unwrap().autonaming, Autonaming::Propose(name.clone()));
        let urn = Urn::new("dev", "reef", None, "a:b:C", "web");
        assert_ne!(naming(json).unwrap().propose(&urn, b"other").unwrap().autonaming, Autonaming::Propose(name));
    }

    #[test]
    fn the_most_specific_rule_counts() {
        let json = r#"{"mode": "verbatim", "providers": {
            "aws": {"pattern": "aws-${name}", "resources": {"aws:s3:Bucket": {"mode": "disabled"}}}, "gcp": {}}}"#;
        assert_eq!(proposed(json, "a:b:C"), proposal(Autonaming::Enforce("web".into()), true, false));
        assert_eq!(proposed(json, "aws:ec2:Vpc"), proposal(Autonaming::Propose("aws-web".into()), true, true));
        assert_eq!(proposed(json, "aws:s3:Bucket"), proposal(Autonaming::Disable, true, true));
        assert_eq!(proposed(json, "gcp:a:B"), None, "what says nothing says default");
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (json, words) in [
            (r#"{"mode": "loud"}"#, "unknown variant"),
            (r#"{"modes": "verbatim"}"#, "unknown field"),
            (r#"{"mode": "verbatim", "pattern": "x"}"#, "beside pattern"),
            (r#"{"providers": {"aws": {"pattern": "${config.nothing}"}}}"#, "stands for nothing"),
            (r#"{"pattern": "${hex(9999)}"}"#, "stands for nothing"),
            (r#"{"pattern": "${name"}"#, "stands for nothing"),
            ("verbatim", "expected value"),
        ] {
            let error = naming(json).unwrap_err();
            assert!(error.contains(words), "{json}: {error}");
        }
        assert!(Naming::read(&[], "p", "s").unwrap().rules.is_none());
    }
}

//! The file of the policy that `SC_PLUGIN_POLICY` names (docs/plugins.md#policy).
//!
//! Mistakes in the file are errors, because a rule that is not understood would forbid nothing.

use std::path::{Path, PathBuf};

use bridge::message_text::MessageText;
use bridge::plugin::{PluginPolicy, PolicySetting};

use crate::diagnostics::{Code, Diagnostic, Sensitivity, SourceFiles, finish};
use crate::process_context::ProcessContext;
use crate::reader::{Reader, Section};
use crate::{files, yaml};

/// Environment variable with the path of the file.
const VARIABLE: &str = "SC_PLUGIN_POLICY";
const CODE: Code = Code("plugin-policy");
const KEYS: [&str; 9] =
    ["external", "names", "places", "require", "minimumAge", "allowUndated", "overrides", "builds", "unsandboxed"];
/// Only value of `require`.
const CHECKSUM: &str = "checksum";

/// Reads the policy that the environment names; without one, a policy that allows everything.
///
/// # Errors
/// The file cannot be read, or has mistakes.
pub fn read_plugin_policy(
    process_context: &ProcessContext,
    sources: &mut SourceFiles,
) -> Result<PluginPolicy, Vec<Diagnostic>> {
    match process_context.environment.get(VARIABLE).filter(|path| !path.is_empty()) {
        None => Ok(PluginPolicy::default()),
        Some(path) => read_file(Path::new(path), sources),
    }
}

fn read_file(path: &Path, sources: &mut SourceFiles) -> Result<PluginPolicy, Vec<Diagnostic>> {
    let shown = path.display().to_string();
    if !path.is_absolute() {
        let text = MessageText::new(format_args!("{VARIABLE} must be an absolute path, not {shown:?}"));
        let help = "a relative path would be another file in each folder, also one of a repository";
        return Err(vec![Diagnostic::error(CODE, None, text).help(help)]);
    }
    let text = files::read(path).map_err(|error| {
        error.not_utf8(CODE, &shown, Sensitivity::Public, sources).map_or_else(
            || {
                let text = format!("{VARIABLE} names {shown}, which cannot be read: {error}");
                vec![Diagnostic::error(CODE, None, text).help(format_args!(
                    "without its policy, no plugin is used: repair the file, or unset {VARIABLE} if this machine has no policy"
                ))]
            },
            |found| vec![found],
        )
    })?;
    let file = sources.add(&shown, &text, Sensitivity::Public);
    let document = yaml::parse(file, sources).map_err(|error| vec![*error])?;
    let mut found = Vec::new();
    if let Some(span) = document.second {
        let error = Diagnostic::error(CODE, span, "the file of a policy has one document");
        return Err(vec![error.help("put all rules above this line, and remove it")]);
    }
    let root = Reader::new(&mut found).root(&document, &KEYS);
    for mistake in std::mem::take(&mut found) {
        found.push(mistake.help("a policy is a mapping with each rule once, such as `external: false`"));
    }
    let policy = match root {
        None => PluginPolicy::default(),
        Some(section) => Policy { section, sources, found: &mut found }.read(path.to_owned()),
    };
    finish(&mut found);
    // A warning would be a rule that is not followed.
    if found.is_empty() { Ok(policy) } else { Err(found) }
}

/// Mapping of a policy. Its methods report mistakes.
struct Policy<'p> {
    section: Section<'p>,
    sources: &'p SourceFiles,
    found: &'p mut Vec<Diagnostic>,
}

impl Policy<'_> {
    fn read(mut self, file: PathBuf) -> PluginPolicy {
        let section = self.section;
        self.reader().reject_unknown_keys(section, &KEYS, "a policy");
        self.reject_empty_rules();
        let policy = PluginPolicy {
            file,
            external: self.switch("external"),
            names: self.list("names", "write the names of packages, such as `random`"),
            places: self.list(
                "places",
                "write places such as `github.com/pulumi/*`, `git.corp.example/**` and `local`, where `*` stands for one part and `**` \
                 for any number",
            ),
            requires_checksum: self.require(),
            minimum_age: self.minimum_age(),
            allows_undated: self.switch("allowUndated"),
            overrides: self.switch("overrides"),
            builds: self.switch("builds"),
            unsandboxed: self.switch("unsandboxed"),
        };
        if policy.allows_undated.is_some() && policy.minimum_age.is_none() && section.get("minimumAge").is_none() {
            self.report(
                "allowUndated",
                "`allowUndated` has no effect without `minimumAge`",
                "add `minimumAge`, or remove it",
            );
        }
        policy
    }

    fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.found)
    }

    /// Reports known keys without a value: such a rule would allow everything.
    fn reject_empty_rules(&mut self) {
        for entry in &self.section.mapping.0 {
            if KEYS.contains(&entry.key.as_str()) && entry.value.is_null() {
                let text = MessageText::new(format_args!("`{}` has no value", entry.key));
                let error = Diagnostic::error(CODE, entry.key_span, text);
                self.found
                    .push(error.help("write its value, or remove the key: a rule that is missing allows everything"));
            }
        }
    }

    /// Returns a value with the line of its key.
    fn setting<T>(&self, key: &str, value: T) -> Option<PolicySetting<T>> {
        let line = self.sources.position(self.section.mapping.entry(key)?.key_span).line;
        Some(PolicySetting { value, line })
    }

    fn switch(&mut self, key: &str) -> Option<PolicySetting<bool>> {
        let section = self.section;
        let value =
            self.with_help(&format!("write `{key}: true` or `{key}: false`"), |reader| reader.boolean(section, key));
        self.setting(key, value?)
    }

    /// Calls a function of the reader, and adds a hint to the mistakes that it reports.
    fn with_help<T>(&mut self, help: &str, read: impl FnOnce(&mut Reader<'_>) -> T) -> T {
        let known = self.found.len();
        let value = read(&mut self.reader());
        for mistake in self.found.drain(known..).collect::<Vec<_>>() {
            self.found.push(mistake.help(help));
        }
        value
    }

    /// Returns the values of a list. Reports those that cannot be read.
    fn list<T, C>(&mut self, key: &str, help: &str) -> Option<PolicySetting<C>>
    where
        T: std::str::FromStr<Err: std::error::Error + 'static>,
        C: FromIterator<T>,
    {
        let section = self.section;
        section.get(key)?;
        let values = self.with_help(help, |reader| reader.list(section, key));
        for empty in values.iter().filter(|value| value.is_null()) {
            self.found.push(Diagnostic::error(CODE, empty.span, format!("an item of `{key}` is empty")).help(help));
        }
        let items = values.iter().filter(|value| !value.is_null());
        let texts: Vec<_> = self.with_help(help, |reader| {
            items.filter_map(|item| Some((reader.text(item, &format!("an item of `{key}`"))?, item.span))).collect()
        });
        let mut read = |(text, span): (String, _)| {
            let parsed: Result<T, _> = text.parse();
            parsed
                .map_err(|error| self.found.push(Diagnostic::error(CODE, span, MessageText::of(&error)).help(help)))
                .ok()
        };
        let values = texts.into_iter().filter_map(&mut read).collect();
        self.setting(key, values)
    }

    fn require(&mut self) -> Option<PolicySetting<()>> {
        let section = self.section;
        let help = format!("write `require: {CHECKSUM}`, the only value");
        let (text, span) = self.with_help(&help, |reader| reader.text_at(section, "require"))?;
        if text != CHECKSUM {
            let error = Diagnostic::error(CODE, span, format_args!("`require` cannot be {text:?}"));
            self.found.push(error.help(help));
        }
        self.setting("require", ())
    }

    fn minimum_age(&mut self) -> Option<PolicySetting<std::time::Duration>> {
        let section = self.section;
        let help = "write a duration such as `72h`";
        let (text, span) = self.with_help(help, |reader| reader.text_at(section, "minimumAge"))?;
        let parsed = pulumi_proto::duration::parse(&text);
        if parsed.is_none() {
            let error = Diagnostic::error(CODE, span, format_args!("invalid `minimumAge` {text:?}"));
            self.found.push(error.help(help));
        }
        self.setting("minimumAge", parsed?)
    }

    fn report(&mut self, key: &str, text: &str, help: &str) {
        let span = self.section.mapping.entry(key).map(|entry| entry.key_span);
        self.found.push(Diagnostic::error(CODE, span, text).help(help));
    }
}

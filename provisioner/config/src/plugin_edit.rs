//! Edit of a `server.yaml`: a further entry of `plugins`. Everything else stays as it is written: comments, order, spelling.

use bridge::yaml;
use serde_yaml::Value;

/// Section that gets the entry.
const SECTION: &str = "plugins";
/// Depth of entries in a section without any.
const USUAL_INDENT: usize = 2;

/// Entry of `plugins` with a release of a repository.
#[derive(Clone, Copy, Debug)]
pub struct NewPlugin<'a> {
    /// Name of the plugin.
    pub name: &'a str,
    /// `owner/name`, or an https URL.
    pub repository: &'a str,
    /// Wanted version.
    pub version: &'a str,
}

/// Reason why an entry cannot be added.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginEditError {
    /// The file has a plugin with this name.
    #[error("it declares a plugin {0} already")]
    Declared(String),
    /// The file is not YAML, or is written in a way to which lines cannot be added.
    #[error("`plugins` is not written as a list of lines; add this entry by hand:\n{0}")]
    Layout(String),
}

impl NewPlugin<'_> {
    /// Returns the lines of the entry.
    fn lines(&self, indent: usize) -> String {
        let Self { name, repository, version } = self;
        let space = " ".repeat(indent);
        let version = serde_json::Value::from(*version);
        format!(
            "{space}- name: {name}\n{space}  source:\n{space}    type: github-release\n{space}    repository: {repository}\n\
             {space}    version: {version}\n"
        )
    }

    /// Returns the text of a `server.yaml` with the entry as the last one of `plugins`.
    ///
    /// # Errors
    /// [`PluginEditError`].
    pub fn add_to(&self, text: &str) -> Result<String, PluginEditError> {
        let layout = || PluginEditError::Layout(self.lines(USUAL_INDENT));
        let before = parse(text).ok_or_else(layout)?;
        let declared = before.get(SECTION).and_then(Value::as_sequence).cloned().unwrap_or_default();
        if declared.iter().any(|plugin| plugin.get("name").and_then(Value::as_str) == Some(self.name)) {
            return Err(PluginEditError::Declared(self.name.to_owned()));
        }
        let edited = self.insert(text);
        // The lines of the section may be part of something else, such as a block of text.
        let after = parse(&edited).ok_or_else(layout)?;
        let without_section = |value: &Value| {
            let mut rest = value.as_mapping().cloned().unwrap_or_default();
            rest.remove(SECTION);
            rest
        };
        let added = after.get(SECTION).and_then(Value::as_sequence).cloned().unwrap_or_default();
        let is_last = added.last().and_then(|plugin| plugin.get("name")).and_then(Value::as_str) == Some(self.name);
        let is_complete = added.len() == declared.len() + 1 && added.starts_with(&declared) && is_last;
        if is_complete && without_section(&before) == without_section(&after) { Ok(edited) } else { Err(layout()) }
    }

    fn insert(&self, text: &str) -> String {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let Some(head) = lines.iter().position(|line| is_head(line)) else {
            let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return format!("{text}{separator}{SECTION}:\n{}", self.lines(USUAL_INDENT));
        };
        let is_of_section = |line: &&&str| line.starts_with([' ', '-', '#', '\n', '\r', '\t']);
        let section: Vec<&str> = lines[head + 1..].iter().take_while(is_of_section).copied().collect();
        // Blank lines and comments at its end belong to what follows.
        let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let length = section.iter().rposition(is_content).map_or(0, |last| last + 1);
        let dash = section[..length].iter().find(|line| line.trim_start().starts_with('-'));
        let indent = dash.map_or(USUAL_INDENT, |line| line.len() - line.trim_start().len());
        let (before, after) = (lines[..head].concat(), lines[head + 1 + length..].concat());
        let mut content = section[..length].concat();
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        let comment =
            lines[head].split_once('#').map_or(String::new(), |(_, comment)| format!(" #{}", comment.trim_end()));
        format!("{before}{SECTION}:{comment}\n{content}{}{after}", self.lines(indent))
    }
}

/// Returns whether a line begins the section: `plugins:` with nothing but an empty list.
fn is_head(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(SECTION).and_then(|rest| rest.strip_prefix(':')) else { return false };
    let value = rest.split_once('#').map_or(rest, |(value, _)| value).trim();
    matches!(value, "" | "[]" | "~" | "null")
}

fn parse(text: &str) -> Option<Value> {
    let value: Value = yaml::from_str(text).ok()?;
    (value.is_mapping() || value.is_null()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REEF: NewPlugin<'_> = NewPlugin { name: "reef", repository: "acme/reef", version: "^1.2" };

    #[test]
    fn entry_is_the_last_one_and_everything_else_stays() {
        let entry = |indent: usize| REEF.lines(indent);
        for (text, expected) in [
            (String::new(), format!("plugins:\n{}", entry(2))),
            ("schemaVersion: 1.0".into(), format!("schemaVersion: 1.0\nplugins:\n{}", entry(2))),
            (
                "plugins: # ours\n  - name: a # first\n    source: { type: local, path: a }\n\n# about outputs\noutputs: {}\n".into(),
                format!(
                    "plugins: # ours\n  - name: a # first\n    source: {{ type: local, path: a }}\n{}\n# about outputs\noutputs: {{}}\n",
                    entry(2)
                ),
            ),
            (
                "plugins:\n- { name: a, source: { type: local, path: a } }\noutputs: {}\n".into(),
                format!("plugins:\n- {{ name: a, source: {{ type: local, path: a }} }}\n{}outputs: {{}}\n", entry(0)),
            ),
            ("plugins: []\noutputs: {}\n".into(), format!("plugins:\n{}outputs: {{}}\n", entry(2))),
            ("outputs: {}\nplugins:\n".into(), format!("outputs: {{}}\nplugins:\n{}", entry(2))),
        ] {
            assert_eq!(REEF.add_to(&text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn file_with_another_layout_is_left_alone() {
        let layout = Err(PluginEditError::Layout(REEF.lines(2)));
        for text in [
            "plugins: [{ name: a }]\n",
            "a: |\n plugins:\n b\nplugins: { a: 1 }\n",
            "- a\n",
            "{ plugins: [] }\n",
            "a: [\n",
        ] {
            assert_eq!(REEF.add_to(text), layout, "{text}");
        }
        let declared = "plugins:\n  - name: reef\n    source: { type: local, path: a }\n";
        assert_eq!(REEF.add_to(declared), Err(PluginEditError::Declared("reef".into())));
    }
}

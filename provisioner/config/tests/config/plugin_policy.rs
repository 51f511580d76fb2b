//! The file of a policy: its rules, and mistakes in it.

use std::fs;
use std::time::Duration;

use bridge::plugin::{PluginPolicy, PolicySetting};
use config::diagnostics::{SourceFiles, Style, render};
use config::{ProcessContext, read_plugin_policy};

const VARIABLE: &str = "SC_PLUGIN_POLICY";

fn with_variable(value: &str) -> Result<PluginPolicy, String> {
    let environment = [(VARIABLE.to_owned(), value.to_owned())].into();
    let context = ProcessContext { environment, now: jiff::Timestamp::UNIX_EPOCH, time_zone: None, account: None };
    let mut sources = SourceFiles::default();
    let read = read_plugin_policy(&context, &mut sources);
    read.map_err(|found| {
        let rendered: Vec<String> = found.iter().map(|found| render(found, &sources, Style::Plain)).collect();
        rendered.join("\n")
    })
}

/// Reads a policy with these bytes. Its path is shown as `policy.yaml`.
fn read(text: impl AsRef<[u8]>) -> Result<PluginPolicy, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    fs::write(&path, text).unwrap();
    let shown = format!("{}/", folder.path().display());
    with_variable(path.to_str().unwrap()).map_err(|error| error.replace(&shown, ""))
}

fn mistakes(text: &str) -> String {
    read(text).unwrap_err()
}

/// Shows: plugins.md#policy "an empty file forbids nothing"
#[test]
fn policy_without_rules_allows_everything() {
    assert_eq!(with_variable(""), Ok(PluginPolicy::default()));
    for text in ["", "# rules\n", "---\n", "{}\n", "null\n"] {
        let read = read(text).unwrap();
        assert_eq!(PluginPolicy { file: Default::default(), ..read }, PluginPolicy::default(), "{text}");
    }
}

#[test]
fn rules_have_their_lines() {
    let policy = read(
        "external: true
names: [random, reef]
places:
  - github.com/pulumi/*
  - local

require: checksum
minimumAge: 72h
allowUndated: false
overrides: no
builds: false
unsandboxed: false
",
    )
    .unwrap();
    let set = |value, line| Some(PolicySetting { value, line });
    assert!(policy.file.ends_with("policy.yaml"));
    assert_eq!(policy.external, set(true, 1));
    assert_eq!(policy.names.map(|names| (names.value.len(), names.line)), Some((2, 2)));
    let places = policy.places.unwrap();
    let patterns: Vec<String> = places.value.iter().map(ToString::to_string).collect();
    assert_eq!((patterns, places.line), (vec!["github.com/pulumi/*".to_owned(), "local".to_owned()], 3));
    assert_eq!(policy.requires_checksum.map(|rule| rule.line), Some(7));
    assert_eq!(policy.minimum_age, Some(PolicySetting { value: Duration::from_secs(259_200), line: 8 }));
    assert_eq!(policy.allows_undated, set(false, 9));
    assert_eq!(policy.overrides, set(false, 10));
    assert_eq!((policy.builds, policy.unsandboxed), (set(false, 11), set(false, 12)));
    assert_eq!(read("names: []\n").unwrap().names.map(|names| names.value.len()), Some(0));
}

/// Shows: plugins.md#policy "An unknown key and a wrong value are errors"
#[test]
fn mistakes_are_errors_at_their_positions() {
    insta::assert_snapshot!(mistakes("extenal: false\nnames: random\nplaces: [https://github.com/x/*, 'a/x*', Local]\nrequire: checksums\n"), @r#"
    error[unknown-key]: a policy has no key `extenal`
     --> policy.yaml:1:1
      |
    1 | extenal: false
      | ^^^^^^^
      |
      = hint: did you mean `external`?
      = hint: the keys are external, names, places, require, minimumAge, allowUndated, overrides, builds, unsandboxed
    error[wrong-kind]: `names` must be a list
     --> policy.yaml:2:8
      |
    2 | names: random
      |        ^^^^^^ this is a text
      |
      = hint: write the names of packages, such as `random`
    error[plugin-policy]: invalid place "https://github.com/x/*": a place has neither a scheme nor a user
     --> policy.yaml:3:10
      |
    3 | places: [https://github.com/x/*, 'a/x*', Local]
      |          ^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: write places such as `github.com/pulumi/*`, `git.corp.example/**` and `local`, where `*` stands for one part and `**` for any number
    error[plugin-policy]: invalid place "a/x*": `*` and `**` are whole parts between slashes
     --> policy.yaml:3:34
      |
    3 | places: [https://github.com/x/*, 'a/x*', Local]
      |                                  ^^^^^^
      |
      = hint: write places such as `github.com/pulumi/*`, `git.corp.example/**` and `local`, where `*` stands for one part and `**` for any number
    error[plugin-policy]: invalid place "Local": a place is `local`, `installed`, or a host and a path such as github.com/pulumi/*
     --> policy.yaml:3:42
      |
    3 | places: [https://github.com/x/*, 'a/x*', Local]
      |                                          ^^^^^
      |
      = hint: write places such as `github.com/pulumi/*`, `git.corp.example/**` and `local`, where `*` stands for one part and `**` for any number
    error[plugin-policy]: `require` cannot be "checksums"
     --> policy.yaml:4:10
      |
    4 | require: checksums
      |          ^^^^^^^^^
      |
      = hint: write `require: checksum`, the only value
    "#);
    insta::assert_snapshot!(mistakes("external: maybe\nminimumAge: soon\nallowUndated: [true]\nbuilds:\nnames: [Random, ~, [a]]\n"), @r#"
    error[wrong-kind]: expected `true` or `false`, found a text
     --> policy.yaml:1:11
      |
    1 | external: maybe
      |           ^^^^^ this is a text
      |
      = hint: write `external: true` or `external: false`
    error[plugin-policy]: invalid `minimumAge` "soon"
     --> policy.yaml:2:13
      |
    2 | minimumAge: soon
      |             ^^^^
      |
      = hint: write a duration such as `72h`
    error[wrong-kind]: expected `true` or `false`, found a list
     --> policy.yaml:3:15
      |
    3 | allowUndated: [true]
      |               ^^^^^^ this is a list
      |
      = hint: write `allowUndated: true` or `allowUndated: false`
    error[plugin-policy]: `builds` has no value
     --> policy.yaml:4:1
      |
    4 | builds:
      | ^^^^^^
      |
      = hint: write its value, or remove the key: a rule that is missing allows everything
    error[plugin-policy]: invalid name "Random" (expected lower-case letters, digits and hyphens, a letter first)
     --> policy.yaml:5:9
      |
    5 | names: [Random, ~, [a]]
      |         ^^^^^^
      |
      = hint: write the names of packages, such as `random`
    error[plugin-policy]: an item of `names` is empty
     --> policy.yaml:5:17
      |
    5 | names: [Random, ~, [a]]
      |                 ^
      |
      = hint: write the names of packages, such as `random`
    error[wrong-kind]: an item of `names` must be a text
     --> policy.yaml:5:20
      |
    5 | names: [Random, ~, [a]]
      |                    ^^^ this is a list
      |
      = hint: write the names of packages, such as `random`
    "#);
    insta::assert_snapshot!(mistakes("builds: false\nbuilds: true\n"), @"
    error[duplicate-key]: the key `builds` is written twice
     --> policy.yaml:2:1
      |
    1 | builds: false
      | ------ first written here
    2 | builds: true
      | ^^^^^^
      |
      = hint: a policy is a mapping with each rule once, such as `external: false`
    ");
    insta::assert_snapshot!(mistakes("allowUndated: true\n"), @"
    error[plugin-policy]: `allowUndated` has no effect without `minimumAge`
     --> policy.yaml:1:1
      |
    1 | allowUndated: true
      | ^^^^^^^^^^^^
      |
      = hint: add `minimumAge`, or remove it
    ");
    insta::assert_snapshot!(mistakes("- external: false\n"), @"
    error[wrong-kind]: the file must be a mapping
     --> policy.yaml:1:1
      |
    1 | - external: false
      | ^^^^^^^^^^^^^^^^^ this is a list
      |
      = hint: a policy is a mapping with each rule once, such as `external: false`
    ");
    insta::assert_snapshot!(mistakes("external: [\n"), @"
    error[yaml-syntax]: this is not YAML: unclosed bracket '['
     --> policy.yaml:1:11
      |
    1 | external: [
      |           ^
      |
      = hint: close the list with `]`
    ");
    insta::assert_snapshot!(mistakes("external: true\n---\nexternal: false\n"), @"
    error[plugin-policy]: the file of a policy has one document
     --> policy.yaml:2:1
      |
    2 | ---
      | ^^^
      |
      = hint: put all rules above this line, and remove it
    ");
    insta::assert_snapshot!(read(b"external: false # \xff\n").unwrap_err(), @"
    error[plugin-policy]: the file is not UTF-8
     --> policy.yaml:1:19
      |
    1 | external: false # �
      |                   ^
      |
      = hint: save the file with the encoding UTF-8
    ");
}

/// Shows: plugins.md#policy "A file that is missing, cannot be read or has mistakes is an error, never no policy."
#[test]
fn file_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap().to_owned();
    let shown = |error: Result<PluginPolicy, String>| error.unwrap_err().replace(&root, "[root]");
    insta::assert_snapshot!(shown(with_variable(&format!("{root}/policy.yaml"))), @"
    error[plugin-policy]: SC_PLUGIN_POLICY names [root]/policy.yaml, which cannot be read: No such file or directory (os error 2)
     |
     = hint: without its policy, no plugin is used: repair the file, or unset SC_PLUGIN_POLICY if this machine has no policy
    ");
    insta::assert_snapshot!(shown(with_variable(&root)), @"
    error[plugin-policy]: SC_PLUGIN_POLICY names [root], which cannot be read: it is a folder, not a regular file
     |
     = hint: without its policy, no plugin is used: repair the file, or unset SC_PLUGIN_POLICY if this machine has no policy
    ");
    insta::assert_snapshot!(shown(with_variable("policy.yaml")), @r#"
    error[plugin-policy]: SC_PLUGIN_POLICY must be an absolute path, not "policy.yaml"
     |
     = hint: a relative path would be another file in each folder, also one of a repository
    "#);
}

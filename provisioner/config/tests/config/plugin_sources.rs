//! The keys of `source` in an entry of `plugins`, by its type.

use bridge::plugin::{PluginSource, SourceKind, WantedVersion};

use crate::repository::Files;

/// Keys of `source` besides `type`, each with a value and the types that have it.
const KEYS: [(&str, &str, &[SourceKind]); 13] = [
    ("path", "o/n", &[SourceKind::Local, SourceKind::GithubRelease, SourceKind::Git, SourceKind::Installed]),
    ("repository", "o/n", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("version", "v1.0.0", &[SourceKind::GithubRelease, SourceKind::Git, SourceKind::Installed]),
    ("ref", "v1.0.0", &[SourceKind::GithubRelease, SourceKind::Git, SourceKind::Installed]),
    ("minimumAge", "1h", &[SourceKind::GithubRelease]),
    ("platform", "auto", &[SourceKind::GithubRelease, SourceKind::Git]),
    (
        "checksum",
        "3d7db37d08f9140fd09f12b9621cd0954b6d56a9d2f357fb2c7f5d62636d2fd1",
        &[SourceKind::Local, SourceKind::GithubRelease, SourceKind::Git, SourceKind::Installed],
    ),
    ("asset", "a.tar.gz", &[SourceKind::GithubRelease]),
    ("token", "t", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("apiUrl", "https://git.example/api", &[SourceKind::GithubRelease]),
    ("subdir", "a/b", &[SourceKind::Git]),
    ("build", "true", &[SourceKind::Local, SourceKind::GithubRelease, SourceKind::Git]),
    ("insecure", "true", &[SourceKind::GithubRelease, SourceKind::Git]),
];

/// Returns the keys that a type requires.
fn required(kind: SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Local | SourceKind::Installed => &["path"],
        SourceKind::GithubRelease | SourceKind::Git => &["repository", "version"],
    }
}

/// Returns the messages about a plugin with a source of a type, with its required keys and another one.
fn messages(kind: SourceKind, key: &str, enabled: bool) -> String {
    let keys = KEYS.iter().filter(|(name, ..)| *name == key || required(kind).contains(name));
    let keys: String = keys.map(|(name, value, _)| format!("      {name}: {value}\n")).collect();
    let plugin = format!("plugins:\n  - name: a\n    enabled: {enabled}\n    source:\n      type: {kind}\n");
    Files::sections(&(plugin + &keys)).messages()
}

/// Shows: server-yaml.md#plugins "A key of `source` that its type does not have, such as `subdir` of a `local` plugin,
///   is an error, also with `enabled: false`."
#[test]
fn each_type_of_source_accepts_its_own_keys_only() {
    for kind in SourceKind::all() {
        for (key, value, kinds) in KEYS {
            for enabled in [true, false] {
                let found = messages(kind, key, enabled);
                if kinds.contains(&kind) {
                    assert_eq!(found, "", "{kind} {key}");
                    continue;
                }
                let others: Vec<String> = kinds.iter().map(|other| format!("type \"{other}\"")).collect();
                let lines: Vec<&str> = found.lines().map(str::trim_end).collect();
                assert_eq!(
                    lines[0],
                    format!("error[unknown-key]: `source` of type \"{kind}\" has no key `{key}`"),
                    "{enabled}"
                );
                assert!(lines[3].ends_with(&format!("|       {key}: {value}")), "{found}");
                assert!(found.contains(&format!("hint: it is a key of {}\n", others.join(" and of "))), "{found}");
            }
        }
    }
}

#[test]
fn aliases_of_a_type_may_be_its_only_spelling() {
    for (source, kind) in [
        ("type: local, path: p", SourceKind::Local),
        ("type: github-release, path: o/n, ref: v1", SourceKind::GithubRelease),
        ("type: git, path: p, ref: main", SourceKind::Git),
    ] {
        let stack = Files::sections(&format!("plugins: [{{ name: a, source: {{ {source} }} }}]\n")).stack();
        assert_eq!(stack.plugins[0].plugin.source.kind(), kind);
    }
}

#[test]
fn key_of_another_type_is_reported_with_the_types_that_have_it() {
    let messages = Files::sections(
        "
plugins:
  - name: a
    enabled: false
    source:
      type: local
      path: p
      ref: main
      subdir: s
  - name: b
    source: { type: git, repository: r, version: v1, apiUrl: x, subdri: s }
  - name: c
    source: { type: gitt, cheksum: x, subdir: s }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unknown-key]: `source` of type "local" has no key `ref`
      --> .sc/stacks/s/server.yaml:13:7
       |
    13 |       ref: main
       |       ^^^
       |
       = hint: it is a key of type "github-release" and of type "git" and of type "installed"
       = hint: the keys are type, path, checksum, build

    error[unknown-key]: `source` of type "local" has no key `subdir`
      --> .sc/stacks/s/server.yaml:14:7
       |
    14 |       subdir: s
       |       ^^^^^^
       |
       = hint: it is a key of type "git"
       = hint: the keys are type, path, checksum, build

    error[unknown-key]: `source` of type "git" has no key `apiUrl`
      --> .sc/stacks/s/server.yaml:16:54
       |
    16 |     source: { type: git, repository: r, version: v1, apiUrl: x, subdri: s }
       |                                                      ^^^^^^
       |
       = hint: it is a key of type "github-release"
       = hint: the keys are type, repository, path, version, ref, platform, checksum, token, subdir, build, insecure

    error[unknown-key]: `source` of type "git" has no key `subdri`
      --> .sc/stacks/s/server.yaml:16:65
       |
    16 |     source: { type: git, repository: r, version: v1, apiUrl: x, subdri: s }
       |                                                                 ^^^^^^
       |
       = hint: did you mean `subdir`?
       = hint: the keys are type, repository, path, version, ref, platform, checksum, token, subdir, build, insecure

    error[plugin]: plugin "c": unknown source type "gitt"
      --> .sc/stacks/s/server.yaml:18:21
       |
    18 |     source: { type: gitt, cheksum: x, subdir: s }
       |                     ^^^^
       |
       = hint: did you mean `git`?
       = hint: the types are local, github-release, git, installed

    error[unknown-key]: `source` has no key `cheksum`
      --> .sc/stacks/s/server.yaml:18:27
       |
    18 |     source: { type: gitt, cheksum: x, subdir: s }
       |                           ^^^^^^^
       |
       = hint: did you mean `checksum`?
       = hint: the keys are type, path, checksum, build, repository, version, ref, minimumAge, platform, asset, token, apiUrl, insecure, subdir
    "#);
}

/// Shows: plugins.md#versions "A range or `latest` cannot have a `checksum`"
/// Shows: plugins.md#versions "A range that begins with `>` has to be quoted"
#[test]
fn version_that_cannot_be_read_is_reported_at_its_place() {
    let digest = "0".repeat(64);
    let messages = Files::sections(&format!(
        "
plugins:
  - {{ name: a, source: {{ type: github-release, repository: o/n, version: ^1.x.y }} }}
  - {{ name: b, source: {{ type: git, repository: r, version: '>=1 <2' }} }}
  - {{ name: c, source: {{ type: github-release, repository: o/n, version: ^1, checksum: 'sha256:{digest}' }} }}
  - {{ name: d, source: {{ type: github-release, repository: o/n, version: ^1, minimumAge: soon }} }}
  - name: e
    source:
      type: github-release
      version: >1
      repository: o/n
"
    ))
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[plugin]: plugin "a": invalid version range "^1.x.y": unexpected character after wildcard in version req
     --> .sc/stacks/s/server.yaml:8:74
      |
    8 |   - { name: a, source: { type: github-release, repository: o/n, version: ^1.x.y } }
      |                                                                          ^^^^^^
      |
      = hint: a range is written as in Cargo: `^1.2`, `~1.4`, `=1.2.3`, `">=1, <2"`

    error[plugin]: plugin "b": invalid version range ">=1 <2": expected comma after major version number, found '<'
     --> .sc/stacks/s/server.yaml:9:61
      |
    9 |   - { name: b, source: { type: git, repository: r, version: '>=1 <2' } }
      |                                                             ^^^^^^^^
      |
      = hint: a range is written as in Cargo: `^1.2`, `~1.4`, `=1.2.3`, `">=1, <2"`

    error[plugin]: plugin "c": source.version `^1` cannot have a checksum: name the version that has this checksum
      --> .sc/stacks/s/server.yaml:10:74
       |
    10 |   - { name: c, source: { type: github-release, repository: o/n, version: ^1, checksum: 'sha256:0000000000000000000000000000000000000...
       |                                                                          ^^

    error[plugin]: plugin "d": invalid source.minimumAge "soon"
      --> .sc/stacks/s/server.yaml:11:90
       |
    11 |   - { name: d, source: { type: github-release, repository: o/n, version: ^1, minimumAge: soon } }
       |                                                                                          ^^^^
       |
       = hint: write a duration such as `24h`; `0s` accepts each release

    error[plugin]: plugin "e": source.version is required for source type "github-release"
      --> .sc/stacks/s/server.yaml:14:7
       |
    14 |       type: github-release
       |       ^^^^^^^^^^^^^^^^^^^^
       |
       = hint: a range that begins with `>` is put in quotes: `">1"`
    "#);
    let unquoted = Files::sections("plugins:\n  - name: a\n    source:\n      version: >=1, <2\n").messages();
    insta::assert_snapshot!(unquoted, @r#"
    error[yaml-syntax]: this is not YAML: while scanning a block scalar, did not find expected comment or line break
     --> .sc/stacks/s/server.yaml:9:16
      |
    9 |       version: >=1, <2
      |                ^
      |
      = hint: put a value that begins with `>` in quotes, as in `">=1, <2"`; without quotes it is a block of text
    "#);
}

/// Shows: server-yaml.md#plugins "age of a release from which on ranges and `latest` accept it"
#[test]
fn version_is_read_as_it_is_written() {
    for (written, wanted, age) in [
        ("version: 0.27", WantedVersion::Named("0.27".to_owned()), 86_400),
        ("version: 1.10", WantedVersion::Named("1.10".to_owned()), 86_400),
        ("version: 1.x", WantedVersion::Named("1.x".to_owned()), 86_400),
        ("version: latest, minimumAge: 0s", WantedVersion::Latest, 0),
        ("version: ^1.2, minimumAge: 36h", WantedVersion::of_release("^1.2").unwrap(), 129_600),
        ("ref: '>=1, <2'", WantedVersion::of_release(">=1, <2").unwrap(), 86_400),
    ] {
        let text =
            format!("plugins: [{{ name: a, source: {{ type: github-release, repository: o/n, {written} }} }}]\n");
        let stack = Files::sections(&text).stack();
        let PluginSource::GithubRelease(release) = &stack.plugins[0].plugin.source else { panic!() };
        assert_eq!((&release.version, release.minimum_age.as_secs()), (&wanted, age), "{written}");
    }
}

/// Shows: server-yaml.md#options "must be that of the plugin; of a range"
#[test]
fn expected_version_of_a_plugin_has_to_be_possible() {
    let messages = |version: &str, expected: &str| {
        let plugins =
            format!("plugins: [{{ name: a, source: {{ type: git, repository: r, version: '{version}' }} }}]\n");
        let resources = format!(
            "resources: {{ resources: {{ prod: {{ resources: {{ r: {{ type: 'a:b:C', options: {{ version: {expected} }} }} }} }} }} }}\n"
        );
        Files::sections(&(plugins + &resources)).messages()
    };
    for (version, expected) in [("v1.2.3", "1.2.3"), ("^1", "1.9.0")] {
        assert_eq!(messages(version, expected), "", "{version} {expected}");
    }
    for (version, expected, has) in [
        ("v1.2.3", "1.2.4", "the plugin is declared with version 1.2.3"),
        ("^1", "2.0.0", "the plugin is declared with the range ^1"),
        ("main", "2.0.0", "the plugin is declared without a version"),
    ] {
        let found = messages(version, expected);
        assert!(found.contains(has), "{found}");
    }
}

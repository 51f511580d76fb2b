//! The keys of `source` in an entry of `plugins`, by its type.

use bridge::plugin::SourceKind;

use crate::repository::Files;

/// Keys of `source` besides `type`, each with a value and the types that have it.
const KEYS: [(&str, &str, &[SourceKind]); 11] = [
    ("path", "o/n", &[SourceKind::Local, SourceKind::GithubRelease, SourceKind::Git]),
    ("repository", "o/n", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("version", "v1.0.0", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("ref", "v1.0.0", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("platform", "auto", &[SourceKind::GithubRelease, SourceKind::Git]),
    (
        "checksum",
        "3d7db37d08f9140fd09f12b9621cd0954b6d56a9d2f357fb2c7f5d62636d2fd1",
        &[SourceKind::Local, SourceKind::GithubRelease, SourceKind::Git],
    ),
    ("asset", "a.tar.gz", &[SourceKind::GithubRelease]),
    ("token", "t", &[SourceKind::GithubRelease, SourceKind::Git]),
    ("apiUrl", "https://git.example/api", &[SourceKind::GithubRelease]),
    ("subdir", "a/b", &[SourceKind::Git]),
    ("insecure", "true", &[SourceKind::GithubRelease, SourceKind::Git]),
];

/// Returns the keys that a type requires.
fn required(kind: SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Local => &["path"],
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
       = hint: it is a key of type "github-release" and of type "git"
       = hint: the keys are type, path, checksum

    error[unknown-key]: `source` of type "local" has no key `subdir`
      --> .sc/stacks/s/server.yaml:14:7
       |
    14 |       subdir: s
       |       ^^^^^^
       |
       = hint: it is a key of type "git"
       = hint: the keys are type, path, checksum

    error[unknown-key]: `source` of type "git" has no key `apiUrl`
      --> .sc/stacks/s/server.yaml:16:54
       |
    16 |     source: { type: git, repository: r, version: v1, apiUrl: x, subdri: s }
       |                                                      ^^^^^^
       |
       = hint: it is a key of type "github-release"
       = hint: the keys are type, repository, path, version, ref, platform, checksum, token, subdir, insecure

    error[unknown-key]: `source` of type "git" has no key `subdri`
      --> .sc/stacks/s/server.yaml:16:65
       |
    16 |     source: { type: git, repository: r, version: v1, apiUrl: x, subdri: s }
       |                                                                 ^^^^^^
       |
       = hint: did you mean `subdir`?
       = hint: the keys are type, repository, path, version, ref, platform, checksum, token, subdir, insecure

    error[plugin]: plugin "c": unknown source type "gitt"
      --> .sc/stacks/s/server.yaml:18:21
       |
    18 |     source: { type: gitt, cheksum: x, subdir: s }
       |                     ^^^^
       |
       = hint: did you mean `git`?
       = hint: the types are local, github-release, git

    error[unknown-key]: `source` has no key `cheksum`
      --> .sc/stacks/s/server.yaml:18:27
       |
    18 |     source: { type: gitt, cheksum: x, subdir: s }
       |                           ^^^^^^^
       |
       = hint: did you mean `checksum`?
       = hint: the keys are type, path, checksum, repository, version, ref, platform, asset, token, apiUrl, insecure, subdir
    "#);
}

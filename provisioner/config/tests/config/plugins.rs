//! The grammar of `plugins` (docs/spec/simple-container.md#2.5).

use bridge::plugin::{Checksum, Dialect, GoPlugin, GoPluginTls, PluginSource, Register};
use config::types::TypeTable;
use pulumi_proto::property::PropertyValue;

use crate::repository::Files;

const DIGEST: &str = "3d7db37d08f9140fd09f12b9621cd0954b6d56a9d2f357fb2c7f5d62636d2fd1";

/// Shows: server-yaml.md#plugins "for the other types an alias of `repository`"
/// Shows: server-yaml.md#plugins "A range and `latest` cannot have a `checksum`. Alias: `ref`"
#[test]
fn source_key_synonyms_declare_same_plugin() {
    let declared = |source: &str| {
        let stack = Files::sections(&format!("plugins: [{{ name: acme, source: {{ {source} }} }}]\n")).stack();
        stack.plugins[0].plugin.source.clone()
    };
    let a = declared(&format!("type: github-release, path: o/n, ref: v1.0.0, checksum: '{DIGEST}'"));
    let b = declared(&format!(
        "type: github-release, repository: o/n, version: v1.0.0, platform: auto, checksum: 'sha256:{DIGEST}'"
    ));
    assert_eq!(a, b);
    let PluginSource::GithubRelease(release) = a else { panic!() };
    assert_eq!((release.repository.as_str(), release.version.as_str()), ("o/n", "v1.0.0"));
    assert!(matches!(release.checksum, Some(Checksum::One(digest)) if digest.to_hex() == DIGEST));
    assert!(
        declared("type: git, path: 'https://x.example/a.git', repository: 'https://x.example/a.git', ref: main")
            .stated_version()
            .is_none()
    );
}

#[test]
fn go_plugin_is_declared_with_its_cookie_versions_and_tls() {
    let declared = |entry: &str| {
        let entry = format!("plugins: [{{ name: acme, source: {{ type: local, path: p }}{entry} }}]\n");
        Files::sections(&entry).stack().plugins[0].plugin.dialect.clone()
    };
    assert_eq!(declared(""), Dialect::Pulumi);
    assert_eq!(declared(", protocol: pulumi"), Dialect::Pulumi);
    assert_eq!(declared(", protocol: go-plugin"), Dialect::GoPlugin(GoPlugin::default()));
    let settings = "goPlugin: { cookieKey: K, cookieValue: v, versions: [5, 6], tls: none }";
    let expected = GoPlugin {
        cookie_key: "K".to_owned(),
        cookie_value: "v".to_owned(),
        versions: vec![5, 6],
        tls: GoPluginTls::None,
    };
    assert_eq!(declared(&format!(", protocol: go-plugin, {settings}")), Dialect::GoPlugin(expected));
}

#[test]
fn plugin_that_registers_itself_is_declared_with_its_start_attempts() {
    let sections = |entry: &str| {
        Files::sections(&format!("plugins: [{{ name: a, source: {{ type: local, path: p }}, {entry} }}]\n"))
    };
    let declared = |entry: &str| sections(entry).stack().plugins[0].plugin.dialect.clone();
    assert_eq!(declared("protocol: register"), Dialect::Register(Register { start_attempts: 5 }));
    let once = declared("protocol: register, startAttempts: 1");
    assert_eq!(once, Dialect::Register(Register { start_attempts: 1 }));
    let table = [
        ("startAttempts: 2", "startAttempts has no effect without `protocol: register`"),
        ("protocol: register, goPlugin: {}", "goPlugin has no effect without `protocol: go-plugin`"),
        ("protocol: register, startAttempts: 0", "invalid startAttempts \"0\""),
        ("protocol: register, startAttempts: 6", "write a number from 1 to 5"),
        ("protocol: register, startAttempts: x", "invalid startAttempts \"x\""),
        ("protocol: registers", "the protocols are pulumi, go-plugin, register"),
    ];
    for (entry, expected) in table {
        let messages = sections(entry).messages();
        assert!(messages.contains(expected) && messages.contains("server.yaml:"), "{messages}");
    }
}

/// Shows: server-yaml.md#plugins "secrets that Initialize sends: `referenced`, those that `config` uses"
#[test]
fn config_is_typed_and_only_referenced_secrets_are_sent() {
    let stack = Files::sections(
        "
plugins:
  - name: acme
    source: { type: local, path: p, checksum: }
    config: { n: 24, t: '24', off: no thanks, list: [1, null, true], gone: null, deep: { s: 'x${secret:a}' } }
    passEnv: [HTTPS_PROXY, ~]
    startTimeout: 1m30s
    package: other
",
    )
    .secrets("auth: { acme: { type: pulumi-token, config: { credentials: c } } }\nvalues: { a: '1', b: '2' }")
    .stack();
    let declaration = &stack.plugins[0];
    assert_eq!((declaration.name(), declaration.package()), ("acme", "other"));
    assert_eq!(declaration.plugin.pass_env, ["HTTPS_PROXY"]);
    assert_eq!(declaration.plugin.start_timeout.as_secs(), 90);
    assert!(declaration.plugin.enabled);
    assert_eq!(declaration.secrets.secrets.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(declaration.secrets.auth.keys().collect::<Vec<_>>(), ["acme"]);
    let config = &declaration.plugin.config;
    assert_eq!(config.keys().collect::<Vec<_>>(), ["deep", "list", "n", "off", "t"]);
    assert_eq!(config["n"], PropertyValue::Number(24.0));
    assert_eq!(config["t"], PropertyValue::from("24"));
    assert_eq!(config["list"], vec![1.0.into(), PropertyValue::Null, true.into()].into());
    assert!(config["deep"].as_map().unwrap()["s"].is_secret());
}

#[test]
fn each_error_in_plugin_declaration_is_reported() {
    let messages = Files::sections(
        "
plugins:
  - source: { type: local, path: p }
  - name: Bad_Name
    source: { type: local, path: p }
  - name: pulumi
    source: { type: local, path: p }
  - name: a
  - name: a
    source: { type: gitt }
  - name: b
    source: { type: git, path: x, repository: y, ref: main }
  - name: c
    source: { type: github-release, path: o/n }
  - name: d
    source: { type: github-release, version: v1, platform: linux-mips, checksum: abc }
  - name: e
    source: { type: local, cheksum: x }
    confg: {}
  - name: f
    source: { type: local, path: p, version: v1, checksum: { linux-riscv: x } }
    startTimeout: 5
    initSecrets: some
    keep: always
  - name: g
    source: { type: github-release, path: 'not a repository', version: v1 }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[plugin]: plugin #1: name is required
     --> .sc/stacks/s/server.yaml:8:5
      |
    8 |   - source: { type: local, path: p }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[plugin]: plugin "Bad_Name": invalid name
     --> .sc/stacks/s/server.yaml:9:11
      |
    9 |   - name: Bad_Name
      |           ^^^^^^^^
      |
      = hint: a name begins with a lower-case letter; lower-case letters, digits and `-` follow

    error[plugin]: plugin "pulumi": name is reserved
      --> .sc/stacks/s/server.yaml:11:11
       |
    11 |   - name: pulumi
       |           ^^^^^^

    error[plugin]: plugin "a": source.type is required
      --> .sc/stacks/s/server.yaml:13:5
       |
    13 |   - name: a
       |     ^^^^^^^
       |
       = hint: the types are local, github-release, git, installed

    error[plugin]: plugin "a" is declared more than once
      --> .sc/stacks/s/server.yaml:14:11
       |
    13 |   - name: a
       |           - first declared here
    14 |   - name: a
       |           ^

    error[plugin]: plugin "a": unknown source type "gitt"
      --> .sc/stacks/s/server.yaml:15:21
       |
    15 |     source: { type: gitt }
       |                     ^^^^
       |
       = hint: did you mean `git`?
       = hint: the types are local, github-release, git, installed

    error[plugin]: plugin "b": source.path and source.repository disagree
      --> .sc/stacks/s/server.yaml:17:47
       |
    17 |     source: { type: git, path: x, repository: y, ref: main }
       |                                               ^

    error[plugin]: plugin "c": source.version is required for source type "github-release"
      --> .sc/stacks/s/server.yaml:19:13
       |
    19 |     source: { type: github-release, path: o/n }
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[plugin]: plugin "d": source.repository is required for source type "github-release"
      --> .sc/stacks/s/server.yaml:21:13
       |
    21 |     source: { type: github-release, version: v1, platform: linux-mips, checksum: abc }
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[plugin]: plugin "d": unsupported platform "linux-mips"
      --> .sc/stacks/s/server.yaml:21:60
       |
    21 |     source: { type: github-release, version: v1, platform: linux-mips, checksum: abc }
       |                                                            ^^^^^^^^^^

    error[plugin]: plugin "d": invalid checksum
      --> .sc/stacks/s/server.yaml:21:82
       |
    21 |     source: { type: github-release, version: v1, platform: linux-mips, checksum: abc }
       |                                                                                  ^^^
       |
       = hint: a checksum is `sha256:` and 64 hexadecimal digits

    error[plugin]: plugin "e": source.path is required for source type "local"
      --> .sc/stacks/s/server.yaml:23:13
       |
    23 |     source: { type: local, cheksum: x }
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error[unknown-key]: `source` of type "local" has no key `cheksum`
      --> .sc/stacks/s/server.yaml:23:28
       |
    23 |     source: { type: local, cheksum: x }
       |                            ^^^^^^^
       |
       = hint: did you mean `checksum`?
       = hint: the keys are type, path, checksum, build

    error[unknown-key]: a plugin has no key `confg`
      --> .sc/stacks/s/server.yaml:24:5
       |
    24 |     confg: {}
       |     ^^^^^
       |
       = hint: did you mean `config`?
       = hint: the keys are name, enabled, source, parameters, config, passEnv, initSecrets, startTimeout, keep, retry, sandbox, readable, writable, ports, package, protocol, goPlugin, startAttempts

    error[unknown-key]: `source` of type "local" has no key `version`
      --> .sc/stacks/s/server.yaml:26:37
       |
    26 |     source: { type: local, path: p, version: v1, checksum: { linux-riscv: x } }
       |                                     ^^^^^^^
       |
       = hint: it is a key of type "github-release" and of type "git" and of type "installed"
       = hint: the keys are type, path, checksum, build

    error[plugin]: plugin "f": unsupported platform "linux-riscv"
      --> .sc/stacks/s/server.yaml:26:62
       |
    26 |     source: { type: local, path: p, version: v1, checksum: { linux-riscv: x } }
       |                                                              ^^^^^^^^^^^

    error[plugin]: plugin "f": invalid startTimeout "5"
      --> .sc/stacks/s/server.yaml:27:19
       |
    27 |     startTimeout: 5
       |                   ^
       |
       = hint: write a duration such as `90s` or `2m`

    error[plugin]: plugin "f": unknown initSecrets "some"
      --> .sc/stacks/s/server.yaml:28:18
       |
    28 |     initSecrets: some
       |                  ^^^^
       |
       = hint: use `referenced` (the secrets that `config` references) or `all`

    error[plugin]: plugin "f": unknown keep "always"
      --> .sc/stacks/s/server.yaml:29:11
       |
    29 |     keep: always
       |           ^^^^^^
       |
       = hint: use `run` (one process for all phases of a run) or `never` (one for each phase)

    error[plugin]: plugin "g": source.repository must be `owner/name` or an https URL of a repository
      --> .sc/stacks/s/server.yaml:31:43
       |
    31 |     source: { type: github-release, path: 'not a repository', version: v1 }
       |                                           ^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn source_accepts_secret_only_in_token() {
    let files = |source: &str| {
        Files::sections(&format!(
            "plugins: [{{ name: a, source: {{ type: github-release, version: v1, {source} }} }}]\n"
        ))
        .secrets("values: { t: hush }")
    };
    let stack = files("path: o/n, token: '${secret:t}'").stack();
    let PluginSource::GithubRelease(release) = &stack.plugins[0].plugin.source else { panic!() };
    assert_eq!(release.token.as_ref().unwrap().expose(), "hush");
    let PluginSource::GithubRelease(release) =
        &files("path: o/n, token: '${env:NONE:}'").stack().plugins[0].plugin.source
    else {
        panic!()
    };
    assert!(release.token.is_none());
    let messages = files("path: 'o/${secret:t}', platform: '${secret:t}'").messages();
    assert!(!messages.contains("hush"));
    insta::assert_snapshot!(messages, @r"
    error[misplaced-secret]: `path` cannot be a secret
     --> .sc/stacks/s/server.yaml:6:73
      |
    6 | plugins: [{ name: a, source: { type: github-release, version: v1, path: 'o/${secret:t}', platform: '${secret:t}' } }]
      |                                                                         ^^^^^^^^^^^^^^^

    error[misplaced-secret]: `platform` cannot be a secret
     --> .sc/stacks/s/server.yaml:6:100
      |
    6 | plugins: [{ name: a, source: { type: github-release, version: v1, path: 'o/${secret:t}', platform: '${secret:t}' } }]
      |                                                                                                    ^^^^^^^^^^^^^
    ");
}

#[test]
fn plugins_must_be_a_list() {
    insta::assert_snapshot!(Files::sections("plugins: { name: a }\n").messages(), @r"
    error[plugin]: plugins must be a list
     --> .sc/stacks/s/server.yaml:6:10
      |
    6 | plugins: { name: a }
      |          ^^^^^^^^^^^
      |
      = hint: write `plugins:` and below it `- name: …` for each plugin
    ");
}

/// Shows: server-yaml.md#plugins "belongs to the enabled plugin of that package"
/// Shows: server-yaml.md#plugins "Every other type is a core type."
#[test]
fn types_are_routed_to_plugins_or_core_types_or_rejected() {
    let messages = Files::sections(
        "
plugins:
  - { name: datadoc, source: { type: local, path: p } }
  - { name: off, enabled: false, source: { type: local, path: p } }
  - { name: one, package: twin, source: { type: local, path: p } }
  - { name: two, package: twin, source: { type: local, path: p } }
resources:
  resources:
    e:
      resources:
        a: { type: 'datadog:monitors:Monitor' }
        b: { type: 'off:m:T' }
        c: { type: 'datadoc::T' }
        d: { type: 'datadoc:a:b:T' }
        f: { type: 's3-bukket' }
        g: { type: gcp-redis }
        h: { type: datadoc }
        i: {}
        j: { type: 'twin:m:T' }
        k: { type: 'twin:m:T', options: { provider: tow } }
        l: { type: 'twin:m:T', options: { provider: two } }
        m: { type: 'kube:m:T' }
        n: { type: 'datadoc:T' }
        o: { type: 'pulumi:providers:datadoc' }
",
    )
    .types(TypeTable::default().with_unsupported(["s3-bucket", "gcp-redis"]))
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unknown-resource-type]: unknown resource type "datadog:monitors:Monitor": no enabled plugin serves the package "datadog"
      --> .sc/stacks/s/server.yaml:16:20
       |
    16 |         a: { type: 'datadog:monitors:Monitor' }
       |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `datadoc:monitors:Monitor`?

    error[unknown-resource-type]: unknown resource type "off:m:T": no enabled plugin serves the package "off"
      --> .sc/stacks/s/server.yaml:17:20
       |
     9 |   - { name: off, enabled: false, source: { type: local, path: p } }
       |             --- this plugin is disabled
    ...
    17 |         b: { type: 'off:m:T' }
       |                    ^^^^^^^^^
       |
       = hint: set `enabled: true` to use it

    error[unknown-resource-type]: invalid plugin resource type "datadoc::T"
      --> .sc/stacks/s/server.yaml:18:20
       |
    18 |         c: { type: 'datadoc::T' }
       |                    ^^^^^^^^^^^^
       |
       = hint: the type of a plugin is `plugin:module:Type` or `plugin:Type`

    error[unknown-resource-type]: invalid plugin resource type "datadoc:a:b:T"
      --> .sc/stacks/s/server.yaml:19:20
       |
    19 |         d: { type: 'datadoc:a:b:T' }
       |                    ^^^^^^^^^^^^^^^
       |
       = hint: the type of a plugin is `plugin:module:Type` or `plugin:Type`

    error[unknown-resource-type]: unknown resource type "s3-bukket"
      --> .sc/stacks/s/server.yaml:20:20
       |
    20 |         f: { type: 's3-bukket' }
       |                    ^^^^^^^^^^^
       |
       = note: unknown type "s3-bukket" for resource "f" of env "e"
       = hint: did you mean `s3-bucket`?

    error[unknown-resource-type]: the core type "gcp-redis" is not supported yet
      --> .sc/stacks/s/server.yaml:21:20
       |
    21 |         g: { type: gcp-redis }
       |                    ^^^^^^^^^
       |
       = hint: a plugin can serve its resources: declare it in `plugins` and use `plugin:module:Type`

    error[unknown-resource-type]: unknown resource type "datadoc"
      --> .sc/stacks/s/server.yaml:22:20
       |
    22 |         h: { type: datadoc }
       |                    ^^^^^^^
       |
       = note: unknown type "datadoc" for resource "h" of env "e"
       = hint: write the whole type, `datadoc:module:Type` or `datadoc:Type`

    error[unknown-resource-type]: unknown resource type ""
      --> .sc/stacks/s/server.yaml:23:9
       |
    23 |         i: {}
       |         ^
       |
       = note: unknown type "" for resource "i" of env "e"
       = hint: add `type`: a core type, or `plugin:module:Type`

    error[unknown-resource-type]: several plugins serve "twin:m:T": one, two
      --> .sc/stacks/s/server.yaml:24:20
       |
    24 |         j: { type: 'twin:m:T' }
       |                    ^^^^^^^^^^
       |
       = hint: select one with `options.provider`

    error[unknown-provider]: the provider "tow" is not an enabled plugin of package "twin"
      --> .sc/stacks/s/server.yaml:25:53
       |
    25 |         k: { type: 'twin:m:T', options: { provider: tow } }
       |                                                     ^^^
       |
       = hint: did you mean `two`?
       = hint: it has one, two

    error[unknown-resource-type]: unknown resource type "kube:m:T": no enabled plugin serves the package "kube"
      --> .sc/stacks/s/server.yaml:27:20
       |
    27 |         m: { type: 'kube:m:T' }
       |                    ^^^^^^^^^^
       |
       = hint: declare a plugin with `name: kube` in `plugins`

    error[unknown-resource-type]: a resource cannot have the provider type "pulumi:providers:datadoc"
      --> .sc/stacks/s/server.yaml:29:20
       |
    29 |         o: { type: 'pulumi:providers:datadoc' }
       |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: each plugin declares one provider: declare a plugin with `package: datadoc` in `plugins`, and select it with `options.provider`
    "#);
}

/// Shows: plugins.md#addresses-without-encryption "refused unless the source has a `checksum` or `insecure: true`"
#[test]
fn address_without_encryption_needs_a_checksum_or_consent() {
    let messages = Files::sections(
        "
plugins:
  - name: a
    source: { type: git, repository: 'http://git.example/a', ref: main }
  - name: b
    source: { type: github-release, repository: o/n, version: v1, apiUrl: 'http://git.example/api', insecure: false }
  - name: c
    source: { type: git, repository: 'https://git.example/a', ref: main, insecure: maybe }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[plugin]: plugin "a": the address is not encrypted, and no checksum is declared
     --> .sc/stacks/s/server.yaml:9:38
      |
    9 |     source: { type: git, repository: 'http://git.example/a', ref: main }
      |                                      ^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: use an https address, or declare `checksum`; `insecure: true` accepts the address as it is

    error[plugin]: plugin "b": the address is not encrypted, and no checksum is declared
      --> .sc/stacks/s/server.yaml:11:75
       |
    11 |     source: { type: github-release, repository: o/n, version: v1, apiUrl: 'http://git.example/api', insecure: false }
       |                                                                           ^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: use an https address, or declare `checksum`; `insecure: true` accepts the address as it is

    error[wrong-kind]: expected `true` or `false`, found a text
      --> .sc/stacks/s/server.yaml:13:84
       |
    13 |     source: { type: git, repository: 'https://git.example/a', ref: main, insecure: maybe }
       |                                                                                    ^^^^^ this is a text
    "#);
    let accepted = Files::sections(&format!(
        "
plugins:
  - name: a
    source: {{ type: git, repository: 'http://git.example/a', ref: main, checksum: '{DIGEST}' }}
  - name: b
    source: {{ type: git, repository: 'http://git.example/a', ref: main, insecure: true }}
  - name: c
    source: {{ type: git, repository: 'http://127.0.0.1:8/a', ref: main }}
  - name: d
    source: {{ type: github-release, repository: o/n, version: v1, apiUrl: 'http://git.example/api', insecure: true }}
"
    ));
    assert_eq!(accepted.stack().plugins.len(), 4);
}

use super::*;
use crate::plugin::{Build, Checksum, GitSource, GithubReleaseSource, InstalledSource, LocalSource, Sha256Digest};

fn set<T>(value: T) -> Option<PolicySetting<T>> {
    Some(PolicySetting { value, line: 7 })
}

fn named(name: &str, source: PluginSource) -> PluginConfig {
    PluginConfig::new(name.parse().unwrap(), source)
}

fn local() -> PluginConfig {
    named("reef", PluginSource::Local(LocalSource::new("reef")))
}

fn release(repository: &str, version: &str) -> PluginConfig {
    let version = WantedVersion::of_release(version).unwrap();
    named("reef", PluginSource::GithubRelease(GithubReleaseSource::new(repository.into(), version)))
}

fn git(url: &str, version: &str) -> PluginConfig {
    let version = WantedVersion::of_git(version).unwrap();
    let (subdir, platform, checksum, token) = (PathBuf::new(), None, None, None);
    named(
        "reef",
        PluginSource::Git(GitSource {
            url: url.into(),
            version,
            subdir,
            platform,
            checksum,
            token,
            insecure: false,
            build: None,
        }),
    )
}

fn pinned() -> PluginConfig {
    let mut plugin = release("acme/reef", "v1.0.0");
    if let PluginSource::GithubRelease(source) = &mut plugin.source {
        source.checksum = Some(Checksum::One(Sha256Digest::from_bytes([7; 32])));
    }
    plugin
}

fn core_package() -> PluginConfig {
    let declared_by = DeclaredBy::Program { repository: "pulumi/pulumi-aws".into() };
    PluginConfig { declared_by, ..named("aws", release("pulumi/pulumi-aws", "v6.0.0").source) }
}

fn policy(change: impl FnOnce(&mut PluginPolicy)) -> PluginPolicy {
    let mut policy = PluginPolicy { file: "/etc/policy.yaml".into(), ..PluginPolicy::default() };
    change(&mut policy);
    policy
}

fn places(patterns: &[&str]) -> PluginPolicy {
    policy(|policy| policy.places = set(patterns.iter().map(|pattern| pattern.parse().unwrap()).collect()))
}

/// Checks the rule that refuses each use of a plugin.
fn check(policy: &PluginPolicy, table: &[(PluginConfig, PluginUse, Option<PolicyRule>)]) {
    for (plugin, usage, expected) in table {
        let found = policy.check(plugin, *usage);
        assert_eq!(found.map_err(|refusal| refusal.rule).err(), *expected, "{usage:?} of {plugin:?}");
    }
}

use PluginUse::{Attached, Locked, Override, Package};

/// Shows: plugins.md#policy "an empty file forbids nothing"
#[test]
fn empty_policy_allows_everything() {
    let unsandboxed = PluginConfig { sandbox: Sandbox::None, ..local() };
    for plugin in [local(), release("a/b", "latest"), git("ssh://git@h/../x", "^1"), core_package(), unsandboxed] {
        for usage in [Package, Locked, Override, Attached] {
            assert_eq!(PluginPolicy::default().check(&plugin, usage), Ok(()), "{plugin:?}");
        }
        assert_eq!(PluginPolicy::default().check_build(&plugin), Ok(()));
    }
    assert_eq!(PluginPolicy::default().release_age(), None);
}

/// Shows: plugins.md#policy "packages of core types are not concerned"
#[test]
fn external_concerns_plugins_of_stacks_only() {
    let refused = Some(PolicyRule::External);
    check(
        &policy(|policy| policy.external = set(false)),
        &[
            (local(), Package, refused),
            (pinned(), Package, refused),
            (local(), Override, refused),
            (core_package(), Package, None),
            (local(), Attached, None),
        ],
    );
    check(&policy(|policy| policy.external = set(true)), &[(local(), Package, None)]);
}

/// Shows: plugins.md#policy "`package` of a plugin, which is its `name` by default"
#[test]
fn names_are_those_of_packages_and_apply_to_each_use() {
    let other = PluginConfig { name: "reef-eu".parse().unwrap(), ..local() };
    let disguised = PluginConfig { package: "evil".parse().unwrap(), ..local() };
    let refused = Some(PolicyRule::Names);
    let names = |names: &[&str]| {
        let names = names.iter().map(|name| name.parse().unwrap()).collect();
        policy(|policy| policy.names = set(names))
    };
    check(
        &names(&["reef"]),
        &[
            (local(), Package, None),
            (local(), Override, None),
            (local(), Attached, None),
            (other, Package, None),
            (disguised.clone(), Package, refused),
            (disguised.clone(), Override, refused),
            (disguised, Attached, refused),
            (core_package(), Package, refused),
            (core_package(), Attached, refused),
        ],
    );
    check(&names(&["aws"]), &[(core_package(), Package, None)]);
    check(&names(&[]), &[(local(), Package, refused)]);
}

#[test]
fn places_apply_to_packages_and_to_overrides_and_not_to_processes() {
    let refused = Some(PolicyRule::Places);
    check(
        &places(&["github.com/pulumi/*", "git.corp.example/**"]),
        &[
            (release("pulumi/pulumi-reef", "v1.0.0"), Package, None),
            (core_package(), Package, None),
            (git("git@git.corp.example:team/reef", "main"), Package, None),
            (release("acme/reef", "v1.0.0"), Package, refused),
            (git("https://git.example/reef", "main"), Package, refused),
            (git("/srv/reef", "main"), Package, refused),
            (git("/srv/reef", "main"), Locked, refused),
            (local(), Package, refused),
            (local(), Override, refused),
            (release("pulumi/pulumi-reef", "v1.0.0"), Override, refused),
            (local(), Attached, None),
        ],
    );
    check(
        &places(&["local"]),
        &[
            (local(), Package, None),
            (git("/srv/reef", "main"), Package, None),
            (release("acme/reef", "v1.0.0"), Override, None),
            (core_package(), Package, refused),
        ],
    );
    check(&places(&[]), &[(local(), Package, refused)]);
}

#[test]
fn required_checksum_is_that_of_the_declaration() {
    let refused = Some(PolicyRule::Require);
    check(
        &policy(|policy| policy.requires_checksum = set(())),
        &[
            (pinned(), Package, None),
            (release("acme/reef", "^1"), Package, refused),
            (local(), Package, refused),
            (pinned(), Override, refused),
            (core_package(), Package, None),
            (local(), Attached, None),
        ],
    );
}

/// Shows: plugins.md#policy "ranges over git are refused then, except where they are locked, unless `allowUndated: true`"
#[test]
fn minimum_age_refuses_ranges_over_places_without_times() {
    let refused = Some(PolicyRule::MinimumAge);
    let aged = |allows: Option<bool>| {
        policy(|policy| {
            policy.minimum_age = set(Duration::from_secs(259_200));
            policy.allows_undated = allows.and_then(set);
        })
    };
    for allows in [None, Some(false)] {
        check(
            &aged(allows),
            &[
                (git("https://git.example/reef", "^1"), Package, refused),
                (git("/srv/reef", "^1"), Package, refused),
                (git("/srv/reef", "^1"), Locked, None),
                (git("https://git.example/reef", "v1.0.0"), Package, None),
                (release("acme/reef", "^1"), Package, None),
                (release("acme/reef", "latest"), Package, None),
                (local(), Package, None),
            ],
        );
        let age = PolicyAge { minimum: Duration::from_secs(259_200), allows_undated: false };
        assert_eq!(aged(allows).release_age(), Some(age));
    }
    check(&aged(Some(true)), &[(git("https://git.example/reef", "^1"), Package, None)]);
    assert!(aged(Some(true)).release_age().unwrap().allows_undated);
    assert_eq!(policy(|policy| policy.allows_undated = set(false)).release_age(), None);
}

/// Shows: plugins.md#policy "the higher one of the declaration and the policy counts"
#[test]
fn higher_age_counts() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let wanted = || WantedVersion::of_release("^1").unwrap();
    for (declared, of_policy, expected, rule) in [
        (24, None, 24, crate::plugin::AgeRule::Declaration),
        (24, Some(72), 72, crate::plugin::AgeRule::Policy),
        (0, Some(1), 1, crate::plugin::AgeRule::Policy),
        (72, Some(24), 72, crate::plugin::AgeRule::Declaration),
        (24, Some(24), 24, crate::plugin::AgeRule::Declaration),
    ] {
        let source = GithubReleaseSource {
            minimum_age: hours(declared),
            policy_age: of_policy.map(|age| PolicyAge { minimum: hours(age), allows_undated: false }),
            ..GithubReleaseSource::new("acme/reef".into(), wanted())
        };
        assert_eq!(source.age_rule(), (hours(expected), rule), "{declared} {of_policy:?}");
    }
}

/// Shows: plugins.md#policy "Without this key, an override is a `local` plugin without a `checksum`"
#[test]
fn override_is_a_local_plugin_unless_the_policy_allows_overrides() {
    let refused = Some(PolicyRule::Overrides);
    check(
        &policy(|policy| policy.overrides = set(false)),
        &[
            (local(), Override, refused),
            (pinned(), Override, refused),
            (local(), Package, None),
            (local(), Attached, None),
        ],
    );
    let allowing = policy(|policy| {
        policy.overrides = set(true);
        policy.places = set(Vec::new());
        policy.requires_checksum = set(());
    });
    check(&allowing, &[(local(), Override, None), (pinned(), Package, Some(PolicyRule::Places))]);
    assert!(allowing.allows_overrides_everywhere());
    assert!(!PluginPolicy::default().allows_overrides_everywhere());
    assert!(!policy(|policy| policy.overrides = set(false)).allows_overrides_everywhere());
}

#[test]
fn builds_are_asked_about_where_one_begins() {
    let refusing = policy(|policy| policy.builds = set(false));
    check(&refusing, &[(local(), Package, None)]);
    assert_eq!(refusing.check_build(&local()).unwrap_err().rule, PolicyRule::Builds);
    assert_eq!(policy(|policy| policy.builds = set(true)).check_build(&local()), Ok(()));
    let built =
        named("reef", PluginSource::Local(LocalSource { build: Some(Build::ByRuntime), ..LocalSource::new("reef") }));
    check(&refusing, &[(built.clone(), Package, Some(PolicyRule::Builds)), (built, Override, None)]);
}

#[test]
fn folders_of_plugins_are_a_place_of_their_own() {
    let installed = || {
        let source = InstalledSource { path: "acme/reef".into(), version: None, checksum: None };
        named("reef", PluginSource::Installed(source))
    };
    check(&places(&["installed"]), &[(installed(), Package, None), (local(), Package, Some(PolicyRule::Places))]);
    check(&places(&["local"]), &[(installed(), Package, Some(PolicyRule::Places))]);
    check(&places(&["**"]), &[(installed(), Package, None)]);
}

#[test]
fn sandbox_none_is_refused_for_what_is_started() {
    let none = || PluginConfig { sandbox: Sandbox::None, ..local() };
    let strict = PluginConfig { sandbox: Sandbox::Strict(Default::default()), ..local() };
    let refused = Some(PolicyRule::Unsandboxed);
    check(
        &policy(|policy| policy.unsandboxed = set(false)),
        &[
            (none(), Package, refused),
            (none(), Override, refused),
            (none(), Attached, None),
            (local(), Package, None),
            (strict, Package, None),
        ],
    );
}

/// Shows: plugins.md#policy "A refusal names the rule, its line, and what the plugin has"
#[test]
fn refusal_names_the_rule_its_line_and_what_the_plugin_has() {
    let refusal =
        places(&["github.com/pulumi/*", "local"]).check(&release("acme/reef", "v1.0.0"), Package).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the policy refuses it: its place is github.com/acme/reef (`places` in /etc/policy.yaml, line 7)"
    );
    assert_eq!(refusal.plugin.as_str(), "reef");
    let hint = |refusal: PolicyRefusal| refusal.hint().unwrap().to_string();
    assert_eq!(hint(refusal), "the rule allows: github.com/pulumi/*, local");
    assert_eq!(hint(places(&[]).check(&local(), Package).unwrap_err()), "the rule has an empty list: it allows none");
    let secret = git("https://me:word@git.example/a/../reef", "main");
    assert!(!places(&["local"]).check(&secret, Package).unwrap_err().to_string().contains("word"));
}

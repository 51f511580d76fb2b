//! References from one environment of a stack to resources of another one.

use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]\n";

fn files(environments: &str) -> Files {
    Files::sections(&format!("{PLUGIN}resources:\n  resources:\n{environments}"))
}

/// Shows: server-yaml.md#placeholders "`${resource:ENV/KEY.PATH}` reads a resource of another environment of the stack"
#[test]
fn config_and_trigger_read_resources_of_other_environments() {
    let files = files(
        "    prod: { resources: { web: { type: 'p:m:T', forEach: [eu, us] }, off: { type: 'p:m:T', enabled: false } } }
    test:
      resources:
        a:
          type: 'p:m:T'
          config: { one: '${resource:prod/web[eu].ip}', all: '${resource:prod/web[*].ip}', off: '${resource:prod/off.id:none}', own: '${resource:test/b.id}' }
          options: { replacementTrigger: '${resource:prod/web[us].id}' }
        b: { type: 'p:m:T' }
",
    );
    assert_eq!(files.messages(), "");
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let (environment, a) = stack.resources().find(|(_, resource)| resource.key == "a").unwrap();
    let names: Vec<String> =
        config::graph::dependencies(&environment.name, a).map(|(name, _)| format!("{name:?}")).collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    Resource("prod", "web-eu")
    Resource("prod", "web-eu")
    Resource("prod", "web-us")
    Resource("prod", "off")
    Resource("test", "b")
    Resource("prod", "web-us")
    "#);
}

#[test]
fn mistakes_name_the_environment() {
    let files = files(
        "    prod: { resources: { web: { type: 'p:m:T' }, off: { type: 'p:m:T', enabled: false } } }
    test:
      resources:
        a: { type: 'p:m:T', config: { v: '${resource:prdo/web.id}' } }
        b: { type: 'p:m:T', config: { v: '${resource:prod/wbe.id}', w: '${resource:prod/off.id}' } }
        c: { type: 'p:m:T', config: { v: '${resource:web.id}' }, options: { dependsOn: [web] } }
",
    );
    insta::assert_snapshot!(files.messages(), @r#"
    error[unknown-resource]: env "prdo" referenced by "a" is not defined
      --> .sc/stacks/s/server.yaml:12:43
       |
    12 |         a: { type: 'p:m:T', config: { v: '${resource:prdo/web.id}' } }
       |                                           ^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `prod`?

    error[unknown-resource]: resource "wbe" referenced by "b" is not defined in env "prod"
      --> .sc/stacks/s/server.yaml:13:43
       |
    13 |         b: { type: 'p:m:T', config: { v: '${resource:prod/wbe.id}', w: '${resource:prod/off.id}' } }
       |                                           ^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `web`?

    error[switched-off]: resource "off" is switched off (`enabled`), and the reference has no default
      --> .sc/stacks/s/server.yaml:13:73
       |
    13 |         b: { type: 'p:m:T', config: { v: '${resource:prod/wbe.id}', w: '${resource:prod/off.id}' } }
       |                                                                         ^^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: write `${resource:prod/off.id:DEFAULT}`

    error[unknown-resource]: resource "web" referenced by "c" is not defined in env "test"
      --> .sc/stacks/s/server.yaml:14:43
       |
    14 |         c: { type: 'p:m:T', config: { v: '${resource:web.id}' }, options: { dependsOn: [web] } }
       |                                           ^^^^^^^^^^^^^^^^^^
       |
       = hint: another environment has it: write `${resource:prod/web.id}`

    error[unknown-resource]: resource "web" referenced by "c" is not defined in env "test"
      --> .sc/stacks/s/server.yaml:14:89
       |
    14 |         c: { type: 'p:m:T', config: { v: '${resource:web.id}' }, options: { dependsOn: [web] } }
       |                                                                                         ^^^
       |
       = hint: another environment has it, and options name resources of their own only
    "#);
}

/// Shows: server-yaml.md#placeholders "a cycle is a mistake, also over several environments"
#[test]
fn cycle_over_several_environments_is_a_mistake() {
    let files = files(
        "    prod: { resources: { web: { type: 'p:m:T', config: { v: '${resource:test/a.id}' } } } }
    test:
      resources:
        a: { type: 'p:m:T', options: { dependsOn: [b] } }
        b: { type: 'p:m:T', config: { v: '${resource:prod/web.id}' } }
",
    );
    insta::assert_snapshot!(files.messages(), @"
    error[dependency-cycle]: resource dependency cycle: prod/web -> test/a -> test/b -> prod/web
      --> .sc/stacks/s/server.yaml:13:43
       |
    13 |         b: { type: 'p:m:T', config: { v: '${resource:prod/web.id}' } }
       |                                           ^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

//! Plugins that register themselves: `protocol: register`.

use crate::repository::{Repository, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a.txt, content: hello } }";

/// Shows: hosting.md#start-protocols "TCP of the loopback interface, or a Unix socket | Cancel, SIGTERM, SIGKILL"
#[test]
fn plugin_that_registers_itself_is_provisioned_with_and_ended() {
    let plugins =
        "- { name: files, source: { type: local, path: $FILES }, config: { root: site }, protocol: register }";
    let repository = Repository::new(Sections { plugins, resources: PAGE, ..Sections::default() });
    let created = repository.expect_exit(0, "provision --verbose");
    assert!(!created.contains("SC_PLUGIN_TOKEN") && created.contains("Loaded plugin: files"), "{created}");
    assert_eq!(repository.read("site/a.txt"), "hello");
    assert!(repository.expect_exit(0, "provision").contains("unchanged"));
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.names("site"), [""; 0]);
    assert_eq!(repository.processes(), []);
    assert_eq!(repository.names("tmp"), [""; 0], "no socket is left");
}

/// Returns the output of a provision with a plugin that is a script.
fn check(script: &str, keys: &str) -> String {
    let plugins = format!(
        "- {{ name: rude, source: {{ type: local, path: rude.sh }}, protocol: register, startTimeout: 1s{keys} }}"
    );
    let resources = "page: { type: rude:fs:File, config: {} }";
    let repository = Repository::new(Sections { plugins: &plugins, resources, ..Sections::default() });
    repository.write_script("rude.sh", script);
    let output = repository.expect_rejected("provision");
    assert_eq!(repository.processes(), []);
    output
}

#[test]
fn plugin_that_does_not_register_is_started_again_and_reported() {
    insta::assert_snapshot!(check("echo loading >&2\nexec sleep 100", ", startAttempts: 2"), @r"
    exit 1
    --- out
    --- err
    warning: plugin rude: it has not registered within 0.25 s; it is started again (attempt 2 of 2)
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, protocol: register, startTimeout: 1s, startAttempts: 2 }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it has not registered, in 2 starts of 0.25 s each. Its last output:
        loading
      hint: a plugin with `protocol: register` calls Register at the socket SC_PLUGIN_HOST; a larger startTimeout gives it more time
    ");
}

#[test]
fn plugin_that_exits_before_it_registers_is_reported() {
    insta::assert_snapshot!(check("echo no licence >&2\nexit 3", ""), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, protocol: register, startTimeout: 1s }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it exited before it registered (exit status 3). Its last output:
        no licence
    ");
}

//! Tests of faulty plugins: each run fails with an error and a hint, and changes nothing.

use std::fs;

use sha2::{Digest as _, Sha256};

use crate::repository::{FILES, Repository, Sections};

const PAGE: &str = "page: { type: rude:fs:File, config: { path: a.txt, content: hello } }";

/// Returns a repository with a plugin that is a shell script, which creates the file `mark` when it runs.
fn with_script(script: &str, source: &str) -> Repository {
    let plugins = format!("- {{ name: rude, source: {{ type: local, path: rude.sh{source} }}, startTimeout: 300ms }}");
    let repository = Repository::new(Sections { plugins: &plugins, resources: PAGE, ..Sections::default() });
    repository.write_script("rude.sh", &format!("touch mark\n{script}"));
    repository
}

fn check(script: &str) -> String {
    with_script(script, "").expect_rejected("provision")
}

/// Shows: comparison.md#plugins "a declared `checksum`, before any code of the plugin runs"
/// Shows: plugins.md#what-is-checked "A git tree, a folder and a local executable are verified before anything of them
///   is run."
#[test]
fn plugin_with_a_wrong_checksum_is_not_executed() {
    let checksum = ", checksum: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let repository = with_script("", checksum);
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh, checksum: [id] },...
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to resolve plugin binary: checksum mismatch: expected sha256:[id], got sha256:[id]
      hint: if the plugin was changed on purpose, declare the new checksum
    ");
    assert!(!repository.path("mark").exists());
    for folder in ["packages", "work"] {
        assert_eq!(repository.names(&format!("home/.cache/sc/{folder}")), [""; 0], "no copy is left");
    }
}

/// Shows: plugins.md#local "`sc` makes a copy while it verifies the files, and runs the copy"
#[test]
fn plugin_file_replaced_after_verification_is_not_executed() {
    let original = "#!/bin/sh\nuntil grep -q evil rude.sh; do :; done\necho \"I am $0\" >&2\nexit 3\n";
    let checksum = hex::encode(Sha256::digest(original));
    let plugins = format!(
        "- {{ name: rude, source: {{ type: local, path: rude.sh, checksum: {checksum} }} }}
- {{ name: swapper, source: {{ type: local, path: swapper.sh }} }}"
    );
    let repository = Repository::new(Sections { plugins: &plugins, resources: PAGE, ..Sections::default() });
    repository.write_script("rude.sh", original.strip_prefix("#!/bin/sh\n").unwrap());
    repository.write_script("evil.sh", "touch mark\necho evil");
    repository.write_script("swapper.sh", "cp evil.sh new.sh\nmv new.sh rude.sh\nexec sleep 100\n");
    let output = repository.expect_rejected("provision");
    assert!(output.contains("I am [repo]/home/.cache/sc/packages/"), "{output}");
    assert!(!repository.path("mark").exists());
    assert_eq!(repository.names("home/.cache/sc/work"), [""; 0], "no unfinished copy is left");
}

#[test]
fn plugin_without_execute_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let repository = with_script("", "");
    fs::set_permissions(repository.path("rude.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: cannot run [repo]/rude.sh (it is not executable; run chmod +x [repo]/rude.sh): Permission denied (os error 13)
    ");
}

#[test]
fn missing_plugin_is_reported_with_its_path() {
    let repository = with_script("", "");
    fs::remove_file(repository.path("rude.sh")).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to resolve plugin binary: cannot find plugin [repo]/rude.sh: No such file or directory (os error 2)
    ");
    fs::create_dir(repository.path("rude.sh")).unwrap();
    insta::assert_snapshot!(repository.expect_rejected("provision"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to resolve plugin binary: [repo]/rude.sh holds neither pulumi-resource-rude nor PulumiPlugin.yaml
      hint: a plugin is an executable pulumi-resource-NAME, or a folder with PulumiPlugin.yaml; in a git repository source.subdir selects its folder
    ");
}

#[test]
fn output_of_a_plugin_that_exits_at_once_is_shown() {
    insta::assert_snapshot!(check("echo no licence found >&2\nexit 3"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it exited before it printed its port (exit status 3). Its last output:
        no licence found
    ");
    insta::assert_snapshot!(check("exit 0"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it exited before it printed its port (exit status 0)
    ");
}

#[test]
fn plugin_that_prints_no_port_is_reported_and_its_children_are_killed() {
    insta::assert_snapshot!(check("sleep 100 &\necho 'Welcome!'\nsleep 100"), @r#"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: expected a port on the first line of its output, got "Welcome!"
      hint: the first line of output of a Pulumi provider must be its port and nothing else
    "#);
    insta::assert_snapshot!(check("echo 70000\nsleep 100"), @r#"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: expected a port on the first line of its output, got "70000"
      hint: the first line of output of a Pulumi provider must be its port and nothing else
    "#);
}

#[test]
fn go_plugin_protocol_is_recognized() {
    insta::assert_snapshot!(check("echo '1|1|unix|/tmp/x|grpc'\nsleep 100"), @r#"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: expected a port on the first line of its output, got "1|1|unix|/tmp/x|grpc"
      hint: this looks like HashiCorp's go-plugin protocol: write `protocol: go-plugin` below the name of the plugin
    "#);
}

/// Shows: plugin-authoring.md#what-a-process-has-to-do "A plugin that prints no port in time is stopped."
#[test]
fn plugin_that_prints_no_port_in_time_is_stopped() {
    insta::assert_snapshot!(check("echo reading the almanac >&2\nsleep 100"), @r"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, startTimeout: 300ms }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it has not printed its port within 0.3 s (startTimeout). Its last output:
        reading the almanac
      hint: a larger startTimeout gives it more time
    ");
}

#[test]
fn failed_plugin_stops_the_other_plugins_and_keeps_the_state() {
    let page = "page: { type: files:fs:File, config: { path: a.txt, content: hello } }";
    let sections = Sections { plugins: FILES, resources: page, ..Sections::default() };
    let repository = Repository::new(sections);
    repository.expect_exit(0, "provision");
    let plugins = format!("{FILES}\n- {{ name: rude, source: {{ type: local, path: rude.sh }} }}");
    repository.write_sections(Sections { plugins: &plugins, ..sections });
    repository.write_script("rude.sh", "exit 1\n");
    for command in ["provision", "preview", "refresh", "destroy --parent --yes"] {
        let output = repository.expect_rejected(command);
        assert!(output.contains("failed to load plugin rude"), "{output}");
    }
}

//! `sc plugin debug`: plugins that run for other programs.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use tests::binaries;

use crate::processes::wait_until;
use crate::repository::{FILES, Repository, Running, Sections};

const PAGE: &str = "page: { type: files:fs:File, config: { path: a.txt, content: hello } }";
const REGISTERING: &str =
    "- { name: files, source: { type: local, path: $FILES }, config: { root: site }, protocol: register }";

fn repository(plugins: &str) -> Repository {
    let resources = if plugins.contains("name: files") { PAGE } else { "" };
    Repository::new(Sections { plugins, resources, ..Sections::default() })
}

/// Waits until a command has printed a line `NAME=VALUE`, and returns the value.
fn value_of(command: &Running<'_>, name: &str) -> String {
    let printed = || {
        let printed = command.stdout();
        let mut lines = printed.split_inclusive('\n');
        lines.find_map(|line| line.strip_suffix('\n')?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    wait_until(&format!("{name} is printed"), || printed().is_some());
    printed().unwrap()
}

/// Returns the program of the plugin with the variables that a command has printed, as a debugger starts it.
fn started_elsewhere(repository: &Repository, debug: &Running<'_>) -> Command {
    let variables = ["SC_PLUGIN_HOST", "SC_PLUGIN_TOKEN", "SC_PLUGIN_ENGINE"].map(|name| (name, value_of(debug, name)));
    let mut plugin = Command::new(binaries::files_plugin().unwrap());
    plugin.current_dir(repository.path("")).envs(variables);
    plugin
}

/// Checks that a provision uses the process at the address in PULUMI_DEBUG_PROVIDERS.
fn check_attached(repository: &Repository, address: &str) {
    let mut provision = repository.command("provision -S");
    provision.env("PULUMI_DEBUG_PROVIDERS", address);
    let provision = repository.start_command(provision).wait_for_command();
    assert_eq!(provision.status, "exit 0", "{provision:?}");
    assert!(provision.stderr.contains("sc uses the process at port"), "{provision:?}");
    assert_eq!(repository.read("site/a.txt"), "hello");
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "starts a declared plugin, configures nothing, and prints the
///   line by which `pulumi` or another `sc` attaches"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "Ctrl-C ends the plugin, with exit code 0"
#[test]
fn plugin_runs_for_another_command_until_the_user_ends_it() {
    for plugins in [FILES, REGISTERING] {
        let repository = repository(plugins);
        let debug = repository.start("plugin debug files");
        check_attached(&repository, &value_of(&debug, "PULUMI_DEBUG_PROVIDERS"));
        debug.wait_until_printed("every account of this machine can call it");
        debug.signal(Signal::INT);
        let ended = debug.wait();
        assert_eq!((&*ended.status, ended.stdout.lines().count()), ("exit 0", 1), "{ended:?}");
        assert_eq!(repository.names("tmp"), [""; 0], "no socket is left");
    }
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "waits without a limit until it registers, and then prints
///   the line"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "is not ended with the command"
#[test]
fn process_that_is_started_elsewhere_registers_and_runs_on() {
    let repository = repository(REGISTERING);
    let debug = repository.start("plugin debug files --wait");
    let mut plugin = started_elsewhere(&repository, &debug).stdout(Stdio::null()).spawn().unwrap();
    check_attached(&repository, &value_of(&debug, "PULUMI_DEBUG_PROVIDERS"));
    debug.signal(Signal::TERM);
    let ended = debug.wait();
    assert_eq!(ended.status, "exit 0", "{ended:?}");
    assert!(plugin.try_wait().unwrap().is_none(), "the process runs");
    plugin.kill().unwrap();
    plugin.wait().unwrap();
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "waits without a limit until it registers, and then prints
///   the line"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "is not ended with the command"
#[test]
fn end_of_a_process_that_was_started_elsewhere_ends_the_command() {
    let repository = repository(REGISTERING);
    let debug = repository.start("plugin debug files --wait");
    let mut plugin = started_elsewhere(&repository, &debug).stdout(Stdio::null()).spawn().unwrap();
    value_of(&debug, "PULUMI_DEBUG_PROVIDERS");
    plugin.kill().unwrap();
    plugin.wait().unwrap();
    let ended = debug.wait();
    assert!(ended.status == "exit 1" && ended.stderr.contains("error: plugin files: it exited"), "{ended:?}");
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "waits without a limit until it registers, and then prints
///   the line"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "is not ended with the command"
#[test]
fn refused_registration_ends_the_command() {
    let repository = repository(&REGISTERING.replace("name: files", "name: other"));
    let debug = repository.start("plugin debug other --wait");
    let refused = started_elsewhere(&repository, &debug).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("registers the package"), "{words}");
    let ended = debug.wait();
    assert_eq!(ended.status, "exit 1", "{ended:?}");
    assert!(ended.stderr.contains(r#"it registers the package "files", but "other" is declared"#), "{ended:?}");
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "starts a declared plugin, configures nothing, and prints the
///   line by which `pulumi` or another `sc` attaches"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "Ctrl-C ends the plugin, with exit code 0"
#[test]
fn plugin_that_exits_is_reported() {
    let repository = repository("- { name: rude, source: { type: local, path: rude.sh } }");
    repository.write_script("rude.sh", "echo 41233\nexit 3");
    insta::assert_snapshot!(repository.sc("plugin debug rude"), @r"
    exit 1
    --- out
    PULUMI_DEBUG_PROVIDERS=rude:41233
    --- err
    info: plugin rude: process [pid] listens at 127.0.0.1:41233 and is not configured; Ctrl-C ends this command
    warning: plugin rude: every account of this machine can call it at port 41233, with the credentials that it is given
    error: plugin rude: it exited (exit status 3)
    ");
}

/// Shows: hosting.md#starting-a-plugin-for-other-programs "starts a declared plugin, configures nothing, and prints the
///   line by which `pulumi` or another `sc` attaches"
/// Shows: hosting.md#starting-a-plugin-for-other-programs "Ctrl-C ends the plugin, with exit code 0"
#[test]
fn go_plugin_server_is_started_without_tls_and_none_in_a_strict_sandbox() {
    let repository =
        repository("- { name: rude, source: { type: local, path: rude.sh }, protocol: go-plugin, sandbox: strict }");
    repository.write_script("rude.sh", "echo \"certificate: $PLUGIN_CLIENT_CERT.\" >&2\nexit 3");
    insta::assert_snapshot!(repository.sc("plugin debug rude"), @r"
    exit 1
    --- out
    --- err
    warning: plugin rude: it runs in the sandbox `basic`, not `strict`: it has to connect to the host that attaches
    error[plugin-load]: failed to load plugin rude
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: rude, source: { type: local, path: rude.sh }, protocol: go-plugin, sandbox: strict }
      |             ^^^^

    error: failed to load plugins: failed to load plugin rude: failed to connect to plugin: it ended without a handshake line (exit status 3). Its last output:
        certificate: .
    ");
}

#[test]
fn wrong_usage_is_reported_with_the_next_step() {
    let repository = repository(FILES);
    insta::assert_snapshot!(repository.sc("plugin debug file"), @r#"
    exit 2
    --- out
    --- err
    error: no selected stack declares a plugin "file"
      hint: `sc plugin ls` lists the plugins that the stacks declare
    "#);
    insta::assert_snapshot!(repository.sc("plugin debug files --wait"), @r"
    exit 2
    --- out
    --- err
    error: files does not register: --wait is for plugins with `protocol: register`
      hint: start it, and name the port that it prints in PULUMI_DEBUG_PROVIDERS=files:PORT
    ");
    repository
        .write_sections(Sections { plugins: &FILES.replace(" }, ", " }, enabled: false, "), ..Sections::default() });
    insta::assert_snapshot!(repository.sc("plugin debug files"), @r"
    exit 2
    --- out
    --- err
    error: the plugin files is disabled
      hint: set `enabled: true` below its name
    ");
    repository.write_sections(Sections {
        plugins: &FILES.replace(" }, ", " }, protocol: go-plugin, "),
        resources: PAGE,
        ..Sections::default()
    });
    insta::assert_snapshot!(repository.sc("plugin debug files --wait"), @r"
    exit 2
    --- out
    --- err
    error: files does not register: --wait is for plugins with `protocol: register`
      hint: start it with its cookie, and name its address in SC_REATTACH_PLUGINS
    ");
    repository.write_stack("shoal", crate::repository::PROVISIONER, Sections { plugins: FILES, ..Sections::default() });
    insta::assert_snapshot!(repository.sc("plugin debug files"), @r"
    exit 2
    --- out
    --- err
    error: the stacks reef and shoal declare files differently
      hint: select one of them with -s STACK
    ");
}

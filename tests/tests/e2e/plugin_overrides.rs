//! Tests of local builds in place of declared plugins.

use std::fs;

use crate::filter::filter_output;
use crate::repository::{FILES, Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
/// Plugin of a git repository. The lock file has its version.
const OF_GIT: &str =
    "- { name: files, source: { type: git, repository: ./origin, version: ^1.2 }, config: { root: site } }";

fn repository(plugins: &str) -> Repository {
    let repository = Repository::new(Sections { plugins, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    // The build says that it was started.
    repository.write_script("build/pulumi-resource-files", "touch \"$HOME/started\"\nexec $FILES \"$@\"\n");
    repository
}

/// Makes the git repository of the plugin, with the tag `v1.2.3`.
fn publish(repository: &Repository) {
    let origin = repository.path("origin");
    fs::create_dir(&origin).unwrap();
    fs::copy(tests::binaries::files_plugin().unwrap(), origin.join("pulumi-resource-files")).unwrap();
    for arguments in [
        "init -q",
        "add .",
        "-c user.name=a -c user.email=a@example.org commit -qm first",
        "-c user.name=a -c user.email=a@example.org tag v1.2.3",
    ] {
        let mut git = std::process::Command::new("git");
        git.args(arguments.split(' ')).current_dir(&origin).env_clear().env("PATH", "/usr/bin:/bin");
        assert!(git.env("HOME", repository.path("home")).status().unwrap().success(), "{arguments}");
    }
}

fn run(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.envs(variables.iter().copied());
    filter_output(&repository.start_command(command).output(), &[(&repository.path(""), "[repo]")])
}

/// Returns whether the local build was started since the last call.
fn was_started(repository: &Repository) -> bool {
    fs::remove_file(repository.path("home/started")).is_ok()
}

/// Shows: plugins.md#local-builds-in-place-of-a-plugin "Nothing of the build is recorded: the lock file stays as it is"
/// Shows: plugins.md#local-builds-in-place-of-a-plugin "Each run names the plugin and the path in a warning."
#[test]
fn local_build_takes_the_place_of_a_declared_plugin_and_leaves_no_record() {
    let repository = repository(OF_GIT);
    publish(&repository);
    repository.expect_exit(0, "provision -S");
    assert!(!was_started(&repository));
    let (lock_file, state) = (repository.read(".sc/sc.lock"), repository.state());
    assert_eq!(state["checkpoint"]["latest"]["resources"][1]["inputs"]["version"], "1.2.3");

    let warning = "warning: plugin files: the local build [repo]/build is used in place of the declared plugin";
    for arguments in [
        "preview --expect-no-changes --plugin files=build",
        "provision --expect-no-changes --plugin files=build",
        "refresh --plugin files=build",
        "validate --plugin files=build",
        "plugin schema files --plugin files=build",
        "schema-gen schemas --plugin files=build",
    ] {
        let output = run(&repository, arguments, &[]);
        assert!(output.starts_with("exit 0\n") && output.contains(warning), "{arguments}: {output}");
        assert!(was_started(&repository), "{arguments}");
        assert_eq!(repository.read(".sc/sc.lock"), lock_file, "{arguments}");
    }
    let inputs = |state: &serde_json::Value| {
        let resources = state["checkpoint"]["latest"]["resources"].as_array().unwrap().iter();
        resources.map(|resource| resource["inputs"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(&repository.state()), inputs(&state));

    // A program, by a path from the folder of the command.
    let output = run(&repository, "-C site preview --plugin files=../build/pulumi-resource-files", &[]);
    assert!(output.starts_with("exit 0\n") && was_started(&repository), "{output}");
    let output = run(&repository, "preview", &[("SC_PLUGIN_OVERRIDE", "files=build")]);
    assert!(output.contains(warning) && was_started(&repository), "{output}");
    let output = run(&repository, "preview --plugin files=build", &[("SC_PLUGIN_OVERRIDE", "files=missing")]);
    assert!(output.starts_with("exit 0\n") && was_started(&repository), "{output}");
    // What starts no plugin pays no attention to it.
    let output = run(&repository, "plugin install", &[("SC_PLUGIN_OVERRIDE", "files=missing")]);
    assert!(output.starts_with("exit 0\n") && !was_started(&repository), "{output}");

    repository.expect_exit(0, "provision --expect-no-changes");
    assert!(!was_started(&repository));
    run(&repository, "destroy --parent --yes --plugin files=build", &[]);
    assert!(was_started(&repository) && repository.resources().is_empty());
}

/// Shows: plugins.md#local-builds-in-place-of-a-plugin "in a pipeline (`CI` is set), an override is an error (exit code 2)"
#[test]
fn local_build_is_refused_where_only_what_is_locked_may_run() {
    let repository = repository(FILES);
    insta::assert_snapshot!(run(&repository, "preview --locked --plugin files=build", &[]), @"
    exit 2
    --- out
    --- err
    error: no local build may take the place of the plugin files with --locked
      hint: leave out --plugin, and unset SC_PLUGIN_OVERRIDE; a policy with `overrides: true` allows it
    ");
    insta::assert_snapshot!(run(&repository, "preview --plugin files=build", &[("CI", "true")]), @"
    exit 2
    --- out
    --- err
    error: no local build may take the place of the plugin files in a pipeline (`CI` is set)
      hint: leave out --plugin, and unset SC_PLUGIN_OVERRIDE; a policy with `overrides: true` allows it
    ");
    let output = run(&repository, "preview", &[("CI", "true"), ("SC_PLUGIN_OVERRIDE", "files=build")]);
    assert!(output.starts_with("exit 2\n"), "{output}");
    assert!(!was_started(&repository));

    let policy = repository.path("home/policy.yaml");
    let variables = [("CI", "true"), ("SC_PLUGIN_POLICY", policy.to_str().unwrap())];
    fs::write(&policy, "overrides: true\nplaces: [github.com/pulumi/*]\n").unwrap();
    for arguments in ["preview --plugin files=build", "preview --locked --plugin files=build"] {
        let output = run(&repository, arguments, &variables);
        assert!(output.starts_with("exit 0\n") && was_started(&repository), "{output}");
    }
    for (rules, expected) in [
        (
            "overrides: false\n",
            "the policy refuses it: a local build takes its place (`overrides` in [repo]/home/policy.yaml, line 1)",
        ),
        ("places: [github.com/pulumi/*]\n", "its place is local: a file or a folder (`places` in"),
    ] {
        fs::write(&policy, rules).unwrap();
        let output = run(&repository, "preview --plugin files=build", &variables[1..]);
        assert!(output.starts_with("exit 1\n") && output.contains(expected), "{output}");
    }
    assert!(!was_started(&repository));
}

#[test]
fn override_that_names_no_plugin_or_no_build_is_an_error() {
    let repository = repository(FILES);
    insta::assert_snapshot!(run(&repository, "preview --plugin file=build", &[]), @"
    exit 2
    --- out
    --- err
    error: no stack declares the plugin file, so that no local build can take its place
      hint: did you mean files? The stacks declare: files
    ");
    insta::assert_snapshot!(run(&repository, "preview --plugin files", &[]), @"
    exit 2
    --- out
    --- err
    error: invalid value 'files' for '--plugin <NAME=PATH>': expected NAME=PATH, such as random=../pulumi-random/bin

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(run(&repository, "preview", &[("SC_PLUGIN_OVERRIDE", "files")]), @r#"
    exit 2
    --- out
    --- err
    error: the variable SC_PLUGIN_OVERRIDE is invalid: entry 1 is "files": expected NAME=PATH, such as random=../pulumi-random/bin
      hint: its form is NAME=PATH, with commas between several
    "#);
    let output = run(&repository, "preview --plugin files=missing", &[]);
    assert!(output.starts_with("exit 1\n") && output.contains("[repo]/missing"), "{output}");
}

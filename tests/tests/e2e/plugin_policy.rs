//! Tests of the policy of a machine: nothing is requested or started that it refuses, and nothing is changed.

use std::fs;
use std::process::Command;

use tests::binaries;
use tests::commands::run;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tokio::runtime::Runtime;

use crate::filter::filter_output;
use crate::repository::{FILES, Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";
const BUCKET: &str = "media: { type: s3-bucket, config: { region: eu-north-1, accessKey: AK, secretAccessKey: S-K } }";

/// Server of a plugin `files`, with its own runtime, for synchronous tests.
struct Server {
    releases: ReleaseServer,
    _runtime: Runtime,
}

impl Server {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let releases = runtime.block_on(ReleaseServer::start()).unwrap();
        releases.add_digests();
        let plugin = fs::read(binaries::files_plugin().unwrap()).unwrap();
        let archive = tar_gz(&[("pulumi-resource-files", Entry::File(0o755, &plugin))]).unwrap();
        let asset = "pulumi-resource-files-v1.2.3-linux-amd64.tar.gz";
        releases.publish("acme/pulumi-files", "v1.2.3", &[(asset, &archive)]);
        Self { releases, _runtime: runtime }
    }

    fn plugin(&self, version: &str) -> String {
        let url = self.releases.api_url();
        format!(
            "- {{ name: files, source: {{ type: github-release, repository: acme/pulumi-files, version: '{version}', \
             platform: linux-amd64, apiUrl: '{url}' }}, config: {{ root: site }} }}"
        )
    }

    /// Returns the host of the server, with its port.
    fn host(&self) -> String {
        self.releases.url().split_once("://").unwrap().1.to_owned()
    }

    fn requests(&self) -> usize {
        self.releases.requests().len()
    }
}

fn repository(plugins: &str) -> Repository {
    let repository = Repository::new(Sections { plugins, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    repository
}

/// Runs a command with a policy, and returns its exit code and output.
fn with_policy(repository: &Repository, policy: &str, arguments: &str, variables: &[(&str, &str)]) -> String {
    fs::write(repository.path("home/policy.yaml"), policy).unwrap();
    let mut command = repository.command(arguments);
    command.env("SC_PLUGIN_POLICY", repository.path("home/policy.yaml")).envs(variables.iter().copied());
    let output = repository.start_command(command).output();
    filter_output(&output, &[(&repository.path(""), "[repo]")])
}

/// Shows: plugins.md#policy "before the first request for a package, also by `sc plugin install`, `lock` and `update`"
#[test]
fn place_that_the_policy_refuses_is_not_asked() {
    let server = Server::new();
    let repository = repository(&server.plugin("^1.2"));
    let policy = "# of acme\nplaces:\n  - github.com/pulumi/*\n  - local\n";
    let output = with_policy(&repository, policy, "preview", &[]).replace(&server.host(), "HOST");
    insta::assert_snapshot!(output, @"
    exit 1
    --- out
    --- err
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: github-release, repository: acme/pulumi-files, version: '^1.2', platform: linux-amd64, apiUrl: 'ht...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: the policy refuses it: its place is HOST/acme/pulumi-files (`places` in [repo]/home/policy.yaml, line 2)
      hint: the rule allows: github.com/pulumi/*, local
    ");
    for arguments in [
        "provision -S",
        "refresh",
        "validate",
        "plugin install",
        "plugin lock",
        "plugin update",
        "plugin update files",
        "plugin schema files",
        "plugin debug files",
        "schema-gen schemas",
    ] {
        let output = with_policy(&repository, policy, arguments, &[]);
        assert!(output.starts_with("exit 1\n"), "{arguments}: {output}");
        assert!(output.contains("the policy refuses it: its place is 127.0.0.1:"), "{arguments}: {output}");
    }
    assert_eq!(server.requests(), 0);
    assert!(!repository.path(".sc/sc.lock").exists() && repository.names("home/.cache").is_empty());

    let allowing = format!("places: ['{}/acme/*']\nnames: [files]\n", server.host());
    assert!(with_policy(&repository, &allowing, "provision -S", &[]).starts_with("exit 0"));
}

/// Shows: plugins.md#policy "at the plugin in server.yaml. It is a failure with exit code 1, and nothing was changed"
#[test]
fn each_rule_refuses_a_plugin_before_it_is_started() {
    let unsandboxed = FILES.replace(", config", ", sandbox: none, config");
    for (plugins, policy, expected) in [
        (FILES, "external: false\n", "it is a plugin of server.yaml (`external` in [repo]/home/policy.yaml, line 1)"),
        (FILES, "names: [random]\n", "its package is files (`names` in [repo]/home/policy.yaml, line 1)"),
        (FILES, "places: ['git.corp.example/**']\n", "its place is local: a file or a folder (`places` in"),
        (
            FILES,
            "builds: true\nrequire: checksum\n",
            "it has no checksum (`require` in [repo]/home/policy.yaml, line 2)",
        ),
        (
            &unsandboxed,
            "\n\nunsandboxed: false\n",
            "it has `sandbox: none` (`unsandboxed` in [repo]/home/policy.yaml, line 3)",
        ),
    ] {
        let repository = repository(plugins);
        let output = with_policy(&repository, policy, "provision -S", &[]);
        assert!(output.starts_with("exit 1\n"), "{policy}: {output}");
        assert!(output.contains("--> .sc/stacks/reef/server.yaml:8:"), "{policy}: {output}");
        assert!(output.contains(expected) && output.contains("\n  hint: "), "{policy}: {output}");
        assert!(repository.names("site").is_empty() && repository.names("backend").is_empty(), "{policy}");
        let all = "external: true\nnames: [files]\nplaces: [local]\noverrides: true\nbuilds: true\nunsandboxed: true\n";
        assert!(with_policy(&repository, all, "provision -S", &[]).starts_with("exit 0"), "{policy}");
    }
}

/// Shows: plugins.md#policy "its package has to be ready to run"
#[test]
fn plugin_that_has_to_be_built_is_refused_before_the_build() {
    let repository = repository("- { name: files, source: { type: local, path: files } }");
    repository.write("files/PulumiPlugin.yaml", "runtime: go\n");
    repository.write("files/go.mod", "module files\n");
    let output = with_policy(&repository, "builds: false\n", "preview", &[]);
    let expected = "the policy refuses it: it has to be built (`builds` in [repo]/home/policy.yaml, line 1)";
    assert!(output.starts_with("exit 1\n") && output.contains(expected), "{output}");
    fs::copy(binaries::files_plugin().unwrap(), repository.path("files/pulumi-resource-files")).unwrap();
    let output = with_policy(&repository, "builds: false\n", "plugin install", &[]);
    assert!(output.starts_with("exit 0"), "{output}");
}

/// Shows: plugins.md#policy "Releases without a time of publication are passed over"
#[test]
fn age_of_the_policy_is_that_of_ranges() {
    let server = Server::new();
    let repository = repository(&server.plugin("^1.2"));
    let output = with_policy(&repository, "minimumAge: 72h\n", "plugin lock", &[]);
    assert!(output.contains("1 in the range have no time of publication, which the policy demands"), "{output}");
    assert!(output.contains("hint: name a tag in source.version"), "{output}");
    assert!(output.contains("v1.2.3 of acme/pulumi-files is passed over: its place tells no time"), "{output}");

    let now = jiff::Timestamp::now();
    server.releases.set_published("v1.2.3", &(now - jiff::SignedDuration::from_hours(48)).to_string());
    let output = with_policy(&repository, "minimumAge: 72h\n", "plugin lock", &[]);
    assert!(output.contains("it was published 2 days ago, and minimumAge of the policy is 3 days"), "{output}");
    let output = with_policy(&repository, "minimumAge: 1h\n", "plugin lock", &[]);
    assert!(output.starts_with("exit 0"), "{output}");
    // Locked and named versions are not concerned.
    assert!(with_policy(&repository, "minimumAge: 72h\n", "preview", &[]).starts_with("exit 0"));
}

/// Shows: plugins.md#policy "ranges over git are refused then, except where they are locked, unless `allowUndated: true`"
#[test]
fn range_over_git_has_an_age_once_it_is_locked() {
    let origin = tempfile::tempdir().unwrap();
    let git = |arguments: &str| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments.split(' '));
        run(git.current_dir(origin.path())).unwrap();
    };
    git("init --quiet --initial-branch=main");
    fs::copy(binaries::files_plugin().unwrap(), origin.path().join("pulumi-resource-files")).unwrap();
    git("add .");
    git("commit --quiet -m plugin");
    git("tag v1.2.3");
    let repository = repository(&format!(
        "- {{ name: files, source: {{ type: git, repository: 'file://{}', version: ^1 }}, config: {{ root: site }} }}",
        origin.path().display()
    ));
    let aged = "minimumAge: 72h\n";
    for command in ["plugin lock", "preview"] {
        let output = with_policy(&repository, aged, command, &[]);
        let message = "its version is a range over tags of git, which tells no time of publication";
        assert!(output.starts_with("exit 1") && output.contains(message), "{command}: {output}");
    }
    repository.expect_exit(0, "plugin lock");
    assert!(with_policy(&repository, aged, "preview", &[]).starts_with("exit 0"));
    assert!(with_policy(&repository, aged, "plugin update", &[]).starts_with("exit 1"));
    assert!(
        with_policy(&repository, &format!("{aged}allowUndated: true\n"), "plugin update", &[]).starts_with("exit 0")
    );
}

/// Shows: plugins.md#policy "It is one also if the plugin is needed to delete what is recorded."
#[test]
fn policy_refuses_what_the_state_needs() {
    let repository = repository(FILES);
    repository.expect_exit(0, "provision -S");
    let before = repository.files("backend");
    for arguments in ["destroy --parent --yes", "refresh", "preview"] {
        let output = with_policy(&repository, "names: [aws]\n", arguments, &[]);
        assert!(output.starts_with("exit 1\n"), "{arguments}: {output}");
        assert!(output.contains("its package is files"), "{arguments}: {output}");
        assert!(repository.files("backend") == before && !repository.is_locked(), "{arguments}");
    }
    assert_eq!(repository.read("site/note.txt"), "hello");
    let output = with_policy(&repository, "names: [files]\n", "destroy --parent --yes", &[]);
    assert!(output.starts_with("exit 0"), "{output}");
}

/// Shows: plugins.md#policy "no plugins of server.yaml; packages of core types are not concerned"
#[test]
fn packages_of_core_types_have_names_and_places() {
    let server = Server::new();
    let url = server.releases.api_url();
    let variables = [("SC_PACKAGES_API_URL", url.as_str())];
    let repository = Repository::new(Sections { plugins: "", resources: BUCKET, outputs: "" });
    for (policy, expected) in [
        (
            "places: [local]\n",
            "its place is github.com/pulumi/pulumi-aws (`places` in [repo]/home/policy.yaml, line 1)",
        ),
        ("names: [random]\n", "its package is aws (`names` in [repo]/home/policy.yaml, line 1)"),
    ] {
        for arguments in ["provision -S", "plugin install", "plugin lock"] {
            let output = with_policy(&repository, policy, arguments, &variables);
            assert!(output.starts_with("exit 1\n") && output.contains(expected), "{arguments}: {output}");
        }
        assert_eq!(server.requests(), 0, "{policy}");
    }
    let policy = "external: false\nrequire: checksum\nnames: [aws]\nplaces: [github.com/pulumi/*]\n";
    let output = with_policy(&repository, policy, "provision -S", &variables);
    assert!(output.contains("which cannot be installed") && !output.contains("policy"), "{output}");
    assert!(server.requests() > 0, "the place was asked");
}

/// Shows: plugins.md#policy "A file that is missing, cannot be read or has mistakes is an error, never no policy."
#[test]
fn policy_that_cannot_be_read_stops_what_uses_plugins() {
    let repository = repository(FILES);
    let output = with_policy(&repository, "places: [local, https://git.corp.example/**]\n", "provision -S", &[]);
    insta::assert_snapshot!(output, @r#"
    exit 1
    --- out
    --- err
    error[plugin-policy]: invalid place "https://git.corp.example/**": a place has neither a scheme nor a user
     --> [repo]/home/policy.yaml:1:17
      |
    1 | places: [local, https://git.corp.example/**]
      |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: write places such as `github.com/pulumi/*`, `git.corp.example/**` and `local`, where `*` stands for one part and `**` for any number

    error: the configuration has an error; nothing was changed
    "#);
    fs::remove_file(repository.path("home/policy.yaml")).unwrap();
    for arguments in ["provision -S", "preview", "plugin install", "plugin ls"] {
        let mut command = repository.command(arguments);
        command.env("SC_PLUGIN_POLICY", repository.path("home/policy.yaml"));
        let output = repository.start_command(command).output();
        assert!(output.starts_with("exit 1\n"), "{arguments}: {output}");
        assert!(output.contains("error[plugin-policy]: SC_PLUGIN_POLICY names"), "{arguments}: {output}");
        assert!(output.contains("No such file or directory"), "{arguments}: {output}");
    }
    assert!(repository.names("backend").is_empty());
    let mut command = repository.command("stack ls");
    command.env("SC_PLUGIN_POLICY", repository.path("home/policy.yaml"));
    assert!(repository.start_command(command).output().starts_with("exit 0"), "states need no plugins");
}

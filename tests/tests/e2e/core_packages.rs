//! Tests of the packages of core types that no plugin declares, with a server in the place of GitHub.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use bridge::plugin::Platform;
use tests::http::Response;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tokio::runtime::Runtime;

use crate::repository::{PROVISIONER, Repository, Sections};
use crate::terminal::Terminal;

const AWS: &str = "6.83.4";
const GCP: &str = "8.41.1";

const BUCKET: &str = "media: { type: s3-bucket, config: { region: eu-north-1, accessKey: AK, secretAccessKey: S-K } }";
const GCP_BUCKET: &str = "
films: { type: gcp-bucket, config: { credentials: '{\"type\": \"service_account\"}', projectId: p, location: EU } }";

/// Server of releases with its own runtime, for synchronous tests.
struct Server {
    releases: ReleaseServer,
    _runtime: Runtime,
}

/// Returns the program of a package: the fake cloud, which first writes down the names of its variables.
fn program(package: &str) -> Vec<u8> {
    let cloud = env!("CARGO_BIN_EXE_pulumi-resource-cloud");
    let script = format!(
        "#!/bin/sh\nexport REC_DIR=\"$HOME/../rec\"\nenv | sed 's/=.*//' | sort > \"$REC_DIR/{package}.env\"\nexec {cloud} \"$@\"\n"
    );
    script.into_bytes()
}

fn archive(package: &str) -> Vec<u8> {
    let program = program(package);
    tar_gz(&[("LICENSE", Entry::File(0o644, b"free")), (&executable(package), Entry::File(0o755, &program))]).unwrap()
}

fn executable(package: &str) -> String {
    format!("pulumi-resource-{package}")
}

impl Server {
    /// Starts a server that has the packages of AWS and Google Cloud for a platform, with their digests.
    fn for_platform(platform: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let releases = runtime.block_on(ReleaseServer::start()).unwrap();
        for (package, version) in [("aws", AWS), ("gcp", GCP)] {
            let asset = format!("{}-v{version}-{platform}.tar.gz", executable(package));
            let repository = format!("pulumi/pulumi-{package}");
            releases.publish(&repository, &format!("v{version}"), &[(&asset, &archive(package))]);
        }
        Self { releases, _runtime: runtime }
    }

    fn new() -> Self {
        let server = Self::for_platform(&platform());
        server.releases.add_digests();
        server
    }

    /// Returns the number of downloads.
    fn downloads(&self) -> usize {
        self.releases.requests().iter().filter(|request| request.path.contains("/assets/")).count()
    }
}

fn platform() -> String {
    Platform::current().unwrap().to_string()
}

fn repository(resources: &str) -> Repository {
    Repository::new(Sections { plugins: "", resources, outputs: "" })
}

/// Variables of the command: the address of the server.
fn with_server<'v>(url: &'v str, more: &[(&'v str, &'v str)]) -> Vec<(&'v str, &'v str)> {
    [("SC_PACKAGES_API_URL", url)].iter().chain(more).copied().collect()
}

/// Runs a command with these variables, and returns its exit code and output, without sizes and the platform.
fn run(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.envs(variables.iter().copied());
    let output = repository.start_command(command).output().replace(&platform(), "[platform]");
    let lines = output.lines().map(|line| match line.rsplit_once(" (") {
        Some((head, size)) if size.ends_with("B)") => format!("{head} ([size])"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn expect_success(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
    let output = run(repository, arguments, variables);
    assert!(output.starts_with("exit 0\n"), "{output}");
    output
}

/// Returns the lines of an output that contain a text.
fn lines_with(output: &str, text: &str) -> Vec<String> {
    output.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Starts a command on a terminal, with these variables.
fn on_terminal(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> Terminal {
    let mut command = repository.command(arguments);
    command.envs(variables.iter().copied());
    Terminal::start(&command)
}

/// Installs a package in the folder of `pulumi` in the home.
fn install_with_pulumi(repository: &Repository, package: &str, version: &str) {
    let folder = repository.path(&format!("home/.pulumi/plugins/resource-{package}-v{version}"));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(executable(package));
    fs::write(&path, program(package)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Shows: plugins.md#packages-of-core-types "A run takes each package that its stacks use from the first of these
///   places"
#[test]
fn package_is_downloaded_once_and_taken_from_the_cache_afterwards() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    let output = expect_success(&repository, "provision", &with_server(&url, &[]));
    assert_eq!(
        lines_with(&output, "Download"),
        [
            "Downloading aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])",
            "Downloaded aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])",
        ]
    );
    let expected = "info: Packages of core types: aws 6.83.4 from a release of pulumi/pulumi-aws";
    assert_eq!(lines_with(&output, "Packages of"), [expected]);
    assert!(repository.resources().iter().any(|line| line.starts_with("media--prod aws:s3/bucket:Bucket")));
    assert_eq!(server.downloads(), 1);
    drop(server);
    let output = expect_success(&repository, "provision --expect-no-changes", &with_server(&url, &[]));
    assert_eq!(lines_with(&output, "Packages of"), ["info: Packages of core types: aws 6.83.4 from the cache"]);
    expect_success(&repository, "destroy --parent --yes", &with_server(&url, &[]));
    assert_eq!(repository.resources().len(), 0);
}

/// Shows: plugins.md#packages-of-core-types "`SSL_CERT_FILE` and `SSL_CERT_DIR`, and nothing else"
#[test]
fn package_inherits_the_variables_of_its_cloud_and_no_others() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(&format!("{BUCKET}{GCP_BUCKET}"));
    let names = [
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "GOOGLE_PROJECT",
        "CLOUDSDK_CORE_PROJECT",
        "NO_PROXY",
        "CLOUDFLARE_API_TOKEN",
        "GITHUB_TOKEN",
        "PULUMI_CONFIG_PASSPHRASE",
        "DATABASE_PASSWORD",
    ];
    let variables: Vec<_> = names.iter().map(|name| (*name, "/")).collect();
    expect_success(&repository, "provision", &with_server(&url, &variables));
    let seen = |package: &str| {
        let text = repository.read(&format!("rec/{package}.env"));
        names.into_iter().filter(|name| text.lines().any(|line| line == *name)).collect::<Vec<_>>()
    };
    assert_eq!(seen("aws"), ["AWS_PROFILE", "AWS_SESSION_TOKEN", "NO_PROXY"]);
    assert_eq!(seen("gcp"), ["GOOGLE_PROJECT", "CLOUDSDK_CORE_PROJECT", "NO_PROXY"]);
}

/// Shows: plugins.md#packages-of-core-types "A plugin there that another account can change, or a file beside its
///   program, is not used"
/// Shows: plugins.md#packages-of-core-types "or `~/.pulumi/plugins`, in exactly this version. It is only read."
#[test]
fn package_that_pulumi_has_installed_is_used_and_not_changed() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    install_with_pulumi(&repository, "aws", AWS);
    install_with_pulumi(&repository, "aws", "6.83.3");
    let before = repository.files("home/.pulumi");
    let output = expect_success(&repository, "provision", &with_server(&url, &[]));
    let expected = "info: Packages of core types: aws 6.83.4 from [repo]/home/.pulumi/plugins/resource-aws-v6.83.4";
    assert_eq!(lines_with(&output, "Packages of"), [expected]);
    assert!(repository.files("home/.pulumi") == before);
    assert_eq!(server.releases.requests().len(), 0);
    // A copy that others can write to is not used.
    let program = repository.path("home/.pulumi/plugins/resource-aws-v6.83.4/pulumi-resource-aws");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    let output = expect_success(&repository, "provision --expect-no-changes", &with_server(&url, &[]));
    assert_eq!(lines_with(&output, "is not used").len(), 1, "{output}");
    assert_eq!(server.downloads(), 1);
}

/// Shows: plugins.md#packages-of-core-types "A plugin there that another account can change, or a file beside its
///   program, is not used"
/// Shows: plugins.md#packages-of-core-types "or `~/.pulumi/plugins`, in exactly this version. It is only read."
#[test]
fn folder_of_pulumi_is_that_of_pulumi_home() {
    let repository = repository(BUCKET);
    install_with_pulumi(&repository, "aws", AWS);
    fs::rename(repository.path("home/.pulumi"), repository.path("home/moved")).unwrap();
    let home = repository.path("home/moved");
    let output = expect_success(&repository, "provision", &[("PULUMI_HOME", home.to_str().unwrap())]);
    assert_eq!(lines_with(&output, "from [repo]/home/moved/plugins/resource-aws-v6.83.4").len(), 1, "{output}");
}

/// Shows: plugins.md#packages-of-core-types "A run takes each package that its stacks use from the first of these
///   places"
#[test]
fn declared_plugin_precedes_the_package() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    let aws = "- { name: aws, source: { type: local, path: $CLOUD } }";
    repository.write_sections(Sections { plugins: aws, resources: BUCKET, outputs: "" });
    let output = expect_success(&repository, "provision", &with_server(&url, &[]));
    assert_eq!(lines_with(&output, "Packages of"), [""; 0]);
    assert_eq!(server.releases.requests().len(), 0);
}

/// Shows: server-yaml.md#core-types "A plugin that `plugins` declares for one of them, such as `aws`, is used instead."
/// Shows: server-yaml.md#core-types "If it declares another version than that for which the core types are written,
///   there is a warning"
#[test]
fn declared_plugin_of_another_version_is_used_with_one_warning() {
    let server = Server::new();
    let url = server.releases.api_url();
    for version in ["7.1.0", "6.50.0"] {
        let asset = format!("pulumi-resource-aws-v{version}-{}.tar.gz", platform());
        server.releases.publish("pulumi/pulumi-aws", &format!("v{version}"), &[(&asset, &archive("aws"))]);
        let aws = format!(
            "- {{ name: aws, source: {{ type: github-release, repository: pulumi/pulumi-aws, version: v{version}, \
             apiUrl: '{url}' }} }}"
        );
        let buckets = format!("{BUCKET}\n{}", BUCKET.replace("media", "films"));
        let sections = Sections { plugins: &aws, resources: &buckets, outputs: "" };
        let repository = Repository::new(sections);
        repository.write_stack("shore", PROVISIONER, sections);
        let output = expect_success(&repository, "provision", &[]);
        let expected = format!(
            "warning[package]: the plugin \"aws\" is declared with version {version}, but the core types are written for \
             version 6.83.4 of the package \"aws\""
        );
        assert_eq!(lines_with(&output, "warning[package]"), [expected]);
        // The host of each stack reports that a later version is requested.
        let of_host = lines_with(&output, "version 6.83.4 is requested").len();
        assert_eq!(of_host, if version == "6.50.0" { 2 } else { 0 }, "{output}");
        assert_eq!(lines_with(&output, "Packages of"), [""; 0]);
    }
}

/// Shows: plugins.md#packages-of-core-types "The download is verified by the digest that GitHub publishes. An asset
///   without a digest is refused."
#[test]
fn download_with_another_digest_is_refused_and_deleted() {
    let server = Server::new();
    let url = server.releases.api_url();
    let mut other = archive("aws");
    *other.last_mut().unwrap() ^= 1;
    server.releases.override_response("/assets/", Response::new(200, other));
    let repository = repository(BUCKET);
    insta::assert_snapshot!(run(&repository, "provision", &with_server(&url, &[])), @r#"
    exit 1
    --- out
    --- err
    Downloading aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])
    Downloaded aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])
    error[package]: the core type "s3-bucket" of media needs version 6.83.4 of the package "aws", which cannot be installed: checksum mismatch: 127.0.0.1 publishes sha256:[id] for pulumi-resource-aws-v6.83.4-[platform].tar.gz, but the download has sha256:[id]
      --> .sc/stacks/reef/server.yaml:11:24
       |
    11 |         media: { type: s3-bucket, config: { region: eu-north-1, accessKey: AK, secretAccessKey: S-K } }
       |                        ^^^^^^^^^
       |
       = hint: the download was deleted: it may have been changed on its way; run the command again
       = hint: if the digest still differs, report it to the author, or declare a plugin of the package in `plugins`: `name: aws`, with another source

    error: packages of core types cannot be installed
    "#);
    assert_eq!(repository.names("home/.cache/sc/packages").len(), 0);
    assert!(!repository.path("backend/.pulumi").exists());
}

/// Shows: plugins.md#packages-of-core-types "The download is verified by the digest that GitHub publishes. An asset
///   without a digest is refused."
#[test]
fn release_without_this_platform_or_without_digests_is_refused() {
    let other = if platform() == "linux-amd64" { "linux-arm64" } else { "linux-amd64" };
    let server = Server::for_platform(other);
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    let output = run(&repository, "provision", &with_server(&url, &[])).replace(other, "[other]");
    insta::assert_snapshot!(output, @r#"
    exit 1
    --- out
    --- err
    error[package]: the core type "s3-bucket" of media needs version 6.83.4 of the package "aws", which cannot be installed: release pulumi/pulumi-aws v6.83.4 has no asset pulumi-resource-aws-v6.83.4-[platform].tar.gz; it has pulumi-resource-aws-v6.83.4-[other].tar.gz
      --> .sc/stacks/reef/server.yaml:11:24
       |
    11 |         media: { type: s3-bucket, config: { region: eu-north-1, accessKey: AK, secretAccessKey: S-K } }
       |                        ^^^^^^^^^
       |
       = hint: declare a plugin of the package in `plugins`: `name: aws`, with a source that is built for this platform

    error: packages of core types cannot be installed
    "#);
    let server = Server::for_platform(&platform());
    let url = server.releases.api_url();
    let output = run(&repository, "provision", &with_server(&url, &[]));
    assert_eq!(lines_with(&output, "no digest of pulumi-resource-aws-v6.83.4-[platform].tar.gz is published").len(), 1);
    assert_eq!(server.downloads(), 0);
}

/// Shows: plugins.md#packages-of-core-types "with the package, its version and the resource that needs it. There are
///   two ways to provide it"
#[test]
fn missing_network_is_reported_with_the_ways_to_provide_the_package() {
    // A port that is taken and not listened to: no other test gets it.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/api/v3", taken.local_addr().unwrap());
    let repository = repository(&format!("{BUCKET}{GCP_BUCKET}"));
    install_with_pulumi(&repository, "gcp", GCP);
    let output = run(&repository, "provision", &with_server(&url, &[])).replace(&url, "[url]");
    insta::assert_snapshot!(output, @r#"
    exit 1
    --- out
    --- err
    error[package]: the core type "s3-bucket" of media needs version 6.83.4 of the package "aws", which cannot be installed: cannot fetch release v6.83.4 of pulumi/pulumi-aws from 127.0.0.1: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
      --> .sc/stacks/reef/server.yaml:11:24
       |
    11 |         media: { type: s3-bucket, config: { region: eu-north-1, accessKey: AK, secretAccessKey: S-K } }
       |                        ^^^^^^^^^
       |
       = hint: on a machine with network, run `sc plugin install` and copy [repo]/home/.cache/sc, or run `pulumi plugin install resource aws 6.83.4` and copy [repo]/home/.pulumi/plugins
       = hint: or declare a plugin of the package in `plugins`: `name: aws`, with a source that is available here

    error: packages of core types cannot be installed
    "#);
    assert!(!repository.path("backend/.pulumi").exists());
    assert_eq!(run(&repository, "plugin install", &with_server(&url, &[])).lines().next(), Some("exit 1"));
    expect_success(&repository, "validate", &with_server(&url, &[]));
    // On a terminal there is no question that would be in vain.
    let mut terminal = on_terminal(&repository, "provision", &with_server(&url, &[]));
    assert_eq!(terminal.wait(), 1);
    assert!(!terminal.screen().contains("[y/N]"), "{}", terminal.screen());
}

/// Shows: plugins.md#packages-of-core-types "asks once in a run before it downloads them"
/// Shows: plugins.md#packages-of-core-types "without a terminal it does not ask"
#[test]
fn terminal_asks_once_for_all_packages_and_pipeline_does_not_ask() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    repository.write_stack("shore", PROVISIONER, Sections { plugins: "", resources: GCP_BUCKET, outputs: "" });
    let mut terminal = on_terminal(&repository, "preview", &with_server(&url, &[]));
    terminal.wait_until_shown("Download them? [y/N]");
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1);
    let size = |package: &str| format!("({} B)", archive(package).len());
    let screen = terminal.screen().replace(&size("aws"), "([size])").replace(&size("gcp"), "([size])");
    insta::assert_snapshot!(screen, @r"
    The core types need packages that are not on this machine:
      aws 6.83.4 ([size]), a release of pulumi/pulumi-aws
      gcp 8.41.1 ([size]), a release of pulumi/pulumi-gcp
    Download them? [y/N] n
    error: the download of packages of core types was declined: aws 6.83.4, gcp 8.41.1; nothing was changed
      hint: declare plugins of these packages in `plugins`, or run `sc plugin install`
    ");
    assert_eq!(server.downloads(), 0);

    let mut terminal = on_terminal(&repository, "preview", &with_server(&url, &[]));
    terminal.wait_until_shown("Download them? [y/N]");
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130);
    assert_eq!(server.downloads(), 0);

    let mut terminal = on_terminal(&repository, "preview", &with_server(&url, &[]));
    terminal.wait_until_shown("Download them? [y/N]");
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0);
    assert_eq!(server.downloads(), 2);

    for (arguments, more) in [("preview", ("CI", "true")), ("provision --yes", ("LANG", "C"))] {
        fs::remove_dir_all(repository.path("home/.cache")).unwrap();
        let before = server.downloads();
        let mut terminal = on_terminal(&repository, arguments, &with_server(&url, &[more]));
        assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
        assert!(!terminal.screen().contains("[y/N]"), "{}", terminal.screen());
        assert_eq!(server.downloads(), before + 2);
    }
}

/// Shows: plugins.md#packages-of-core-types "The packages of recorded resources whose core type has left `server.yaml`
///   are taken from the same places"
#[test]
fn package_of_recorded_resources_is_loaded_after_the_core_type_has_left_the_file() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(BUCKET);
    expect_success(&repository, "provision", &with_server(&url, &[]));
    fs::remove_dir_all(repository.path("home/.cache")).unwrap();
    repository.write_sections(Sections { plugins: "", resources: "", outputs: "" });
    let output = expect_success(&repository, "preview", &with_server(&url, &[]));
    let expected = "info: Packages of core types: aws 6.83.4 from a release of pulumi/pulumi-aws";
    assert_eq!(lines_with(&output, "Packages of"), [expected]);
    fs::remove_dir_all(repository.path("home/.cache")).unwrap();
    let mut terminal = on_terminal(&repository, "provision", &with_server(&url, &[]));
    terminal.wait_until_shown("Download them? [y/N]");
    assert!(repository.is_locked());
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1);
    assert!(!repository.is_locked());
    let mut terminal = on_terminal(&repository, "provision", &with_server(&url, &[]));
    terminal.wait_until_shown("Download them? [y/N]");
    terminal.type_line("y");
    terminal.wait_until_shown("Apply them to stack reef? [y/N]");
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0);
    assert!(!repository.resources().iter().any(|line| line.contains("aws")), "{:?}", repository.resources());
}

/// Shows: plugins.md#packages-of-core-types "`sc plugin ls` lists the packages of core types and where they are, and
///   `sc plugin install` downloads them."
#[test]
fn packages_are_listed_and_installed_by_commands() {
    let server = Server::new();
    let url = server.releases.api_url();
    let repository = repository(&format!("{BUCKET}{GCP_BUCKET}"));
    install_with_pulumi(&repository, "gcp", GCP);
    // The width of columns depends on the length of paths.
    let listed = run(&repository, "plugin ls", &with_server(&url, &[]));
    let listed: Vec<_> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    insta::assert_snapshot!(listed.join("\n"), @r"
    exit 0
    --- out
    STACK PLUGIN PACKAGE VERSION PINNED SANDBOX
    reef aws aws v6.83.4 no basic
    SOURCE github-release pulumi/pulumi-aws (core types, not installed)
    reef gcp gcp v8.41.1 no basic
    SOURCE local [repo]/home/.pulumi/plugins/resource-gcp-v8.41.1 (core types, installed by pulumi)
    --- err
    ");
    insta::assert_snapshot!(run(&repository, "plugin install", &with_server(&url, &[])), @r"
    exit 0
    --- out
    STACK  PLUGIN  REVISION
    reef   aws     v6.83.4
      CHECKSUM  sha256:[id]
    reef   gcp     -
      CHECKSUM  sha256:[id]
    --- err
    Downloading aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])
    Downloaded aws: pulumi-resource-aws-v6.83.4-[platform].tar.gz ([size])
    info: plugin aws: version v6.83.4 is recorded in .sc/sc.lock
    info: Packages of core types: aws 6.83.4 from a release of pulumi/pulumi-aws, gcp 8.41.1 from [repo]/home/.pulumi/plugins/resource-gcp-v8.41.1
    ");
    insta::assert_snapshot!(run(&repository, "plugin ls --json", &with_server(&url, &[])), @r#"
    exit 0
    --- out
    {"stack":"reef","name":"aws","package":"aws","enabled":true,"source":"github-release","location":"pulumi/pulumi-aws","version":"v6.83.4","locked":"v6.83.4","pinned":false,"matches":null,"sandbox":"basic","checksum":"sha256:[id]","declared":false,"found":"cached"}
    {"stack":"reef","name":"gcp","package":"gcp","enabled":true,"source":"local","location":"[repo]/home/.pulumi/plugins/resource-gcp-v8.41.1","version":"v8.41.1","locked":null,"pinned":false,"matches":null,"sandbox":"basic","checksum":null,"declared":false,"found":"installed by pulumi"}
    --- err
    "#);
    assert_eq!(server.downloads(), 1);
    drop(server);
    let output = expect_success(&repository, "provision", &with_server(&url, &[]));
    let expected = "info: Packages of core types: aws 6.83.4 from the cache, gcp 8.41.1 from \
                    [repo]/home/.pulumi/plugins/resource-gcp-v8.41.1";
    assert_eq!(lines_with(&output, "Packages of"), [expected]);
}

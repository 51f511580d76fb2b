//! Tests of `sc doctor`: what it finds, and that it changes nothing.

use std::fs;

use tests::releases::ReleaseServer;

use crate::filter::filter_output;
use crate::repository::{FILES, Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";

fn repository(plugins: &str) -> Repository {
    let repository = Repository::new(Sections { plugins, resources: FILE_RESOURCE, outputs: "" });
    fs::create_dir(repository.path("site")).unwrap();
    repository
}

fn run(repository: &Repository, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.envs(variables.iter().copied());
    filter_output(&repository.start_command(command).output(), &[(&repository.path(""), "[repo]")])
}

/// Returns the line of a check.
fn line<'o>(output: &'o str, name: &str) -> &'o str {
    let is_of = |line: &&str| line.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(name));
    output.lines().find(is_of).unwrap_or_else(|| panic!("{name}: {output}"))
}

/// Shows: plugins.md#finding-what-is-wrong "It writes nothing, takes no lock and starts no plugin."
#[test]
fn doctor_finds_nothing_wrong_and_changes_nothing() {
    let repository = repository(FILES);
    let all = |repository: &Repository| repository.files("");
    let before = all(&repository);
    let output = run(&repository, "doctor", &[]);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(line(&output, "state of reef").contains("the stack has not been provisioned yet"), "{output}");
    assert!(all(&repository) == before, "{output}");

    repository.expect_exit(0, "provision -S");
    let before = all(&repository);
    let output = run(&repository, "doctor", &[]);
    assert!(output.starts_with("exit 0\n") && all(&repository) == before, "{output}");
    for (name, expected) in [
        ("files", "✓ files"),
        ("git", "git version 2."),
        ("cache", "[repo]/home/.cache/sc can be written, and permits programs"),
        ("sandbox", "`basic`"),
        ("proxy", "none is set"),
        ("lock file", ".sc/sc.lock has what the stacks declare"),
        ("state of reef", "read with its key; it has 3 resources"),
    ] {
        assert!(line(&output, name).contains(expected), "{name}: {output}");
    }
    let json = run(&repository, "doctor --json", &[]);
    let lines = json.lines().filter(|line| line.starts_with('{'));
    let checks: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let cache = checks.iter().find(|check| check["name"] == "cache").unwrap();
    assert_eq!((&cache["state"], &cache["advice"]), (&"good".into(), &serde_json::Value::Null));
}

/// Shows: plugins.md#finding-what-is-wrong "It ends with exit code 1 if something is wrong."
#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let releases = runtime.block_on(ReleaseServer::start()).unwrap();
    let declaration = |repository: &str| {
        let url = releases.api_url();
        format!(
            "{{ type: github-release, repository: {repository}, version: ^1.2, platform: linux-amd64, apiUrl: '{url}', token: s3cr3t }}"
        )
    };
    let plugins =
        format!("- {{ name: files, source: {}, config: {{ root: site }} }}", declaration("acme/pulumi-files"));
    let repository = repository(&plugins);

    let output = run(&repository, "doctor", &[]);
    assert!(output.starts_with("exit 0\n"), "a run adds what is missing: {output}");
    assert!(line(&output, "lock file").starts_with("! ") && output.contains("hint: run `sc plugin lock`"), "{output}");
    let host = line(&output, "host 127.0.0.1");
    assert!(host.starts_with("✓ ") && host.contains("reached as source.token"), "{output}");
    assert!(!output.contains("s3cr3t"), "{output}");

    // Nothing is asked offline, and nothing that the policy refuses.
    let requests = releases.requests().len();
    assert!(line(&run(&repository, "doctor --offline", &[]), "hosts").contains("--offline opens no connection"));
    let policy = repository.path("home/policy.yaml");
    fs::write(&policy, "places: [github.com/pulumi/*]\n").unwrap();
    let output = run(&repository, "doctor", &[("SC_PLUGIN_POLICY", policy.to_str().unwrap())]);
    assert!(output.starts_with("exit 1\n"), "{output}");
    assert!(
        line(&output, "policy").contains("failed to load plugin files: the policy refuses it: its place is"),
        "{output}"
    );
    assert_eq!(releases.requests().len(), requests);

    releases.refuse_token("s3cr3t");
    repository.write("home/file", "");
    let file = repository.path("home/file").display().to_string();
    let variables = [
        ("CI", "true"),
        ("XDG_CACHE_HOME", file.as_str()),
        ("HTTP_PROXY", "http://me:word@:x"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    repository.write(".sc/sc.lock", "<<<<<<< HEAD\n");
    let output = run(&repository, "doctor", &variables);
    assert!(output.starts_with("exit 1\n") && !output.contains("word"), "{output}");
    for (name, expected) in [
        ("cache", "is not a folder"),
        ("proxy", "HTTP_PROXY has no address of a proxy"),
        ("lock file", "line 1 is the mark of a merge that is not resolved"),
        ("host 127.0.0.1", "refuses access"),
    ] {
        let line = line(&output, name);
        assert!(line.starts_with("✗ ") && line.contains(expected), "{name}: {output}");
    }
    assert!(output.contains("error: 4 checks have found something wrong"), "{output}");
    let output = run(&repository, "doctor", &[("SSL_CERT_DIR", "/nowhere")]);
    let certificates = line(&output, "certificates");
    assert!(certificates.contains("SSL_CERT_DIR names /nowhere, which does not exist"), "{output}");
}

#[test]
fn doctor_checks_the_machine_also_where_the_files_have_mistakes() {
    let repository = repository(&FILES.replace("name: files", "name: Files"));
    let output = run(&repository, "doctor", &[]);
    assert!(output.starts_with("exit 1\n") && output.contains("error[plugin"), "{output}");
    assert!(line(&output, "files").starts_with("✗ ") && line(&output, "cache").starts_with("✓ "), "{output}");
    let unreadable = run(&repository, "doctor -s nowhere", &[]);
    assert!(unreadable.starts_with("exit 1\n") && line(&unreadable, "files").contains("there is no stack nowhere"));
}

//! Tests of completion in a shell.

use std::fs;

use crate::repository::repository;
use crate::state::with_state;
use crate::{run, sc};

/// Returns what a shell gets for the last word of a command line: one word for each line.
fn complete(folder: &tempfile::TempDir, line: &str) -> String {
    let words: Vec<&str> = ["--", "sc"].into_iter().chain(line.split(' ')).collect();
    let mut command = sc(&words);
    command.current_dir(folder.path()).env("SC_COMPLETE", "fish").env("HOME", folder.path().join("home"));
    let output = run(command);
    let words = output.strip_prefix("exit 0\n--- out\n").and_then(|output| output.strip_suffix("--- err\n"));
    let words = words.unwrap_or_else(|| panic!("{line}: {output}"));
    let names = words.lines().map(|line| line.split('\t').next().unwrap_or_default());
    names.filter(|name| !name.starts_with("--")).collect::<Vec<_>>().join(" ")
}

/// Shows: comparison.md#for-pulumi-users "also completes the names of stacks, plugins, resources, outputs and profiles;
///   opens no connection, starts no plugin, takes no lock"
#[test]
fn names_of_stacks_resources_outputs_and_profiles_are_completed() {
    let folder = with_state("secrets");
    let server = folder.path().join(".sc/stacks/dev/server.yaml");
    let sections = "plugins: [{ name: rec, source: { type: local, path: rec } }]
resources: { resources: { prod: { resources: { coral: { type: 'rec:index:Thing' } } } } }
outputs: { token: one, tide: two }
";
    let text = fs::read_to_string(&server).unwrap() + sections;
    // No passphrase is needed.
    let start = text.find("passPhrase").unwrap();
    let end = start + text[start..].find('}').unwrap();
    fs::write(&server, text[..start].to_owned() + &text[end..]).unwrap();
    fs::write(folder.path().join(".sc/cfg.test.yaml"), "projectName: reef\n").unwrap();
    assert_eq!(complete(&folder, "state show c"), "", "no command has kept the names");
    let mut shown = sc(&["state", "ls"]);
    shown.current_dir(folder.path()).env("HOME", folder.path().join("home"));
    assert!(run(shown).starts_with("exit 0\n"));
    let table = [
        ("provision --stacks d", "dev"),
        ("state show c", "clam crab"),
        ("state show -s dev cr", "crab"),
        ("state show -s other cr", ""),
        ("provision --target c", "clam coral--prod crab"),
        ("preview --exclude *", "*--prod"),
        ("stack outputs t", "tide token"),
        ("output ti", "tide"),
        ("stack ls --profile t", "test"),
        ("prov", "provision"),
        ("pl", "plan plugin"),
        ("stack l", "ls"),
        ("stack out", "outputs"),
        ("secrets enc", "encrypt"),
        ("state rename cr", "crab"),
        ("state rename crab c", "coral--prod"),
        ("import c", "coral--prod="),
    ];
    for (line, expected) in table {
        let mut words: Vec<String> = complete(&folder, line).split_whitespace().map(str::to_owned).collect();
        words.sort();
        assert_eq!(words.join(" "), expected, "{line}");
    }
    assert!(!folder.path().join("backend/.pulumi/locks").exists(), "a completion takes no lock");
}

/// Shows: comparison.md#for-pulumi-users "also completes the names of stacks, plugins, resources, outputs and profiles;
///   opens no connection, starts no plugin, takes no lock"
#[test]
fn completion_in_an_invalid_repository_prints_no_error() {
    let folder = repository("dev", "hush", "plugins: 7\n");
    assert_eq!(complete(&folder, "state show c"), "");
    assert_eq!(complete(&folder, "provision -s d"), "dev");
    fs::remove_file(folder.path().join(".sc/cfg.default.yaml")).unwrap();
    assert_eq!(complete(&folder, "provision -s d"), "dev", "a folder needs no profile");
}

/// Shows: security.md#the-repository "quotes them for the shell: a name is never a command"
#[test]
fn names_are_quoted_for_the_shell_and_commands_in_them_are_not_run() {
    let resources = "resources: { resources: { e: { resources: { 'web$(touch${IFS}X)': {}, '--yes': {} } } } }\n";
    let folder = repository("dev", "hush", resources);
    for (shell, expected) in [("bash", r"web\$\(touch\$\{IFS\}X\)--e"), ("fish", "web$(touch${IFS}X)--e")] {
        let mut command = sc(&["--", "sc", "preview", "--target", "web"]);
        command.current_dir(folder.path()).env("SC_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "3");
        let output = run(command);
        assert!(output.contains(&format!("--- out\n{expected}")), "{shell}: {output}");
        assert!(!output.contains("--yes--e"), "{output}");
    }
}

/// Shows: comparison.md#for-pulumi-users "also completes the names of stacks, plugins, resources, outputs and profiles;
///   opens no connection, starts no plugin, takes no lock"
#[test]
fn completion_and_validation_of_files_open_no_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let folder = repository("dev", "hush", "outputs: { host: '${env:TOKEN}' }\n");
    let server = folder.path().join(".sc/stacks/dev/server.yaml");
    let port = listener.local_addr().unwrap().port();
    let url = format!("s3://b-${{env:TOKEN}}/x?endpoint=http://127.0.0.1:{port}&s3ForcePathStyle=true");
    let storage = format!("    state-storage: {{ type: fs, config: {{ path: \"{url}\" }} }}");
    let text = fs::read_to_string(&server).unwrap();
    let lines: Vec<&str> =
        text.lines().map(|line| if line.contains("state-storage") { storage.as_str() } else { line }).collect();
    fs::write(&server, lines.join("\n")).unwrap();
    let credentials =
        [("TOKEN", "sekret"), ("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "us-east-1")];
    let mut validation = sc(&["validate", "--no-plugins"]);
    validation.current_dir(folder.path()).envs(credentials);
    assert!(run(validation).starts_with("exit 0\n"));
    for line in
        ["state show ", "provision --target ", "stack outputs ", "stack secret-get ", "provision -s ", "plugin debug "]
    {
        let words: Vec<&str> = ["--", "sc"].into_iter().chain(line.split(' ')).collect();
        let mut command = sc(&words);
        command.current_dir(folder.path()).env("SC_COMPLETE", "fish").envs(credentials);
        assert!(run(command).starts_with("exit 0\n"), "{line}");
    }
    let accepted = listener.accept().map(drop);
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "a connection was opened");
}

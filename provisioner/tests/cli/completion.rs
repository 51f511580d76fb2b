//! Tests of completion in a shell.

use std::fs;

use crate::repository::repository;
use crate::state::with_state;
use crate::{run, sc};

/// Returns what a shell gets for the last word of a command line: one word for each line.
fn complete(folder: &tempfile::TempDir, line: &str) -> String {
    let words: Vec<&str> = ["--", "sc"].into_iter().chain(line.split(' ')).collect();
    let mut command = sc(&words);
    command.current_dir(folder.path()).env("SC_COMPLETE", "fish");
    let output = run(command);
    let words = output.strip_prefix("exit 0\n--- out\n").and_then(|output| output.strip_suffix("--- err\n"));
    let words = words.unwrap_or_else(|| panic!("{line}: {output}"));
    let names = words.lines().map(|line| line.split('\t').next().unwrap_or_default());
    names.filter(|name| !name.starts_with("--")).collect::<Vec<_>>().join(" ")
}

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
    ];
    for (line, expected) in table {
        let mut words: Vec<String> = complete(&folder, line).split_whitespace().map(str::to_owned).collect();
        words.sort();
        assert_eq!(words.join(" "), expected, "{line}");
    }
    assert!(!folder.path().join("backend/.pulumi/locks").exists(), "a completion takes no lock");
}

#[test]
fn completion_in_an_invalid_repository_prints_no_error() {
    let folder = repository("dev", "hush", "plugins: 7\n");
    assert_eq!(complete(&folder, "state show c"), "");
    assert_eq!(complete(&folder, "provision -s d"), "dev");
    fs::remove_file(folder.path().join(".sc/cfg.default.yaml")).unwrap();
    assert_eq!(complete(&folder, "provision -s d"), "");
}

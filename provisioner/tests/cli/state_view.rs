//! Tests of commands that show resources and outputs of states that the real `pulumi` wrote.

use std::fs;

use crate::state::{check, with_state};

/// Removes what depends on the time of the test.
fn without_ages(text: &str) -> String {
    text.lines().map(|line| line.split(" UTC (").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Shows: state.md#recorded-resources "Secrets are masked, and nothing is decrypted, so no passphrase is needed"
#[test]
fn resources_are_listed_and_shown_without_the_passphrase() {
    let folder = with_state("secrets");
    let server = folder.path().join(".sc/stacks/dev/server.yaml");
    let text = fs::read_to_string(&server).unwrap();
    let start = text.find("passPhrase").unwrap();
    let end = start + text[start..].find('}').unwrap();
    fs::write(&server, text[..start].to_owned() + &text[end..]).unwrap();
    insta::assert_snapshot!(check(&folder, &["state", "ls"]), @"
    exit 0
    --- out
    NAME           TYPE                  ID
    reef-dev       pulumi:pulumi:Stack   -
    default_1_0_0  pulumi:providers:rec  fc0b96a7-059d-4d2f-bcda-f0ff299551dd
    clam           rec:index:Thing       clam-1
    crab           rec:index:Thing       crab-1
    --- err
    ");
    insta::assert_snapshot!(check(&folder, &["state", "ls", "cr*", "--json"]), @r#"
    exit 0
    --- out
    {"name":"crab","type":"rec:index:Thing","id":"crab-1","urn":"urn:pulumi:dev::reef::rec:index:Thing::crab","status":[]}
    --- err
    "#);
    insta::assert_snapshot!(without_ages(&check(&folder, &["state", "show", "crab"])), @r#"
    exit 0
    --- out
    crab (rec:index:Thing)
      URN:          urn:pulumi:dev::reef::rec:index:Thing::crab
      id:           crab-1
      provider:     default_1_0_0 (pulumi:providers:rec)
      parent:       reef-dev (pulumi:pulumi:Stack)
      depends on:   clam (rec:index:Thing)
      created:      2026-11-21 00:35:14
      modified:     2026-11-21 00:35:14
      options:
        additionalSecretOutputs: ["out","cid"]
      inputs:
        v: "open"
        w:
          hidden: {}
          list:
            [0]: "x"
            [1]: {}
            [2]: {}
            [3]: null
            [4]: {}
          plain: 1
      outputs:
        cid: [secret]
        out: [secret]
        v: "open"
        w:
          hidden: {}
          list:
            [0]: "x"
            [1]: {}
            [2]: {}
            [3]: null
            [4]: {}
          plain: 1
    --- err
    "#);
    let shown = check(&folder, &["state", "show", "crab", "--show-secrets"]);
    assert!(shown.starts_with("exit 1\n") && shown.contains("PULUMI_CONFIG_PASSPHRASE"), "{shown}");
}

#[test]
fn secrets_of_a_resource_are_shown_on_request() {
    let folder = with_state("secrets");
    let shown = check(&folder, &["state", "show", "crab", "--show-secrets", "--json"]);
    assert!(shown.starts_with("exit 0\n") && !shown.contains("[secret]"), "{shown}");
}

#[test]
fn every_entry_of_a_resource_is_shown() {
    let folder = with_state("pending-delete");
    insta::assert_snapshot!(check(&folder, &["state", "ls"]), @"
    exit 0
    --- out
    NAME           TYPE                  ID
    reef-dev       pulumi:pulumi:Stack   -
    default_1_0_0  pulumi:providers:rec  a985fed5-7786-4b28-b511-a5ba220f8eb3
    clam           rec:index:Thing       clam-2
    crab           rec:index:Thing       crab-1
    squid          rec:index:Thing       squid-1
      STATUS  pending replacement
    clam           rec:index:Thing       clam-1
      STATUS  pending delete
    gone           rec:index:Thing       gone-1
    --- err
    ");
    let shown = check(&folder, &["state", "show", "clam"]);
    let ids: Vec<&str> = shown.lines().filter_map(|line| line.trim().strip_prefix("id:")).map(str::trim).collect();
    assert_eq!(ids, ["clam-2", "clam-1"], "{shown}");
}

#[test]
fn unknown_resource_or_stack_without_state_is_an_error() {
    let folder = with_state("up");
    insta::assert_snapshot!(check(&folder, &["state", "show", "reff-dev"]), @"
    exit 1
    --- out
    --- err
    error: no resource of this stack is called reff-dev
      hint: did you mean reef-dev?
    ");
    insta::assert_snapshot!(check(&folder, &["state", "ls", "nothing"]), @"
    exit 1
    --- out
    --- err
    error: no resource of this stack is called nothing
      hint: the resources are: default_1_0_0, reef-dev, clam, crab
    ");
    assert!(check(&folder, &["state", "ls", "nothing*"]).starts_with("exit 0\n"));
    fs::remove_dir_all(folder.path().join("backend/.pulumi")).unwrap();
    let missing = check(&folder, &["state", "ls"]);
    assert!(missing.starts_with("exit 1\n") && missing.contains("has not been provisioned yet"), "{missing}");
}

/// Shows: comparison.md#for-pulumi-users "a single output is printed bare: a text as it is, any other value as JSON"
#[test]
fn single_output_is_printed_bare() {
    let folder = with_state("secrets");
    insta::assert_snapshot!(check(&folder, &["stack", "outputs", "token"]), @"
    exit 0
    --- out
    [secret]
    --- err
    the output token is secret: --show-secrets shows it
    ");
    insta::assert_snapshot!(check(&folder, &["output", "token", "--show-secrets"]), @"
    exit 0
    --- out
    tok-1
    --- err
    ");
    insta::assert_snapshot!(check(&folder, &["stack", "output", "outer", "--show-secrets", "--json"]), @r#"
    exit 0
    --- out
    {"inner":"in-in","n":1}
    --- err
    "#);
    insta::assert_snapshot!(check(&folder, &["stack", "outputs", "tokn"]), @"
    exit 1
    --- out
    --- err
    error: the stack has no output tokn
      hint: did you mean token?
    ");
}

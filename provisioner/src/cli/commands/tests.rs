use clap::CommandFactory;

use std::time::Duration;

use super::*;
use crate::cli::args::duration;

/// Returns the long help of a command.
fn help(words: &[&str]) -> String {
    let words: Vec<&str> = std::iter::once("sc").chain(words.iter().copied()).chain(["--help"]).collect();
    let error = Cli::try_parse_from(words).unwrap_err();
    error.to_string()
}

#[test]
fn help_of_each_command() {
    let commands: [&[&str]; 57] = [
        &[],
        &["init"],
        &["provision"],
        &["preview"],
        &["plan"],
        &["plan", "show"],
        &["plan", "check"],
        &["validate"],
        &["refresh"],
        &["destroy"],
        &["import"],
        &["cancel"],
        &["stack"],
        &["stack", "ls"],
        &["stack", "graph"],
        &["stack", "outputs"],
        &["stack", "export"],
        &["stack", "history"],
        &["stack", "restore"],
        &["stack", "change-secrets-provider"],
        &["stack", "migrate"],
        &["stack", "rename"],
        &["stack", "rm"],
        &["stack", "tag"],
        &["stack", "tag", "set"],
        &["state"],
        &["state", "ls"],
        &["state", "show"],
        &["state", "rm"],
        &["state", "unprotect"],
        &["plugin"],
        &["stack", "import"],
        &["plugin", "add"],
        &["plugin", "install"],
        &["plugin", "ls"],
        &["plugin", "lock"],
        &["plugin", "update"],
        &["plugin", "verify"],
        &["plugin", "mirror"],
        &["plugin", "prune"],
        &["plugin", "schema"],
        &["plugin", "debug"],
        &["stack", "secret-get"],
        &["secrets"],
        &["secrets", "init"],
        &["secrets", "list"],
        &["secrets", "add"],
        &["secrets", "delete"],
        &["secrets", "edit"],
        &["secrets", "hide"],
        &["secrets", "reveal"],
        &["secrets", "allow"],
        &["secrets", "disallow"],
        &["secrets", "allowed-keys"],
        &["doctor"],
        &["schema-gen"],
        &["completion"],
    ];
    for words in commands {
        let name = std::iter::once("help").chain(words.iter().copied()).collect::<Vec<_>>().join("_");
        insta::assert_snapshot!(name, help(words));
    }
}

#[test]
fn command_line_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_and_argument_has_help() {
    fn check(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{} has no help", command.get_name());
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} {} has no help", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// Shows: comparison.md#what-is-the-same "`-P -s -d -R -S -D -O -p`; `-M DURATION` and `-T DURATION` are accepted without effect"
#[test]
fn simple_container_command_lines_are_accepted() {
    let lines = [
        "sc provision -P -R -D -d stacks -s a,b -s c -p prod -v -M 1m -T nonsense -O 1h30m",
        "sc provision --preview --skip-refresh --diff=false --dir stacks --stacks a --profile prod --verbose",
        "sc provision --skip-preview --detailed-diff --preview-timeout 1m --timeout 1m --execution-timeout 90s",
        "sc destroy --parent -s a -d stacks -p prod -R -S -D",
        "sc cancel --parent --stack a --dir stacks --profile prod",
        "sc -p prod -v stack outputs -s a -d stacks",
    ];
    for line in lines {
        assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
    }
}

#[test]
fn stacks_can_be_comma_separated_or_repeated() {
    let cli = Cli::try_parse_from("sc provision -s a,b --stack c".split(' ')).unwrap();
    let Command::Provision(args) = cli.command else { panic!("another command") };
    assert_eq!(args.stacks.stacks, ["a", "b", "c"]);
    assert!(args.diff.diff);
}

#[test]
fn invalid_execution_timeout_is_rejected() {
    let error = Cli::try_parse_from(["sc", "provision", "-O", "soon"]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"
    error: invalid value 'soon' for '--execution-timeout <DURATION>': not a duration such as 90s, 30m or 1h30m

    For more information, try '--help'.
    ");
    assert_eq!(duration("1h1m1.5s"), Ok(Duration::from_millis(3_661_500)));
    for bad in ["", "5", "m", "-1s", "1d", "1..5s", "0s"] {
        assert!(duration(bad).is_err(), "{bad}");
    }
}

#[test]
fn misspelled_command_has_a_suggestion() {
    let error = Cli::try_parse_from(["sc", "provison"]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"
    error: unrecognized subcommand 'provison'

      tip: a similar subcommand exists: 'provision'

    Usage: sc [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

/// Flags of Simple Container that a command has in another form, each with the reason.
const OTHER_FLAGS: [(&str, &str, &str); 2] = [
    ("sc secrets init", "C", "`-C FOLDER` is a global option; without a folder it is replaced by --commit"),
    ("sc stack secret-get", "env", "client stacks are not deployed"),
];

#[test]
fn commands_of_the_secrets_store_have_the_names_and_flags_of_simple_container() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/simple-container/cli/commands.json");
    let commands: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let commands = commands.as_object().unwrap();
    let mut count = 0;
    for (line, recorded) in
        commands.iter().filter(|(line, _)| line.starts_with("sc secrets") || line.as_str() == "sc stack secret-get")
    {
        let mut root = Cli::command();
        root.build();
        let command = line.split(' ').skip(1).fold(&root, |command, name| command.find_subcommand(name).unwrap());
        let has = |name: &str, short: Option<&str>| {
            let argument = command.get_arguments().find(|argument| argument.get_long() == Some(name));
            let is_other = |flag: &str| OTHER_FLAGS.iter().any(|(of, known, _)| of == line && *known == flag);
            let shorts = argument.and_then(clap::Arg::get_short).map(String::from);
            (argument.is_some() || is_other(name))
                && short.is_none_or(|short| shorts.as_deref() == Some(short) || is_other(short))
        };
        for flag in recorded["flags"].as_array().unwrap() {
            assert!(has(flag["name"].as_str().unwrap(), flag["short"].as_str()), "{line} {flag}");
        }
        for name in recorded["inherited"].as_array().unwrap() {
            assert!(has(name.as_str().unwrap(), None), "{line} --{name}");
        }
        for name in recorded["subcommands"].as_array().unwrap() {
            assert!(command.find_subcommand(name.as_str().unwrap()).is_some(), "{line} {name}");
        }
        count += 1;
    }
    assert_eq!(count, 11);
}

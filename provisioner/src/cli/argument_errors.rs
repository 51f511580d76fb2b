//! Errors of the arguments: replies to commands and options of other tools, and harmless suggestions.
//!
//! clap suggests names that look alike: `destroy` for `deploy`. A command that deletes is suggested only for a typing
//! error of its name.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use config::diagnostics::closest;

/// Commands that delete or forget something, and whose names are long enough to recognize a typing error.
const DELETING: [&str; 2] = ["destroy", "cancel"];

/// Command that is never suggested: every short word is similar to its name.
const NEVER_SUGGESTED: &str = "rm";

/// Tips for commands of other tools, by the words of the command.
const COMMANDS: [(&[&str], &str); 23] = [
    (&["apply", "run", "create"], "`sc provision` creates, updates and deletes resources to match the stacks"),
    (
        &["deploy"],
        "`sc provision` makes the resources match the stacks; this sc does not deploy client stacks (client.yaml)",
    ),
    (&["diff", "dry-run", "show-plan"], "`sc preview` shows the changes that `sc provision` would make"),
    (&["lint", "check", "test"], "`sc validate` checks the files of the stacks"),
    (
        &["down", "delete", "remove", "undeploy", "teardown"],
        "`sc help destroy` describes how to delete the resources of a stack",
    ),
    (&["rm"], "`sc help stack rm` and `sc help state rm` describe how to remove a stack or a resource from the state"),
    (&["login", "logout", "whoami"], "there is no login: `state-storage` in server.yaml names the folder of the state"),
    (&["version"], "`sc --version` prints the version"),
    (&["new"], "`sc init` writes the files of a first stack"),
    (&["ls", "list", "stacks"], "`sc stack ls` lists the stacks, `sc state ls` the recorded resources of one"),
    (&["show", "get", "resource"], "`sc state show RESOURCE` shows a recorded resource"),
    (&["export"], "`sc stack export` prints the state of a stack"),
    (&["history"], "`sc stack history` lists the updates of a stack"),
    (&["unlock", "force-unlock"], "`sc cancel` removes the lock of an interrupted run, after you confirm it"),
    (
        &["taint", "untaint", "protect", "unprotect", "rename"],
        "edits of the state are below `sc state`: see `sc help state`",
    ),
    (&["install", "get-plugins"], "`sc plugin install` downloads and verifies the plugins that the stacks declare"),
    (&["plugins", "providers"], "`sc plugin ls` lists the plugins that the stacks declare"),
    (&["config"], "configuration is part of server.yaml (`variables`, `config` of resources and plugins)"),
    (&["schema"], "`sc schema-gen FOLDER` writes JSON Schemas for editors"),
    (&["stack select", "workspace"], "there is no selected stack: give -s STACK to a command, or all stacks are used"),
    (&["stack init", "stack new"], "a stack is a folder with a server.yaml below `.sc/stacks`; `sc init` writes one"),
    (&["state mv", "state move"], "`sc state rename RESOURCE NAME` renames a resource in the state"),
    (
        &["state pull", "state push", "state edit"],
        "`sc stack export` writes the state of a stack, and `sc stack import` reads it",
    ),
];

/// Tips for options of other tools.
const OPTIONS: [(&[&str], &str); 9] = [
    (&["--refresh", "-refresh"], "provision and destroy refresh the state first; --skip-refresh (-R) omits it"),
    (&["--auto-approve", "--approve"], "`sc provision` never asks; --yes confirms the other commands"),
    (&["--non-interactive", "--input"], "without a terminal `sc` never asks; --yes confirms"),
    (&["--dry-run", "--preview-only", "--plan"], "`sc preview` shows the changes and makes none"),
    (&["--detailed-exitcode"], "--expect-no-changes fails with exit code 7 if there are changes"),
    (
        &["--var", "--var-file", "--config", "--config-file"],
        "values are in `variables` of server.yaml, or in `${env:NAME}`",
    ),
    (&["--env", "--environment"], "`--target '*--ENV'` selects the resources of one environment"),
    (&["--output", "--format"], "--json prints JSON"),
    (&["--no-color"], "--color never disables colour"),
];

/// Adds tips to an error of the arguments, and removes dangerous suggestions.
pub(crate) fn with_tips(mut error: clap::Error) -> clap::Error {
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(&error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let tip = tip(&COMMANDS, &format!("{}{typed}", parent_command(&error)));
            keep_suggestions(&mut error, &typed);
            tip
        }
        ErrorKind::UnknownArgument => {
            let typed = text(&error, ContextKind::InvalidArg).unwrap_or_default();
            // Suggests commands that accept the option, whatever they do.
            error.remove(ContextKind::SuggestedSubcommand);
            tip(&OPTIONS, typed.split('=').next().unwrap_or_default())
        }
        _ => None,
    };
    let Some(tip) = tip else {
        // An empty list would be printed as an empty line.
        if matches!(error.get(ContextKind::Suggested), Some(ContextValue::StyledStrs(tips)) if tips.is_empty()) {
            error.remove(ContextKind::Suggested);
        }
        return error;
    };
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
        error.remove(kind);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

fn tip(table: &[(&[&'static str], &'static str)], typed: &str) -> Option<&'static str> {
    table.iter().find(|(words, _)| words.contains(&typed)).map(|(_, tip)| *tip)
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Returns the words of the command whose subcommand is unknown, each with a space; none for `sc` itself.
fn parent_command(error: &clap::Error) -> String {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return String::new() };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "sc").skip(1);
    words.take_while(|word| !word.starts_with(['[', '<'])).map(|word| format!("{word} ")).collect()
}

/// Removes the suggestions of commands that delete, unless the typed word is nearly one of them.
fn keep_suggestions(error: &mut clap::Error, typed: &str) {
    let Some(ContextValue::Strings(suggested)) = error.remove(ContextKind::SuggestedSubcommand) else { return };
    let is_safe = |command: &String| match command.as_str() {
        NEVER_SUGGESTED => false,
        command => !DELETING.contains(&command) || closest(typed, [command]).is_some(),
    };
    let kept: Vec<String> = suggested.into_iter().filter(is_safe).collect();
    if !kept.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(kept));
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::super::commands::Cli;
    use super::*;

    fn reply(line: &str) -> String {
        with_tips(Cli::try_parse_from(line.split(' ')).unwrap_err()).to_string()
    }

    /// Shows: comparison.md#for-pulumi-users "A command or an option of another tool is answered with that of `sc`"
    #[test]
    fn commands_of_other_tools_are_answered_with_a_command() {
        let table = [
            ("sc apply", "sc provision"),
            ("sc deploy -s reef -e prod", "sc provision"),
            ("sc diff", "sc preview"),
            ("sc login file://.", "no login"),
            ("sc version", "sc --version"),
            ("sc down", "sc help destroy"),
            ("sc stack select dev", "-s STACK"),
            ("sc state mv a b", "sc state rename"),
            ("sc provision --refresh=false", "--skip-refresh"),
            ("sc up --refresh", "--skip-refresh"),
            ("sc provision --auto-approve", "--yes"),
            ("sc plan --detailed-exitcode", "--expect-no-changes"),
        ];
        for (line, expected) in table {
            let reply = reply(line);
            assert!(reply.contains("tip: ") && reply.contains(expected), "{line}: {reply}");
            assert!(!reply.contains("similar"), "{line}: {reply}");
        }
        assert!(reply("sc dest").starts_with("error: unrecognized subcommand 'dest'\n\nUsage: "));
        insta::assert_snapshot!(reply("sc deploy"), @"
        error: unrecognized subcommand 'deploy'

          tip: `sc provision` makes the resources match the stacks; this sc does not deploy client stacks (client.yaml)

        Usage: sc [OPTIONS] <COMMAND>

        For more information, try '--help'.
        ");
    }

    /// Shows: comparison.md#for-pulumi-users "a command that deletes is suggested only for a typing error of its name"
    #[test]
    fn command_that_deletes_is_suggested_only_for_a_typing_error_of_its_name() {
        for line in ["sc destory", "sc distroy", "sc canel"] {
            assert!(reply(line).contains("a similar subcommand exists"), "{line}: {}", reply(line));
        }
        let lines = [
            "sc deploy",
            "sc destruct",
            "sc describe",
            "sc dest",
            "sc restore",
            "sc cance",
            "sc stack show",
            "sc stack mv",
            "sc stack r",
            "sc state mv",
            "sc state r",
            "sc stack tag remove",
            "sc --parent",
            "sc --force",
        ];
        for line in lines {
            let reply = reply(line);
            let suggestion = reply.lines().find(|line| line.contains("similar") || line.contains("exists"));
            let names_one = |line: &str| ["'destroy", "'rm'", "'rm "].iter().any(|name| line.contains(name));
            assert!(!suggestion.is_some_and(names_one), "{line}: {reply}");
        }
    }

    #[test]
    fn tips_are_for_unknown_commands_and_name_known_ones() {
        let root = Cli::command();
        let find = |words: &str| words.split(' ').try_fold(&root, |command, word| command.find_subcommand(word));
        for (words, tip) in COMMANDS {
            for word in words {
                assert!(find(word).is_none(), "`sc {word}` exists");
            }
            for named in tip.split('`').filter_map(|part| part.strip_prefix("sc ")) {
                let words: Vec<&str> = named
                    .split(' ')
                    .skip_while(|word| *word == "help")
                    .take_while(|word| {
                        word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
                    })
                    .collect();
                assert!(words.is_empty() || find(&words.join(" ")).is_some(), "`sc {named}` does not exist");
            }
        }
    }
}

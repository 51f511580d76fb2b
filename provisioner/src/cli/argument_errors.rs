//! Errors of the arguments: replies to commands and options of other tools, and harmless suggestions.
//!
//! clap suggests names that look alike: `destroy` for `deploy`. A command or an option that changes something is suggested only if it is
//! one letter away.

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::commands::Cli;

/// Commands that change nothing but files of the user's own choice. All others are suggested only for a slip of one letter.
const HARMLESS: [&str; 18] = [
    "preview",
    "plan",
    "validate",
    "stack",
    "state",
    "plugin",
    "secrets",
    "completion",
    "ls",
    "list",
    "show",
    "get",
    "outputs",
    "output",
    "history",
    "allowed-keys",
    "check",
    "help",
];

/// Options that change what a command does to resources or to the state, or that answer its questions.
const CHANGING_OPTIONS: [&str; 15] = [
    "--yes",
    "--skip-preview",
    "--force",
    "--parent",
    "--allow-empty",
    "--accept-missing",
    "--clear-pending-creates",
    "--import-pending-creates",
    "--new",
    "--replace",
    "--target-replace",
    "--remove-backups",
    "--continue-on-error",
    "--plan",
    "--allow-fewer",
];

/// Command that is never suggested: every short word is similar to its name.
const NEVER_SUGGESTED: &str = "rm";

/// Tips for commands of other tools, by the words of the command.
const COMMANDS: [(&[&str], &str); 33] = [
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
    (
        &["login", "logout", "whoami", "org"],
        "there is no login: `state-storage` in server.yaml names the store of the state, and the environment has its credentials",
    ),
    (
        &["upgrade", "update"],
        "`sc` does not replace itself: install a release as README.md says; `sc --version` names this one",
    ),
    (
        &["release", "image", "cicd", "assistant"],
        "this sc provisions parent stacks only: the `sc` of Simple Container has that command",
    ),
    (
        &["about", "info", "env"],
        "`sc --version` says which program this is, `sc plugin ls` and `sc stack ls` what it works with",
    ),
    (
        &["logs", "console", "watch"],
        "`sc` shows what its own runs do (`-v`, `SC_LOG`); logs of resources are at their providers",
    ),
    (&["policy", "convert", "package"], "`sc` has no such command: docs/comparison.md lists what Pulumi has beside it"),
    (&["stack unselect"], "there is no selected stack: give -s STACK to a command, or all stacks are used"),
    (&["state delete", "state remove"], "`sc help state rm` describes how to remove a resource from the state"),
    (
        &["plugin rm", "plugin remove"],
        "the cache of plugins is a folder: `sc plugin ls` shows what is in it; remove what you do not need",
    ),
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
    (
        &["stack select", "workspace", "stack use"],
        "there is no selected stack: give -s STACK to a command, or all stacks are used",
    ),
    (&["stack init", "stack new"], "a stack is a folder with a server.yaml below `.sc/stacks`; `sc init` writes one"),
    (
        &["graph"],
        "`sc stack graph` shows the order of stacks; `sc state show RESOURCE` names what a resource depends on",
    ),
    (&["state upgrade"], "nothing to do: `sc` reads every version of a state that `pulumi` writes"),
    (
        &["state mv"],
        "`sc state rename RESOURCE NAME` renames a resource in the state, and `sc state move` gives it another stack",
    ),
    (
        &["state pull", "state push", "state edit"],
        "`sc stack export` writes the state of a stack, and `sc stack import` reads it",
    ),
];

/// Tips for options of other tools.
const OPTIONS: [(&[&str], &str); 20] = [
    (&["--refresh", "-refresh"], "provision and destroy refresh the state first; --skip-refresh (-R) omits it"),
    (&["--auto-approve", "--approve"], "--yes answers the questions of a command"),
    (&["--non-interactive", "--input"], "without a terminal `sc` never asks; --yes answers the questions"),
    (&["--dry-run", "--preview-only", "--plan"], "`sc preview` shows the changes and makes none"),
    (&["--detailed-exitcode"], "--expect-no-changes fails with exit code 7 if there are changes"),
    (
        &["--var", "--var-file", "--config", "--config-file"],
        "values are in `variables` of server.yaml, or in `${env:NAME}`",
    ),
    (&["--env", "--environment"], "`--target '*--ENV'` selects the resources of one environment"),
    (&["--output", "--format"], "--json prints JSON"),
    (&["--no-color"], "--color never disables colour"),
    (
        &["--show-sames", "--show-reads", "--show-full-output"],
        "--diff shows all properties; `sc state ls` lists all resources",
    ),
    (&["--show-config", "--show-policy-remediations"], "the configuration is in server.yaml: `sc validate` checks it"),
    (
        &["--suppress-outputs", "--suppress-permalink", "--suppress-progress"],
        "a pipe gets one line for each change, `--json` events",
    ),
    (&["--all"], "without -s STACK a command is for all stacks of the profile"),
    (&["--shell"], "--json prints the outputs of a stack for programs: `eval` of a shell is not supported"),
    (&["-e"], "a stack has resources of several environments: `--target '*--ENV'` selects those of one"),
    (
        &["--skip-preview", "-S"],
        "only `provision` and `destroy` preview first; --yes answers the questions of other commands",
    ),
    (&["--remove"], "`sc stack rm`, which asks, removes the state of a stack without resources"),
    (&["--policy-pack"], "`sc` runs no policy packs"),
    (&["--skip-pending-creates"], "pending creates stay pending unless you say otherwise: see docs/state.md, Crashes"),
    (&["--concurrency", "-parallelism"], "--parallel N limits the resources that are processed at once"),
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
            let name = typed.split('=').next().unwrap_or_default();
            let suggested = text(&error, ContextKind::SuggestedArg).unwrap_or_default();
            if CHANGING_OPTIONS.contains(&suggested.as_str()) && !is_one_letter_away(name, &suggested) {
                error.remove(ContextKind::SuggestedArg);
                // The usage that clap chooses names it, too.
                error.remove(ContextKind::Usage);
            }
            if typed.starts_with('-') { tip(&OPTIONS, name) } else { unexpected_value_tip(&parent_command(&error)) }
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

/// Returns the tip for a command, its words each with a space, that was given a value without an option, as other tools take it.
fn unexpected_value_tip(words: &str) -> Option<&'static str> {
    if words == "stack change-secrets-provider " {
        return Some(
            "the new provider is `secrets-provider` of `provisioner` in server.yaml, and -s STACK names the stack",
        );
    }
    if words == "stack graph " {
        return Some(
            "the graph of the stacks goes to standard output (--format dot); `sc state show RESOURCE` names what a resource depends on",
        );
    }
    let root = Cli::command();
    let command = words.split_whitespace().try_fold(&root, |command, word| command.find_subcommand(word))?;
    let takes_stack = command.get_arguments().any(|argument| argument.get_short() == Some('s'));
    takes_stack.then_some("a stack is named by an option: -s STACK")
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

/// Removes the suggestions of commands that change something, unless the typed word is one letter away.
fn keep_suggestions(error: &mut clap::Error, typed: &str) {
    let Some(ContextValue::Strings(suggested)) = error.remove(ContextKind::SuggestedSubcommand) else { return };
    let is_safe = |command: &String| match command.as_str() {
        NEVER_SUGGESTED => false,
        command => HARMLESS.contains(&command) || is_one_letter_away(typed, command),
    };
    let kept: Vec<String> = suggested.into_iter().filter(is_safe).collect();
    if !kept.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(kept));
    }
}

/// Returns whether one letter was left out, added, replaced, or exchanged with the next one.
fn is_one_letter_away(typed: &str, name: &str) -> bool {
    let (mut typed, mut name): (Vec<char>, Vec<char>) = (typed.chars().collect(), name.chars().collect());
    let same = typed.iter().zip(&name).take_while(|(one, other)| one == other).count();
    (typed, name) = (typed.split_off(same), name.split_off(same));
    let same = typed.iter().rev().zip(name.iter().rev()).take_while(|(one, other)| one == other).count();
    typed.truncate(typed.len() - same);
    name.truncate(name.len() - same);
    match (&typed[..], &name[..]) {
        ([a, b], [c, d]) => a == d && b == c,
        (typed, name) => typed.len() <= 1 && name.len() <= 1,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

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
            ("sc stack rm dev", "-s STACK"),
            ("sc preview dev", "-s STACK"),
            ("sc stack change-secrets-provider passphrase", "`secrets-provider`"),
            ("sc stack ls --all", "all stacks"),
            ("sc stack graph dev.dot", "sc state show"),
            ("sc provision -e prod", "--target"),
            ("sc refresh --skip-preview", "--yes"),
            ("sc output --shell", "--json"),
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

    #[test]
    fn slip_of_one_letter_is_recognized() {
        let table = [
            ("destory", true),
            ("destry", true),
            ("destroyy", true),
            ("distroy", true),
            ("dsetroy", true),
            ("destroy", true),
            ("dest", false),
            ("destruct", false),
            ("detsory", false),
            ("", false),
        ];
        for (typed, expected) in table {
            assert_eq!(is_one_letter_away(typed, "destroy"), expected, "{typed}");
        }
    }

    #[test]
    fn option_that_changes_something_is_suggested_only_for_a_slip_of_one_letter() {
        for (line, is_suggested) in [
            ("sc provision --yess", true),
            ("sc provision --skip-prev", false),
            ("sc provision --skip-previw", true),
            ("sc provision --accept", false),
            ("sc refresh --clear-pending", false),
            ("sc provision --paralel 3", true),
        ] {
            let reply = reply(line);
            assert_eq!(reply.contains("a similar argument exists"), is_suggested, "{line}: {reply}");
            assert!(is_suggested || !reply.contains("--skip-preview"), "{line}: {reply}");
        }
        for (line, expected) in [
            ("sc up --show-sames", "--diff"),
            ("sc destroy --remove", "sc stack rm"),
            ("sc upgrade", "does not replace itself"),
            ("sc about", "sc --version"),
            ("sc release create", "parent stacks only"),
        ] {
            assert!(reply(line).contains(expected), "{line}: {}", reply(line));
        }
    }

    /// Shows: comparison.md#for-pulumi-users "a command that changes something is suggested only for a slip of one letter"
    #[test]
    fn command_that_changes_something_is_suggested_only_for_a_slip_of_one_letter() {
        for line in ["sc destory", "sc distroy", "sc canel", "sc provison", "sc refesh", "sc stack renam"] {
            assert!(reply(line).contains("a similar subcommand exists"), "{line}: {}", reply(line));
        }
        let lines = [
            "sc deploy",
            "sc destruct",
            "sc provide",
            "sc refactor",
            "sc important",
            "sc stack resto",
            "sc describe",
            "sc dest",
            "sc restore",
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
            let names = [
                "'destroy",
                "'rm'",
                "'rm ",
                "'provision",
                "'refresh",
                "'import",
                "'restore",
                "'rename",
                "'migrate",
                "'cancel",
            ];
            let names_one = |line: &str| names.iter().any(|name| line.contains(name));
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

//! `sc completion`: scripts that complete `sc` in shells. They call `sc` itself for the words.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::aot::Shell;
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::completions::with_candidates;
use crate::cli::exit::Exit;
use crate::cli::output::print_result;
use crate::cli::shell_words::without_patterns;

/// Environment variable with which a script asks `sc` for words. Its value is the name of the shell.
const VARIABLE: &str = "SC_COMPLETE";

/// Print a shell completion script
///
/// The script completes commands, options, and the names of stacks, resources, outputs and profiles. For a completion it calls
/// `sc`, which reads the names in the files of the repository and those that commands have kept in your cache folder. It
/// resolves no placeholder, opens no state and no connection, starts no plugin, takes no lock and prints no error.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_long_help = "\
Examples:
  Bash:
      echo 'source <(sc completion bash)' >> ~/.bashrc

  Zsh:
      echo 'source <(sc completion zsh)' >> ~/.zshrc

  Fish:
      echo 'sc completion fish | source' > ~/.config/fish/completions/sc.fish")]
pub(crate) struct CompletionArgs {
    /// Shell to complete in
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: CompletionArgs) -> anyhow::Result<Exit> {
    print_result(&script(args.shell, &program_name())?)?;
    Ok(Exit::Done)
}

fn script(shell: Shell, name: &str) -> std::io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.ok_or_else(|| std::io::Error::other(format!("{shell} is not supported")))?;
    completer.write_registration(VARIABLE, name, name, name, &mut script)?;
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(if shell == Shell::Bash { without_patterns(&script) } else { script })
}

/// Returns the name under which this program was started: where both programs called `sc` are on one PATH, one has another name.
fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    // A word that a shell does not take apart.
    let is_word =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    name.filter(is_word).unwrap_or("sc").to_owned()
}

/// Prints the words of a completion if a script asks for them. Returns false for any other run of the program.
pub(crate) fn complete(command: impl Fn() -> Command, arguments: &[OsString]) -> bool {
    let folder = std::env::current_dir().ok();
    let shell = std::env::var(VARIABLE).unwrap_or_default();
    let completion = CompleteEnv::with_factory(|| with_candidates(command(), arguments, &shell)).var(VARIABLE);
    // An error, such as a closed pipe, is not printed: the user is typing.
    completion.try_complete(arguments.to_vec(), folder.as_deref()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn completion_script_of_each_shell_calls_the_program() {
        for shell in Shell::value_variants() {
            let script = script(*shell, "scx").unwrap();
            assert!(script.contains(VARIABLE) && script.contains("scx"), "{shell}: {script}");
        }
    }

    #[test]
    fn script_of_bash_expands_no_patterns_in_the_words() {
        let script = script(Shell::Bash, "sc").unwrap();
        let places: Vec<_> = ["set -f\n", "COMPREPLY=( $(", "set +f\n", "unset COMPREPLY"]
            .iter()
            .map(|text| script.find(text))
            .collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}: {script}");
    }
}

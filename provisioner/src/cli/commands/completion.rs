//! `sc completion`: scripts that complete `sc` in shells.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::exit::Exit;
use crate::cli::ui::print_result;

/// Print a shell completion script
#[derive(Clone, Copy, Debug, Args)]
#[command(after_long_help = "\
Examples:
  Bash:
      sc completion bash > ~/.local/share/bash-completion/completions/sc

  Zsh (~/.zfunc is a folder in $fpath):
      sc completion zsh > ~/.zfunc/_sc

  Fish:
      sc completion fish > ~/.config/fish/completions/sc.fish")]
pub(crate) struct CompletionArgs {
    /// Shell to complete in
    shell: Shell,
}

/// Prints the script for a command line.
pub(crate) fn run(mut command: Command, args: CompletionArgs) -> anyhow::Result<Exit> {
    print_result(&script(&mut command, args.shell))?;
    Ok(Exit::Done)
}

fn script(command: &mut Command, shell: Shell) -> String {
    // The script is generated in memory, as the generator panics if standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "sc", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::super::Cli;
    use super::*;

    #[test]
    fn completion_script_of_each_shell_contains_the_commands() {
        for shell in Shell::value_variants() {
            let script = script(&mut Cli::command(), *shell);
            for word in ["provision", "destroy", "outputs", "restore", "expect-no-changes", "allow-empty"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}

//! `sc completion`: scripts that complete `sc` in shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::cli::exit::Exit;
use crate::cli::ui::print_result;

/// Print a script that completes sc in a shell
#[derive(Clone, Copy, Debug, Args)]
#[command(after_long_help = "\
Examples:
  Bash, for good:
      sc completion bash > ~/.local/share/bash-completion/completions/sc

  Zsh, into a folder of $fpath:
      sc completion zsh > ~/.zfunc/_sc

  Fish:
      sc completion fish > ~/.config/fish/completions/sc.fish")]
pub(crate) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: CompletionArgs) -> anyhow::Result<Exit> {
    print_result(&script(args.shell))?;
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    // Into memory first: the generator would panic where standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sc", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in ["provision", "destroy", "outputs", "expect-no-changes"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}

//! `sc man`: writes the manual pages, of which the help is the source.

use std::path::PathBuf;

use bridge::fs::{Access, create_folders, write_atomically};
use clap::{Args, Command};
use clap_mangen::Man;

use crate::cli::args::GlobalArgs;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::process::{place_to_write, working_folder};

/// Write the manual pages, one for each command
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write to
    #[arg(value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
}

/// Runs the command.
pub(crate) fn run(output: &Output, global: &GlobalArgs, args: &ManArgs, command: Command) -> anyhow::Result<Exit> {
    let folder = place_to_write(&working_folder(global.cwd.as_deref())?, &args.folder)?;
    create_folders(&folder)?;
    let pages = pages(command)?;
    for (name, text) in &pages {
        write_atomically(&folder.join(format!("{name}.1")), text, Access::Shared)?;
    }
    output.inform(format_args!("wrote {} pages to {}", pages.len(), args.folder.display()));
    Ok(Exit::Done)
}

/// Returns the pages of a command and of its subcommands, with their names.
fn pages(mut command: Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    command.build();
    let (mut pages, mut waiting) = (Vec::new(), vec![command]);
    while let Some(command) = waiting.pop() {
        let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
        waiting.extend(command.get_subcommands().filter(is_shown).cloned());
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let mut text = Vec::new();
        let source = format!("sc {}", env!("CARGO_PKG_VERSION"));
        Man::new(command).title(name.clone()).source(source).render(&mut text)?;
        pages.push((name, text));
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::commands::Cli;

    #[test]
    fn each_command_has_a_page_with_its_options() {
        let pages = pages(Cli::command()).unwrap();
        let text = |name: &str| {
            let page = pages.iter().find(|(known, _)| known == name).map(|(_, text)| String::from_utf8_lossy(text));
            page.unwrap_or_default().into_owned()
        };
        assert!(text("sc").contains(".TH sc 1"), "{}", text("sc"));
        assert!(text("sc-provision").contains("skip\\-preview"), "{}", text("sc-provision"));
        assert!(text("sc-state-rm").contains("target\\-dependents"));
        assert!(pages.iter().all(|(name, _)| !name.contains("help") && name != "sc-man"));
    }
}

//! `sc secrets init`: writes a profile with keys.

use std::ffi::OsString;
use std::path::Path;

use bridge::fs::Access;
use bridge::message_text::MessageText;
use clap::Args;
use config::sibling_profiles::PROFILE_TEMPLATE as TEMPLATE;
use secrets_store::keys::{KeyError, KeyPair};
use secrets_store::{TemporaryFolder, add_to_gitignore};

use super::git::Git;
use super::session::SecretsSession;
use crate::cli::exit::{CliError, Exit};
use crate::cli::profile_settings::ProfileSettings;
use crate::cli::stacks::profile_name;

const IGNORED: &str = ".gitignore";
const COMMIT_MESSAGE: &str = "simple-container.com initial commit";

/// Write a profile with keys: `.sc/cfg.<PROFILE>.yaml`
///
/// The profile names the SSH key `~/.ssh/id_rsa`, or with --generate holds a new key pair of its own. It is readable
/// for you alone, and `.gitignore` keeps it out of git. `.sc/cfg.yaml.template` is written as well, for those who
/// clone the repository. An existing profile is never overwritten.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Write a profile for a pipeline, with a key of its own, and allow that key:
      sc secrets init --generate --profile ci
      sc secrets allow \"$(sed -n 's/^publicKey: //p' .sc/cfg.ci.yaml)\"")]
pub(crate) struct InitArgs {
    /// Generate a key pair (RSA, 2048 bits), and write it into the profile
    #[arg(short, long)]
    generate: bool,
    /// Commit .gitignore and the template; `-C` without a folder is the same
    #[arg(long)]
    commit: bool,
}

/// Replaces `-C` of `sc secrets init` by `--commit` if no folder follows it: in Simple Container it is that flag, and
/// here it is `--cwd FOLDER` of all commands.
pub(crate) fn with_commit_flag(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let position = |word: &str| arguments.iter().position(|argument| argument == word);
    let is_init = matches!((position("secrets"), position("init")), (Some(first), Some(second)) if first < second);
    for at in 1..arguments.len() {
        let is_flag = matches!(arguments[at].to_str(), Some("-C" | "-gC"));
        let has_folder = arguments.get(at + 1).is_some_and(|next| !next.to_string_lossy().starts_with('-'));
        if is_init && is_flag && !has_folder {
            let generates = arguments[at] == "-gC";
            arguments[at] = "--commit".into();
            if generates {
                arguments.insert(at, "-g".into());
            }
            break;
        }
    }
    arguments
}

/// Runs the command.
pub(super) async fn run(session: &SecretsSession<'_>, args: &InitArgs) -> anyhow::Result<Exit> {
    let root = session.repository.root.as_path();
    if session.repository.git.is_none() {
        let hint = "run `git init` in the project's folder first: the store belongs into git, and the profile must stay out of it";
        return Err(CliError::failed("failed to detect git dir: repository does not exist", hint).into());
    }
    let profile = format!(".sc/cfg.{}.yaml", profile_name(session.global));
    if root.join(&profile).symlink_metadata().is_ok() {
        let hint = "the keys in it would be lost: edit it, or write another profile with --profile NAME";
        return Err(
            CliError::failed(format_args!("the profile {profile} exists, and was not overwritten"), hint).into()
        );
    }
    let settings = ProfileSettings::of(&session.repository);
    let text = template(&settings);
    let temporary = TemporaryFolder::open(root)?;
    // Before the profile: git never takes it.
    let mut written = Vec::new();
    if add_to_gitignore(root, &profile)? {
        written.push(IGNORED);
    }
    let content = if args.generate { generated(&settings)? } else { text.clone() };
    temporary.write(&root.join(&profile), content.as_bytes(), Access::Private)?;
    written.push(&profile);
    if root.join(TEMPLATE).symlink_metadata().is_err() {
        temporary.write(&root.join(TEMPLATE), text.as_bytes(), Access::Shared)?;
        written.push(TEMPLATE);
    }
    let origin = |path: &str| if path == profile { settings.origin() } else { String::new() };
    written.iter().for_each(|path| session.report(format!("wrote {path}{}", origin(path))));
    if !args.generate {
        check_keys(session, &profile)?;
    }
    if args.commit {
        commit(root).await?;
        session.report(format!("committed {IGNORED} and {TEMPLATE}"));
    }
    Ok(Exit::Done)
}

fn template(settings: &ProfileSettings) -> String {
    format!("{}privateKeyPath: ~/.ssh/id_rsa\npublicKeyPath: ~/.ssh/id_rsa.pub", settings.text())
}

/// Returns a profile with a new key pair.
fn generated(settings: &ProfileSettings) -> anyhow::Result<String> {
    let pair = KeyPair::generate()?;
    let private: String = pair.private.lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("{}privateKey: |\n{private}publicKey: {}\n", settings.text(), pair.public.trim_end()))
}

/// Checks that the keys of the profile exist.
fn check_keys(session: &SecretsSession<'_>, profile: &str) -> anyhow::Result<()> {
    let keys = session.keys()?;
    let error = match keys.public().and_then(|_| keys.private()) {
        // A passphrase is asked for when it is needed.
        Ok(_) | Err(KeyError::PassphraseMissing { .. }) => return Ok(()),
        Err(error) => error,
    };
    let hint = MessageText::new(format_args!(
        "edit {profile}, or create the key with `ssh-keygen -t rsa -b 4096`; `sc secrets init --generate` writes a key of its own"
    ));
    let message = MessageText::new(format_args!(
        "{profile} was written, but its keys cannot be used: {}",
        MessageText::chain(&error)
    ));
    Err(CliError::failed(message, hint).into())
}

/// Commits the files that belong into git, and nothing else.
async fn commit(root: &Path) -> anyhow::Result<()> {
    let git =
        Git::find(root).ok_or_else(|| CliError::failed("there is no git on PATH", "install git, or omit --commit"))?;
    for arguments in [&["add", "--force", "--"][..], &["commit", "--quiet", "-m", COMMIT_MESSAGE, "--"]] {
        let output = git.run(&[arguments, &[IGNORED, TEMPLATE]].concat()).await?;
        if !output.is_success {
            let message = MessageText::new(format_args!("git {} failed: {}", arguments[0], output.errors));
            return Err(CliError::failed(message, "the files are written").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flag_without_a_folder_commits() {
        let replaced = |line: &str| {
            let words = with_commit_flag(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("sc secrets init -C", "sc secrets init --commit"),
            ("sc -p x secrets init -gC", "sc -p x secrets init -g --commit"),
            ("sc secrets init -C -g", "sc secrets init --commit -g"),
            ("sc secrets init -C folder", "sc secrets init -C folder"),
            ("sc -C folder secrets init", "sc -C folder secrets init"),
            ("sc secrets list -C", "sc secrets list -C"),
        ] {
            assert_eq!(replaced(line), expected);
        }
    }
}

//! `sc secrets init`: writes a profile with keys.

use std::ffi::OsString;
use std::path::Path;

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, place_below, read_if_exists, utf8};
use bridge::message_text::MessageText;
use clap::Args;
use config::Profile;
use config::sibling_profiles::PROFILE_TEMPLATE as TEMPLATE;
use secrets_store::keys::{KeyError, KeyPair};
use secrets_store::{TemporaryFolder, add_to_gitignore};

use super::session::SecretsSession;
use crate::cli::exit::{CliError, Exit};
use crate::cli::git::Git;
use crate::cli::profile_settings::ProfileSettings;
use crate::cli::stacks::profile_name;

/// Keys of a profile that names those of SSH.
const NAMED_KEYS: &str = "privateKeyPath: ~/.ssh/id_rsa\npublicKeyPath: ~/.ssh/id_rsa.pub";
const IGNORED: &str = ".gitignore";
const COMMIT_MESSAGE: &str = "simple-container.com initial commit";

/// Write a profile with keys: `.sc/cfg.<PROFILE>.yaml`
///
/// The profile names the SSH key `~/.ssh/id_rsa`, or with --generate holds a new key pair of its own. It is readable
/// for you alone, and `.gitignore` keeps it out of git. `.sc/cfg.yaml.template` is written as well, for those who
/// clone the repository. A profile without keys, such as that of `sc init`, gets them; one with keys is never overwritten.
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
    let existing = existing_without_keys(session, &profile, args.generate)?;
    if existing.is_none() && root.join(&profile).symlink_metadata().is_ok() {
        let hint = "the keys in it would be lost: edit it, or write another profile with --profile NAME";
        return Err(
            CliError::failed(format_args!("the profile {profile} exists, and was not overwritten"), hint).into()
        );
    }
    if args.generate && is_tracked(root, &profile).await {
        let message =
            MessageText::new(format_args!("git tracks {profile}, so the next commit would contain the private key"));
        let hint =
            MessageText::new(format_args!("run `git rm --cached {profile}`, commit that, and run the command again"));
        return Err(CliError::failed(message, hint).into());
    }
    let settings = ProfileSettings::of(&session.repository);
    let text = format!("{}{NAMED_KEYS}\n", settings.text());
    // A profile without keys stays as it is, and gets them at its end.
    let beginning = existing.clone().unwrap_or_else(|| settings.text());
    let temporary = TemporaryFolder::open(root)?;
    // Before the profile: git never takes it.
    let mut written = Vec::new();
    if add_to_gitignore(root, &profile)? {
        written.push(IGNORED);
    }
    let content = if args.generate { generated(&beginning)? } else { format!("{beginning}{NAMED_KEYS}\n") };
    temporary.write(&root.join(&profile), content.as_bytes(), Access::Private)?;
    written.push(&profile);
    if root.join(TEMPLATE).symlink_metadata().is_err() {
        temporary.write(&root.join(TEMPLATE), text.as_bytes(), Access::Shared)?;
        written.push(TEMPLATE);
    }
    for path in &written {
        session.report(match existing {
            Some(_) if *path == profile => format!("added the keys to {path}"),
            None if *path == profile => format!("wrote {path}{}", settings.origin()),
            _ => format!("wrote {path}"),
        });
    }
    if !args.generate {
        check_keys(session, &profile)?;
    }
    if args.commit {
        commit(root).await?;
        session.report(format!("committed {IGNORED} and {TEMPLATE}"));
    }
    Ok(Exit::Done)
}

/// Returns whether a file is in the index of git, so that a commit would contain it.
async fn is_tracked(root: &Path, path: &str) -> bool {
    match Git::find(root) {
        Some(git) => git.inspect(&["ls-files", "--error-unmatch", "--", path]).await.is_some(),
        None => false,
    }
}

/// Returns the text of a profile that names no key, with a line end; `None` if there is no profile, or one with keys or with errors.
/// For a key to generate, the lines that this command writes without `--generate` are no keys, as long as they name none.
fn existing_without_keys(
    session: &SecretsSession<'_>,
    profile: &str,
    generate: bool,
) -> anyhow::Result<Option<String>> {
    let place = place_below(&session.repository.root, Path::new(profile))?;
    let Some(mut text) = read_if_exists(&place, MAX_DOCUMENT_BYTES)?.and_then(|bytes| utf8(bytes).ok()) else {
        return Ok(None);
    };
    let before_named = text.trim_end().strip_suffix(NAMED_KEYS).map(str::to_owned);
    if let Some(rest) = before_named.filter(|_| generate)
        && session.keys()?.public().is_err()
    {
        text = rest;
    }
    let is_without_keys = Profile::from_text(&text).is_some_and(|profile| !profile.names_keys());
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(is_without_keys.then(|| format!("{text}{end}")))
}

/// Returns a profile with a new key pair. `beginning` has its settings.
fn generated(beginning: &str) -> anyhow::Result<String> {
    let pair = KeyPair::generate()?;
    let private: String = pair.private.lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("{beginning}privateKey: |\n{private}publicKey: {}\n", pair.public.trim_end()))
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

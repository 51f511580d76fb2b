//! Files that differ between the merge base of HEAD with a revision and the work tree, as git tells.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use bridge::message_text::MessageText;

use super::exit::CliError;
use super::git::{Git, Output};

/// File that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    /// Path from the root of the repository.
    pub(crate) path: PathBuf,
    /// True if the commit has it and the work tree does not.
    pub(crate) is_removed: bool,
}

/// Differences from a commit.
#[derive(Clone, Debug)]
pub(crate) struct GitChanges {
    /// Id of the merge base.
    pub(crate) base: String,
    /// Files that differ, and those that git does not know and does not ignore.
    pub(crate) files: Vec<ChangedFile>,
}

/// Settings of git that would change what its commands print, or run programs.
const SETTINGS: [&str; 8] = [
    "-c",
    "core.quotePath=true",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "diff.autoRefreshIndex=true",
    "-c",
    "log.showSignature=false",
];

/// Returns what differs between the merge base of HEAD with a revision and the work tree.
///
/// # Errors
/// The revision does not exist, it has no merge base with HEAD here, or git fails.
pub(crate) async fn changes_since(git: &Git, revision: &str) -> anyhow::Result<GitChanges> {
    check_revision(revision)?;
    // The first command tells whether git reads this repository at all.
    let shallow = text(git, &["rev-parse", "--is-shallow-repository"]).await?;
    let is_shallow = shallow.trim() == "true";
    let commit = commit(git, revision, is_shallow).await?;
    let base = git.read(&["merge-base", "--end-of-options", "HEAD", &commit]).await?;
    if !base.is_success && !base.errors.is_empty() {
        return Err(failed("merge-base", &base).into());
    }
    let Some(base) = base.stdout.lines().next().filter(|base| !base.is_empty()) else {
        return Err(no_merge_base(revision, is_shallow).into());
    };
    let base = base.to_owned();
    let diff = [
        "diff",
        "--name-status",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-relative",
        "--ignore-submodules=none",
        &base,
        "--",
    ];
    let others = ["ls-files", "--others", "--exclude-standard"];
    let (diff, others) = (list(git, &diff).await?, list(git, &others).await?);
    let changed = diff.lines().filter_map(|line| line.split_once('\t'));
    let changed =
        changed.map(|(status, path)| ChangedFile { path: unquote(path), is_removed: status.starts_with('D') });
    let others = others.lines().filter(|line| !line.is_empty());
    let others = others.map(|path| ChangedFile { path: unquote(path), is_removed: false });
    Ok(GitChanges { files: changed.chain(others).collect(), base })
}

/// Refuses what git could take for an option.
fn check_revision(revision: &str) -> Result<(), CliError> {
    let hint = "name a branch, a tag or a commit, such as `--changed-since origin/main`";
    match revision {
        "" => Err(CliError::usage("--changed-since needs a revision", hint)),
        _ if revision.starts_with('-') => {
            Err(CliError::usage(format_args!("{revision:?} is no revision: it begins with a hyphen"), hint))
        }
        _ => Ok(()),
    }
}

/// Returns the id of the commit of a revision.
async fn commit(git: &Git, revision: &str, is_shallow: bool) -> anyhow::Result<String> {
    let named = format!("{revision}^{{commit}}");
    let found = git.read(&["rev-parse", "--verify", "--quiet", "--end-of-options", &named]).await?;
    if found.is_success {
        return Ok(found.stdout.trim().to_owned());
    }
    let message = format_args!("git knows no commit {revision:?} here");
    let hint = match is_shallow {
        true => {
            "this clone is shallow: a checkout for it needs all commits (`fetch-depth: 0` in GitHub Actions, `GIT_DEPTH: 0` in GitLab), or run `git fetch --unshallow`"
        }
        false => "fetch it, such as by `git fetch origin main` for origin/main; `git branch -a` lists the branches",
    };
    Err(CliError::usage(message, hint).into())
}

fn no_merge_base(revision: &str, is_shallow: bool) -> CliError {
    match is_shallow {
        true => CliError::failed(
            format_args!("HEAD and {revision:?} have no common commit in this clone, which is shallow"),
            "check out all commits (`fetch-depth: 0` in GitHub Actions, `GIT_DEPTH: 0` in GitLab), or run `git fetch --unshallow`",
        ),
        false => CliError::failed(
            format_args!("HEAD and {revision:?} have no common commit"),
            "name a branch that HEAD began at, or an earlier commit of HEAD",
        ),
    }
}

async fn text(git: &Git, arguments: &[&str]) -> anyhow::Result<String> {
    let output = git.read(arguments).await?;
    let name = arguments.iter().find(|word| !word.contains(['-', '='])).or(arguments.first());
    if !output.is_success {
        return Err(failed(name.copied().unwrap_or_default(), &output).into());
    }
    if !output.is_whole {
        let hint = "commit or ignore files that are not needed";
        return Err(CliError::failed("git lists more changed files than can be compared", hint).into());
    }
    Ok(output.stdout)
}

/// Returns the lines of a list of paths.
async fn list(git: &Git, arguments: &[&str]) -> anyhow::Result<String> {
    text(git, &[&SETTINGS, arguments].concat()).await
}

fn failed(command: &str, output: &Output) -> CliError {
    let reason = if output.errors.is_empty() { "it prints no reason" } else { &output.errors };
    CliError::failed(MessageText::new(format_args!("`git {command}` failed: {reason}")), "")
}

/// Reads a path as git prints it in a line: in quotes, with escapes, if it has special characters. `-z` is not used, as the lines of a
/// process are read with a limit on their length. A repository in this one has a slash at its end.
fn unquote(text: &str) -> PathBuf {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let bytes = quoted.map_or_else(|| text.as_bytes().to_vec(), unescape);
    let path = bytes.strip_suffix(b"/").unwrap_or(&bytes);
    PathBuf::from(OsString::from_vec(path.to_vec()))
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(value) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(value);
            rest = &rest[3..];
        } else if let Some((escaped, after)) = rest.split_first() {
            rest = after;
            bytes.push(match escaped {
                b'a' => 0x07,
                b'b' => 0x08,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 0x0b,
                b'f' => 0x0c,
                b'r' => b'\r',
                other => *other,
            });
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn paths_with_special_characters_are_read() {
        for (text, expected) in [
            ("a/b c.txt", &b"a/b c.txt"[..]),
            ("\"a\\tb\\nc\"", b"a\tb\nc"),
            ("\"\\303\\244\\\"\\\\x\"", "ä\"\\x".as_bytes()),
            ("\"\\377\"", b"\xff"),
            ("\"\\0012\"", b"\x012"),
            ("sub/", b"sub"),
            ("\"", b"\""),
        ] {
            assert_eq!(unquote(text).as_os_str().as_bytes(), expected, "{text}");
        }
    }

    #[test]
    fn revision_that_could_be_an_option_is_refused() {
        for (revision, expected) in [
            ("origin/main", None),
            ("HEAD~1", None),
            ("", Some("--changed-since needs a revision")),
            ("--output=x", Some("\"--output=x\" is no revision: it begins with a hyphen")),
        ] {
            let error = check_revision(revision).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{revision}");
        }
    }
}

//! Shows the lines of secret files that change, and asks for a confirmation.

use bridge::message_text::MessageText;
use secrets_store::edit::Change;
use secrets_store::keys::has_private_key;
use similar::{ChangeTag, TextDiff};
use tokio_util::sync::CancellationToken;

use crate::cli::display::{Line, Palette};
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, confirm_or_read};
use crate::cli::ui::Ui;

/// Shows each change, and asks whether to accept it, unless `yes` is true. Returns false after the first no.
///
/// # Errors
/// Wrong usage, if there is no reply.
pub(super) async fn confirm_all(ui: &Ui, changes: impl Iterator<Item = &Change>, yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    for change in changes {
        ui.output.print_messages(&lines(change));
        let question = MessageText::new(format_args!("Accept the changes of {}?", change.path));
        if confirm_or_read(&ui.output, &ui.signals, &CancellationToken::new(), &question, false).await?
            == Confirmation::No
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Warns of entries whose encryption protects nothing.
pub(super) fn warn_of_legacy(output: &Output, paths: &[String]) {
    for path in paths {
        output.warn(format_args!(
            "{path} has the legacy encryption, which anybody who has the public key can decrypt: replace the secrets in it, and \
             run `sc secrets hide`"
        ));
    }
}

/// Returns the lines that a change adds and removes, with their numbers.
fn lines(change: &Change) -> Vec<Line> {
    let is_key = has_private_key(&change.after) || change.before.as_ref().is_some_and(|before| has_private_key(before));
    if is_key {
        return vec![title(&change.path), Line::plain("  has a private key: its lines are not shown")];
    }
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(str::to_owned);
    let before = change.before.as_deref().map_or(&[][..], Vec::as_slice);
    let (Some(old), Some(new)) = (text(before), text(&change.after)) else {
        let sizes = match &change.before {
            Some(before) => format!("{} bytes instead of {}", change.after.len(), before.len()),
            None => format!("{} bytes", change.after.len()),
        };
        return vec![title(&change.path), Line::plain(format!("  not a text: {sizes}"))];
    };
    let diff = TextDiff::from_lines(&old, &new);
    let changed = diff.iter_all_changes().filter_map(|line| {
        let (sign, style, number) = match line.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => ("-", Palette::DELETE, line.old_index()),
            ChangeTag::Insert => ("+", Palette::CREATE, line.new_index()),
        };
        let number = number.map_or(0, |index| index + 1);
        let text = line.value().trim_end_matches(['\n', '\r']);
        let end = if line.missing_newline() { "  (without a line end)" } else { "" };
        Some(Line::plain(format!("  {number:>4} ")).styled(style, format!("{sign} {text}")).styled(Palette::DIM, end))
    });
    std::iter::once(title(&change.path)).chain(changed).collect()
}

fn title(path: &str) -> Line {
    Line::new().styled(Palette::BOLD, format!("{path}:"))
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn shown(before: Option<&[u8]>, after: &[u8]) -> String {
        let change = Change {
            path: "a.txt".to_owned(),
            before: before.map(|text| Zeroizing::new(text.to_vec())),
            after: Zeroizing::new(after.to_vec()),
        };
        lines(&change).iter().map(|line| line.render(false) + "\n").collect()
    }

    #[test]
    fn changed_lines_have_their_numbers() {
        insta::assert_snapshot!(shown(Some(b"alpha\nbeta\n"), b"alpha\ngamma\nbeta"), @"
        a.txt:
             2 - beta
             2 + gamma
             3 + beta  (without a line end)
        ");
        insta::assert_snapshot!(shown(None, b"one\n\ntwo\n"), @"
        a.txt:
             1 + one
             2 +
             3 + two
        ");
        for (before, after) in
            [(None, &b"-----BEGIN PRIVATE KEY-----\nMIIE"[..]), (Some(&b"-----BEGIN EC PRIVATE KEY-----"[..]), b"")]
        {
            assert_eq!(shown(before, after), "a.txt:\n  has a private key: its lines are not shown\n");
        }
        insta::assert_snapshot!(shown(Some(b"text"), b"\0\xff"), @"
        a.txt:
          not a text: 2 bytes instead of 4
        ");
    }
}

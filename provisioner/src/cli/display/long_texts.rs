//! Long texts of plugins: only a part of them is masked and shown.

use std::borrow::Cow;

use bridge::error::shorten_to;
use engine::masking::SecretMasker;

/// Number of characters of a message or an error that are shown. Plugins may send megabytes.
pub(super) const TEXT_CHARACTERS: usize = 16_000;
/// Number of bytes of a text that are masked, as the time and the memory for it grow with the text. There are more of
/// them than [`TEXT_CHARACTERS`] have, and than are removed at the end of a text that is cut.
pub(super) const TEXT_BYTES: usize = TEXT_CHARACTERS * 4 + 1_000;
/// Mark at the end of a text of which only the beginning is shown.
const CUT_MARK: &str = " … (the rest is not shown)";

/// Cuts a text of more than [`TEXT_BYTES`] bytes after the character at that place, so that it still has more bytes.
/// Returns whether it has more.
pub(super) fn cut_text(text: &mut String) -> bool {
    if text.len() <= TEXT_BYTES {
        return false;
    }
    let end = (TEXT_BYTES + 1..).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    text.truncate(end);
    text.shrink_to_fit();
    true
}

/// Masks a text, and shortens it only then: a masker does not find a secret that is cut in its middle. Of a text that is
/// too long to be masked, the beginning is masked, without a secret that continues behind it.
pub(super) fn mask_and_shorten(masker: &SecretMasker, text: &mut String) {
    if cut_text(text) {
        *text = masker.mask_beginning(text);
        if let Some((end, _)) = text.char_indices().nth(TEXT_CHARACTERS) {
            text.truncate(end);
        }
        text.push_str(CUT_MARK);
        return;
    }
    masker.mask_in_place(text);
    if let Cow::Owned(shortened) = shorten_to(text, TEXT_CHARACTERS) {
        *text = shortened;
    }
}

//! Names of the members of archives, and headers of a tar stream, identical to those of Go's `archive/tar` for a name, a size and mode 0600.
//!
//! ```text
//!   name that fits                      ustar header
//!   long ASCII name with a slash        ustar header, the name split at a slash into prefix and name
//!   any other name, or 8 GiB and more   PAX header + its records + ustar header with the shortened name
//! ```

use std::ops::Range;

/// Size of a block of a tar stream, in bytes.
pub(super) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MODIFIED: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const MAGIC_AND_VERSION: Range<usize> = 257..265;
const DEVICE_MAJOR: Range<usize> = 329..337;
const DEVICE_MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;

/// Returns the header of a member, including a PAX header if needed. `None` if the name is invalid.
pub(super) fn header(name: &str, size: u64) -> Option<Vec<u8>> {
    let folder = name.ends_with('/');
    if name.contains('\0') || (folder && size > 0) {
        return None;
    }
    let kind = if folder { b'5' } else { b'0' };
    let split = split(name);
    let needs_path = split.is_none() && (!name.is_ascii() || name.len() > NAME.len());
    let needs_size = octal_digits(size) >= SIZE.len();
    if !needs_path && !needs_size {
        let (prefix, name) = split.unwrap_or(("", name));
        return Some(member_header(prefix, name, size, kind).to_vec());
    }

    let mut records = Vec::new();
    // A large size needs PAX, and then a name that could be split is written to PAX too.
    if needs_path || split.is_some() {
        records.extend(pax_record("path", name));
    }
    if needs_size {
        records.extend(pax_record("size", &size.to_string()));
    }
    let mut stream = pax_header(name, records.len() as u64).to_vec();
    stream.extend_from_slice(&records);
    stream.extend(padding(records.len() as u64));
    let written_size = if needs_size { 0 } else { size };
    stream.extend_from_slice(&member_header("", &ascii(name), written_size, kind));
    Some(stream)
}

/// Returns the padding of the last block of a content.
pub(super) fn padding(size: u64) -> Vec<u8> {
    let rest = (size % BLOCK as u64) as usize;
    vec![0; (BLOCK - rest) % BLOCK]
}

/// Splits a long name into prefix and name, at the last slash that makes both short enough.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME.len() || !name.is_ascii() {
        return None;
    }
    let end =
        if name.len() > PREFIX.len() + 1 { PREFIX.len() + 1 } else { name.len() - usize::from(name.ends_with('/')) };
    let at = name[..end].rfind('/')?;
    let (prefix, rest) = (&name[..at], &name[at + 1..]);
    let fits = !prefix.is_empty() && prefix.len() <= PREFIX.len() && !rest.is_empty() && rest.len() <= NAME.len();
    fits.then_some((prefix, rest))
}

fn member_header(prefix: &str, name: &str, size: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    write_text(&mut block[NAME], name);
    write_text(&mut block[PREFIX], prefix);
    write_octal(&mut block[MODE], 0o600);
    write_octal(&mut block[SIZE], size);
    write_octal(&mut block[DEVICE_MAJOR], 0);
    write_octal(&mut block[DEVICE_MINOR], 0);
    finish(block, kind)
}

/// Returns the header of PAX records, which are the content of a separate member before the described one.
fn pax_header(name: &str, size: u64) -> [u8; BLOCK] {
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (&name[..=folder.len()], file));
    let mut name = ascii(&member_name(&member_name(folder, "PaxHeaders.0"), file)).into_owned();
    name.truncate(NAME.len());
    let mut block = [0; BLOCK];
    write_text(&mut block[NAME], name.trim_end_matches('/'));
    write_octal(&mut block[MODE], 0);
    write_octal(&mut block[SIZE], size);
    finish(block, b'x')
}

fn finish(mut block: [u8; BLOCK], kind: u8) -> [u8; BLOCK] {
    for zero in [UID, GID, MODIFIED] {
        write_octal(&mut block[zero], 0);
    }
    block[TYPE] = kind;
    block[MAGIC_AND_VERSION].copy_from_slice(b"ustar\x0000");
    block[CHECKSUM].fill(b' ');
    let sum = block.iter().copied().map(u64::from).sum();
    write_octal(&mut block[CHECKSUM.start..CHECKSUM.end - 1], sum);
    block
}

/// Returns a PAX record `LENGTH KEY=VALUE\n`. The length includes its own digits.
fn pax_record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}").into_bytes()
}

/// Writes as much of a text as fits. If the truncated text ends in slashes, a NUL replaces the first of them, as in Go,
/// so that readers do not treat the member as a folder.
fn write_text(field: &mut [u8], text: &str) {
    let fitting = &text.as_bytes()[..text.len().min(field.len())];
    field[..fitting.len()].copy_from_slice(fitting);
    if text.len() > field.len() && fitting.ends_with(b"/") {
        let cut = fitting[..fitting.len() - 1].iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        field[cut] = 0;
    }
}

/// Writes octal digits with leading zeros and a final NUL.
fn write_octal(field: &mut [u8], value: u64) {
    let digits = format!("{value:0width$o}\0", width = field.len() - 1);
    field.copy_from_slice(digits.as_bytes());
}

fn octal_digits(value: u64) -> usize {
    format!("{value:o}").len()
}

/// Returns the text without characters that are not ASCII.
fn ascii(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() { text.into() } else { text.chars().filter(char::is_ascii).collect::<String>().into() }
}

/// Returns the name of a member of a nested archive: both names joined like Go's `path.Join`, without empty and `.`
/// parts and with resolved `..` parts. With an empty `archive`, normalizes `member`.
///
/// Member names of the outermost archive are hashed unchanged, without this function.
pub fn member_name(archive: &str, member: &str) -> String {
    let rooted = if archive.is_empty() { member } else { archive }.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in archive.split('/').chain(member.split('/')) {
        match part {
            "" | "." => (),
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => (),
            part => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) if archive.is_empty() && member.is_empty() => String::new(),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

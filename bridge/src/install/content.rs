//! Recognition of a file by its first bytes: a program, an archive, or something that is neither, such as the page of a proxy.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use tar::Header;

use super::archive_error::PartOfPackage;
use super::error::InstallError;
use crate::error::cut;
use crate::fs::{FileError, open_regular};
use crate::plugin::{Os, Platform};

/// Number of bytes by which a file is recognized: the length of a block of a tar.
pub(super) const HEAD: usize = 512;
/// Maximum number of bytes that a message quotes of a text.
const MAX_QUOTED: usize = 60;

/// Format of a downloaded file, detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gzip,
    Zstd,
    Tar,
    Zip,
    Plain,
    /// Archive format that is not supported, by its name.
    Unsupported(&'static str),
}

impl Kind {
    pub(super) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A local file, or the end of an archive without files.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Self::Unsupported("xz"),
            [b'B', b'Z', b'h', ..] => Self::Unsupported("bzip2"),
            // A frame, or one that is skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'7', b'z', 0xbc, 0xaf, ..] => Self::Unsupported("7z"),
            head if head.get(257..262) == Some(b"ustar") || is_tar(head) => Self::Tar,
            _ => Self::Plain,
        }
    }
}

/// Returns whether a block is the header of a tar entry: it holds its own checksum.
pub(super) fn is_tar(block: &[u8]) -> bool {
    let Some(block) = block.first_chunk::<HEAD>() else { return false };
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    let found = header.cksum();
    header.set_cksum();
    found.is_ok_and(|found| header.cksum().is_ok_and(|computed| computed == found))
}

/// Returns the first bytes of a file.
pub(super) fn read_head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns whether a file that begins with these bytes is a program for any system of the platform's kind: ELF, Mach-O or
/// a script, and for Windows also a program of Windows.
pub(super) fn is_program(head: &[u8], platform: Option<Platform>) -> bool {
    match head {
        [b'#', b'!', ..] | [0x7f, b'E', b'L', b'F', ..] => true,
        // Mach-O for 32 and 64 bits, in both byte orders.
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => true,
        // Mach-O for several processors. The same bytes begin a class of Java, whose version is a greater number.
        [0xca, 0xfe, 0xba, 0xbe | 0xbf, count @ ..] => is_count(count.first_chunk().copied().map(u32::from_be_bytes)),
        [0xbe | 0xbf, 0xba, 0xfe, 0xca, count @ ..] => is_count(count.first_chunk().copied().map(u32::from_le_bytes)),
        [b'M', b'Z', ..] => platform.is_some_and(|platform| platform.os == Os::Windows),
        _ => false,
    }
}

fn is_count(processors: Option<u32>) -> bool {
    processors.is_some_and(|processors| (1..45).contains(&processors))
}

/// Checks that a file of a package can be executed, as far as its first bytes and its mode show. `name` is that for
/// messages.
///
/// # Errors
/// [`InstallError::Unusable`], [`InstallError::NotExecutable`], [`InstallError::Path`].
pub(super) fn check_program(path: &Path, name: &str, platform: Option<Platform>) -> Result<(), InstallError> {
    use std::os::unix::fs::PermissionsExt as _;

    let file = open_regular(path).map_err(FileError::of("read", path))?;
    let head = read_head(&file).map_err(FileError::of("read", path))?;
    if !is_program(&head, platform) {
        let part = PartOfPackage::Program;
        return Err(InstallError::Unusable { name: name.to_owned(), content: describe(&head), part });
    }
    let metadata = file.metadata().map_err(FileError::of("read", path))?;
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(InstallError::NotExecutable { name: name.to_owned() });
    }
    Ok(())
}

/// Returns what a file is that begins with these bytes, in words that follow "is".
pub(super) fn describe(head: &[u8]) -> String {
    match Kind::of(head) {
        Kind::Gzip => return "a gzip-compressed file".to_owned(),
        Kind::Zstd => return "a zstd-compressed file".to_owned(),
        Kind::Zip => return "a zip archive".to_owned(),
        Kind::Tar => return "a tar archive".to_owned(),
        Kind::Unsupported(format) => return format!("a {format} archive"),
        Kind::Plain => {}
    }
    match head {
        [] => return "empty".to_owned(),
        [b'#', b'!', ..] => return "a script".to_owned(),
        [b'M', b'Z', ..] => return "a program of Windows".to_owned(),
        head if is_program(head, None) => return "a program".to_owned(),
        _ => {}
    }
    let Some(text) = text(head) else { return "neither a program nor a known archive".to_owned() };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let lower = text.trim_start().to_ascii_lowercase();
    match () {
        () if lower.starts_with("version https://git-lfs.github.com") => {
            "a pointer of Git LFS, whose content is not fetched".to_owned()
        }
        () if lower.starts_with("<!doctype html") => "HTML".to_owned(),
        () if lower.starts_with('<') && lower.contains("<html") => "HTML".to_owned(),
        () if lower.starts_with("<?xml") => "XML".to_owned(),
        () if lower.starts_with('<') => "HTML or XML".to_owned(),
        () if line.is_empty() => "a text without words".to_owned(),
        () => format!("a text that begins with {:?}", cut(line, MAX_QUOTED)),
    }
}

/// Returns the bytes as text, without a character that the end of the bytes cuts. Returns `None` if they are no text.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (!text.contains(|c: char| c.is_control() && !c.is_ascii_whitespace())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAT: [u8; 8] = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2];

    #[test]
    fn programs_are_recognized_by_their_first_bytes() {
        let windows: Option<Platform> = "windows-amd64".parse().ok();
        for head in [
            &b"#!/bin/sh\n"[..],
            b"\x7fELF\x02\x01\x01",
            &[0xfe, 0xed, 0xfa, 0xce, 0],
            &[0xfe, 0xed, 0xfa, 0xcf, 0],
            &[0xce, 0xfa, 0xed, 0xfe, 0],
            &[0xcf, 0xfa, 0xed, 0xfe, 7],
            &FAT,
            &[0xca, 0xfe, 0xba, 0xbf, 0, 0, 0, 1],
            &[0xbe, 0xba, 0xfe, 0xca, 2, 0, 0, 0],
        ] {
            assert!(is_program(head, None) && is_program(head, windows), "{head:?}");
        }
        // The third one is a class of Java.
        for head in [&b""[..], b"#", &[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52], &FAT[..4], b"echo", b"\x1f\x8b\x08"] {
            assert!(!is_program(head, None) && !is_program(head, windows), "{head:?}");
        }
        assert!(is_program(b"MZ\x90\0", windows) && !is_program(b"MZ\x90\0", "linux-amd64".parse().ok()));
    }

    #[test]
    fn content_is_described_by_its_first_bytes() {
        let mut header = Header::new_old();
        header.set_path("pulumi-resource-reef").unwrap();
        header.set_size(0);
        header.set_cksum();
        let not_found = r#"a text that begins with "Not Found""#;
        let unknown = "neither a program nor a known archive";
        for (head, expected) in [
            (&b""[..], "empty"),
            (b"<!DOCTYPE html>\n<html>", "HTML"),
            (b"\xef\xbb\xbf\r\n <!doctype HTML>", "HTML"),
            (b"<html lang=en>", "HTML"),
            (b"<!-- proxy --><html>", "HTML"),
            (b"<?xml version='1.0'?><Error/>", "XML"),
            (b"<Error><Code>NoSuchKey</Code></Error>", "HTML or XML"),
            (b"\nNot Found\n", not_found),
            (b"\n \n", "a text without words"),
            (b"a \xc3", r#"a text that begins with "a""#),
            (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, whose content is not fetched"),
            (b"PK\x03\x04", "a zip archive"),
            (b"\x1f\x8b\x08", "a gzip-compressed file"),
            (header.as_bytes(), "a tar archive"),
            (b"MZ\x90\0", "a program of Windows"),
            (b"\x7fELF", "a program"),
            (b"\0\0\0\0", unknown),
            (b"\xff\xfe<\0", unknown),
        ] {
            assert_eq!(describe(head), expected, "{head:?}");
        }
        assert!(describe("long ".repeat(200).as_bytes()).len() < 100);
    }
}

//! Compressed checkpoints and history entries (docs/spec/state-and-secrets.md#2).

use std::borrow::Cow;
use std::io::{self, Write as _};

use bridge::fs::{read_to_limit, utf8};
use bridge::zstd::ZstdReader;
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::checkpoint_text::CheckpointText;
use super::error::{Damage, StoreError};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Returns the content type that Pulumi's command line writes for a content.
pub fn content_type(content: &[u8]) -> &'static str {
    Compression::of(content).content_type()
}

/// Compression of written files. Files are decompressed according to their content, whatever their name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// All variants. Of equally new files the last variant takes precedence.
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Gzip, Self::Zstd];

    /// Returns the suffix of file names after `.json`.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// Detects the compression of a content.
    pub(super) fn of(content: &[u8]) -> Self {
        if content.starts_with(GZIP_MAGIC) {
            Self::Gzip
        } else if content.starts_with(ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::None => "text/plain; charset=utf-8",
            Self::Gzip => "application/x-gzip",
            Self::Zstd => "application/octet-stream",
        }
    }

    /// Returns the content of a checkpoint. Without compression the content is the text itself.
    pub(super) fn content(self, text: &CheckpointText) -> Bytes {
        match self {
            Self::None => Bytes::from_owner(text.clone()),
            Self::Gzip | Self::Zstd => self.compress(text.as_str()).into_owned().into(),
        }
    }

    /// Compresses a text.
    pub(super) fn compress(self, text: &str) -> Cow<'_, [u8]> {
        match self {
            Self::None => Cow::Borrowed(text.as_bytes()),
            Self::Gzip => Cow::Owned(compress_gzip(text).expect("writing to memory cannot fail")),
            Self::Zstd => Cow::Owned(compress_zstd(text.as_bytes())),
        }
    }
}

fn compress_gzip(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Compresses with the only level that the encoder supports, and decompresses the result to verify it: after an
/// uncompressed block the encoder may write a block that no decoder can read.
fn compress_zstd(text: &[u8]) -> Vec<u8> {
    let compressed = compress_to_vec(text, CompressionLevel::Fastest);
    match read_to_limit(ZstdReader::new(&*compressed), text.len() as u64) {
        Ok(decompressed) if decompressed == text => compressed,
        _ => compress_to_vec(text, CompressionLevel::Uncompressed),
    }
}

/// Returns a content, decompressed if it is compressed. Reserves memory as the content is decompressed.
///
/// # Errors
/// An I/O error if the content is damaged, or has more than `limit` bytes when it is decompressed.
fn decompress(content: Vec<u8>, limit: u64) -> io::Result<Vec<u8>> {
    match Compression::of(&content) {
        Compression::None => Ok(content),
        Compression::Gzip => read_to_limit(MultiGzDecoder::new(&*content), limit),
        Compression::Zstd => read_to_limit(ZstdReader::new(&*content), limit),
    }
}

/// Returns the text of a file or object, decompressed if it is compressed.
pub(super) fn decompressed_text(content: Vec<u8>, limit: u64, location: &str) -> Result<String, StoreError> {
    let damaged = |source| StoreError::Damaged { location: location.to_owned(), source };
    let text = decompress(content, limit).map_err(|error| damaged(Damage::Compression(error)))?;
    utf8(text).map_err(|error| damaged(Damage::Utf8(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns texts that compress well, badly, and not at all; the largest takes several blocks.
    fn texts() -> Vec<String> {
        let mut noise = 1_u64;
        let mut random = || {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            char::from(b' ' + u8::try_from(noise >> 58).unwrap())
        };
        let resource = |index| format!(r#"{{"urn":"urn:pulumi:dev::reef::t:m:T::n{index}","id":"{}"}},"#, index * 7919);
        vec![
            String::new(),
            "{}".to_owned(),
            "a".repeat(1_000_000),
            (0..1000).map(|_| random()).collect(),
            (0..400_000).map(|_| random()).collect(),
            (0..20_000).map(resource).collect(),
        ]
    }

    #[test]
    fn compressed_text_is_decompressed_to_itself() {
        for text in texts() {
            for compression in Compression::ALL {
                let compressed = compression.compress(&text).into_owned();
                assert_eq!(Compression::of(&compressed), compression);
                assert_eq!(
                    String::from_utf8(decompress(compressed, text.len() as u64).unwrap()).unwrap(),
                    text,
                    "{compression:?}"
                );
            }
        }
    }

    #[test]
    fn repetitive_text_gets_smaller() {
        let text = texts().pop().unwrap();
        for compression in [Compression::Gzip, Compression::Zstd] {
            assert!(compression.compress(&text).len() * 3 < text.len(), "{compression:?}");
        }
    }

    #[test]
    fn content_that_is_too_large_when_decompressed_is_refused() {
        let text = "a".repeat(1_000_000);
        for compression in [Compression::Gzip, Compression::Zstd] {
            let bomb = compression.compress(&text).into_owned();
            assert!(bomb.len() < 2000, "{compression:?}: {}", bomb.len());
            let error = decompress([bomb.clone(), bomb].concat(), 1_999_999).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{compression:?}");
        }
    }

    #[test]
    fn truncated_or_changed_streams_are_refused() {
        let text = &texts()[3];
        for compression in [Compression::Gzip, Compression::Zstd] {
            let compressed = compression.compress(text).into_owned();
            for length in [5, compressed.len() / 2, compressed.len() - 1] {
                assert!(decompress(compressed[..length].to_vec(), u64::MAX).is_err(), "{compression:?} up to {length}");
            }
            for place in [compressed.len() / 3, compressed.len() / 2, compressed.len() - 2] {
                let mut changed = compressed.clone();
                changed[place] ^= 1;
                assert!(decompress(changed, u64::MAX).is_err(), "{compression:?} at {place}");
            }
        }
    }
}

//! Compressed checkpoints and history entries (spec of the state, section 2).

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// How what is written is compressed. What is read says so itself, whatever it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As gzip does.
    Gzip,
    /// As zstd does.
    Zstd,
}

impl Compression {
    /// All there are. Of equally new files the one that comes last here counts.
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Gzip, Self::Zstd];

    /// What the name of a file ends with besides `.json`.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// How a content is compressed.
    pub(super) fn of(content: &[u8]) -> Self {
        if content.starts_with(GZIP_MAGIC) {
            Self::Gzip
        } else if content.starts_with(ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    /// The content type that the command line notes beside such a content.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::None => "text/plain; charset=utf-8",
            Self::Gzip => "application/x-gzip",
            Self::Zstd => "application/octet-stream",
        }
    }

    /// Compresses a text.
    pub(super) fn pack(self, text: &str) -> Cow<'_, [u8]> {
        match self {
            Self::None => Cow::Borrowed(text.as_bytes()),
            Self::Gzip => Cow::Owned(gzip(text).expect("memory takes whatever is written to it")),
            Self::Zstd => Cow::Owned(zstd(text.as_bytes())),
        }
    }
}

fn gzip(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// By the only level that the encoder knows. What it writes is read again before anybody relies on it: a block that it
/// leaves as it is may set it up to write the next one in a way that nobody can read.
fn zstd(text: &[u8]) -> Vec<u8> {
    let packed = compress_to_vec(text, CompressionLevel::Fastest);
    match unpack_zstd(&packed) {
        Ok(unpacked) if unpacked == text => packed,
        _ => compress_to_vec(text, CompressionLevel::Uncompressed),
    }
}

/// What a content is, decompressed if need be.
///
/// # Errors
/// It is damaged.
pub(super) fn unpack(content: Vec<u8>) -> io::Result<Vec<u8>> {
    match Compression::of(&content) {
        Compression::None => Ok(content),
        Compression::Gzip => {
            let mut unpacked = Vec::new();
            MultiGzDecoder::new(&*content).read_to_end(&mut unpacked)?;
            Ok(unpacked)
        }
        Compression::Zstd => unpack_zstd(&content),
    }
}

fn unpack_zstd(mut frames: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    while !frames.is_empty() {
        let mut decoder = StreamingDecoder::new(&mut frames).map_err(io::Error::other)?;
        decoder.read_to_end(&mut unpacked)?;
        let frame = decoder.into_frame_decoder();
        // The decoder only computes it.
        let (told, found) = (frame.get_checksum_from_data(), frame.get_calculated_checksum());
        if told.is_some() && told != found {
            return Err(io::Error::other("its checksum is wrong"));
        }
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that compress well, badly, and not at all; the largest takes several blocks.
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
    fn what_is_packed_is_unpacked_again() {
        for text in texts() {
            for compression in Compression::ALL {
                let packed = compression.pack(&text).into_owned();
                assert_eq!(Compression::of(&packed), compression);
                assert_eq!(String::from_utf8(unpack(packed).unwrap()).unwrap(), text, "{compression:?}");
            }
        }
    }

    #[test]
    fn what_repeats_itself_takes_less_room() {
        let text = texts().pop().unwrap();
        for compression in [Compression::Gzip, Compression::Zstd] {
            assert!(compression.pack(&text).len() * 3 < text.len(), "{compression:?}");
        }
    }

    #[test]
    fn streams_that_were_cut_or_changed_are_refused() {
        let text = &texts()[3];
        for compression in [Compression::Gzip, Compression::Zstd] {
            let packed = compression.pack(text).into_owned();
            for length in [5, packed.len() / 2, packed.len() - 1] {
                assert!(unpack(packed[..length].to_vec()).is_err(), "{compression:?} up to {length}");
            }
            for place in [packed.len() / 3, packed.len() / 2, packed.len() - 2] {
                let mut changed = packed.clone();
                changed[place] ^= 1;
                assert!(unpack(changed).is_err(), "{compression:?} at {place}");
            }
        }
    }
}

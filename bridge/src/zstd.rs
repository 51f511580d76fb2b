//! Decompression of Zstandard.

use std::io::{self, BufRead, Chain, Cursor, Read};
use std::ops::RangeInclusive;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Largest window that a frame may ask for, in bytes: it is kept in memory. That of `zstd --long`.
const MAX_WINDOW: u64 = 128 << 20;

/// First bytes of frames that carry no content (RFC 8878, 3.1.2). Some tools begin or end with one.
const SKIPPABLE: RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;

/// Decompressed content of one frame or more. Each checksum is compared.
pub struct ZstdReader<R: Read> {
    state: State<R>,
}

/// Content of which the first bytes were read.
type Recognized<R> = Chain<Cursor<[u8; 4]>, R>;

enum State<R: Read> {
    /// Between two frames, or before the first.
    Between(R),
    /// In a frame. Its first bytes were read to recognize it.
    Within(Box<StreamingDecoder<Recognized<R>, FrameDecoder>>),
    /// After an error.
    Failed,
}

impl<R: BufRead> ZstdReader<R> {
    /// Creates the reader of a compressed content.
    pub fn new(compressed: R) -> Self {
        Self { state: State::Between(compressed) }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Failed) {
                State::Between(mut compressed) => {
                    if compressed.fill_buf()?.is_empty() {
                        self.state = State::Between(compressed);
                        return Ok(0);
                    }
                    let mut magic = [0; 4];
                    compressed.read_exact(&mut magic)?;
                    if SKIPPABLE.contains(&u32::from_le_bytes(magic)) {
                        skip(&mut compressed)?;
                        self.state = State::Between(compressed);
                        continue;
                    }
                    let frame = Cursor::new(magic).chain(compressed);
                    let decoder = StreamingDecoder::new_with_max_window_size(frame, MAX_WINDOW);
                    self.state = State::Within(Box::new(decoder.map_err(io::Error::other)?));
                }
                State::Within(mut decoder) => {
                    let read = decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        self.state = State::Within(decoder);
                        return Ok(read);
                    }
                    let (source, frame) = decoder.into_parts();
                    let (_, compressed) = source.into_inner();
                    // The decoder computes the checksum, but does not compare it.
                    let (expected, actual) = (frame.get_checksum_from_data(), frame.get_calculated_checksum());
                    if expected.is_some() && expected != actual {
                        return Err(io::Error::other("its checksum is wrong"));
                    }
                    self.state = State::Between(compressed);
                }
                State::Failed => return Err(io::Error::other("it is damaged")),
            }
        }
    }
}

/// Skips the rest of a frame without content, which begins with its length.
fn skip(compressed: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    compressed.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let skipped = io::copy(&mut compressed.take(length), &mut io::sink())?;
    if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn decompressed(content: &[u8]) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        ZstdReader::new(content).read_to_end(&mut read).map(|_| read)
    }

    #[test]
    fn frames_are_read_one_after_the_other_and_those_without_content_are_skipped() {
        let frame = |content: &[u8]| compress_to_vec(content, CompressionLevel::Fastest);
        let skippable = [&b"\x5f\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
        let frames = [&skippable[..], &frame(b"one"), &skippable, &frame(b""), &frame(b" two"), &skippable].concat();
        assert_eq!(decompressed(&frames).unwrap(), b"one two");
        assert_eq!(decompressed(b"").unwrap(), b"");
        assert_eq!(decompressed(&skippable).unwrap(), b"");
        for damaged in [&skippable[..9], &frames[..frames.len() - 1], b"\x28\xb5", b"text"] {
            assert!(decompressed(damaged).is_err(), "{damaged:?}");
        }
    }
}

//! Readings of a text: the text itself, what a terminal shows of it, and what it means if it is escaped or encoded.
//!
//! A secret is looked for in the readings of a text instead of looking for all spellings of each secret: the readings
//! are few and short, whatever the number of secrets is, and a reading does not depend on which characters an encoder
//! leaves as they are, or on the case of its digits.

use std::borrow::Cow;
use std::ops::Range;

use bridge::terminal::{escape_sequence, is_invisible};

/// Minimum length in bytes of a masked secret. A shorter one also occurs inside unrelated words; masking it there would
/// reveal it.
pub(super) const MIN_LENGTH: usize = 4;
/// Maximum number of readings of one text that replace escapes or remove invisible characters. Texts that were escaped
/// a few times, in any order, have fewer.
const MAX_READINGS: usize = 32;
/// Maximum number of encodings as digits within each other, such as base64 in base64. Lists of bytes are not looked for
/// within them.
const MAX_NESTED: usize = 2;

/// Reading of a text, with the place of each of its bytes in the original text.
pub(super) struct Reading<'t> {
    text: Cow<'t, str>,
    /// Places of the bytes; `None`: the reading is the original text.
    places: Option<Vec<(usize, usize)>>,
}

/// Calls `visit` with each reading of a text.
pub(super) fn each(text: &str, mut visit: impl FnMut(&Reading<'_>)) {
    visit_readings(Reading::of(text), MAX_NESTED, &mut visit);
}

fn visit_readings(first: Reading<'_>, nested: usize, visit: &mut impl FnMut(&Reading<'_>)) {
    let decoders: [fn(&Reading<'_>) -> Option<Reading<'static>>; 6] =
        [remove_invisible, unescape, unquote, decode_entities, decode_percent, decode_form];
    let mut readings = vec![first];
    let mut next = 0;
    while let Some(reading) = readings.get(next) {
        next += 1;
        let found: Vec<_> = decoders.iter().filter_map(|decode| decode(reading)).collect();
        for reading in found {
            if readings.len() < MAX_READINGS && readings.iter().all(|known| known.text != reading.text) {
                readings.push(reading);
            }
        }
    }
    for reading in &readings {
        visit(reading);
        if nested > 0 {
            let visit_decoded = &mut |decoded: Reading<'_>| visit_readings(decoded, nested - 1, visit);
            decode_digits(reading, base64_digit, 6, visit_decoded);
            decode_digits(reading, |byte| char::from(byte).to_digit(16), 4, visit_decoded);
            if nested == MAX_NESTED {
                decode_byte_lists(reading, visit_decoded);
            }
        }
    }
}

impl<'t> Reading<'t> {
    fn of(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), places: None }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the range of the original text that a range of the reading, which is not empty, was read from.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        match &self.places {
            None => range,
            Some(places) => places[range.start].0..places[range.end - 1].1,
        }
    }
}

/// Reading that is being made from another one.
struct Decoder<'r, 't> {
    from: &'r Reading<'t>,
    text: String,
    places: Vec<(usize, usize)>,
    /// Number of bytes of the other reading that were read.
    read: usize,
}

impl<'r, 't> Decoder<'r, 't> {
    fn new(from: &'r Reading<'t>) -> Self {
        let size = from.text.len();
        Self { from, text: String::with_capacity(size), places: Vec::with_capacity(size), read: 0 }
    }

    fn rest(&self) -> &'r str {
        &self.from.text[self.read..]
    }

    /// Reads `length` bytes as `meaning`.
    fn read_as(&mut self, meaning: char, length: usize) {
        let place = self.from.place(self.read..self.read + length);
        self.text.push(meaning);
        self.places.resize(self.text.len(), (place.start, place.end));
        self.read += length;
    }

    /// Reads a sequence of escaped bytes, each escape with the given length. Bytes that are no UTF-8 are read as
    /// `otherwise` returns them, if it does, else their escapes are not decoded.
    fn read_bytes(&mut self, bytes: &[(u8, usize)], otherwise: impl Fn(u8) -> Option<char>) {
        let all: Vec<u8> = bytes.iter().map(|(byte, _)| *byte).collect();
        let mut lengths = bytes.iter().map(|(_, length)| *length);
        for chunk in all.utf8_chunks() {
            for character in chunk.valid().chars() {
                let length = lengths.by_ref().take(character.len_utf8()).sum();
                self.read_as(character, length);
            }
            for (byte, length) in chunk.invalid().iter().zip(lengths.by_ref()) {
                match otherwise(*byte) {
                    Some(character) => self.read_as(character, length),
                    None => (0..length).for_each(|_| self.copy()),
                }
            }
        }
    }

    /// Reads the next character as itself.
    fn copy(&mut self) {
        if let Some(character) = self.rest().chars().next() {
            self.read_as(character, character.len_utf8());
        }
    }

    fn finish(self) -> Reading<'static> {
        Reading { text: Cow::Owned(self.text), places: Some(self.places) }
    }
}

/// Removes the escape sequences of terminals and invisible characters.
fn remove_invisible(from: &Reading<'_>) -> Option<Reading<'static>> {
    if !from.text.contains(is_invisible) {
        return None;
    }
    let mut decoder = Decoder::new(from);
    while let Some(character) = decoder.rest().chars().next() {
        if let Some(length) = escape_sequence(decoder.rest()) {
            decoder.read += length;
        } else if is_invisible(character) {
            decoder.read += character.len_utf8();
        } else {
            decoder.copy();
        }
    }
    Some(decoder.finish())
}

/// Returns what a terminal shows of a text, if it is not the text itself.
pub(super) fn visible(text: &str) -> Option<String> {
    remove_invisible(&Reading::of(text)).map(|reading| reading.text.into_owned())
}

/// Replaces the escapes that begin with a backslash: those of JSON, of the strings of Go, Rust, Python, JavaScript and
/// C, and of shells.
fn unescape(from: &Reading<'_>) -> Option<Reading<'static>> {
    if !from.text.contains('\\') {
        return None;
    }
    let mut decoder = Decoder::new(from);
    while !decoder.rest().is_empty() {
        let rest = decoder.rest();
        let bytes = escaped_bytes(rest);
        if !bytes.is_empty() {
            // Python writes a character up to U+00FF as such an escape.
            decoder.read_bytes(&bytes, |byte| Some(char::from(byte)));
        } else if let Some((character, length)) = escaped_character(rest) {
            decoder.read_as(character, length);
        } else {
            decoder.copy();
        }
    }
    Some(decoder.finish())
}

/// Replaces the quotes that shell scripts and Python's `shlex` write within single quotes.
fn unquote(from: &Reading<'_>) -> Option<Reading<'static>> {
    const QUOTES: [&str; 2] = [r"'\''", r#"'"'"'"#];
    if !QUOTES.iter().any(|quote| from.text.contains(quote)) {
        return None;
    }
    let mut decoder = Decoder::new(from);
    while !decoder.rest().is_empty() {
        match QUOTES.iter().find(|quote| decoder.rest().starts_with(**quote)) {
            Some(quote) => decoder.read_as('\'', quote.len()),
            None => decoder.copy(),
        }
    }
    Some(decoder.finish())
}

/// Returns the bytes that a text begins with as `\xHH` or as three octal digits, with the lengths of the escapes.
fn escaped_bytes(text: &str) -> Vec<(u8, usize)> {
    const LENGTH: usize = 4;
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(escape) = rest.strip_prefix('\\') {
        let (digits, radix) = match escape.strip_prefix('x') {
            Some(digits) => (digits.get(..2), 16),
            None => (escape.get(..3), 8),
        };
        let Some(byte) = number(digits, radix).and_then(|byte| u8::try_from(byte).ok()) else { break };
        bytes.push((byte, LENGTH));
        rest = &rest[LENGTH..];
    }
    bytes
}

/// Returns the character that a text begins with as an escape, and the length of the escape.
fn escaped_character(text: &str) -> Option<(char, usize)> {
    let escape = text.strip_prefix('\\')?;
    let kind = escape.chars().next()?;
    let hex = |digits| number(digits, 16);
    let found = match kind {
        'u' if escape[1..].starts_with('{') => {
            let digits = before(&escape[2..], b'}');
            hex(digits).and_then(char::from_u32).map(|character| (character, digits.map_or(0, str::len) + 4))
        }
        'u' => hex(escape.get(1..5)).and_then(|first| {
            let second = escape.get(5..11).and_then(|next| hex(next.strip_prefix("\\u")));
            match char::from_u32(first) {
                Some(character) => Some((character, 6)),
                // Half of a character outside of the basic plane.
                None => {
                    let units = [u16::try_from(first).ok()?, u16::try_from(second?).ok()?];
                    char::decode_utf16(units).next()?.ok().map(|character| (character, 12))
                }
            }
        }),
        'U' => hex(escape.get(1..9)).and_then(char::from_u32).map(|character| (character, 10)),
        _ => None,
    };
    let simple = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'a' => '\u{7}',
        '0' => '\0',
        other => other,
    };
    Some(found.unwrap_or((simple, 1 + kind.len_utf8())))
}

/// Returns the number that digits stand for; `None` if they are not all digits.
fn number(digits: Option<&str>, radix: u32) -> Option<u32> {
    let digits = digits.filter(|digits| digits.chars().all(|digit| digit.is_digit(radix)))?;
    u32::from_str_radix(digits, radix).ok()
}

/// Returns the part of a text before a byte, if the byte is near.
fn before(text: &str, end: u8) -> Option<&str> {
    const MAX_LENGTH: usize = 10;
    text.bytes().take(MAX_LENGTH).position(|byte| byte == end).and_then(|length| text.get(..length))
}

/// Replaces the entities of XML and HTML.
fn decode_entities(from: &Reading<'_>) -> Option<Reading<'static>> {
    if !from.text.contains('&') {
        return None;
    }
    let mut decoder = Decoder::new(from);
    while !decoder.rest().is_empty() {
        let name = decoder.rest().strip_prefix('&').and_then(|rest| before(rest, b';'));
        match name.and_then(entity) {
            Some(character) => decoder.read_as(character, name.map_or(0, str::len) + 2),
            None => decoder.copy(),
        }
    }
    Some(decoder.finish())
}

/// Returns the character of an entity.
fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let code = name.strip_prefix('#')?;
            let code = match code.strip_prefix(['x', 'X']) {
                Some(digits) => number(Some(digits), 16),
                None => number(Some(code), 10),
            };
            char::from_u32(code?)
        }
    }
}

/// Replaces percent-encoded bytes.
fn decode_percent(from: &Reading<'_>) -> Option<Reading<'static>> {
    from.text.contains('%').then(|| decode_url(from, '+'))
}

/// Replaces percent-encoded bytes, and `+`, which is a space in a form or a query.
fn decode_form(from: &Reading<'_>) -> Option<Reading<'static>> {
    from.text.contains('+').then(|| decode_url(from, ' '))
}

fn decode_url(from: &Reading<'_>, plus: char) -> Reading<'static> {
    let mut decoder = Decoder::new(from);
    while let Some(next) = decoder.rest().chars().next() {
        match next {
            '%' => {
                let bytes = percent_encoded_bytes(decoder.rest());
                if bytes.is_empty() { decoder.copy() } else { decoder.read_bytes(&bytes, |_| None) }
            }
            '+' => decoder.read_as(plus, 1),
            _ => decoder.copy(),
        }
    }
    decoder.finish()
}

/// Returns the percent-encoded bytes that a text begins with, with the lengths of their encodings.
fn percent_encoded_bytes(text: &str) -> Vec<(u8, usize)> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(digits) = rest.strip_prefix('%') {
        let Some(byte) = number(digits.get(..2), 16).and_then(|byte| u8::try_from(byte).ok()) else { break };
        bytes.push((byte, 3));
        rest = &rest[3..];
    }
    bytes
}

/// Returns the value of a digit of base64, in the standard and in the URL alphabet.
fn base64_digit(byte: u8) -> Option<u32> {
    match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Calls `visit` with the texts in the bytes of each sequence of digits. A sequence may be broken into lines. As it may
/// begin with characters that only look like digits, it is decoded once for each digit that a byte can begin with.
fn decode_digits(
    reading: &Reading<'_>,
    digit: impl Fn(u8) -> Option<u32>,
    bits: usize,
    visit: &mut impl FnMut(Reading<'_>),
) {
    let text = reading.text.as_bytes();
    let (mut values, mut at) = (Vec::new(), 0);
    while at < text.len() {
        values.clear();
        while let Some(byte) = text.get(at) {
            match digit(*byte) {
                Some(value) => values.push((value, at)),
                None if matches!(byte, b'\r' | b'\n') && !values.is_empty() => {
                    let blank = text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    at += blank - 1;
                }
                None => break,
            }
            at += 1;
        }
        at += 1;
        // Digits of 6 bits repeat their alignment to bytes after 4 digits, digits of 4 bits after 2.
        for start in 0..if bits == 6 { 4 } else { 2 } {
            let digits = values.get(start..).unwrap_or_default();
            let place = |index: usize| digits[index * 8 / bits].1..digits[(index * 8 + 7) / bits].1 + 1;
            visit_bytes(reading, &decoded_bytes(digits, bits), place, visit);
        }
    }
}

/// Calls `visit` with the texts in bytes that were decoded from a reading. `place` returns the range of the reading that a
/// byte, given by its index, was decoded from.
fn visit_bytes(
    reading: &Reading<'_>,
    bytes: &[u8],
    place: impl Fn(usize) -> Range<usize>,
    visit: &mut impl FnMut(Reading<'_>),
) {
    let place = |index: usize| {
        let place = reading.place(place(index));
        (place.start, place.end)
    };
    let mut end = 0;
    for chunk in bytes.utf8_chunks() {
        let (first, text) = (end, chunk.valid());
        end += text.len() + chunk.invalid().len();
        if text.len() >= MIN_LENGTH {
            let places = (first..first + text.len()).map(place).collect();
            visit(Reading { text: Cow::Borrowed(text), places: Some(places) });
        }
    }
}

/// Function that returns the byte that a word stands for.
type ByteReader = fn(&[u8]) -> Option<u8>;

/// Calls `visit` with the texts in each list of bytes, such as `[104 117]` in Go, `[104, 117]` in Rust and Python, or
/// `68:75`. Short lists are skipped: they occur in many texts.
fn decode_byte_lists(reading: &Reading<'_>, visit: &mut impl FnMut(Reading<'_>)) {
    const MIN_BYTES: usize = 8;
    let text = reading.text.as_bytes();
    let count = |from: usize, is_part: fn(&u8) -> bool| text[from..].iter().take_while(|byte| is_part(byte)).count();
    // Bytes of the current list in each radix, with their places.
    let mut lists: [(Vec<u8>, Vec<Range<usize>>); 2] = Default::default();
    let mut at = 0;
    while at < text.len() {
        let end = at + count(at, u8::is_ascii_alphanumeric);
        let comma = end + usize::from(matches!(text.get(end), Some(b',' | b':')));
        let next = comma + count(comma, u8::is_ascii_whitespace);
        for ((bytes, places), byte) in lists.iter_mut().zip([decimal_byte as ByteReader, hex_byte]) {
            let found = byte(&text[at..end]);
            if let Some(found) = found {
                bytes.push(found);
                places.push(at..end);
            }
            if found.is_none() || next == end || next == text.len() {
                if bytes.len() >= MIN_BYTES {
                    visit_bytes(reading, bytes, |index| places[index].clone(), visit);
                }
                bytes.clear();
                places.clear();
            }
        }
        // A byte that is neither part of a word nor between words is skipped.
        at = next.max(at + 1);
    }
}

/// Returns the byte that a word stands for as a decimal number.
fn decimal_byte(word: &[u8]) -> Option<u8> {
    if word.is_empty() || word.len() > 3 {
        return None;
    }
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let number = word.iter().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))?;
    u8::try_from(number).ok()
}

/// Returns the byte that a word of two hexadecimal digits, or of digits behind `0x`, stands for.
fn hex_byte(word: &[u8]) -> Option<u8> {
    let digits = match word {
        [b'0', b'x', digits @ ..] if matches!(digits.len(), 1 | 2) => digits,
        digits if digits.len() == 2 => digits,
        _ => return None,
    };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let number = digits.iter().try_fold(0, |number, byte| Some(number * 16 + digit(byte)?))?;
    u8::try_from(number).ok()
}

/// Returns the bytes that digits stand for, without the bits of an incomplete byte at the end.
fn decoded_bytes(digits: &[(u32, usize)], bits: usize) -> Vec<u8> {
    let (mut bytes, mut window, mut unread) = (Vec::with_capacity(digits.len() * bits / 8), 0_u32, 0);
    for (value, _) in digits {
        window = window << bits | value;
        unread += bits;
        if unread >= 8 {
            unread -= 8;
            bytes.push((window >> unread) as u8);
        }
    }
    bytes
}

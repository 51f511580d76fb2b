//! Random changes of a content. A seed determines them.

/// Generator of pseudo-random numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or_default()
    }

    pub(crate) fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

/// Pieces that are significant in one of the formats, or at a limit.
const PIECES: [&[u8]; 45] = [
    b"\0",
    b"\xff\xfe",
    b"\xc3",
    "\u{feff}".as_bytes(),
    "\u{2028}".as_bytes(),
    b"\n",
    b"\r\n",
    b"\t",
    b"\"",
    b"'",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"- ",
    b"? ",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"!!binary ",
    b"---\n",
    b"null",
    b"true",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"9007199254740993",
    b"${resource:a.b}",
    b"${",
    b"urn:pulumi:",
    b"4dabf18193072939515e22adb298388d",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"../../x\0",
    b"/tmp/x\0",
    b".git/",
    b"77777777777\0",
    b"\x80\0\0\0\xff\xff\xff\xff",
    b"\xff\xff\xff\xff",
];

/// Pieces that open a level of one of the formats.
const OPENINGS: [&[u8]; 11] = [b"[", b"{\"a\":", b"- ", b"? ", b"{a: ", b"[{", b"&a [", b"\"", b"(", b"a.", b"../"];

/// Changes a content: in half of the cases one byte or piece, otherwise up to four places, and more of each.
pub(crate) fn mutate(random: &mut Random, content: &[u8], corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut changed = content.to_vec();
    if random.below(2) == 0 {
        change_byte(random, &mut changed);
        return changed;
    }
    for _ in 0..=random.below(4) {
        let at = random.below(changed.len() + 1);
        let end = at + random.below((changed.len() - at).min(64) + 1);
        match random.below(12) {
            0 => change_byte(random, &mut changed),
            1 => changed.truncate(at),
            2 => drop(changed.drain(at..end)),
            3 => {
                let copy = changed[at..end].to_vec();
                splice(&mut changed, end, &copy);
            }
            4 => {
                let other = random.pick(corpus);
                let from = random.below(other.len() + 1);
                splice(&mut changed, at, &other[from..(from + 200).min(other.len())]);
            }
            5 => {
                let opening = *random.pick(&OPENINGS);
                splice(&mut changed, at, &opening.repeat(1 + random.below(3000)));
            }
            6 => splice(&mut changed, at, &b"x".repeat(random.below(100_000))),
            7 => duplicate_line(random, &mut changed),
            8 => {
                let alias = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned()
                    + &"b: &a [*a, *a, *a, *a, *a, *a]\n".repeat(1 + random.below(20));
                splice(&mut changed, at, alias.as_bytes());
            }
            9 => {
                let piece = *random.pick(&PIECES);
                splice(&mut changed, at, piece);
            }
            _ => overwrite(random, &mut changed, at),
        }
    }
    changed
}

/// Flips a bit, removes a byte, writes a piece over what is there, or inserts one.
fn change_byte(random: &mut Random, content: &mut Vec<u8>) {
    let at = random.below(content.len());
    match random.below(4) {
        0 if !content.is_empty() => content[at] ^= 1 << random.below(8),
        1 if !content.is_empty() => drop(content.remove(at)),
        2 => overwrite(random, content, at),
        _ => {
            let piece = *random.pick(&PIECES);
            splice(content, at, piece);
        }
    }
}

/// Writes a piece over the bytes at a place: the others stay where they are.
fn overwrite(random: &mut Random, content: &mut [u8], at: usize) {
    let piece = *random.pick(&PIECES);
    content[at..].iter_mut().zip(piece).for_each(|(byte, new)| *byte = *new);
}

fn splice(content: &mut Vec<u8>, at: usize, piece: &[u8]) {
    content.splice(at..at, piece.iter().copied());
}

/// Repeats a line, or a member of an object on a line of its own: keys occur twice.
fn duplicate_line(random: &mut Random, content: &mut Vec<u8>) {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let index = random.below(lines.len());
    let copy = lines[index].to_vec();
    let at = lines[..index].iter().map(|line| line.len()).sum();
    splice(content, at, &copy);
}

//! Tests of unpacking: what counts as a limit, and that an archive unpacks to what its digests say, whatever its bytes are.

use std::io::{Cursor, Write as _};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

#[test]
fn folders_on_the_way_to_a_file_count_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let folders = MAX_MEMBERS - 3;
    let mut unpacker = Unpacker { folder: folder.path(), left: 0, folders, digests: FileDigests::default() };
    let mut unpack = |path: &str| {
        let member = Member { path: path.into(), kind: MemberKind::File(0o644) };
        unpacker.unpack(&member, &mut io::empty())
    };
    assert!(unpack("a/b/c/f").is_ok() && unpack("a/b/g").is_ok());
    let refused = unpack("a/b/d/f").unwrap_err();
    assert!(matches!(refused, UnpackError::Archive(ArchiveError::TooLarge(TOO_MANY))), "{refused:?}");
}

#[test]
fn link_is_followed_within_the_archive() {
    for (link, target, expected) in [
        ("reef", "lib/reef", Some("lib/reef")),
        ("bin/reef", "../lib/reef", Some("lib/reef")),
        ("bin/reef", "./reef-1", Some("bin/reef-1")),
        ("reef", "../reef", None),
        ("reef", "/bin/sh", None),
    ] {
        assert_eq!(target_in_archive(Path::new(link), Path::new(target)).as_deref(), expected.map(Path::new), "{link}");
    }
}

/// Returns a tar with files, a folder, and links of both kinds.
fn tar() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, content: &[u8], link: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(if path.contains("reef") { 0o755 } else { 0o644 });
        if !link.is_empty() {
            header.set_link_name(link).unwrap();
        }
        archive.append_data(&mut header, path, content).unwrap();
    };
    let long = format!("data/{}", "long".repeat(30));
    add("data/", tar::EntryType::Directory, b"", "");
    add("pulumi-resource-reef", tar::EntryType::Regular, b"#!/bin/sh\n", "");
    add(&long, tar::EntryType::Regular, b"text", "");
    add("data/link", tar::EntryType::Symlink, b"", "../pulumi-resource-reef");
    add("data/hard", tar::EntryType::Link, b"", "pulumi-resource-reef");
    archive.into_inner().unwrap()
}

fn zip() -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    archive.start_file("pulumi-resource-reef", options.unix_permissions(0o755)).unwrap();
    archive.write_all(&b"#!/bin/sh\n".repeat(40)).unwrap();
    archive.add_directory("data", options).unwrap();
    archive.start_file("data/text", options).unwrap();
    archive.write_all(b"text").unwrap();
    archive.add_symlink("data/link", "text", options).unwrap();
    archive.finish().unwrap().into_inner()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Numbers that look random, and are the same in each run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Changes, removes, repeats or inserts some bytes.
fn damage(archive: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut damaged = archive.to_vec();
    for _ in 0..=noise.below(3) {
        let at = noise.below(damaged.len());
        match noise.below(5) {
            0 => damaged[at] = u8::try_from(noise.below(256)).unwrap(),
            1 => damaged[at] ^= 1 << noise.below(8),
            2 => drop(damaged.drain(at..(at + noise.below(600)).min(damaged.len()))),
            3 => damaged.extend_from_within(at..(at + noise.below(600)).min(damaged.len())),
            _ => damaged.insert(at, b'/'),
        }
        if damaged.is_empty() {
            damaged.push(0);
        }
    }
    damaged
}

/// Number of damaged archives of each format, unless `FUZZ_CASES` is set.
const CASES: usize = 500;

#[test]
fn damaged_archive_is_refused_or_unpacks_to_what_its_digests_say() {
    let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    type Packing = fn(&[u8]) -> Vec<u8>;
    let zstd: Packing = |content| compress_to_vec(content, CompressionLevel::Fastest);
    let unchanged: Packing = <[u8]>::to_vec;
    // The content, and how it is packed after it was damaged: the checksum of a packed one finds most damage.
    let formats = [(tar(), unchanged), (tar(), gzip), (tar(), zstd), (zip(), unchanged)];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asset");
    let file = DownloadedFile { name: "asset", path: &path };
    let mut unpacked = 0;
    for (format, (content, pack)) in formats.iter().enumerate() {
        for case in 0..=cases {
            let mut noise = Noise(u64::try_from(case * formats.len() + format).unwrap());
            let bytes = match case {
                0 => pack(content),
                case if case % 2 == 0 => pack(&damage(content, &mut noise)),
                _ => damage(&pack(content), &mut noise),
            };
            fs::write(&path, bytes).unwrap();
            let target = tempfile::tempdir_in(folder.path()).unwrap();
            let Ok((kind, digests)) = file.unpack(target.path(), "plain") else {
                assert_ne!(case, 0, "format {format}");
                continue;
            };
            unpacked += 1;
            assert_eq!(FileDigests::of(target.path()).unwrap(), digests, "format {format}, case {case}");
            if kind != Kind::Plain {
                assert_eq!(file.file_digests().unwrap(), digests, "format {format}, case {case}");
            }
        }
    }
    assert!(unpacked > formats.len(), "some damage does no harm");
}

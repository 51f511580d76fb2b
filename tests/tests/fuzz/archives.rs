//! Archives of plugins in each format, damaged before or after they are compressed. They lie in a folder of plugins, so that nothing says
//! what their bytes have to be.

use std::io::{Cursor, Write as _};

use bridge::install::GithubReleases;
use bridge::plugin::{GithubReleaseSource, WantedVersion};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::machine::Machine;
use crate::{Read, fuzz_valid};

/// Length of a block of a tar.
const BLOCK: usize = 512;
const PROGRAM: &str = "pulumi-resource-reef";

/// Returns a tar with files, a folder, links of both kinds, and headers with long names.
fn tar() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, content: &[u8], link: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(if path == PROGRAM { 0o755 } else { 0o644 });
        if !link.is_empty() {
            header.set_link_name(link).unwrap();
        }
        archive.append_data(&mut header, path, content).unwrap();
    };
    add("data/", tar::EntryType::Directory, b"", "");
    add(PROGRAM, tar::EntryType::Regular, b"#!/bin/sh\n", "");
    add(&format!("data/{}", "long".repeat(30)), tar::EntryType::Regular, b"text", "");
    add("data/link", tar::EntryType::Symlink, b"", "../pulumi-resource-reef");
    add("data/hard", tar::EntryType::Link, b"", PROGRAM);
    add("zeros", tar::EntryType::Regular, &[0; 20_000], "");
    archive.append_pax_extensions([("path", &b"data/of an extended header"[..]), ("comment", b"x")]).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(0);
    header.set_mode(0o644);
    archive.append_data(&mut header, "short", &b""[..]).unwrap();
    archive.into_inner().unwrap()
}

fn zip() -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
    archive.start_file(PROGRAM, options.unix_permissions(0o755)).unwrap();
    archive.write_all(&b"#!/bin/sh\n".repeat(40)).unwrap();
    archive.add_directory("data", options).unwrap();
    archive.start_file("data/text", options.compression_method(CompressionMethod::Stored)).unwrap();
    archive.write_all(b"text").unwrap();
    archive.add_symlink("data/link", "text", options).unwrap();
    archive.set_comment("a comment").unwrap();
    archive.finish().unwrap().into_inner()
}

/// Writes the checksum of each header of a tar again, without which a reader looks at nothing else.
fn sealed(tar: &[u8]) -> Vec<u8> {
    let mut sealed = tar.to_vec();
    for block in sealed.chunks_exact_mut(BLOCK).filter(|block| &block[257..262] == b"ustar") {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
    }
    sealed
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// Returns a reader that installs a plugin from a content, after it was packed.
fn installer(pack: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> Read {
    let machine = Machine::new();
    let version = WantedVersion::of_release("v1.0.0").unwrap();
    let source = GithubReleaseSource {
        platform: Some("linux-amd64".parse().unwrap()),
        asset: Some("reef.archive".to_owned()),
        ..GithubReleaseSource::new("acme/reef".to_owned(), version)
    };
    Box::new(move |content| {
        let archive = pack(content);
        machine.write("copies/acme/reef/v1.0.0/reef.archive", &archive);
        machine.install(&GithubReleases::new(machine.settings()), &source, archive.len()).map(drop)
    })
}

/// Shows: plugins.md#what-is-checked "An archive may contain files, folders, and links whose targets are inside it"
#[test]
fn damaged_tar_is_unpacked_or_refused() {
    fuzz_valid("tar", 2, vec![tar()], || installer(sealed));
}

#[test]
fn damaged_gzip_is_unpacked_or_refused() {
    fuzz_valid("tar.gz", 4, vec![gzip(&tar())], || installer(<[u8]>::to_vec));
}

#[test]
fn damaged_tar_in_gzip_is_unpacked_or_refused() {
    fuzz_valid("tar in gzip", 4, vec![tar()], || installer(|content| gzip(&sealed(content))));
}

#[test]
fn damaged_zstd_is_unpacked_or_refused() {
    fuzz_valid("tar.zst", 4, vec![zstd(&tar())], || installer(<[u8]>::to_vec));
}

#[test]
fn damaged_tar_in_zstd_is_unpacked_or_refused() {
    fuzz_valid("tar in zstd", 4, vec![tar()], || installer(|content| zstd(&sealed(content))));
}

#[test]
fn damaged_zip_is_unpacked_or_refused() {
    fuzz_valid("zip", 2, vec![zip()], || installer(<[u8]>::to_vec));
}

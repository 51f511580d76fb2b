//! Tests of the formats and the names in which authors publish plugins.

use std::fs;
use std::io::{Cursor, Write as _};

use bridge::error::Hint as _;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tests::releases::{Entry, ReleaseServer, sha256, tar_gz};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{Machine, asset_name, checksum, plugin, release_source, run, script};

const PROGRAM: &str = "pulumi-resource-reef";

/// Returns the tar in a `tar.gz`.
fn tar(entries: &[(&str, Entry<'_>)]) -> Vec<u8> {
    let mut tar = Vec::new();
    std::io::copy(&mut flate2::read::GzDecoder::new(&*tar_gz(entries).unwrap()), &mut tar).unwrap();
    tar
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// Member of a zip: its path, and its mode with the type of the file; `None` for one that was made without modes.
type Member<'m> = (&'m str, Option<u32>, &'m [u8]);

fn zip(members: &[Member<'_>]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, content) in members {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        match mode {
            Some(mode) if mode & 0o170_000 == 0o120_000 => {
                archive.add_symlink(*path, std::str::from_utf8(content).unwrap(), options).unwrap();
            }
            _ => {
                let options = mode.map_or(options, |mode| options.unix_permissions(mode & 0o777));
                archive.start_file(*path, options).unwrap();
                archive.write_all(content).unwrap();
            }
        }
    }
    archive.finish().unwrap().into_inner()
}

/// Publishes an asset, and returns the machine, the server, and the plugin of the release.
async fn published(asset: &str, content: &[u8]) -> (Machine, ReleaseServer) {
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    server.publish("acme/pulumi-reef", "v1.0.0", &[(asset, content)]);
    (machine, server)
}

async fn refusal(content: &[u8]) -> String {
    let (machine, server) = published(&asset_name("1.0.0"), content).await;
    let error = machine.refusal(&plugin(release_source(&server.api_url(), "v1.0.0"))).await;
    machine.assert_empty();
    error.strip_prefix(&format!("cannot unpack {}: ", asset_name("1.0.0"))).unwrap_or(&error).to_owned()
}

/// Shows: plugins.md#github-release "a `tar.gz`, `tar.zst`, `tar` or `zip`, whatever its name says, or the executable itself"
#[tokio::test]
async fn package_in_each_format_has_the_same_files() {
    let program = script("hello");
    let entries = [
        (PROGRAM, Entry::File(0o755, &program)),
        ("data/", Entry::Folder),
        ("data/text", Entry::File(0o644, b"text")),
        ("data/link", Entry::Link("text")),
    ];
    let tar = tar(&entries);
    let frames = [zstd(&tar[..1000]), zstd(&tar[1000..])].concat();
    let zip = zip(&[
        (PROGRAM, Some(0o100_755), &program),
        ("data/text", Some(0o100_644), b"text"),
        ("data/link", Some(0o120_777), b"text"),
    ]);
    let mut folders = Vec::new();
    for archive in [tar_gz(&entries).unwrap(), tar.clone(), zstd(&tar), frames, zip] {
        let (machine, server) = published(&asset_name("1.0.0"), &archive).await;
        let mut source = release_source(&server.api_url(), "v1.0.0");
        source.checksum = checksum(&sha256(&archive));
        let plugin_config = plugin(source.clone());
        let package = machine.install(&plugin_config).await.unwrap();
        assert_eq!(run(&package).await, "hello");
        assert_eq!(fs::read_to_string(package.folder().join("data/link")).unwrap(), "text");
        folders.push(package.folder().file_name().unwrap().to_owned());
        // The digest of the executable pins it as well, and the archive in the cache is evidence without a fingerprint.
        source.checksum = checksum(&sha256(&program));
        machine.install(&plugin(source)).await.unwrap();
        drop(server);
        fs::remove_dir_all(machine.path("cache/fingerprints")).unwrap();
        machine.install(&plugin_config).await.unwrap();
    }
    folders.dedup();
    assert_eq!(folders.len(), 1, "{folders:?}");
}

/// Shows: plugins.md#github-release "In a `zip`, programs count as executable, since many tools write it without modes."
#[tokio::test]
async fn program_in_a_zip_without_modes_is_executable() {
    let program = script("hello");
    let mut archive = zip(&[(PROGRAM, Some(0o100_644), &program), ("text", Some(0o100_644), b"text")]);
    // The system in the central directory, which says whether modes are there, is MS-DOS.
    let signature = b"PK\x01\x02";
    let headers: Vec<usize> = (0..archive.len() - 4).filter(|at| archive[*at..].starts_with(signature)).collect();
    headers.iter().for_each(|at| archive[at + 5] = 0);
    let (machine, server) = published(&asset_name("1.0.0"), &archive).await;
    let package = machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!((headers.len(), run(&package).await.as_str()), (2, "hello"));
}

/// Shows: plugins.md#what-is-checked "or a size out of proportion to the archive, in any format"
#[tokio::test]
async fn unsafe_member_of_a_zip_is_refused() {
    let (file, link) = (Some(0o100_644), Some(0o120_777));
    let out = "the link may lead out of the package";
    let cases: [(&[Member<'_>], &str, &str); 7] = [
        (&[("../evil", file, b"x")], "../evil", "its path contains .."),
        (&[("/tmp/sc-evil", file, b"x")], "/tmp/sc-evil", "its path is absolute"),
        (&[("a\\b", file, b"x")], "a\\b", "its path contains a backslash"),
        (&[("l", link, b"/etc")], "l", out),
        (&[("l", link, b"../evil")], "l", out),
        (&[("l", link, b"."), ("l/evil", file, b"x")], "l/evil", "a parent of its path is not a folder"),
        (&[("x", file, b"x"), ("x/y", file, b"x")], "x/y", "a parent of its path is not a folder"),
    ];
    for (members, path, reason) in cases {
        assert_eq!(refusal(&zip(members)).await, format!("its entry {path:?} is refused: {reason}"));
    }
    let far_larger = "it is too large: its content is far larger than the archive";
    let zeros = vec![0; 65 << 20];
    assert_eq!(refusal(&zip(&[(PROGRAM, file, &zeros)])).await, far_larger);
    assert_eq!(refusal(&zstd(&tar(&[(PROGRAM, Entry::File(0o755, &zeros))]))).await, far_larger);
    // Two members with one path: the second is renamed after the archive was written.
    let mut twice = zip(&[("one", file, b"x"), ("two", file, b"y")]);
    while let Some(at) = twice.windows(3).position(|name| name == b"two") {
        twice[at..at + 3].copy_from_slice(b"one");
    }
    assert_eq!(refusal(&twice).await, "it cannot be read: several of its entries have the same path");
    assert_eq!(refusal(&zip(&[])).await, "it holds no files");
}

#[tokio::test]
async fn damaged_zip_and_zstd_are_reported() {
    let program = script("hello").repeat(1000);
    let zip = zip(&[(PROGRAM, Some(0o100_755), &program)]);
    let zstd = zstd(&tar(&[(PROGRAM, Entry::File(0o755, &program))]));
    for archive in [&zip, &zstd] {
        for at in (1..archive.len()).step_by(7) {
            let mut damaged = archive.clone();
            damaged[at] ^= 0x5a;
            let (machine, server) = published(&asset_name("1.0.0"), &damaged).await;
            // Some bytes do not matter, such as those of a time.
            if machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.is_err() {
                machine.assert_empty();
            }
        }
        assert!(refusal(&archive[..archive.len() / 2]).await.starts_with("it cannot be read: "));
    }
}

/// Shows: plugins.md#github-release "`pulumi-resource-NAME`, or else the only executable at the top of the archive"
#[tokio::test]
async fn archive_of_goreleaser_is_found_and_its_only_program_is_run() {
    let program = script("hello");
    let archive = tar_gz(&[("README.md", Entry::File(0o644, b"")), ("reef", Entry::File(0o755, &program))]).unwrap();
    let (machine, server) = published("reef_1.0.0_Linux_x86_64.tar.gz", &archive).await;
    for pin in [None, checksum(&sha256(&archive)), checksum(&sha256(&program))] {
        let mut source = release_source(&server.api_url(), "v1.0.0");
        source.checksum = pin;
        assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "hello");
    }
    // A link with the name of the plugin.
    let linked = tar_gz(&[("lib/reef", Entry::File(0o755, &program)), (PROGRAM, Entry::Link("lib/reef"))]).unwrap();
    server.publish("acme/pulumi-reef", "v4.0.0", &[(&asset_name("4.0.0"), &linked)]);
    let mut source = release_source(&server.api_url(), "v4.0.0");
    source.checksum = checksum(&sha256(&program));
    assert_eq!(run(&machine.install(&plugin(source)).await.unwrap()).await, "hello");
    let [two, gnu, musl] = ["2", "gnu", "musl"].map(|name| format!("reef-{name}-x86_64-unknown-linux.tar.gz"));
    let programs =
        tar_gz(&[("reef", Entry::File(0o755, &program)), ("reef-cli", Entry::File(0o755, &program))]).unwrap();
    server.publish("acme/pulumi-reef", "v2.0.0", &[(&two, &programs)]);
    let error = machine.refusal(&plugin(release_source(&server.api_url(), "v2.0.0"))).await;
    let expected = format!("{two} holds neither pulumi-resource-reef nor PulumiPlugin.yaml; it holds reef, reef-cli");
    assert_eq!(error, expected);
    server.publish("acme/pulumi-reef", "v3.0.0", &[(&gnu, &archive), (&musl, &archive)]);
    let error = machine.install(&plugin(release_source(&server.api_url(), "v3.0.0"))).await.unwrap_err();
    let expected =
        format!("release acme/pulumi-reef v3.0.0 has several assets for linux-amd64; they are {gnu}, {musl}");
    assert_eq!(bridge::error::chain(&error), expected);
    assert!(error.hint().unwrap().into_string().starts_with("name one in source.asset"));
}

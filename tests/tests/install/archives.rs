//! Tests of malicious and damaged archives.

use std::fs;

use bridge::error::Hint as _;
use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::{Machine, asset_name, plugin, release_source, run, script};

/// Publishes an archive, and returns the error of its installation, which must leave no files behind.
async fn refusal(archive: &[u8]) -> String {
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    let name = asset_name("1.0.0");
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&name, archive)]);
    let error = machine.refusal(&plugin(release_source(&server.api_url(), "v1.0.0"))).await;
    machine.assert_empty();
    let files: Vec<_> = fs::read_dir(machine.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "only repo, home and cache: {files:?}");
    error.strip_prefix(&format!("cannot unpack {name}: ")).unwrap_or(&error).to_owned()
}

/// Shows: plugins.md#what-is-checked "It is refused as a whole if it contains absolute paths, `..`, devices, duplicate
///   entries, entries below a link"
#[tokio::test]
async fn entry_outside_the_folder_is_refused() {
    let file = Entry::File(0o755, b"x");
    let out = "the link may lead out of the package";
    type Entries<'a> = &'a [(&'a str, Entry<'a>)];
    let cases: [(Entries<'_>, &str, &str); 15] = [
        (&[("../evil", file)], "../evil", "its path contains .."),
        (&[("a/../../evil", file)], "a/../../evil", "its path contains .."),
        (&[("/tmp/sc-evil", file)], "/tmp/sc-evil", "its path is absolute"),
        (&[("l", Entry::Link("/etc"))], "l", out),
        (&[("l", Entry::Link("../evil"))], "l", out),
        (&[("a/l", Entry::Link("../../evil"))], "a/l", out),
        (&[("a/b/r", Entry::Link("../..")), ("s", Entry::Link("a/b/r/.."))], "s", out),
        (&[("l", Entry::Link(".")), ("l/evil", file)], "l/evil", "a parent of its path is not a folder"),
        (&[("l", Entry::Link("x")), ("l", file)], "l", "another entry has the same path"),
        (&[("x", file), ("x", file)], "x", "another entry has the same path"),
        (&[("x", file), ("x/y", file)], "x/y", "a parent of its path is not a folder"),
        (&[("h", Entry::HardLink("/etc/passwd"))], "h", out),
        (&[("h", Entry::HardLink("../evil"))], "h", out),
        (&[(".git/config", file)], ".git/config", "its path contains .git"),
        (&[("h", Entry::HardLink("missing"))], "h", "the target of the hard link is missing"),
    ];
    for (entries, path, reason) in cases {
        let archive = tar_gz(entries).unwrap();
        assert_eq!(refusal(&archive).await, format!("its entry {path:?} is refused: {reason}"));
    }
    assert!(!std::path::Path::new("/tmp/sc-evil").exists());
}

#[tokio::test]
async fn device_and_pipe_entries_are_refused() {
    for kind in [b'3', b'4', b'6'] {
        let archive = tar_gz(&[("d", Entry::Device(kind))]).unwrap();
        assert_eq!(refusal(&archive).await, "its entry \"d\" is refused: it is neither file, folder nor link");
    }
}

/// Shows: plugins.md#what-is-checked "or a size out of proportion to the archive"
#[tokio::test]
async fn decompression_bomb_is_refused() {
    let zeros = vec![0; 65 << 20];
    let bomb = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &zeros))]).unwrap();
    assert!(bomb.len() < 4 << 20, "{}", bomb.len());
    assert_eq!(refusal(&bomb).await, "it is too large: its content is far larger than the archive");
}

#[tokio::test]
async fn oversized_header_is_refused() {
    // The name of the next entry has sixteen million letters.
    let name = vec![b'a'; 16 << 20];
    let archive = tar_gz(&[("././@LongLink", Entry::Metadata(b'L', &name)), ("x", Entry::File(0o644, b""))]).unwrap();
    assert_eq!(refusal(&archive).await, "it is too large: one of its headers is too large");
    // The header gives the next entry a size of 0, so that its content would be read as headers.
    let size = tar_gz(&[("x", Entry::Metadata(b'x', b"10 size=0\n")), ("y", Entry::File(0o644, &name))]).unwrap();
    assert_eq!(refusal(&size).await, "its entry \"x\" is refused: it changes the length of the next entry");
    let links: Vec<String> = (0..200).map(|link| format!("link{link}")).collect();
    let large = vec![7; 1 << 20];
    let mut entries = vec![("large", Entry::File(0o644, &large))];
    entries.extend(links.iter().map(|link| (link.as_str(), Entry::HardLink("large"))));
    assert_eq!(refusal(&tar_gz(&entries).unwrap()).await, "it is too large: its hard links are too large");
}

#[tokio::test]
async fn headers_and_types_of_all_kinds_of_tar_are_understood() {
    let acl = "SCHILY.acl.access=user::rw-\nother::r--";
    let record = format!("{} {acl}\n", acl.len() + 4);
    let long = "pulumi-resource-reef";
    let path = format!("{} path={long}\n", 9 + long.len());
    let program = script("hello");
    let entries = [
        // A folder of the first tars, which have no type for it.
        ("data/", Entry::File(0o755, b"")),
        ("x", Entry::Metadata(b'x', record.as_bytes())),
        ("data/text", Entry::File(0o644, b"text")),
        ("x", Entry::Metadata(b'x', path.as_bytes())),
        ("short", Entry::File(0o755, &program)),
        ("x", Entry::Metadata(b'g', b"12 comment=\n")),
        ("././@LongLink", Entry::Metadata(b'K', b"data/text\0")),
        ("link", Entry::Link("cut")),
    ];
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    let archive = tar_gz(&entries).unwrap();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &archive)]);
    let package = machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(run(&package).await, "hello");
    assert_eq!(fs::read_to_string(package.folder().join("link")).unwrap(), "text");
    let malformed = tar_gz(&[("x", Entry::Metadata(b'x', b"99 path=a\n")), ("y", Entry::File(0o644, b""))]).unwrap();
    assert_eq!(refusal(&malformed).await, "its entry \"x\" is refused: its extended header is malformed");
}

#[tokio::test]
async fn damaged_and_unsupported_archives_are_reported() {
    let archive_bytes = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("x").repeat(1000)))]).unwrap();
    assert_eq!(refusal(&archive_bytes[..archive_bytes.len() / 2]).await, "it cannot be read: it ends too early");
    let mut damaged = archive_bytes.clone();
    // Offset of the checksum at the end of the stream.
    let at = damaged.len() - 6;
    damaged[at] ^= 0xff;
    assert_eq!(refusal(&damaged).await, "it cannot be read: corrupt gzip stream does not have a matching checksum");
    let xz = b"\xfd7zXZ\0";
    let supported = "tar.gz, tar.zst, tar, zip and plain executables are supported";
    assert_eq!(refusal(xz).await, format!("it is a xz archive; {supported}"));
    let empty = tar_gz(&[]).unwrap();
    assert_eq!(refusal(&empty).await, "it holds no files");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, content).unwrap();
    gz.finish().unwrap()
}

/// Shows: plugins.md#what-is-checked "An asset that is neither an archive nor a program, such as an empty file or a page of
///   HTML, is not installed"
#[tokio::test]
async fn asset_that_is_no_archive_is_refused_until_it_is_repaired() {
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    let name = asset_name("1.0.0");
    let source = plugin(release_source(&server.api_url(), "v1.0.0"));
    let good = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("repaired")))]).unwrap();
    let (asset, again) = ("an archive (tar.gz, tar.zst, tar, zip) or an executable", "uploaded the asset again");
    let executable = "an executable: a program, or a script that begins with #!";
    let no_tar = "a gzip-compressed file that is no tar archive, but";
    let in_archive = |content: &[u8]| tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, content))]).unwrap();
    let inside = format!("pulumi-resource-reef in {name}");
    let cases = [
        (Vec::new(), format!("{name} is empty; expected {asset}"), again),
        (b"<!doctype html><p>Sign in".to_vec(), format!("{name} is HTML; expected {asset}"), again),
        (b"oops\n".to_vec(), format!("{name} is a text that begins with \"oops\"; expected {asset}"), again),
        (gzip(b""), format!("{name} is {no_tar} empty; expected {asset}"), again),
        (gzip(b"<html>"), format!("{name} is {no_tar} HTML; expected {asset}"), again),
        (
            gzip(b"\x7fELF\x02"),
            format!("{name} is {no_tar} a program; expected {asset}"),
            "publish an archive (tar.gz, tar.zst, tar, zip) that holds",
        ),
        (
            gzip(&script("x")),
            format!("{name} is {no_tar} a script; expected {asset}"),
            "publish an archive (tar.gz, tar.zst, tar, zip) that holds",
        ),
        (b"MZ\x90\0".to_vec(), format!("{name} is a program of Windows; expected {asset}"), again),
        (in_archive(b""), format!("{inside} is empty; expected {executable}"), "published the executable itself"),
        (in_archive(b"<html>"), format!("{inside} is HTML; expected {executable}"), "published the executable itself"),
        (
            tar_gz(&[("pulumi-resource-reef", Entry::File(0o644, &script("x")))]).unwrap(),
            format!("{inside} is not executable"),
            "the mode 755",
        ),
        (
            tar_gz(&[
                ("PulumiPlugin.yaml", Entry::File(0o644, b"runtime: { name: go, options: { binary: bin/reef } }")),
                ("bin/reef", Entry::File(0o755, b"")),
            ])
            .unwrap(),
            format!("bin/reef in {name} is empty; expected {executable}"),
            "published the executable itself",
        ),
    ];
    for (content, expected, hint) in cases {
        server.remove_releases();
        server.publish("acme/pulumi-reef", "v1.0.0", &[(&name, &content)]);
        let error = machine.install(&source).await.unwrap_err();
        assert_eq!(bridge::error::chain(&error), expected);
        assert!(error.hint().unwrap().into_string().contains(hint), "{error}");
        machine.assert_empty();
    }
    server.remove_releases();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&name, &good)]);
    assert_eq!(super::run(&machine.install(&source).await.unwrap()).await, "repaired");
}

#[tokio::test]
async fn executable_in_the_form_of_any_platform_is_installed() {
    let server = ReleaseServer::start().await.unwrap();
    let programs: [(&str, &[u8]); 4] = [
        ("linux-amd64", b"\x7fELF\x02\x01\x01"),
        ("darwin-arm64", b"\xcf\xfa\xed\xfe\x0c"),
        ("darwin-amd64", b"\xca\xfe\xba\xbe\0\0\0\x02"),
        ("windows-amd64", b"MZ\x90\0"),
    ];
    for (platform, program) in programs {
        for is_plain in [true, false] {
            let machine = Machine::new();
            let archive = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, program))]).unwrap();
            server.remove_releases();
            server.publish("acme/pulumi-reef", "v1.0.0", &[("reef", if is_plain { program } else { &archive })]);
            let mut source = release_source(&server.api_url(), "v1.0.0");
            source.asset = Some("reef".into());
            source.platform = Some(platform.parse().unwrap());
            let package = machine.install(&plugin(source)).await.unwrap();
            assert_eq!(fs::read(package.program()).unwrap(), program, "{platform}");
        }
    }
}

#[tokio::test]
async fn links_are_unpacked_and_write_and_setuid_bits_are_removed() {
    use std::os::unix::fs::PermissionsExt as _;
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    let archive = tar_gz(&[
        ("lib/reef", Entry::File(0o4755, &script("inside"))),
        ("lib/data", Entry::File(0o666, b"data")),
        ("pulumi-resource-reef", Entry::Link("./lib/reef")),
        ("lib/again", Entry::HardLink("lib/data")),
        ("lib/up", Entry::Link("../lib/data")),
    ])
    .unwrap();
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &archive)]);
    let package = machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(super::run(&package).await, "inside");
    let folder = package.folder();
    let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("lib/reef"), mode("lib/data")), (0o500, 0o400), "no write permission, no setuid bit");
    for path in ["lib/again", "lib/up"] {
        assert_eq!(fs::read(folder.join(path)).unwrap(), b"data");
    }
}

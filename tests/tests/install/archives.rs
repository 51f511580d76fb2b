//! Tests of malicious and damaged archives.

use std::fs;

use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::{Machine, asset, plugin, released, script};

/// Publishes an archive, and returns the error of its installation, which must leave no files behind.
async fn refusal(archive: &[u8]) -> String {
    let (machine, server) = (Machine::new(), ReleaseServer::start().await.unwrap());
    let name = asset("1.0.0");
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&name, archive)]);
    let error = machine.refusal(&plugin(released(&server.api_url(), "v1.0.0"))).await;
    machine.assert_empty();
    let beside: Vec<_> = fs::read_dir(machine.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 3, "only repo, home and cache: {beside:?}");
    error.strip_prefix(&format!("cannot unpack {name}: ")).unwrap_or(&error).to_owned()
}

#[tokio::test]
async fn nothing_leaves_the_folder() {
    let file = Entry::File(0o755, b"x");
    let out = "the link may lead out of the package";
    type Entries<'a> = &'a [(&'a str, Entry<'a>)];
    let table: [(Entries<'_>, &str, &str); 15] = [
        (&[("../evil", file)], "../evil", "its path leads upwards"),
        (&[("a/../../evil", file)], "a/../../evil", "its path leads upwards"),
        (&[("/tmp/sc-evil", file)], "/tmp/sc-evil", "its path is absolute"),
        (&[("l", Entry::Link("/etc"))], "l", out),
        (&[("l", Entry::Link("../evil"))], "l", out),
        (&[("a/l", Entry::Link("../../evil"))], "a/l", out),
        (&[("a/b/r", Entry::Link("../..")), ("s", Entry::Link("a/b/r/.."))], "s", out),
        (&[("l", Entry::Link(".")), ("l/evil", file)], "l/evil", "it lies below something that is no folder"),
        (&[("l", Entry::Link("x")), ("l", file)], "l", "there is something at this path already"),
        (&[("x", file), ("x", file)], "x", "there is something at this path already"),
        (&[("x", file), ("x/y", file)], "x/y", "it lies below something that is no folder"),
        (&[("h", Entry::HardLink("/etc/passwd"))], "h", out),
        (&[("h", Entry::HardLink("../evil"))], "h", out),
        (&[(".git/config", file)], ".git/config", "it belongs to git"),
        (&[("h", Entry::HardLink("nobody"))], "h", "it links to what is not there"),
    ];
    for (entries, path, reason) in table {
        let archive = tar_gz(entries).unwrap();
        assert_eq!(refusal(&archive).await, format!("its entry {path:?} is refused: {reason}"));
    }
    assert!(!std::path::Path::new("/tmp/sc-evil").exists());
}

#[tokio::test]
async fn devices_and_pipes_are_refused() {
    for kind in [b'3', b'4', b'6'] {
        let archive = tar_gz(&[("d", Entry::Device(kind))]).unwrap();
        assert_eq!(refusal(&archive).await, "its entry \"d\" is refused: it is neither file, folder nor link");
    }
}

#[tokio::test]
async fn bombs_do_not_go_off() {
    let zeros = vec![0; 65 << 20];
    let bomb = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &zeros))]).unwrap();
    assert!(bomb.len() < 4 << 20, "{}", bomb.len());
    assert_eq!(refusal(&bomb).await, "it is too large: its content is out of all proportion to its length");
}

#[tokio::test]
async fn a_header_cannot_take_all_memory() {
    // The name of the next entry has sixteen million letters.
    let name = vec![b'a'; 16 << 20];
    let archive = tar_gz(&[("././@LongLink", Entry::Words(b'L', &name)), ("x", Entry::File(0o644, b""))]).unwrap();
    assert_eq!(refusal(&archive).await, "it is too large: one of its headers is");
    // The header gives the next entry a size of 0, so that its content would be read as headers.
    let size = tar_gz(&[("x", Entry::Words(b'x', b"10 size=0\n")), ("y", Entry::File(0o644, &name))]).unwrap();
    assert_eq!(refusal(&size).await, "its entry \"x\" is refused: it says another length of the next entry");
    let links: Vec<String> = (0..200).map(|link| format!("link{link}")).collect();
    let large = vec![7; 1 << 20];
    let mut entries = vec![("large", Entry::File(0o644, &large))];
    entries.extend(links.iter().map(|link| (link.as_str(), Entry::HardLink("large"))));
    assert_eq!(refusal(&tar_gz(&entries).unwrap()).await, "it is too large: its links are");
}

#[tokio::test]
async fn broken_archives_are_told_from_others() {
    let whole = tar_gz(&[("pulumi-resource-reef", Entry::File(0o755, &script("x").repeat(1000)))]).unwrap();
    assert_eq!(refusal(&whole[..whole.len() / 2]).await, "it cannot be read: it ends too early");
    let mut damaged = whole.clone();
    // Offset of the checksum at the end of the stream.
    let at = damaged.len() - 6;
    damaged[at] ^= 0xff;
    assert_eq!(refusal(&damaged).await, "it cannot be read: corrupt gzip stream does not have a matching checksum");
    assert_eq!(refusal(b"PK\x03\x04zip").await, "it is a zip archive; tar, tar.gz and plain executables are taken");
    let empty = tar_gz(&[]).unwrap();
    assert_eq!(refusal(&empty).await, "it cannot be read: it is empty, or no tar");
}

#[tokio::test]
async fn what_is_inside_stays_as_it_was_meant() {
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
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset("1.0.0"), &archive)]);
    let package = machine.install(&plugin(released(&server.api_url(), "v1.0.0"))).await.unwrap();
    assert_eq!(super::run(&package).await, "inside");
    let folder = package.folder();
    let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("lib/reef"), mode("lib/data")), (0o500, 0o400), "nobody writes, nobody becomes somebody else");
    for path in ["lib/again", "lib/up"] {
        assert_eq!(fs::read(folder.join(path)).unwrap(), b"data");
    }
}

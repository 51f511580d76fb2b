//! Hashes of files, folders, maps and packed archives, with the test vectors of Pulumi.

use std::fs;
use std::io::{self, Write as _};

use pulumi_proto::property::hash::{EMPTY_ARCHIVE_HASH, EMPTY_ASSET_HASH};
use pulumi_proto::property::{ArchiveContent, AssetContent};

use super::*;
use crate::plugin::StrictSandbox;
use crate::process::AllowedAccess;

const TEXT: &str = "a test asset";
const TEXT_HASH: &str = "e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704";
/// Hash of an archive with that text as member `foo`.
const FOO_HASH: &str = "27ab4a14a617df10cff3e1cf4e30cf510302afe56bf4cc91f84041c9f7b62fd8";

struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder with these files.
    fn of(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            let path = folder.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    async fn hash(&self, value: PropertyValue) -> Result<String, String> {
        let bag = PropertyMap::from([("source".to_owned(), value)]);
        match with_hashes(bag, self.0.path(), None).await?.remove("source").unwrap() {
            PropertyValue::Asset(asset) => Ok(asset.hash.unwrap()),
            PropertyValue::Archive(archive) => Ok(archive.hash.unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

fn asset(content: AssetContent) -> PropertyValue {
    PropertyValue::Asset(Asset { hash: None, content })
}

fn text(text: &str) -> PropertyValue {
    asset(AssetContent::Text(text.to_owned()))
}

fn file(path: &str) -> PropertyValue {
    asset(AssetContent::Path(path.to_owned()))
}

fn archive(content: ArchiveContent) -> PropertyValue {
    PropertyValue::Archive(Archive { hash: None, content })
}

fn packed(path: &str) -> PropertyValue {
    archive(ArchiveContent::Path(path.to_owned()))
}

fn map<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyValue {
    archive(ArchiveContent::Assets(members.map(|(key, value)| (key.to_owned(), value)).into()))
}

fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    writer.add_directory("folder/", zip::write::SimpleFileOptions::default()).unwrap();
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[tokio::test]
async fn asset_hash_is_the_hash_of_its_content() {
    let folder = Folder::of(&[("a.txt", TEXT.as_bytes())]);
    let whole = folder.0.path().join("a.txt");
    let whole = whole.to_str().unwrap();
    for value in [
        text(TEXT),
        file("a.txt"),
        file(whole),
        asset(AssetContent::Uri(format!("file://{whole}"))),
        asset(AssetContent::Uri(format!("file://localhost{whole}"))),
    ] {
        assert_eq!(folder.hash(value.clone()).await.as_deref(), Ok(TEXT_HASH), "{value:?}");
    }
}

#[tokio::test]
async fn existing_hash_is_kept() {
    let folder = Folder::of(&[]);
    let known = PropertyValue::Asset(Asset { hash: Some("abc".into()), content: AssetContent::Path("nowhere".into()) });
    assert_eq!(folder.hash(known).await.as_deref(), Ok("abc"));
}

#[tokio::test]
async fn archive_hash_is_the_hash_of_a_tar_of_its_members() {
    let folder = Folder::of(&[
        ("folder/foo", TEXT.as_bytes()),
        ("folder/.pulumi/meta", b"no content"),
        ("foo", TEXT.as_bytes()),
    ]);
    let path = folder.0.path();
    std::os::unix::fs::symlink(path, path.join("folder/round")).unwrap();
    for value in [map([("foo", text(TEXT))]), map([("foo", file("foo"))]), packed("folder"), packed("folder/")] {
        assert_eq!(folder.hash(value.clone()).await.as_deref(), Ok(FOO_HASH), "{value:?}");
    }
    assert_eq!(folder.hash(map([])).await.as_deref(), Ok(EMPTY_ARCHIVE_HASH));
}

#[tokio::test]
async fn member_without_content_is_an_error_unless_it_is_empty() {
    let folder = Folder::of(&[]);
    let asset = |hash: &str| PropertyValue::Asset(Asset { hash: Some(hash.to_owned()), content: AssetContent::Elided });
    let archive =
        |hash: &str| PropertyValue::Archive(Archive { hash: Some(hash.to_owned()), content: ArchiveContent::Elided });
    let empty = folder.hash(map([("foo", text(""))])).await;
    assert_eq!(empty.as_deref(), Ok("d2587a875f82cdf3d3e6cfe9f8c6e6032be5dde8c344466e664e628da15757b0"));
    assert_eq!(folder.hash(map([("foo", asset(EMPTY_ASSET_HASH))])).await, empty);
    assert_eq!(folder.hash(map([("foo", archive(EMPTY_ARCHIVE_HASH))])).await.as_deref(), Ok(EMPTY_ARCHIVE_HASH));
    for member in [asset(TEXT_HASH), archive(FOO_HASH)] {
        let message = "source: the content of a member of an archive is not known";
        assert_eq!(folder.hash(map([("foo", member)])).await, Err(message.to_owned()));
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\na test asset";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const GONE: &str = "HTTP/1.1 404 Gone\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Starts a server that sends one response after the other. Returns an asset with its URL.
fn asset_from_server(responses: &'static [&'static str]) -> PropertyValue {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for response in responses {
            let (mut stream, _) = listener.accept().unwrap();
            io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    asset(AssetContent::Uri(format!("http://me:word@{address}/page.html?signature=hush#part")))
}

#[tokio::test]
async fn url_is_downloaded_and_retried_after_a_temporary_error() {
    let folder = Folder::of(&[]);
    assert_eq!(folder.hash(asset_from_server(&[OK])).await.as_deref(), Ok(TEXT_HASH));
    assert_eq!(folder.hash(asset_from_server(&[BUSY, OK])).await.as_deref(), Ok(TEXT_HASH));
    let message = folder.hash(asset_from_server(&[GONE, OK])).await.unwrap_err();
    assert!(message.starts_with("source: cannot read http://127.0.0.1:"), "{message}");
    assert!(message.ends_with("/page.html: the server returned 404 Not Found"), "a secret in the URL: {message}");
}

#[tokio::test]
async fn files_of_a_member_archive_are_hashed_below_its_name() {
    let tar = tar_of(&[("./sub/x", "1"), ("y", "2")]);
    let zip = zip_of(&[("sub/x", "1"), ("y", "2")]);
    let folder = Folder::of(&[
        ("in/sub/x", b"1"),
        ("in/y", b"2"),
        ("in.tar", &tar),
        ("in.tar.gz", &gzip(&tar)),
        ("in.tgz", &gzip(&tar)),
        ("in.zip", &zip),
        ("in.jar", &zip),
    ]);
    let expected = folder.hash(map([("lib/sub/x", text("1")), ("lib/y", text("2"))])).await;
    let inner = || map([("sub/x", text("1")), ("y", text("2"))]);
    for value in [inner(), packed("in"), packed("in.tar"), packed("in.tar.gz"), packed("in.tgz"), packed("in.zip")] {
        let value = map([("lib", value)]);
        assert_eq!(folder.hash(value.clone()).await, expected, "{value:?}");
    }
    let jar = archive(ArchiveContent::Uri(format!("file://{}", folder.0.path().join("in.jar").display())));
    assert_eq!(folder.hash(map([("lib", jar)])).await, expected);
    assert!(expected.is_ok());
}

#[tokio::test]
async fn names_in_a_packed_archive_are_normalized() {
    let folder = Folder::of(&[("in.zip", &zip_of(&[("/../x", "1")]))]);
    let expected = folder.hash(map([("lib/x", text("1"))])).await;
    assert!(expected.is_ok());
    assert_eq!(folder.hash(map([("lib", packed("in.zip"))])).await, expected);
}

/// Compares with the hashes that `pulumi` 3.259 recorded for the same files.
#[tokio::test]
async fn hashes_equal_those_of_pulumi() {
    let tar = tar_of(&[("./sub/x", "1"), ("./y", "2")]);
    let folder = Folder::of(&[
        ("page.html", TEXT.as_bytes()),
        ("in/sub/x", b"1"),
        ("in/y", b"2"),
        ("in/.pulumi/z", b"no"),
        ("in.tar", &tar),
        ("in.tgz", &gzip(&tar)),
        ("in.zip", &zip_of(&[("sub/x", "1"), ("y", "2")])),
    ]);
    let inside = folder.0.path().join("in");
    std::os::unix::fs::symlink("../in", inside.join("round")).unwrap();
    std::os::unix::fs::symlink("y", inside.join("link")).unwrap();
    let lib = |path: &str| map([("lib", packed(path))]);
    let deep = map([("l/../lib", map([("./m", packed("in.zip")), ("lib", file("./page.html"))]))]);
    let rows = [
        (file("./page.html"), TEXT_HASH),
        (packed("./in"), "66f77ad7f9b148f38281d4b9036dd4b7d76b0464348daf8be1b6bc08b179e0c3"),
        (
            map([("foo", text(TEXT)), ("lib", packed("./in"))]),
            "bfa7c3c25486d98bb7ebbd0624bc460c66636ba66e53ba8a34b912e0efeae078",
        ),
        (lib("in.tar"), "080e9c914d84d63e6de4f3c8f2d32d4f08f2b4b1195ab3e874fd1bd695bfb237"),
        (lib("in.tgz"), "080e9c914d84d63e6de4f3c8f2d32d4f08f2b4b1195ab3e874fd1bd695bfb237"),
        (lib("in.zip"), "080e9c914d84d63e6de4f3c8f2d32d4f08f2b4b1195ab3e874fd1bd695bfb237"),
        (deep, "216ec5c7f435d9d296780711f47972713a0d31a33eefc529a3d8b19521075b7c"),
    ];
    for (value, hash) in rows {
        assert_eq!(folder.hash(value.clone()).await.as_deref(), Ok(hash), "{value:?}");
    }
}

#[tokio::test]
async fn packed_archive_has_the_hash_of_its_bytes() {
    let folder = Folder::of(&[("a.zip", TEXT.as_bytes()), ("a.tar.gz", TEXT.as_bytes())]);
    for path in ["a.zip", "a.tar.gz"] {
        assert_eq!(folder.hash(packed(path)).await.as_deref(), Ok(TEXT_HASH), "{path}");
    }
}

#[tokio::test]
async fn assets_in_lists_maps_secrets_and_outputs_get_hashes() {
    let folder = Folder::of(&[]);
    let output = OutputValue { value: Some(text(TEXT)), secret: true, dependencies: Vec::new() };
    let deep = PropertyValue::List(vec![
        PropertyValue::Map([("in".to_owned(), text(TEXT))].into()),
        PropertyValue::secret_verbatim(text(TEXT)),
        PropertyValue::Output(Box::new(output)),
    ]);
    let bag = PropertyMap::from([("deep".to_owned(), deep), ("other".to_owned(), "x".into())]);
    let bag = with_hashes(bag, folder.0.path(), None).await.unwrap();
    assert!(!bag.values().any(|value| has_asset(value, &|hash: &Option<String>| hash.is_none())));
    assert_eq!(bag["other"], "x".into());
}

#[tokio::test]
async fn unreadable_asset_is_reported_with_its_property() {
    let folder = Folder::of(&[("folder/x", b""), ("plain.txt", b"")]);
    let at = folder.0.path().display().to_string();
    let uri = |uri: &str| asset(AssetContent::Uri(uri.to_owned()));
    let rows = [
        (file("gone"), "source: cannot read AT/gone: No such file or directory (os error 2)"),
        (file("folder"), "source: AT/folder is a folder: make it an archive instead of an asset"),
        (packed("gone"), "source: cannot read AT/gone: No such file or directory (os error 2)"),
        (packed("plain.txt"), "source: AT/plain.txt is neither a folder nor named .tar, .tgz, .tar.gz, .zip or .jar"),
        (uri("ftp://x/y"), "source: cannot read ftp://x/y: expected a URL that begins with http:, https: or file:"),
        (uri("file://other/y"), "source: cannot read file://other/y: files of other hosts cannot be read"),
        (file("/dev/null"), "source: cannot read /dev/null: it is a device, not a regular file"),
        (map([("x", "text".into())]), "source: the member \"x\" of an archive is neither an asset nor an archive"),
    ];
    for (value, expected) in rows {
        assert_eq!(folder.hash(value).await, Err(expected.replace("AT", &at)));
    }
}

/// Returns the access of a strict plugin whose package is `package` and whose folder for temporary files is `temporary`, in a
/// repository `repo` with a hidden file `hidden`.
fn access(root: &Path, ports: Vec<u16>) -> Arc<AssetAccess> {
    let place = |path: &str| root.join(path);
    let allowed = AllowedAccess {
        readable: vec![place("declared")],
        hidden: vec![place("repo/hidden")],
        ..AllowedAccess::default()
    };
    let declared = StrictSandbox { ports, ..StrictSandbox::default() };
    let own = [&*place("package"), &*place("repo")];
    Arc::new(AssetAccess::new(&declared, &allowed, own, Some(&place("temporary"))))
}

/// Shows: hosting.md#assets-of-strict-plugins "Those of a component with `strict` are refused, also with a hash, unless
///   the component may read them itself"
#[tokio::test]
async fn strict_plugin_gets_hashes_only_of_files_that_it_may_read() {
    let folder = Folder::of(&[
        ("repo/own", b"1"),
        ("repo/hidden", b"1"),
        ("repo/in/x", b"1"),
        ("package/x", b"1"),
        ("temporary/x", b"1"),
        ("declared/x", b"1"),
        ("outside/x", b"1"),
        ("outside.zip", b"1"),
    ]);
    let root = folder.0.path();
    for (target, link) in [
        ("outside/x", "repo/to-outside"),
        ("outside", "repo/folder"),
        ("repo/own", "temporary/to-own"),
        ("outside/x", "temporary/to-outside"),
        ("repo/hidden", "repo/to-hidden"),
        ("outside/x", "repo/in/y"),
    ] {
        std::os::unix::fs::symlink(root.join(target), root.join(link)).unwrap();
    }
    let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let known = |content| PropertyValue::Asset(Asset { hash: Some("abc".into()), content });
    let refused = "the sandbox of the plugin lets through files of the repository";
    let rows = [
        (file("own"), None),
        (file(&at("package/x")), None),
        (file(&at("temporary/x")), None),
        (file(&at("temporary/to-own")), None),
        (file(&at("declared/x")), None),
        (text("x"), None),
        (file(&at("outside/x")), Some(refused)),
        (file("../outside/x"), Some(refused)),
        (file("hidden"), Some(refused)),
        (file("to-hidden"), Some(refused)),
        (file("to-outside"), Some(refused)),
        (file("folder/x"), Some(refused)),
        (file(&at("temporary/to-outside")), Some(refused)),
        (file("/etc/passwd"), Some(refused)),
        (asset(AssetContent::Uri(format!("file://{}", at("outside/x")))), Some(refused)),
        (packed(&at("outside")), Some(refused)),
        (packed("folder"), Some(refused)),
        (packed("in"), Some(refused)),
        (packed(&at("outside.zip")), Some(refused)),
        (map([("x", file(&at("outside/x")))]), Some(refused)),
        (PropertyValue::List(vec![known(AssetContent::Path(at("outside/x")))]), Some(refused)),
        (known(AssetContent::Uri(format!("file://{}", at("outside/x")))), Some(refused)),
        (known(AssetContent::Uri("http://127.0.0.1/x".into())), Some("port 80 is not in `ports` of the plugin")),
        (asset(AssetContent::Uri("http://127.0.0.1/x".into())), Some("port 80 is not in `ports` of the plugin")),
        (known(AssetContent::Uri("https://example.com/x".into())), None),
    ];
    for (value, expected) in rows {
        let bag = PropertyMap::from([("source".to_owned(), value.clone())]);
        let found = with_hashes(bag, &root.join("repo"), Some(access(root, vec![443]))).await;
        match expected {
            None => assert!(found.is_ok(), "{value:?}: {found:?}"),
            Some(part) => assert!(found.as_ref().is_err_and(|error| error.contains(part)), "{value:?}: {found:?}"),
        }
    }
}

/// Shows: hosting.md#assets-of-strict-plugins "Those of a component with `strict` are refused, also with a hash, unless
///   the component may read them itself"
#[tokio::test]
async fn strict_plugin_gets_no_hashes_of_large_files_and_of_redirects_to_other_ports() {
    let folder = Folder::of(&[("repo/own", b"1")]);
    let root = folder.0.path();
    for name in ["repo/large", "repo/half", "repo/other-half"] {
        let size = if name == "repo/large" { (1 << 30) + 1 } else { 1 << 29 };
        fs::File::create(root.join(name)).unwrap().set_len(size + 1).unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        io::Read::read(&mut stream, &mut [0; 4096]).unwrap();
        let response =
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(response.as_bytes()).unwrap();
    });
    for (value, expected) in [
        (file("large"), "are larger than 1 GiB"),
        (map([("a", file("half")), ("b", file("other-half"))]), "are larger than 1 GiB"),
        (asset(AssetContent::Uri(format!("http://{address}/x"))), "it redirects to port 1, which is not in `ports`"),
    ] {
        let bag = PropertyMap::from([("source".to_owned(), value)]);
        let found = with_hashes(bag, &root.join("repo"), Some(access(root, vec![address.port()]))).await;
        assert!(found.as_ref().is_err_and(|error| error.contains(expected)), "{expected}: {found:?}");
    }
}

/// Adds hashes below a folder, and returns the value, or the message.
async fn added(hashes: &AssetHashes, value: PropertyValue) -> Result<PropertyValue, String> {
    let bag = PropertyMap::from([("source".to_owned(), value)]);
    let mut added = hashes.add_to(bag).await.map_err(|(name, reason)| format!("{name}: {reason}"))?;
    Ok(added.remove("source").unwrap())
}

/// Shows: server-yaml.md#assets-and-archives "The content is hashed once in a command"
#[tokio::test]
async fn asset_of_a_program_is_hashed_once_and_has_a_relative_path() {
    let folder = Folder::of(&[("a.txt", TEXT.as_bytes()), ("dir/foo", TEXT.as_bytes())]);
    let hashes = AssetHashes::new(folder.0.path());
    let whole = folder.0.path().join("a.txt");
    for value in [file("a.txt"), file(whole.to_str().unwrap())] {
        let PropertyValue::Asset(asset) = added(&hashes, value).await.unwrap() else { panic!() };
        assert_eq!((asset.hash.as_deref(), asset.content), (Some(TEXT_HASH), AssetContent::Path("a.txt".to_owned())));
    }
    fs::write(&whole, "changed").unwrap();
    let nested = PropertyValue::List(vec![PropertyValue::secret(map([("foo", file("a.txt"))])), file("a.txt")]);
    let PropertyValue::List(items) = added(&hashes, nested).await.unwrap() else { panic!() };
    let (PropertyValue::Secret(secret), PropertyValue::Asset(asset)) = (&items[0], &items[1]) else { panic!() };
    assert!(matches!(secret.expose(), PropertyValue::Archive(archive) if archive.hash.is_some()));
    assert_eq!(asset.hash.as_deref(), Some(TEXT_HASH), "the hash of the first reading");
    let PropertyValue::Archive(archive) = added(&hashes, packed("dir")).await.unwrap() else { panic!() };
    assert_eq!(archive.hash.as_deref(), Some(FOO_HASH));
}

/// Shows: server-yaml.md#assets-and-archives "stays below it, also behind links"
#[tokio::test]
async fn place_of_an_asset_of_a_program_is_below_the_folder() {
    let outside = Folder::of(&[("secret", b"hush")]);
    let folder = Folder::of(&[("a.txt", b"a"), ("dir/b", b"b"), ("a.zip", b"no archive"), ("linked/c", b"c")]);
    let at = |name: &str| folder.0.path().join(name);
    std::os::unix::fs::symlink(outside.0.path().join("secret"), at("link")).unwrap();
    std::os::unix::fs::symlink(outside.0.path().join("secret"), at("linked/secret")).unwrap();
    std::os::unix::fs::symlink(at("a.txt"), at("inner")).unwrap();
    let hashes = AssetHashes::new(folder.0.path());
    let outer = outside.0.path().join("secret").display().to_string();
    let sibling = outside.0.path().file_name().unwrap().to_string_lossy();
    for right in [file("a.txt"), file("./dir/../a.txt"), file("inner"), packed("dir"), packed("a.zip"), text("x")] {
        assert_eq!(hashes.check(&right), Ok(()), "{right:?}");
    }
    let uri = |uri: &str| asset(AssetContent::Uri(uri.to_owned()));
    for (wrong, expected) in [
        (file("none"), "cannot read none: No such file"),
        (file("dir"), "dir is a folder"),
        (file("link"), "link is outside of the repository"),
        (file(&format!("dir/../../{sibling}/secret")), "/secret is outside of the repository"),
        (file(&outer), "is outside of the repository"),
        (packed("a.txt"), "a.txt is neither a folder nor named"),
        (packed("none.zip"), "cannot read none.zip"),
        (uri(&format!("file://{outer}")), "is outside of the repository"),
        (uri("ftp://sea.example/x"), "expected a URL that begins with"),
        (uri("no url"), "cannot read a URL"),
        (archive(ArchiveContent::Uri("https://sea.example/x".to_owned())), "is neither a folder nor named"),
        (map([("a", file("none"))]), "cannot read none"),
    ] {
        let found = hashes.check(&wrong).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
    // A link in a folder is found when the folder is read.
    assert_eq!(hashes.check(&packed("linked")), Ok(()));
    let found = added(&hashes, packed("linked")).await.unwrap_err();
    assert!(found.starts_with("source: linked/secret is outside of the repository"), "{found}");
}

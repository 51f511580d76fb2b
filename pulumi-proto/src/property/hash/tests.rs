//! Tests with the vectors of Pulumi's own tests, and of Go's `archive/tar` for long names.

use super::*;

fn archive(members: &[(&str, &str)]) -> String {
    let mut hasher = ArchiveHasher::new();
    for (name, content) in members {
        hasher.add_member(name, content.len() as u64, content.as_bytes()).unwrap();
    }
    hasher.finish()
}

#[test]
fn asset_is_hashed_by_its_bytes() {
    let hash = "e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704";
    assert_eq!(hash_content("a test asset".as_bytes()).unwrap(), hash);
    assert_eq!(hash_content("".as_bytes()).unwrap(), EMPTY_ASSET_HASH);
}

#[test]
fn archive_is_hashed_as_a_tar_stream() {
    let hash = "27ab4a14a617df10cff3e1cf4e30cf510302afe56bf4cc91f84041c9f7b62fd8";
    assert_eq!(archive(&[("foo", "a test asset")]), hash);
    assert_eq!(archive(&[("foo", "")]), "d2587a875f82cdf3d3e6cfe9f8c6e6032be5dde8c344466e664e628da15757b0");
    assert_eq!(archive(&[]), EMPTY_ARCHIVE_HASH);
}

#[test]
fn repeated_member_name_is_ignored() {
    assert_eq!(archive(&[("foo", "a test asset"), ("foo", "another")]), archive(&[("foo", "a test asset")]));
}

#[test]
fn long_and_non_ascii_names_are_encoded_like_in_go() {
    let long = |count| "a".repeat(count);
    let cases = [
        (long(100), "f599684330a09c36c1e554f620ced6d0e3f73e7395bc56dc29c2a10f4616d273"),
        (
            format!("{}/{}", long(99), "b".repeat(99)),
            "75cc78da81f2e844f51aa78eb2be705ca029fa3303780acda6fc3b9b02bca71d",
        ),
        (long(101), "8efe9f492f2b8c53cde8670b6cbfabf8688894157f19cd75bcee7ed4c11a1d63"),
        (
            format!("{}/{}", long(99), "b".repeat(101)),
            "804f9d902d588b6277ff35437acdf443b044457097001902fb503dba5ddbb4e4",
        ),
        ("größe.txt".to_owned(), "9cf1ec224f7030d17117511f42dc8809ffd747a0209d4e512c1b58f1c7badc8b"),
        ("ordner/größe.txt".to_owned(), "a4f91c1d9135f701448b4069a0f4f4225dfdf4f398086ed7090627e994bb1cf3"),
    ];
    for (name, hash) in cases {
        assert_eq!(archive(&[(&name, "x")]), hash, "{name}");
    }
    assert_eq!(archive(&[("folder/", "")]), "0024c5fe8758007ce187b82425739c34868f07ec10f45652f99f5c57b562dccf");
}

#[test]
fn size_of_eight_gibibytes_is_written_to_a_pax_record() {
    let header = tar::header("big", 8 << 30).unwrap();
    let hash = "0e2513b185ddc4225c74a8e9063fdbea77b79e2f2e449358b784cbee5043013f";
    assert_eq!(hash_content(header.as_slice()).unwrap(), hash);
}

#[test]
fn invalid_member_name_is_refused() {
    for name in ["nul\0", "folder/"] {
        let error = ArchiveHasher::new().add_member(name, 1, "x".as_bytes()).unwrap_err();
        assert!(matches!(error, HashError::Name(refused) if refused == name));
    }
}

#[test]
fn content_of_unexpected_size_is_refused() {
    for (size, actual) in [(2, 1), (0, 1)] {
        let error = ArchiveHasher::new().add_member("foo", size, "x".as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!(r#"the archive member "foo" has {actual} bytes instead of {size}"#));
    }
}

#[test]
fn member_of_a_nested_archive_is_named_below_its_key() {
    let cases = [
        ("lib", "a.js", "lib/a.js"),
        ("lib/", "./a//b", "lib/a/b"),
        ("lib", "../a", "a"),
        ("lib", "../../a", "../a"),
        ("/lib", "../../a", "/a"),
        ("", "a/./b", "a/b"),
        ("a", "..", "."),
        ("", "", ""),
    ];
    for (archive, member, name) in cases {
        assert_eq!(member_name(archive, member), name, "{archive} {member}");
    }
}

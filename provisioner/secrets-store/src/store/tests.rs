use std::cmp::Ordering;

use super::order::compare;
use super::write::scalar;
use super::*;

#[test]
fn scalars_are_quoted_where_they_are_read_as_another_type() {
    for (text, expected) in [
        ("a.txt", "a.txt"),
        ("dir with space/f.txt", "dir with space/f.txt"),
        ("", "\"\""),
        ("~", "\"~\""),
        ("~x", "~x"),
        ("yes", "\"yes\""),
        ("Null", "\"Null\""),
        ("12", "\"12\""),
        ("1_0", "\"1_0\""),
        ("0x1F", "\"0x1F\""),
        ("0b1", "\"0b1\""),
        ("08", "\"08\""),
        ("1e3", "\"1e3\""),
        (".5", "\".5\""),
        (".env", ".env"),
        ("12:30", "\"12:30\""),
        ("2024-01-02", "\"2024-01-02\""),
        ("2024-13-02", "2024-13-02"),
        ("2024-02-30", "2024-02-30"),
        ("2024-01-02T03:04:05+01:00", "\"2024-01-02T03:04:05+01:00\""),
        ("2024-01-02 03:04:05 +01:00", "2024-01-02 03:04:05 +01:00"),
        ("1e400", "1e400"),
        ("<<", "<<"),
        ("1.2.3", "1.2.3"),
        ("-", "'-'"),
        ("-a", "-a"),
        ("- a", "'- a'"),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("#a", "'#a'"),
        ("it's", "it's"),
        ("'a", "'''a'"),
        ("*a", "'*a'"),
        ("?a", "?a"),
        ("---a", "'---a'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("é☃", "é☃"),
        ("😀.txt", "\"\\U0001F600.txt\""),
        ("a\tb", "\"a\\tb\""),
        ("a\"\u{7f}", "\"a\\\"\\x7F\""),
    ] {
        assert_eq!(scalar(text), expected, "{text:?}");
    }
}

#[test]
fn keys_have_the_order_of_yaml_v3() {
    let sorted = ["+a", "/b", "A1", "A1b", "A1+", "A2", "A10", "A10a", "AB", "a", "b", "b0", "b00", "b1"];
    for (at, a) in sorted.iter().enumerate() {
        for (other, b) in sorted.iter().enumerate() {
            assert_eq!(compare(a, b), at.cmp(&other), "{a} and {b}");
        }
    }
    assert_eq!(compare("x100", "x20"), Ordering::Greater);
}

#[test]
fn long_key_has_the_explicit_form() {
    let key = |length: usize| PublicKey::of_line(&format!("ssh-rsa {}", "A".repeat(length - 8)));
    let store = |length: usize| {
        let mut store = Store::default();
        store.register("a");
        store.set_entry(&key(length), Entry { path: "a".to_owned(), elements: vec!["eA==".to_owned()] });
        store
    };
    assert!(store(128).to_yaml().contains("AAA:\n        secrets:\n            - path: a\n"));
    assert!(store(129).to_yaml().contains("AAA\n    :   secrets:\n            - path: a\n              encryptedData:\n                - eA==\n        publicKeys:\n            data: []\n"));
    for length in [128, 129] {
        assert_eq!(Store::parse(&store(length).to_yaml()).unwrap(), store(length));
    }
    assert_eq!(Store::default().to_yaml(), "registry:\n    files: []\nsecrets: {}\n");
}

#[test]
fn errors_have_a_position() {
    let position = |text: &str| Store::parse(text).unwrap_err().position().map(|(line, column, _)| (line, column));
    assert_eq!(position("registry:\n  files: {}\n"), Some((2, 10)));
    assert!(position("registry: [\n").is_some());
    assert!(position("schemaVersion: \"1\"\n").is_some());
    let error = Store::parse("schemaVersion: 7\nsecrets: other\n").unwrap_err();
    assert!(matches!(error, ReadError::TooNew { found: 7 }), "{error}");
    for empty in ["registry:\nsecrets: {}\n", "schemaVersion: -1\nsecrets: {}\n"] {
        assert_eq!(Store::parse(empty).unwrap(), Store::default(), "{empty:?}");
    }
    for cut in ["", "\n", "---\n", "null\n", "schemaVersion: -1\n", "registry:\n", "registry:\nsecrets:\n"] {
        let error = Store::parse(cut).unwrap_err();
        assert!(matches!(error, ReadError::Incomplete { .. }), "{cut:?}: {error}");
    }
}

#[test]
fn keys_without_a_meaning_are_found_on_each_level() {
    let text = "a: 1\nregistry: {b: 1}\nsecrets:\n  ssh-rsa AAAA:\n    c: 1\n    publicKeys: {d: 1}\n    secrets: [{path: x, e: 1}]\n";
    let unknown = Store::parse(text).unwrap().unknown_keys;
    let place = "secrets.ssh-rsa AAAA";
    assert_eq!(
        unknown,
        ["a", "registry.b", &format!("{place}.c"), &format!("{place}.publicKeys.d"), &format!("{place}.secrets.e")]
    );
}

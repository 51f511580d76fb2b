//! Tests of masking: each spelling of a secret, its parts, and random secrets.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bridge::terminal::without_escape_sequences;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn masker(secrets: &[&str]) -> SecretMasker {
    let masker = SecretMasker::default();
    secrets.iter().for_each(|secret| masker.add_text(secret));
    masker
}

fn mask(secret: &str, text: &str) -> String {
    masker(&[secret]).mask(text).into_owned()
}

fn json_quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Quotes a text as Go's `encoding/json` does.
fn go_json_quoted(text: &str) -> String {
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
        ('\u{7f}', "\\u007f"),
    ];
    escapes.iter().fold(json_quoted(text), |text, (from, to)| text.replace(*from, to))
}

/// Quotes a text as JSON in ASCII, as Python does.
fn ascii_json_quoted(text: &str) -> String {
    let unit = |unit: &u16| format!("\\u{unit:04X}");
    let escape = |character: char| match character {
        ' '..='~' => character.to_string(),
        _ => character.encode_utf16(&mut [0; 2]).iter().map(unit).collect(),
    };
    json_quoted(text).chars().map(escape).collect()
}

fn rust_quoted(text: &str) -> String {
    let quoted = format!("{text:?}");
    quoted[1..quoted.len() - 1].to_owned()
}

/// Encodes all bytes but letters, digits and those in `kept`.
fn percent_encoded(text: &str, kept: &str, upper: bool) -> String {
    let encode = |byte: u8| match char::from(byte) {
        character if character.is_ascii_alphanumeric() || kept.contains(character) => character.to_string(),
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    text.bytes().map(encode).collect()
}

fn xml_quoted(text: &str) -> String {
    [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;"), ('\n', "&#xA;")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(*from, to))
}

fn byte_escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

fn octal_escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:03o}")).collect()
}

fn hex_digits(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of a text as words with a separator between them.
fn byte_words(text: &str, word: impl Fn(u8) -> String, separator: &str) -> String {
    text.bytes().map(word).collect::<Vec<_>>().join(separator)
}

/// Returns a secret in each spelling that stands alone in a text.
fn spellings(secret: &str) -> Vec<String> {
    let query = percent_encoded(secret, "-_.~", true);
    let mut spellings = vec![
        secret.to_owned(),
        json_quoted(secret),
        go_json_quoted(secret),
        ascii_json_quoted(secret),
        json_quoted(&json_quoted(secret)),
        go_json_quoted(&go_json_quoted(&go_json_quoted(secret))),
        rust_quoted(secret),
        secret.replace('\'', r"'\''"),
        secret.replace('\'', r#"'"'"'"#),
        xml_quoted(secret),
        byte_escaped(secret),
        octal_escaped(secret),
        hex_digits(secret),
        hex_digits(secret).to_uppercase(),
        format!("[{}]", byte_words(secret, |byte| byte.to_string(), " ")),
        format!("{:?}", secret.as_bytes()),
        format!("{:#?}", secret.as_bytes()),
        byte_words(secret, |byte| byte.to_string(), ","),
        byte_words(secret, |byte| format!("{byte:02x}"), ":"),
        byte_words(secret, |byte| format!("{byte:02X}"), ":"),
        byte_words(secret, |byte| format!("{byte:02x}"), " "),
        format!("[]byte{{{}}}", byte_words(secret, |byte| format!("{byte:#x}"), ", ")),
        query.clone(),
        query.replace("%20", "+"),
        percent_encoded(secret, "-_.~$&+=:@", true),
        percent_encoded(secret, "-_.!~*'()", true),
        percent_encoded(secret, "-_.~/", true),
        percent_encoded(secret, "-_.~", false),
        percent_encoded(&query, "", true),
        json_quoted(&percent_encoded(secret, "-_.~\"", true)),
        percent_encoded(&json_quoted(secret), "", true),
    ];
    let encoded = [STANDARD.encode(secret), URL_SAFE.encode(secret), STANDARD.encode(json_quoted(secret))];
    spellings.extend(encoded.iter().map(|text| percent_encoded(text, "", true)));
    spellings.extend(encoded);
    spellings.extend([STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)]);
    spellings.push(STANDARD.encode(STANDARD.encode(secret)));
    spellings
}

/// Returns the digits of base64 that a secret behind `before` bytes alone decides.
fn own_digits(secret: &str, before: usize) -> String {
    let text = STANDARD_NO_PAD.encode([&vec![b'x'; before], secret.as_bytes()].concat());
    let (first, last) = ((before * 8).div_ceil(6), (before + secret.len()) * 8 / 6);
    text[first..last].to_owned()
}

fn assert_hidden(secret: &str) {
    let masker = masker(&[secret]);
    for spelling in spellings(secret) {
        for text in [spelling.clone(), format!("no: \"{spelling}\" (400)"), format!("/{spelling}\n")] {
            let masked = masker.mask(&text);
            assert!(masked.contains(MASK) && !masked.contains(&spelling), "{spelling:?} in {masked:?}");
        }
    }
    for before in 0..4 {
        let text = STANDARD.encode(format!("{}{secret}:rest", "user".get(..before).unwrap()));
        let masked = masker.mask(&text);
        assert!(!masked.contains(&own_digits(secret, before)), "{text} as {masked}");
    }
}

/// Shows: events.md#secrets-in-texts "A secret is found as it is, and also"
#[test]
fn every_spelling_of_a_secret_is_masked() {
    for secret in [
        "swordfish-7f3a",
        "it's \"quoted\" & <tagged> + 100%",
        "C:\\new\\table",
        "line one of two\nline two: ä 🦀 ~",
        "a b+c/d=e?f#g",
        "ümläut-ÿ-\u{a0}-\u{2028}end",
        "50%41 %zz &amp; \\u0041",
    ] {
        assert_hidden(secret);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Shows: events.md#secrets-in-texts "A secret is found as it is, and also"
    #[test]
    fn every_spelling_of_a_random_secret_is_masked(secret in "[ -~]{1}[ -~\n\tä€🦀\u{a0}\u{2028}]{6,30}[!-~]{1}") {
        prop_assume!(secret.trim().len() >= MIN_WITH_OWN_DIGITS);
        assert_hidden(secret.trim());
    }

    #[test]
    fn text_without_a_secret_is_not_changed(text in any::<String>()) {
        prop_assert_eq!(mask("swordfish-7f3a\nsecond line", &text), text);
    }

    #[test]
    fn display_of_a_masked_text_has_no_secret(
        parts in prop::collection::vec(("sword|fish|-7f3a|[ ä✓\n]?", random_controls()), 0..8),
        controls in [random_controls(), random_controls()],
    ) {
        let [first, second] = controls;
        let parts: String = parts.into_iter().flat_map(|(text, controls)| [text, controls]).collect();
        let text = format!("{parts}sword{first}fish{second}-7f3a");
        let secret = "swordfish-7f3a";
        let shown = |text: &str| without_escape_sequences(text).replace(['\u{7f}', '\u{ad}', '\u{200b}'], "");
        let masked = mask(secret, &text);
        prop_assert!(!shown(&masked).contains(secret), "{:?} as {:?}", text, masked);
        prop_assert!(!shown(&text).contains(secret) || masked.contains(MASK), "{:?} as {:?}", text, masked);
    }

    #[test]
    fn text_around_a_secret_stays(before in "[a-z äö\n%+&\\\\]{0,20}", after in "[a-z äö\n%+&\\\\]{0,20}") {
        let masked = mask("Swordfish\"7F3A", &format!("{before} Swordfish\"7F3A {after}"));
        prop_assert_eq!(masked, format!("{before} [secret] {after}"));
    }
}

/// Length of secrets of which base64 has digits that no other text decides.
const MIN_WITH_OWN_DIGITS: usize = 8;

#[test]
fn only_the_secret_is_replaced() {
    for (secret, text, masked) in [
        ("a\"b<c", r#"body: {"k":"a\"b\u003cc"}"#, r#"body: {"k":"[secret]"}"#),
        ("p@ss word", "https://x/?a=1&k=p%40ss+word&b=%2F", "https://x/?a=1&k=[secret]&b=%2F"),
        ("password", "Basic dXNlcjpwYXNzd29yZA==.", "Basic dXNlcj[secret]==."),
        ("password", "70617373776f7264 is hex", "[secret] is hex"),
        ("pässword", "p%C3%A4ssword p\\303\\244ssword p\\xe4ssword", "[secret] [secret] [secret]"),
        ("password", "[1 112 97 115 115 119 111 114 100 2]", "[1 [secret] 2]"),
        ("password", "60:70:61:73:73:77:6F:72:64, ff", "60:[secret], ff"),
        ("password", "112 97 115 115 119 111 114 10", "112 97 115 115 119 111 114 10"),
        ("long secret text", "bG9uZyBzZWNy\n  ZXQgdGV4dA==", "[secret]=="),
    ] {
        assert_eq!(mask(secret, text), masked, "{text}");
    }
}

/// Generates escape sequences, also incomplete ones, and invisible characters.
fn random_controls() -> impl Strategy<Value = String> {
    "(\u{1b}[\\[\\]P(]?[0-9;]{0,3}[mKBa\u{7}]?|[\u{7f}\u{ad}\u{200b}]){0,2}"
}

/// Escape sequences that a terminal does not show, and invisible characters.
const INVISIBLE: [&str; 16] = [
    "\u{1b}[31m",
    "\u{1b}[0m\u{1b}[1;4m",
    "\u{1b}]8;;https://example.com/a\u{1b}\\",
    "\u{1b}]0;title\u{7}",
    "\u{1b}(B",
    "\u{9b}31m",
    "\u{9d}0;title\u{9c}",
    "\u{1b}P1$r\u{1b}\\",
    "\u{fff9}",
    "\u{7f}",
    "\u{200b}",
    "\u{200d}",
    "\u{ad}",
    "\u{2060}",
    "\u{feff}",
    "\u{202e}\u{2066}",
];

#[test]
fn secret_with_invisible_characters_in_it_is_masked() {
    for invisible in INVISIBLE {
        let text = format!("no: sword{invisible}fish-{invisible}7f3a (400)");
        assert_eq!(mask("swordfish-7f3a", &text), "no: [secret] (400)", "{text:?}");
        // Characters within a text that was escaped, within an escape, and within base64.
        for text in [json_quoted(&text), rust_quoted(&text), percent_encoded(&text, "-:", true)] {
            assert!(mask("swordfish-7f3a", &text).contains(MASK), "{text:?}");
        }
        let (head, tail) = ("pa%5", "3s%77ord");
        assert_eq!(mask("paSsword", &format!("{head}{invisible}{tail}")), MASK);
        let (head, tail) = ("c3dvcmRm", "aXNoLTdmM2E=");
        assert_eq!(mask("swordfish-7f3a", &format!("{head}{invisible}{tail}")), "[secret]=");
    }
}

#[test]
fn invisible_characters_of_a_secret_need_not_be_in_the_text() {
    for invisible in INVISIBLE {
        let secret = format!("{invisible}sword{invisible}fish\nits{invisible} second line");
        assert_eq!(mask(&secret, &secret), MASK, "{secret:?}");
        assert_eq!(mask(&secret, "swordfish\nits second line; its second\u{200c} line"), "[secret]; [secret]");
    }
}

#[test]
fn unterminated_escape_sequence_does_not_hide_a_secret_on_the_next_line() {
    let text = "\u{1b}]0;title\nsword\u{1b}[1mfish-7f3a \u{1b}[";
    assert_eq!(mask("swordfish-7f3a", text), "\u{1b}]0;title\n[secret] \u{1b}[");
    // A link to an address with the secret.
    assert_eq!(mask("swordfish-7f3a", "\u{1b}]8;;swordfish-7f3a\u{7}a"), "\u{1b}]8;;[secret]\u{7}a");
}

#[test]
fn overlapping_secrets_leave_nothing_between_them() {
    let masker = masker(&["abcdef", "defghi", "abc-defgh", "defg"]);
    assert_eq!(masker.mask("-abcdefghi- abc-defgh defg"), "-[secret]- [secret] [secret]");
}

#[test]
fn short_secrets_are_not_masked() {
    let masker = masker(&["abc", " xyz\n", ""]);
    assert_eq!(masker.mask("abc xyz"), "abc xyz");
}

const PEM: &str =
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nshort=\n-----END PRIVATE KEY-----\n";

/// Shows: events.md#secrets-in-texts "each line of a secret with several lines"
/// Shows: events.md#secrets-in-texts "and each text in a JSON document"
#[test]
fn each_long_line_of_a_secret_is_masked_alone() {
    let masker = masker(&[PEM]);
    assert_eq!(masker.mask("bad line MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj!"), "bad line [secret]!");
    assert_eq!(masker.mask("-----BEGIN PRIVATE KEY-----: short="), "-----BEGIN PRIVATE KEY-----: short=");
    let quoted = serde_json::to_string(PEM).unwrap();
    assert_eq!(masker.mask(&quoted), "\"[secret]\\n\"");
    let crlf = PEM.replace('\n', "\r\n");
    assert!(!masker.mask(&crlf).contains("MIIE"));
}

#[test]
fn lines_of_only_json_punctuation_are_not_masked() {
    let masker = masker(&["{\n  \"a\": [{\n        }], }, {\n  \"k\": \"some words\"\n}"]);
    assert_eq!(masker.mask("x }], }, { y"), "x }], }, { y");
    assert_eq!(masker.mask("{\"k\": \"some words\"}"), "{[secret]}");
}

/// Shows: events.md#secrets-in-texts "each line of a secret with several lines"
/// Shows: events.md#secrets-in-texts "and each text in a JSON document"
#[test]
fn secret_members_of_a_json_document_are_masked_alone() {
    let document = json!({
        "type": "service_account",
        "project_id": "reef-prod",
        "private_key_id": "0123456789abcdef0123",
        "private_key": PEM,
        "client_email": "deployer@reef-prod.iam.example.com",
        "token_uri": "https://oauth2.example.com/token",
        "database": "postgres://reef:hunter-two@db/reef",
        "words": ["correct horse battery"],
        "password": "hunter-two",
        "port": 12345678,
    });
    for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
        let masker = masker(&[&text]);
        for (text, masked) in [
            ("key 0123456789abcdef0123", "key [secret]"),
            ("bad line MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "bad line [secret]"),
            ("postgres://reef:hunter-two@db/reef", "[secret]"),
            ("correct horse battery", "[secret]"),
            ("no hunter-two", "no [secret]"),
            ("service_account reef-prod deployer@reef-prod.iam.example.com", ""),
            ("POST https://oauth2.example.com/token: 12345678", ""),
        ] {
            assert_eq!(masker.mask(text), if masked.is_empty() { text } else { masked });
        }
        assert!(!masker.mask(PEM).contains("MIIE"));
    }
}

#[test]
fn secrets_in_values_are_found_at_every_depth() {
    let secret = |value| PropertyValue::secret(value);
    let nested = PropertyValue::Map([("x".to_owned(), "in-a-map".into())].into());
    let masker = SecretMasker::default();
    masker.add_values(&PropertyMap::from([
        ("list".to_owned(), PropertyValue::List(vec![secret("in-a-list".into()), "public".into()])),
        ("map".to_owned(), secret(nested)),
        ("bytes".to_owned(), secret(PropertyValue::Bytes(b"in-bytes".to_vec()))),
        ("number".to_owned(), secret(8080.0.into())),
    ]));
    assert_eq!(masker.mask("in-a-list in-a-map in-bytes public 8080"), "[secret] [secret] [secret] public 8080");
    assert_eq!(format!("{masker:?}"), "SecretMasker { .. }");
}

/// Shows: events.md#secrets-in-texts "A text is shortened only after it is masked"
#[test]
fn no_part_of_a_cut_secret_is_left() {
    let secret = "Swordfish \"7f3a\" & ümläut/+ 🦀 é\\n%".repeat(4);
    let masker = masker(&[&secret]);
    for spelling in spellings(&secret) {
        let text = format!("{}{spelling} end", "x ".repeat(50));
        // Eleven has no factor in common with the length of an escape or of a group of digits.
        for end in (0..=100 + spelling.len()).step_by(11).filter(|end| text.is_char_boundary(*end)) {
            let masked = masker.mask_beginning(&text[..end]);
            let left = masked.replace("x ", "");
            let left = left.trim_end_matches('x').trim();
            assert!("[]byte{".starts_with(left), "{end} bytes of {text:?} as {masked:?}");
        }
        let masked = masker.mask_beginning(&format!("{text}{}", "y".repeat(CUT_LENGTH)));
        assert!(masked.contains(MASK) && masked.ends_with(" end"), "{masked:?}");
    }
}

#[test]
fn beginning_of_a_secret_before_the_mark_of_a_cut_is_masked() {
    let secret = "correct horse battery ".repeat(9);
    let masker = masker(&[&secret]);
    let cut = &secret[..150];
    for (text, masked) in [
        (format!("say {cut} … (cut)"), "say  … (cut)".to_owned()),
        (
            format!("say {cut} … (cut)\" and {cut} … (cut)\n{secret}."),
            "say  … (cut)\" and  … (cut)\n[secret] .".to_owned(),
        ),
        (format!("say {cut} … and more"), format!("say {cut} … and more")),
    ] {
        assert_eq!(masker.mask(&text), masked);
    }
    assert_eq!(SecretMasker::default().mask("say … (cut)"), "say … (cut)");
}

#[test]
fn masking_of_long_texts_takes_time_in_proportion_to_their_length() {
    let secrets: Vec<String> = (0..10_000).map(|number| format!("secret-number-{number}")).collect();
    let masker = masker(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
    let text = "\\u{ &;% word-word/word+word \u{1b}[1m\u{200b} \\\\\\\" ".repeat(4_000);
    assert_eq!(masker.mask(&text), text);
}

/// Shows: events.md#secrets-in-texts "A literal of `sc` itself is not masked, also if a secret has the same words"
#[test]
fn literals_of_a_message_are_not_masked_and_its_values_are() {
    for word in ["secret", "error", "resource", "created", "plugin"] {
        let masker = masker(&[word]);
        let value = String::from(word);
        let literal = MessageText::from("a secret error of a created resource of the plugin");
        assert_eq!(masker.mask_message(&literal), literal.as_str());
        let message =
            MessageText::new(format_args!("the plugin created no secret resource, but the error {value:?}: {value}s"));
        let masked = "the plugin created no secret resource, but the error \"[secret]\": [secret]s";
        assert_eq!(masker.mask_message(&message), masked);
        // A secret that begins in a literal and ends in a value, or is in several literals.
        let split = MessageText::new(format_args!("{}{}{}{value}", &value[..2], &value[2..4], &value[4..]));
        assert_eq!(masker.mask_message(&split), "[secret][secret]");
        for outside in [MessageText::from(format!("the {word} of it")), format!("the {word} of it").as_str().into()] {
            assert_eq!(masker.mask_message(&outside), masker.mask(&outside));
            assert!(masker.mask_message(&outside).starts_with("the [secret]"), "{outside}");
        }
        // A text that was cut is masked as a whole.
        let cut = MessageText::new(format_args!("a secret error of a created resource of the plugin {value}{CUT}"));
        assert_eq!(masker.mask_message(&cut), masker.mask(&cut));
    }
    let masker = masker(&["secrets of reef"]);
    let name = String::from("reef");
    assert_eq!(masker.mask_message(&MessageText::new(format_args!("the secrets of {name}"))), "the [secret]");
}

#[test]
fn values_that_equal_a_secret_are_marked_at_every_depth() {
    let masker = masker(&["hush-hush"]);
    let values = |text: PropertyValue| {
        PropertyMap::from([
            ("plain".to_owned(), "hush".into()),
            ("list".to_owned(), vec![text.clone(), 1.0.into()].into()),
            ("map".to_owned(), PropertyValue::Map([("k".to_owned(), text)].into())),
        ])
    };
    let secret = PropertyValue::secret("hush-hush".into());
    assert_eq!(masker.mark_equal_values(&values("hush-hush".into())), Some(values(secret)));
    assert_eq!(masker.mark_equal_values(&values("hush-hush!".into())), None);
    assert_eq!(SecretMasker::default().mark_equal_values(&values("hush-hush".into())), None);
}

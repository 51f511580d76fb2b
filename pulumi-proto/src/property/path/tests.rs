//! Tests of property paths.

use super::*;

fn path(text: &str) -> PropertyPath {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn key(key: &str) -> Element {
    Element::Key(key.to_owned())
}

/// Parses a value from a short text: `{a:1,b:[1,2]}`. `!` before a value makes it secret.
fn value(text: &str) -> PropertyValue {
    let (value, rest) = read(text);
    assert_eq!(rest, "", "{text}");
    value
}

fn read(text: &str) -> (PropertyValue, &str) {
    if let Some(rest) = text.strip_prefix('!') {
        let (inside, rest) = read(rest);
        return (PropertyValue::secret(inside), rest);
    }
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut map = PropertyMap::new();
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once(':').unwrap();
            let (member, after) = read(after);
            map.insert(key.to_owned(), member);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        return (map.into(), &rest[1..]);
    }
    if let Some(mut rest) = text.strip_prefix('[') {
        let mut list = Vec::new();
        while !rest.starts_with(']') {
            let (item, after) = read(rest);
            list.push(item);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        return (list.into(), &rest[1..]);
    }
    let end = text.find([',', '}', ']']).unwrap_or(text.len());
    (text[..end].into(), &text[end..])
}

fn bag(text: &str) -> PropertyMap {
    value(text).as_map().unwrap().clone()
}

#[test]
fn path_is_parsed_into_elements() {
    let cases = [
        ("", vec![]),
        ("root", vec![key("root")]),
        ("foo-bar.baz:qux", vec![key("foo-bar"), key("baz:qux")]),
        (r#"a["b.c"][0].d"#, vec![key("a"), key("b.c"), Element::Index(0), key("d")]),
        (r#"["a \"b\" \\c"]"#, vec![key(r#"a "b" \\c"#)]),
        (r#"a.["k"].[1]"#, vec![key("a"), key("k"), Element::Index(1)]),
        (r#"a.*[*]["*"]"#, vec![key("a"), Element::Wildcard, Element::Wildcard, Element::Wildcard]),
        (r#"[""].ä"#, vec![key(""), key("ä")]),
        ("a..b", vec![key("a"), key("b")]),
    ];
    for (text, elements) in cases {
        assert_eq!(path(text).elements(), elements, "{text}");
    }
}

#[test]
fn invalid_path_is_refused() {
    let cases = [
        (".a", PropertyPathError::LeadingDot),
        ("a.", PropertyPathError::TrailingDot),
        (r#"a["b"#, PropertyPathError::OpenQuote),
        (r#"a["b\"]"#, PropertyPathError::OpenQuote),
        (r#"a["b"c]"#, PropertyPathError::OpenBracket),
        ("a[0", PropertyPathError::OpenBracket),
        ("a[x]", PropertyPathError::Index("x".into())),
        ("a[-1]", PropertyPathError::Index("-1".into())),
        ("a[]", PropertyPathError::Index(String::new())),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<PropertyPath>(), Err(error), "{text}");
    }
}

#[test]
fn path_is_displayed_in_portable_form() {
    let cases = [
        ("a.b_1[0].c", "a.b_1[0].c"),
        (r#"["a"]["b"]"#, "a.b"),
        ("$a.foo-bar", r#"["$a"]["foo-bar"]"#),
        (r#"a["say \"hi\""]"#, r#"a["say \"hi\""]"#),
        ("a[*].*", r#"a["*"]["*"]"#),
        (r#"a[""]"#, r#"a[""]"#),
        ("ä", r#"["ä"]"#),
        // In quotes, the backslash would escape the closing quote.
        ("a\\[0].b\\", "a\\[0].b\\"),
    ];
    for (text, written) in cases {
        assert_eq!(path(text).to_string(), written);
        assert_eq!(path(written), path(text));
    }
}

#[test]
fn path_contains_itself_and_its_descendants() {
    let yes =
        [("", "a.b"), ("a", "a"), ("a", "a[0].b"), ("a.*", "a[0].b"), ("a[*].c", "a.b.c"), ("*", "x"), ("*", "*")];
    let no = [("a.b", "a"), ("a", "b"), ("a[0]", "a[1]"), ("a[0]", r#"a["0"]"#), ("a.b", "a.*"), ("a.*", "a")];
    for (outer, inner) in yes {
        assert!(path(outer).contains(&path(inner)), "{outer} contains {inner}");
    }
    for (outer, inner) in no {
        assert!(!path(outer).contains(&path(inner)), "{outer} does not contain {inner}");
    }
}

#[test]
fn path_finds_values_inside_secrets() {
    let bag = bag("{a:!{b:[x,!{c:y}]}}");
    let cases = [
        ("a.b[0]", Some("x")),
        ("a.b[1].c", Some("y")),
        ("a.b[2]", None),
        ("a.b.c", None),
        ("a[0]", None),
        ("a.*", None),
        ("", None),
    ];
    for (text, found) in cases {
        assert_eq!(path(text).get(&bag).and_then(PropertyValue::as_str), found, "{text}");
    }
    assert_eq!(path("").get_in(&"x".into()), Some(&"x".into()));
    assert_eq!(path("[0]").get_in(&value("[x]")), Some(&"x".into()));
}

/// Rows: path, old map, new map, new map after the reset, validity of the path.
#[test]
fn reset_reverts_changes_at_the_path() {
    let cases = [
        // leaves of maps
        ("a", "{a:1}", "{a:2,b:3}", "{a:1,b:3}", true),
        ("a", "{a:1}", "{}", "{a:1}", true),
        ("a", "{}", "{a:2}", "{}", true),
        ("a", "{}", "{}", "{}", true),
        ("a.b", "{a:{b:1}}", "{a:{b:2,c:3}}", "{a:{b:1,c:3}}", true),
        ("a.b", "{a:{}}", "{a:{b:2}}", "{a:{}}", true),
        ("a.b", "{}", "{a:{b:2}}", "{a:{}}", true),
        ("a.b", "{a:{b:1}}", "{}", "{}", false),
        ("a.b", "{a:{b:1}}", "{a:2}", "{a:2}", false),
        ("a.b", "{a:{b:1}}", "{a:[2]}", "{a:[2]}", false),
        ("a.b", "{a:1}", "{a:2}", "{a:2}", true),
        ("a.b", "{a:[1]}", "{a:2}", "{a:2}", true),
        ("a.b", "{a:1}", "{a:{b:2}}", "{a:{}}", true),
        ("a.b.c", "{a:1}", "{a:{b:{c:2}}}", "{a:{b:{c:2}}}", false),
        ("a.b.c", "{a:{b:{c:1}}}", "{a:2}", "{a:2}", false),
        ("a.b.c", "{a:{}}", "{a:{}}", "{a:{}}", true),
        ("a.b.c", "{}", "{a:{}}", "{a:{}}", false),
        // leaves of lists: never longer, never shorter
        ("a[0]", "{a:[1]}", "{a:[2,3]}", "{a:[1,3]}", true),
        ("a[1]", "{a:[1]}", "{a:[2,3]}", "{a:[2,3]}", false),
        ("a[1]", "{a:[1,2]}", "{a:[3]}", "{a:[3]}", false),
        ("a[5]", "{a:[1]}", "{a:[2]}", "{a:[2]}", true),
        ("a[0]", "{a:1}", "{a:2}", "{a:2}", true),
        ("a[0]", "{a:[1]}", "{a:2}", "{a:2}", false),
        ("a[0]", "{a:1}", "{a:[2]}", "{a:[2]}", false),
        ("a[0]", "{a:[1]}", "{a:{b:2}}", "{a:{b:2}}", false),
        ("a[0]", "{a:{b:1}}", "{a:{b:2}}", "{a:{b:2}}", true),
        ("a[0].b", "{a:[{b:1}]}", "{a:[{b:2,c:3}]}", "{a:[{b:1,c:3}]}", true),
        ("a[5].b", "{a:[{b:1}]}", "{a:[{b:2}]}", "{a:[{b:2}]}", false),
        ("[0]", "{a:1}", "{a:2}", "{a:2}", true),
        // wildcards
        ("*", "{a:1,b:2}", "{b:3,c:4}", "{a:1,b:2}", true),
        ("a.*", "{a:{x:1,y:2}}", "{a:{y:3,z:4}}", "{a:{x:1,y:2}}", true),
        ("a.*", "{a:1}", "{a:{y:3}}", "{a:{y:3}}", true),
        ("a.*", "{a:{x:1}}", "{a:2}", "{a:2}", false),
        ("a[*]", "{a:[1,2]}", "{a:[3,4]}", "{a:[1,2]}", true),
        ("a[*]", "{a:[1]}", "{a:[3,4]}", "{a:[1,4]}", false),
        ("a[*]", "{a:[1,2]}", "{a:[3]}", "{a:[1]}", false),
        ("a[*]", "{a:1}", "{a:[3]}", "{a:[3]}", true),
        ("a[*].b", "{a:[{b:1},{b:2}]}", "{a:[{b:3},{b:4,c:5}]}", "{a:[{b:1},{b:2,c:5}]}", true),
        ("a[*].b", "{a:[{b:1}]}", "{a:[{b:3},{b:4}]}", "{a:[{b:1},{b:4}]}", false),
        ("*.b", "{a:{b:1}}", "{a:{b:2},c:{b:3}}", "{a:{b:1},c:{b:3}}", true),
        ("*.b", "{a:{b:1},c:{b:4}}", "{a:{b:2}}", "{a:{b:1}}", false),
        ("a.*.b", "{a:1}", "{a:{x:{b:2}}}", "{a:{x:{b:2}}}", false),
        // secrets
        ("a", "{a:!1}", "{a:2}", "{a:!1}", true),
        ("a", "{a:1}", "{a:!2}", "{a:!1}", true),
        ("a.b", "{a:{b:{c:1,d:2}}}", "{a:{b:{c:!3}}}", "{a:{b:{c:!1,d:2}}}", true),
        ("a[0]", "{a:[1]}", "{a:[!2]}", "{a:[!1]}", true),
        ("a.*", "{a:{x:1}}", "{a:{x:!2}}", "{a:{x:!1}}", true),
        ("a.b", "{a:!{b:1}}", "{a:{b:2}}", "{a:{b:!1}}", true),
        ("a.b", "{a:!{b:!1}}", "{a:{b:2}}", "{a:{b:!1}}", true),
        ("a.b", "{a:{b:1}}", "{a:!{b:2}}", "{a:!{b:1}}", true),
        ("a.b", "{a:!{b:1}}", "{a:!{b:2,c:3}}", "{a:!{b:1,c:3}}", true),
        ("a.b.c", "{a:!{b:{c:1}}}", "{a:{b:{c:2}}}", "{a:{b:{c:!1}}}", true),
        ("a[*]", "{a:![1,2]}", "{a:[3,4]}", "{a:[!1,!2]}", true),
        ("a.*", "{a:!{x:1}}", "{a:{y:2}}", "{a:{x:!1}}", true),
        // empty path
        ("", "{a:1}", "{a:2}", "{a:2}", false),
    ];
    for (text, old, new, after, ok) in cases {
        let mut result = bag(new);
        assert_eq!(path(text).reset(&bag(old), &mut result), ok, "{text} of {old} into {new}");
        assert_eq!(result, bag(after), "{text} of {old} into {new}");
    }
}

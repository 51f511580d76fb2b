//! Tests of the property diff of a step.

use super::super::diff::step_diff;
use super::*;

/// Renders the diff of an update between two property maps.
fn check(old: PropertyMap, new: PropertyMap, edit: impl FnOnce(&mut StepInfo)) -> String {
    let mut info = step(StepOp::Update, &urn("a:b:C", "x"), Some(old), Some(new));
    edit(&mut info);
    show(&info, DiffOptions { secrets: Secrets::Masked, full: false })
}

fn show(info: &StepInfo, options: DiffOptions) -> String {
    step_diff(info, options).iter().map(|line| line.render(false) + "\n").collect()
}

fn map<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyValue {
    PropertyValue::Map(bag(members))
}

fn list<const N: usize>(items: [PropertyValue; N]) -> PropertyValue {
    PropertyValue::List(items.into())
}

#[test]
fn only_changed_properties_are_shown_at_every_depth() {
    let old = bag([
        ("same", 1.0.into()),
        ("gone", list(["a".into(), "b".into()])),
        (
            "deep",
            map([
                ("list", list([map([("port", 80.0.into()), ("tls", false.into())]), "x".into()])),
                ("same", 1.0.into()),
            ]),
        ),
        ("kind", "text".into()),
        ("__internal", 1.0.into()),
        ("nothing", PropertyValue::Null),
    ]);
    let new = bag([
        ("same", 1.0.into()),
        ("deep", map([("list", list([map([("port", 8080.0.into()), ("tls", false.into())])])), ("same", 1.0.into())])),
        ("kind", list([1.5.into()])),
        ("new key", map([("empty", map([])), ("none", list([])), ("two words", true.into())])),
        ("__internal", 2.0.into()),
    ]);
    insta::assert_snapshot!(check(old, new, |_| ()), @r#"
    ~ deep:
      ~ list:
        ~ [0]:
          ~ port: 80 → 8080
        - [1]: "x"
    - gone: ["a", "b"]
    ~ kind: "text" → [1.5]
    + "new key":
      + empty: {}
      + none: []
      + "two words": true
    "#);
}

#[test]
fn detailed_diff_selects_changed_and_replacing_paths() {
    let old = bag([("a", map([("b", list([1.0.into(), 2.0.into()])), ("c.d", "x".into())])), ("e", 1.0.into())]);
    let new = bag([("a", map([("b", list([1.0.into(), 3.0.into()])), ("c.d", "y".into())])), ("e", 2.0.into())]);
    let shown = check(old, new, |info| {
        info.detailed_diff = BTreeMap::from([
            ("a.b[1]".to_owned(), update(DiffKind::UpdateReplace, true)),
            (r#"a["c.d"]"#.to_owned(), update(DiffKind::Update, true)),
            ("__defaults".to_owned(), update(DiffKind::Add, true)),
        ]);
        info.replace_keys = vec!["a".to_owned()];
    });
    insta::assert_snapshot!(shown, @r#"
    ~ a:
      ~ b:
        ~ [1]: 2 → 3 [replaces]
      ~ c.d: "x" → "y"
    "#);
}

#[test]
fn detailed_diff_whose_keys_are_not_quoted_shows_the_values_of_the_inputs() {
    let tags = |value: &str| {
        let members = [("app.io/name", value.into()), ("x[0]", value.into()), ("plain", "p".into())];
        let items = list([map([("a.b", value.into())]), "same".into()]);
        bag([("tags", map(members)), ("items", items), ("login", PropertyValue::secret(map([("a.b", value.into())])))])
    };
    let shown = check(tags("a"), tags("b"), |info| {
        let paths = ["tags.app.io/name", "tags.x[0]", "items[0].a.b", "login.a.b"];
        info.detailed_diff = paths.into_iter().map(|path| (path.to_owned(), update(DiffKind::Update, true))).collect();
        info.replace_keys = vec!["tags.x[0]".to_owned()];
    });
    insta::assert_snapshot!(shown, @r#"
    ~ items:
      ~ [0]:
        ~ a.b: "a" → "b"
    ~ login: [secret] → [secret]
    ~ tags:
      ~ app.io/name: "a" → "b"
      ~ "x[0]": "a" → "b" [replaces]
    "#);
}

#[test]
fn path_that_is_deeper_than_any_value_is_one_name() {
    // Each of these paths of 100,000 levels would be a tree that overflows the stack.
    for deep in [vec!["a"; 100_000].join("."), format!("a{}", "[0]".repeat(100_000))] {
        for edit in [
            (|info, deep| {
                info.detailed_diff = BTreeMap::from([(deep, update(DiffKind::Update, true))]);
            }) as fn(&mut StepInfo, String),
            |info, deep| info.diffs = vec![deep],
            |info, deep| info.replace_keys = vec![deep],
        ] {
            let shown = check(bag([("a", 1.0.into())]), bag([("a", 1.0.into())]), |info| edit(info, deep.clone()));
            assert!(shown.contains(&deep) && shown.lines().count() == 1, "{} bytes", shown.len());
        }
    }
}

#[test]
fn path_into_a_secret_ends_at_the_secret() {
    let old = bag([("login", PropertyValue::secret(map([("name", "me".into()), ("word", "one".into())])))]);
    let new = bag([("login", map([("name", "me".into()), ("word", "two".into())]))]);
    let edit = |info: &mut StepInfo| {
        info.detailed_diff = BTreeMap::from([("login.word".to_owned(), update(DiffKind::Update, true))]);
    };
    insta::assert_snapshot!(check(old.clone(), new.clone(), edit), @r#"
    ~ login: [secret] → [secret]
    "#);
    let mut info = step(StepOp::Update, &urn("a:b:C", "x"), Some(old), Some(new));
    edit(&mut info);
    insta::assert_snapshot!(show(&info, DiffOptions { secrets: Secrets::Shown, full: false }), @r#"
    ~ login:
      ~ word: "one" → "two"
    "#);
}

#[test]
fn unknown_and_newly_secret_values_are_shown() {
    let old = bag([("id", "i-1".into()), ("key", "plain".into()), ("list", list([PropertyValue::secret("a".into())]))]);
    let new = bag([
        ("id", PropertyValue::UNKNOWN),
        ("key", PropertyValue::secret("plain".into())),
        ("list", list([PropertyValue::secret("b".into()), PropertyValue::UNKNOWN])),
    ]);
    insta::assert_snapshot!(check(old, new, |_| ()), @r#"
    ~ id: "i-1" → <computed>
    ~ key: [secret] → [secret]
    ~ list:
      ~ [0]: [secret] → [secret]
      + [1]: <computed>
    "#);
}

#[test]
fn difference_without_changed_inputs_is_shown() {
    let old = bag([("a", 1.0.into())]);
    let shown = check(old.clone(), old, |info| info.diffs = vec!["size".to_owned()]);
    insta::assert_snapshot!(shown, @r#"
    ~ size: differs according to the provider
    "#);
}

#[test]
fn long_texts_are_shortened_unless_full() {
    let text: String = (0..30).map(|line| format!("line {line}\n")).collect();
    let inputs = bag([("script", text.into()), ("token", "x".repeat(300).into())]);
    let info = step(StepOp::Create, &urn("a:b:C", "x"), None, Some(inputs));
    let short = show(&info, DiffOptions { secrets: Secrets::Masked, full: false });
    insta::assert_snapshot!(short, @r#"
    + script:
      + line 0
      + line 1
      + line 2
      + line 3
      + line 4
      + line 5
      + line 6
      + line 7
      + … 22 more lines
    + token: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (62 more characters)
    "#);
    let full = show(&info, DiffOptions { secrets: Secrets::Masked, full: true });
    assert_eq!(full.lines().count(), 32);
}

#[test]
fn long_one_line_texts_are_shown_on_separate_lines() {
    let old = bag([("about", "the quick brown fox jumps over the lazy dog".into())]);
    let new = bag([("about", "the quick brown fox jumps over the lazy cat".into())]);
    insta::assert_snapshot!(check(old, new, |_| ()), @r#"
    ~ about:
      - "the quick brown fox jumps over the lazy dog"
      + "the quick brown fox jumps over the lazy cat"
    "#);
}

#[test]
fn hidden_diffs_are_not_shown() {
    let bag_of = |value: f64| {
        let deep = || map([("noise", value.into()), ("kept", value.into())]);
        bag([("gone", value.into()), ("deep", list([deep(), deep()])), ("list", list([value.into(), value.into()]))])
    };
    let text = check(bag_of(1.0), bag_of(2.0), |info| {
        let new = Arc::make_mut(info.new.as_mut().unwrap());
        new.hide_diff = ["gone", "deep[*].noise", "list[1]"].map(str::to_owned).to_vec();
    });
    insta::assert_snapshot!(text, @r"
    ~ deep:
      ~ [0]:
        ~ kept: 1 → 2
      ~ [1]:
        ~ kept: 1 → 2
    ~ list:
      ~ [0]: 1 → 2
    ");
}

#[test]
fn rename_is_shown_with_what_differed() {
    let renamed = |op, former: Urn, v: f64| {
        let step = step(op, &urn("box:index:Box", "new"), None, Some(bag([("v", v.into())])));
        StepInfo { old: Some(state(&former, bag([("v", 1.0.into())]))), ..step }
    };
    let steps = [
        renamed(StepOp::Same, urn("box:index:Box", "old"), 1.0),
        renamed(StepOp::Same, urn("box:index:Crate", "new"), 1.0),
        StepInfo { diffs: vec!["v".to_owned()], ..renamed(StepOp::Update, urn("box:index:Box", "old"), 2.0) },
    ];
    let lines = steps.map(|step| {
        let (mut script, step) = (Script::new(Operation::Update, true), Arc::new(step));
        script.start(0, &step);
        script.done(0, &step, 0);
        script.end(1, Operation::Update, true, Outcome::Succeeded, &[(step.op, 1)]);
        let (_, results) = plain(&script, false);
        let mut json = Vec::new();
        script.play(&mut JsonDisplay::new(&mut json, Secrets::Masked, true, EventNumbers::default()), 0, u64::MAX);
        let former = step.former_urn().unwrap();
        assert_eq!(String::from_utf8(json).unwrap().matches(&format!(r#""formerUrn":"{former}""#)).count(), 2);
        results.lines().next().unwrap().to_owned()
    });
    insta::assert_snapshot!(lines.join("\n"), @"
    → new  box:Box  rename     renamed from old
    → new  box:Box  rename     renamed from box:index:Crate
    ~ new  box:Box  update     renamed from old; edited here [v]
    ");
}

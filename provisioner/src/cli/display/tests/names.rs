//! Tests of secrets in the names and paths of properties.

use super::*;

const SECRET: &str = "hush-hush";

/// Returns what each display prints: the progress and the results without a terminal, and the lines of `--json`.
fn shown(script: &Script, secrets: Secrets) -> [String; 3] {
    let (progress, results, json) = (Shared::default(), Shared::default(), Shared::default());
    let diff = Some(DiffOptions { secrets, full: false });
    let options = DisplayOptions { diff, secrets, ..options(true) };
    let mut plain = PlainDisplay::new(progress.clone(), results.clone(), None, options);
    script.play(&mut Redacting::new(&mut plain), 0, u64::MAX);
    let mut display = JsonDisplay::new(json.clone(), secrets, true, EventNumbers::default());
    script.play(&mut Redacting::new(&mut display), 0, u64::MAX);
    [progress.text(), results.text(), json.text()]
}

/// Returns the script of a preview that knows secrets, and then has the step of another resource.
fn script(secrets: &[&str], info: StepInfo) -> Script {
    let mut script = Script::new(Operation::Update, true);
    let values = secrets.iter().map(|secret| PropertyValue::secret((*secret).into())).collect();
    let keeper = bag([("pw", PropertyValue::List(values))]);
    script.start(1, &Arc::new(step(StepOp::Same, &urn("t:m:User", "user"), None, Some(keeper))));
    let (op, info) = (info.op, Arc::new(info));
    script.start(2, &info);
    script.done(3, &info, 1);
    script.end(5, Operation::Update, true, Outcome::Succeeded, &[(op, 1)]);
    script
}

fn changed(old: PropertyMap, new: PropertyMap) -> StepInfo {
    step(StepOp::Update, &urn("t:m:Echo", "echo"), Some(old), Some(new))
}

fn map<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyValue {
    PropertyValue::Map(bag(members))
}

#[test]
fn names_and_paths_with_a_secret_are_masked_in_every_display() {
    let properties = |value: f64| {
        bag([
            (SECRET, value.into()),
            ("env", map([("x-hush-hush-y", value.into()), ("open", 1.0.into())])),
            ("list", vec![map([(SECRET, map([("deep", value.into())]))])].into()),
        ])
    };
    for op in [StepOp::Create, StepOp::Update, StepOp::Delete, StepOp::Refresh, StepOp::Import, StepOp::Read] {
        let (old, new) = match op {
            StepOp::Create | StepOp::Import | StepOp::Read => (None, Some(properties(2.0))),
            StepOp::Delete => (Some(properties(1.0)), None),
            _ => (Some(properties(1.0)), Some(properties(2.0))),
        };
        let mut info = step(op, &urn("t:m:Echo", "echo"), old, new);
        info.replace_keys = vec![SECRET.to_owned(), "hush-hush-gone".to_owned()];
        info.diffs = vec!["env".to_owned(), SECRET.to_owned()];
        let paths = ["env.x-hush-hush-y", "list[0][\"hush-hush\"].deep", "env[\"no-hush-hush\"]", "hush-hush.of.none"];
        info.detailed_diff = paths.map(|path| (path.to_owned(), update(DiffKind::UpdateReplace, true))).into();
        let mut script = script(&[SECRET], info);
        script.at(4, Event::OutputsRegistered(state(&root(), properties(1.0))));
        for text in shown(&script, Secrets::Masked) {
            assert!(!text.contains(SECRET), "{op:?}: {text}");
        }
        let [_, results, json] = shown(&script, Secrets::Shown);
        assert!(json.contains("x-hush-hush-y"), "{op:?}: {json}");
        assert!(results.contains("hush-hush") || op == StepOp::Refresh, "{op:?}: {results}");
    }
}

#[test]
fn masked_names_show_the_changes_of_their_properties() {
    let secrets = ["first-secret", "other-secret"];
    let old = bag([("tags", map([("first-secret", "a".into()), ("other-secret", "b".into()), ("open", "c".into())]))]);
    let new =
        bag([("tags", map([("other-secret", "d".into()), ("third.other-secret", "a".into()), ("open", "c".into())]))]);
    let compared = changed(old.clone(), new.clone());
    let mut detailed = changed(old, new);
    detailed.detailed_diff = [
        ("tags.first-secret", DiffKind::Delete),
        ("tags[\"other-secret\"]", DiffKind::UpdateReplace),
        // Without the quotes that the dot needs.
        ("tags.third.other-secret", DiffKind::Add),
    ]
    .map(|(path, kind)| (path.to_owned(), update(kind, true)))
    .into();
    let [_, results, json] = shown(&script(&secrets, detailed), Secrets::Masked);
    insta::assert_snapshot!(results, @r#"
    ~ echo  t:m:Echo  update     edited here
         ~ tags:
           - "[secret]": "a"
           ~ "[secret] (2)": "b" → "d" [replaces]
           + "third.[secret]": "a"

    Preview of aquarium done in 0.0s: 1 to update
    "#);
    let mut events = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let step = events.find(|event| event["name"] == "echo").unwrap();
    insta::assert_snapshot!(step["detailedDiff"], @r#"{"tags[\"[secret] (2)\"]":{"kind":"update-replace","inputDiff":true},"tags[\"[secret]\"]":{"kind":"delete","inputDiff":true},"tags[\"third.[secret]\"]":{"kind":"add","inputDiff":true}}"#);
    insta::assert_snapshot!(step["new"]["inputs"], @r#"{"tags":{"[secret] (2)":"d","open":"c","third.[secret]":"a"}}"#);
    let [_, results, _] = shown(&script(&secrets, compared), Secrets::Masked);
    insta::assert_snapshot!(results, @r#"
    ~ echo  t:m:Echo  update     edited here
         ~ tags:
           - "[secret]": "a"
           ~ "[secret] (2)": "b" → "d"
           + "third.[secret]": "a"

    Preview of aquarium done in 0.0s: 1 to update
    "#);
}

#[test]
fn masked_names_of_options_and_rows_match_those_of_properties() {
    let old = bag([(SECRET, map([("a", 1.0.into())])), ("x", 1.0.into()), ("[secret]", 1.0.into())]);
    let new = bag([(SECRET, map([("a", 2.0.into())])), ("x", 2.0.into()), ("[secret]", 2.0.into())]);
    let mut info = changed(old, new);
    info.diffs = vec![SECRET.to_owned(), "x".to_owned(), "[secret]".to_owned()];
    info.detailed_diff = [("hush-hush.a".to_owned(), update(DiffKind::Update, true))].into();
    let shown = |hidden: &[&str], diff| {
        let mut info = info.clone();
        let mut new = (**info.new.as_ref().unwrap()).clone();
        new.hide_diff = hidden.iter().map(|path| (*path).to_owned()).collect();
        info.new = Some(Arc::new(new));
        plain(&script(&[SECRET], info), diff).1
    };
    insta::assert_snapshot!(shown(&[], false), @"
    ~ echo  t:m:Echo  update     edited here [[secret] (2), x, [secret]]

    Preview of aquarium done in 0.0s: 1 to update
    ");
    insta::assert_snapshot!(shown(&[SECRET], false), @"
    ~ echo  t:m:Echo  update     edited here [x, [secret]]

    Preview of aquarium done in 0.0s: 1 to update
    ");
    insta::assert_snapshot!(shown(&[SECRET], true), @"
    ~ echo  t:m:Echo  update     edited here [x, [secret]]

    Preview of aquarium done in 0.0s: 1 to update
    ");
    insta::assert_snapshot!(shown(&["hush-hush.*"], true), @"
    ~ echo  t:m:Echo  update     edited here [[secret] (2), x, [secret]]

    Preview of aquarium done in 0.0s: 1 to update
    ");
}

#[test]
fn short_secrets_and_words_of_the_engine_are_not_masked_in_names() {
    let mut info = changed(bag([("abc", 1.0.into())]), bag([("abc", 2.0.into())]));
    info.replace_keys = vec!["provider".to_owned(), "abc".to_owned()];
    let [_, results, json] = shown(&script(&["abc", "provider"], info), Secrets::Masked);
    insta::assert_snapshot!(results, @"
    ~ echo  t:m:Echo  update     edited here
         ~ abc: 1 → 2 [replaces]
         ~ provider: its provider changed [replaces]

    Preview of aquarium done in 0.0s: 1 to update
    ");
    assert!(json.contains(r#""replaceKeys":["provider","abc"]"#), "{json}");
}

//! Compares `sc` with a server.yaml and `pulumi` with an equal program, with the same provider for both.
//!
//! Four stacks go through the same steps: one with `sc`, one with Pulumi, and two that alternate with every step. Each
//! step must make the same calls to all four providers and leave equal states (docs/server-yaml.md, the end of the
//! grammar's decisions, defines equality).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tests::things::{ANOTHER_SECRET, Call, Peer, Repository, SECRET};

use crate::pulumi::Pulumi;

/// Program that executes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Ours,
    Theirs,
}

/// Thing of the stack.
#[derive(Clone)]
struct Wanted {
    key: &'static str,
    inputs: Vec<(&'static str, Input)>,
    after: Vec<&'static str>,
    options: Value,
}

#[derive(Clone)]
enum Input {
    Text(&'static str),
    /// Output of another thing.
    OutOf(&'static str),
    /// First or second secret.
    Secret(&'static str),
}

fn wanted(key: &'static str, v: &'static str) -> Wanted {
    let inputs = vec![("v", Input::Text(v))];
    Wanted { key, inputs, after: Vec::new(), options: json!({}) }
}

impl Wanted {
    fn with(mut self, name: &'static str, input: Input) -> Self {
        self.inputs.retain(|(known, _)| *known != name);
        self.inputs.push((name, input));
        self
    }

    fn k(self, text: &'static str) -> Self {
        self.with("k", Input::Text(text))
    }

    fn after(mut self, key: &'static str) -> Self {
        self.after.push(key);
        self
    }

    /// Sets an option that has the same name in both programs.
    fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options[name] = value.into();
        self
    }

    fn ours(&self) -> Value {
        let input = |input: &Input| match input {
            Input::Text(text) => (*text).to_owned(),
            Input::OutOf(key) => format!("${{resource:{key}.out}}"),
            Input::Secret(name) => format!("${{secret:{name}}}"),
        };
        let config: Value = self.inputs.iter().map(|(name, value)| ((*name).to_owned(), json!(input(value)))).collect();
        let mut options = self.options.clone();
        if !self.after.is_empty() {
            options["dependsOn"] = json!(self.after);
        }
        json!({"type": "peergo:index:Thing", "config": config, "options": options})
    }

    fn theirs(&self) -> Value {
        let input = |input: &Input| match input {
            Input::Text(text) => json!(text),
            Input::OutOf(key) => json!(format!("${{{key}--main.out}}")),
            Input::Secret("first") => json!({"fn::secret": SECRET}),
            Input::Secret(_) => json!({"fn::secret": ANOTHER_SECRET}),
        };
        let properties: Value = self.inputs.iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect();
        let mut options = self.options.clone();
        options["provider"] = json!("${peergo}");
        if !self.after.is_empty() {
            options["dependsOn"] = self.after.iter().map(|key| json!(format!("${{{key}--main}}"))).collect();
        }
        json!({"type": "peergo:index:Thing", "properties": properties, "options": options})
    }
}

/// Operation of a step.
#[derive(Clone, Copy)]
enum Does {
    Up,
    /// Update of one resource, by its name.
    UpOnly(&'static str),
    /// Update of all resources but one, by its name.
    UpExcept(&'static str),
    Preview,
    Refresh,
    Destroy,
}

/// Step of all stacks.
struct Step {
    says: &'static str,
    does: Does,
    things: Vec<Wanted>,
    /// Change outside of both programs before the step, to the thing with this name.
    meanwhile: Option<(&'static str, Meanwhile)>,
    fails: bool,
}

#[derive(Clone, Copy)]
enum Meanwhile {
    Becomes(&'static str),
    IsLost,
}

fn step(says: &'static str, does: Does, things: &[Wanted]) -> Step {
    Step { says, does, things: things.to_vec(), meanwhile: None, fails: false }
}

/// Stack, with the home of its things.
struct Stack {
    repository: Repository,
    hands: [Hand; 2],
}

impl Stack {
    fn new(hands: [Hand; 2]) -> Self {
        Self { repository: Repository::new(&[Peer::Go]), hands }
    }

    /// Executes the step with this number, and returns the calls for each thing.
    fn take(&self, number: usize, step: &Step, pulumi: &Pulumi<'_>) -> BTreeMap<String, Vec<String>> {
        self.describe(&step.things, pulumi);
        if let Some((key, meanwhile)) = step.meanwhile {
            self.disturb(key, meanwhile);
        }
        let before = self.repository.home.calls().len();
        let hand = self.hands[number % 2];
        let (code, text) = match hand {
            Hand::Ours => self.repository.run(&ours(step.does)),
            Hand::Theirs => {
                match (number, self.hands[0]) {
                    (0, _) => drop(pulumi.succeeds(&["stack", "init"])),
                    (1, Hand::Ours) => pulumi.adopt_salt(),
                    _ => {}
                }
                let (code, stdout, stderr) = pulumi.run(&theirs(step.does), tests::things::PASSPHRASE);
                (code, stdout + &stderr)
            }
        };
        assert_eq!(code != 0, step.fails, "{}, by {hand:?} of {:?}:\n{text}", step.says, self.hands);
        let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for Call { call, name, preview, secret, .. } in self.repository.home.calls().split_off(before) {
            if !name.is_empty() {
                asked.entry(name).or_default().push(format!("{call} preview={preview} secret={secret:?}"));
            }
        }
        asked
    }

    fn describe(&self, things: &[Wanted], pulumi: &Pulumi<'_>) {
        let plugin = json!({
            "name": Peer::Go.package(),
            "source": {"type": "local", "path": "plugins/peergo"},
            "passEnv": ["PEER_HOME"],
        });
        let resources = things.iter().map(|thing| (thing.key.to_owned(), thing.ours())).collect();
        let output = |thing: &Wanted| (thing.key.to_owned(), json!(format!("${{resource:main/{}.out}}", thing.key)));
        self.repository.describe_as(&json!([plugin]), &resources, &things.iter().map(output).collect());

        let mut resources: Map<String, Value> =
            things.iter().map(|thing| (format!("{}--main", thing.key), thing.theirs())).collect();
        resources.insert("peergo".to_owned(), json!({"type": "pulumi:providers:peergo"}));
        let output = |thing: &Wanted| (thing.key.to_owned(), json!(format!("${{{}--main.out}}", thing.key)));
        pulumi.program(&Value::Object(resources), &things.iter().map(output).collect());
    }

    fn disturb(&self, key: &str, meanwhile: Meanwhile) {
        let home = &self.repository.home;
        let recorded = self.repository.id(key);
        let (id, mut thing) = home.things().into_iter().find(|(id, _)| *id == recorded).unwrap();
        match meanwhile {
            Meanwhile::Becomes(v) => {
                thing["v"] = json!(v);
                home.alter(&id, &thing);
            }
            Meanwhile::IsLost => home.lose(&id),
        }
    }

    /// Returns the existing things, by name.
    fn there(&self) -> Vec<(String, Value)> {
        let name = |id: &str| id.rsplit_once('-').unwrap().0.to_owned();
        let things = self.repository.home.things().into_iter();
        let mut things: Vec<_> = things.map(|(id, thing)| (name(&id), thing)).collect();
        things.sort_by_key(|(name, thing)| (name.clone(), thing.to_string()));
        things
    }
}

fn ours(does: Does) -> Vec<&'static str> {
    let up = vec!["provision", "-s", "reef", "--yes", "--skip-refresh", "--skip-preview"];
    match does {
        Does::Up => up,
        Does::UpOnly(name) => [up, vec!["--target", name]].concat(),
        Does::UpExcept(name) => [up, vec!["--exclude", name]].concat(),
        Does::Preview => vec!["provision", "-s", "reef", "--skip-refresh", "--preview"],
        Does::Refresh => vec!["refresh", "-s", "reef", "--yes"],
        Does::Destroy => vec!["destroy", "--parent", "-s", "reef", "--yes", "--skip-refresh", "--skip-preview"],
    }
}

fn theirs(does: Does) -> Vec<&'static str> {
    let up = vec!["up", "--yes", "--skip-preview"];
    match does {
        Does::Up => up,
        Does::UpOnly(name) => [up, vec!["--target", pattern(name)]].concat(),
        Does::UpExcept(name) => [up, vec!["--exclude", pattern(name)]].concat(),
        Does::Preview => vec!["preview"],
        Does::Refresh => vec!["refresh", "--yes", "--skip-preview"],
        Does::Destroy => vec!["destroy", "--yes", "--skip-preview"],
    }
}

/// Returns a URN pattern for the name of a thing.
fn pattern(name: &str) -> &'static str {
    match name {
        "a--main" => "**::a--main",
        "b--main" => "**::b--main",
        other => panic!("no pattern for {other}"),
    }
}

/// Returns the recorded state, without the parts that differ between any two runs.
pub(crate) fn recorded(repository: &Repository) -> Value {
    let state = repository.state();
    let mut resources = state["deployment"]["resources"].as_array().cloned().unwrap_or_default();
    resources.iter_mut().for_each(comparable);
    resources.sort_by_key(|resource| (resource["urn"].to_string(), resource["delete"].to_string()));
    json!({"resources": resources, "pending": state["deployment"]["pending_operations"]})
}

fn comparable(resource: &mut Value) {
    let members = resource.as_object_mut().unwrap();
    for left_out in ["created", "modified", "sourcePosition", "stackTrace"] {
        members.remove(left_out);
    }
    let cut = |text: &mut Value, separator: &str| {
        if let Some((name, _)) = text.as_str().and_then(|text| text.rsplit_once(separator)) {
            *text = json!(name);
        }
    };
    if let Some(id) = members.get_mut("id") {
        cut(id, "-");
        if members["type"].as_str().unwrap().starts_with("pulumi:providers:") {
            members.insert("id".to_owned(), json!("chosen at random"));
        }
    }
    if let Some(provider) = members.get_mut("provider") {
        cut(provider, "::");
    }
    let sort = |list: &mut Value| {
        if let Some(list) = list.as_array_mut() {
            list.sort_by_key(Value::to_string);
        }
    };
    if let Some(dependencies) = members.get_mut("dependencies") {
        sort(dependencies);
    }
    if let Some(Value::Object(properties)) = members.get_mut("propertyDependencies") {
        properties.values_mut().for_each(sort);
    }
}

/// Returns the calls for each thing, without those that depend on the registration order of independent things. That
/// order decides whether a replacement sends a Diff for a former dependent, and in which order the two halves of that
/// dependent's own replacement come.
fn whatever_the_order(asked: &BTreeMap<String, Vec<String>>) -> BTreeMap<&str, Vec<&str>> {
    let texts = asked.iter().map(|(name, calls)| (name.as_str(), calls.iter().map(String::as_str).collect()));
    let mut asked: BTreeMap<&str, Vec<&str>> = texts.collect();
    for calls in asked.values_mut() {
        let registered = calls.iter().position(|call| call.starts_with("Check")).unwrap_or(calls.len());
        let (before, after) = calls.split_at(registered);
        let mut kept: Vec<&str> =
            before.iter().filter(|call| !call.starts_with("Diff")).chain(after).copied().collect();
        kept.sort_unstable();
        *calls = kept;
    }
    asked.retain(|_, calls| !calls.is_empty());
    asked
}

/// Executes the steps with four stacks, and compares their calls and states. `sure`: the order of calls depends on the
/// description only.
fn all_agree(steps: &[Step], sure: bool) {
    use Hand::{Ours, Theirs};
    let stacks = [[Ours; 2], [Theirs; 2], [Ours, Theirs], [Theirs, Ours]].map(Stack::new);
    let pulumis = stacks.each_ref().map(|stack| Pulumi::new(&stack.repository));
    for (number, step) in steps.iter().enumerate() {
        let asked: Vec<_> =
            stacks.iter().zip(&pulumis).map(|(stack, pulumi)| stack.take(number, step, pulumi)).collect();
        for (stack, asked_here) in stacks.iter().zip(&asked) {
            let of = |number: usize| -> Vec<String> {
                steps[number].things.iter().map(|thing| format!("{} {}", thing.key, thing.theirs())).collect()
            };
            let (says, hands) = (step.says, stack.hands);
            let (before, now) = (of(number.saturating_sub(1)), of(number));
            let says = format!("{says}, {hands:?} against Pulumi alone: {now:#?} after {before:#?}");
            if sure {
                assert_eq!(asked_here, &asked[1], "{says}");
            } else {
                assert_eq!(whatever_the_order(asked_here), whatever_the_order(&asked[1]), "{says}");
            }
            let (here, there) = (recorded(&stack.repository), recorded(&stacks[1].repository));
            assert!(here == there, "{says}:\n{here:#}\n{there:#}");
            assert_eq!(stack.there(), stacks[1].there(), "{says}");
        }
    }
}

pub(crate) fn a_life_of_ordinary_changes_is_the_same_in_all_hands() {
    let b = wanted("b", "").with("v", Input::OutOf("a"));
    let secret = wanted("c", "1").with("secret", Input::Secret("first")).after("a");
    // The value is secret by the schema and by an option.
    let told =
        wanted("d", "1").with("secret", Input::Text("no secret?")).option("additionalSecretOutputs", json!(["v"]));
    all_agree(
        &[
            step("everything is made", Does::Up, &[wanted("a", "1"), b.clone(), secret.clone()]),
            step("nothing changes", Does::Up, &[wanted("a", "1"), b.clone(), secret.clone()]),
            step("a preview of an update", Does::Preview, &[wanted("a", "2"), b.clone(), secret.clone()]),
            step("an update reaches what hangs on it", Does::Up, &[wanted("a", "2"), b.clone(), secret.clone()]),
            step("a replacement", Does::Up, &[wanted("a", "2").k("x"), b.clone(), secret.clone()]),
            step(
                "a secret changes, and something is new",
                Does::Up,
                &[
                    wanted("a", "2").k("x"),
                    b.clone(),
                    secret.clone().with("secret", Input::Secret("second")),
                    wanted("d", "1"),
                ],
            ),
            step(
                "some go",
                Does::Up,
                &[wanted("a", "2").k("x"), told.clone().option("additionalSecretOutputs", json!(["secret"]))],
            ),
            step("all goes", Does::Destroy, &[wanted("a", "2").k("x"), told]),
            step("it is made again", Does::Up, &[wanted("a", "3"), b]),
            step("and goes again", Does::Destroy, &[]),
        ],
        true,
    );
}

pub(crate) fn options_failures_and_drift_are_the_same_in_all_hands() {
    let urn = |name: &str| format!("urn:pulumi:reef::tide::peergo:index:Thing::{name}--main");
    let a = wanted("a", "1").k("x");
    let b = wanted("b", "1").with("k", Input::OutOf("a"));
    let guarded = wanted("c", "1").option("protect", true);
    let kept = wanted("d", "1").option("retainOnDelete", true);
    let stubborn = |v| wanted("e", v).option("ignoreChanges", json!(["v"]));
    let touchy = |v| wanted("f", v).option("replaceOnChanges", json!(["v"])).after("e");
    let all =
        |a: &Wanted, v: &'static str| vec![a.clone(), b.clone(), guarded.clone(), kept.clone(), stubborn(v), touchy(v)];
    let first = a.clone().k("y").option("deleteBeforeReplace", true);
    let few = [first.clone(), b.clone()];
    let renamed = wanted("c2", "1").option("aliases", json!([urn("c")]));
    let rest = [first.clone(), b.clone(), renamed.clone(), stubborn("2"), touchy("2")];
    // The dependencies determine the order.
    let wrong = Wanted { inputs: Vec::new(), ..b.clone() }.after("a");
    let meanwhile = |key, meanwhile, step: Step| Step { meanwhile: Some((key, meanwhile)), ..step };
    let fails = |step: Step| Step { fails: true, ..step };
    all_agree(
        &[
            step("everything is made", Does::Up, &all(&a, "1")),
            step("a preview of a replacement that takes a dependent down", Does::Preview, &all(&first, "1")),
            step("a replacement takes a dependent down", Does::Up, &all(&first, "1")),
            step("a change is ignored, another one replaces", Does::Up, &all(&first, "2")),
            fails(step("something protected would go", Does::Up, &few)),
            step("it has a new name, and something is let go", Does::Up, &rest),
            fails(step("an input is wrong", Does::Up, &[first.clone(), wrong, renamed.after("b")])),
            step("as before", Does::Up, &rest),
            meanwhile("a", Meanwhile::Becomes("9"), step("drift is recorded", Does::Refresh, &rest)),
            step("and mended", Does::Up, &rest),
            meanwhile("b", Meanwhile::IsLost, step("a loss is recorded", Does::Refresh, &rest)),
            step("and made good", Does::Up, &rest),
            step("only one is touched", Does::UpOnly("b--main"), &[a.clone(), b.clone().with("v", Input::Text("5"))]),
            step(
                "one is spared",
                Does::UpExcept("b--main"),
                &[first, b.clone().with("v", Input::Text("6")), wanted("g", "1")],
            ),
            step("all goes", Does::Destroy, &[]),
        ],
        true,
    );
}

/// Runs as many cases as `SC_TWINS` requests, starting with the seed `SC_TWINS_SEED`.
pub(crate) fn random_lives_are_the_same_in_all_hands() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, many) = (number("SC_TWINS_SEED").unwrap_or(1), number("SC_TWINS").unwrap_or(3));
    for seed in first..first + many {
        println!("SC_TWINS_SEED={seed} SC_TWINS=1");
        all_agree(&random_life(&mut Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)), false);
    }
}

/// Marsaglia's xorshift generator, which returns equal numbers for equal seeds.
struct Dice(u64);

impl Dice {
    fn below(&mut self, many: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % many
    }

    fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len())]
    }
}

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Returns random things: values differ, and some things are missing.
fn random_things(dice: &mut Dice) -> Vec<Wanted> {
    let mut things: Vec<Wanted> = Vec::new();
    for key in KEYS {
        if dice.once_in(5) {
            continue;
        }
        let earlier: Vec<&str> = things.iter().map(|thing| thing.key).collect();
        let input = |dice: &mut Dice, texts: &[&'static str]| match earlier.is_empty() || !dice.once_in(3) {
            true => Input::Text(dice.of(texts)),
            false => Input::OutOf(KEYS[dice.below(earlier.len())]),
        };
        let known = |input: Input| match input {
            Input::OutOf(key) if !earlier.contains(&key) => Input::Text("x"),
            input => input,
        };
        let v = known(input(dice, &["1", "2", "3"]));
        let mut thing = wanted(key, "").with("v", v);
        if dice.once_in(2) {
            thing = thing.with("k", known(input(dice, &["x", "x", "x", "y"])));
        }
        if dice.once_in(4) {
            thing = thing.with("secret", Input::Secret(dice.of(&["first", "second"])));
        }
        if let Some(other) = earlier.last().filter(|_| dice.once_in(4)) {
            thing = thing.after(KEYS.into_iter().find(|key| key == other).unwrap());
        }
        for (option, value) in [
            ("deleteBeforeReplace", json!(true)),
            ("retainOnDelete", json!(true)),
            ("ignoreChanges", json!(["v"])),
            ("replaceOnChanges", json!(["v"])),
            ("additionalSecretOutputs", json!(["out"])),
        ] {
            if dice.once_in(7) {
                thing = thing.option(option, value);
            }
        }
        things.push(thing);
    }
    things
}

fn random_life(dice: &mut Dice) -> Vec<Step> {
    let mut steps = vec![step("everything is made", Does::Up, &random_things(dice))];
    for _ in 0..5 {
        let last = &steps[steps.len() - 1].things;
        let mut next = match dice.below(6) {
            0 => step("a preview", Does::Preview, &random_things(dice)),
            1 => step("a refresh", Does::Refresh, last),
            _ => step("a change", Does::Up, &random_things(dice)),
        };
        if let Some(thing) = last.first().filter(|_| matches!(next.does, Does::Refresh)) {
            next.meanwhile = Some((thing.key, Meanwhile::Becomes("9")));
        }
        if matches!(next.does, Does::Preview) {
            steps.push(next);
            next = step("what was previewed", Does::Up, &steps[steps.len() - 1].things);
        }
        steps.push(next);
    }
    steps.push(step("all goes", Does::Destroy, &[]));
    steps
}

//! Compares `sc` with a server.yaml and `pulumi` with an equal program, with the same provider for both.
//!
//! Four stacks go through the same steps: one with `sc`, one with Pulumi, and two that alternate with every step. Each
//! step must make the same calls to all four providers and leave equal states (docs/server-yaml.md, the end of the
//! grammar's decisions, defines equality).

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};
use tests::compare::reveal_where_plain;
use tests::sdk_providers::{ANOTHER_SECRET, Call, Repository, SECRET, Sdk};

use crate::pulumi::Pulumi;

/// Program that executes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Executor {
    Sc,
    Pulumi,
}

/// Resource of the stack.
#[derive(Clone)]
struct StackResource {
    key: &'static str,
    inputs: Vec<(&'static str, Input)>,
    depends_on: Vec<&'static str>,
    /// Options with the keys that they name. `deletedWith` has one key.
    named: Vec<(&'static str, &'static [&'static str])>,
    options: Value,
}

#[derive(Clone)]
enum Input {
    Text(&'static str),
    /// Output of another resource.
    OutputOf(&'static str),
    /// First or second secret.
    Secret(&'static str),
    /// Asset or archive, which both programs write alike.
    Asset(Value),
}

fn resource(key: &'static str, v: &'static str) -> StackResource {
    let inputs = vec![("v", Input::Text(v))];
    StackResource { key, inputs, depends_on: Vec::new(), named: Vec::new(), options: json!({}) }
}

impl StackResource {
    fn input(mut self, name: &'static str, input: Input) -> Self {
        self.inputs.retain(|(known, _)| *known != name);
        self.inputs.push((name, input));
        self
    }

    fn k(self, text: &'static str) -> Self {
        self.input("k", Input::Text(text))
    }

    fn depends_on(mut self, key: &'static str) -> Self {
        self.depends_on.push(key);
        self
    }

    /// Sets an option that names other resources.
    fn named(mut self, name: &'static str, keys: &'static [&'static str]) -> Self {
        self.named.push((name, keys));
        self
    }

    /// Sets an option that has the same name in both programs.
    fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options[name] = value.into();
        self
    }

    fn sc_resource(&self) -> Value {
        let input = |input: &Input| match input {
            Input::Text(text) => json!(text),
            Input::OutputOf(key) => json!(format!("${{resource:{key}.out}}")),
            Input::Secret(name) => json!(format!("${{secret:{name}}}")),
            Input::Asset(asset) => asset.clone(),
        };
        let config: Value = self.inputs.iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect();
        let mut options = self.options.clone();
        if !self.depends_on.is_empty() {
            options["dependsOn"] = json!(self.depends_on);
        }
        for (name, keys) in &self.named {
            options[*name] = if *name == "deletedWith" { json!(keys[0]) } else { json!(keys) };
        }
        json!({"type": "peergo:index:Thing", "config": config, "options": options})
    }

    fn pulumi_resource(&self) -> Value {
        let input = |input: &Input| match input {
            Input::Text(text) => json!(text),
            Input::OutputOf(key) => json!(format!("${{{key}--main.out}}")),
            Input::Secret("first") => json!({"fn::secret": SECRET}),
            Input::Secret(_) => json!({"fn::secret": ANOTHER_SECRET}),
            Input::Asset(asset) => asset.clone(),
        };
        let properties: Value = self.inputs.iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect();
        let mut options = self.options.clone();
        options["provider"] = json!("${peergo}");
        if !self.depends_on.is_empty() {
            options["dependsOn"] = self.depends_on.iter().map(|key| json!(format!("${{{key}--main}}"))).collect();
        }
        for (name, keys) in &self.named {
            let references: Vec<Value> = keys.iter().map(|key| json!(format!("${{{key}--main}}"))).collect();
            options[*name] = if *name == "deletedWith" { references[0].clone() } else { json!(references) };
        }
        json!({"type": "peergo:index:Thing", "properties": properties, "options": options})
    }
}

/// Operation of a step.
#[derive(Clone, Copy)]
enum Command {
    Up,
    /// Update of one resource, by its name.
    UpTarget(&'static str),
    /// Update of all resources but one, by its name.
    UpExclude(&'static str),
    Preview,
    Refresh,
    Destroy,
}

/// Step of all stacks.
struct Step {
    description: &'static str,
    command: Command,
    resources: Vec<StackResource>,
    /// Change outside of both programs before the step, to the resource with this name.
    external_change: Option<(&'static str, ExternalChange)>,
    fails: bool,
}

#[derive(Clone, Copy)]
enum ExternalChange {
    Update(&'static str),
    Delete,
}

fn step(description: &'static str, command: Command, resources: &[StackResource]) -> Step {
    Step { description, command, resources: resources.to_vec(), external_change: None, fails: false }
}

/// `pulumi` wrote a state that it then refused, so the step has no result to compare with. Two steps of one resource
/// can race in its engine (pulumi/pulumi#20852).
#[derive(Debug)]
struct InvalidPulumiState;

/// Stack, with the programs that execute its steps.
struct Stack {
    repository: Repository,
    executors: [Executor; 2],
}

impl Stack {
    fn new(executors: [Executor; 2]) -> Self {
        let repository = Repository::new(&[Sdk::Go]);
        // Paths of assets start at the root of the repository, and in the folder of Pulumi's program.
        for root in [repository.folder().to_owned(), repository.folder().join("pulumi-project")] {
            fs::create_dir_all(root.join("files/folder")).unwrap();
            for name in ["a.txt", "b.txt", "folder/x.txt"] {
                fs::write(root.join("files").join(name), format!("content of {name}")).unwrap();
            }
        }
        Self { repository, executors }
    }

    /// Executes the step with this number, and returns the calls for each resource.
    fn execute(
        &self,
        number: usize,
        step: &Step,
        pulumi: &Pulumi<'_>,
    ) -> Result<BTreeMap<String, Vec<String>>, InvalidPulumiState> {
        self.declare(&step.resources, pulumi);
        if let Some((key, external_change)) = step.external_change {
            self.change_externally(key, external_change);
        }
        let before = self.repository.home.calls().len();
        let executor = self.executors[number % 2];
        let (code, text) = match executor {
            Executor::Sc => self.repository.run(&sc_arguments(step.command)),
            Executor::Pulumi => {
                match (number, self.executors[0]) {
                    (0, _) => drop(pulumi.run_successfully(&["stack", "init"])),
                    (1, Executor::Sc) => pulumi.copy_secrets_provider(),
                    _ => {}
                }
                let (code, stdout, stderr) =
                    pulumi.run(&pulumi_arguments(step.command), tests::sdk_providers::PASSPHRASE);
                (code, stdout + &stderr)
            }
        };
        let is_by_pulumi = matches!(executor, Executor::Pulumi);
        if is_by_pulumi && text.contains("snapshot integrity failure; it was already written, but is invalid") {
            return Err(InvalidPulumiState);
        }
        assert_eq!(code != 0, step.fails, "{}, by {executor:?} of {:?}:\n{text}", step.description, self.executors);
        let mut calls_by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for Call { call, name, preview, secret, .. } in self.repository.home.calls().split_off(before) {
            if !name.is_empty() {
                calls_by_name.entry(name).or_default().push(format!("{call} preview={preview} secret={secret:?}"));
            }
        }
        Ok(calls_by_name)
    }

    fn declare(&self, resources: &[StackResource], pulumi: &Pulumi<'_>) {
        let plugin = json!({
            "name": Sdk::Go.package(),
            "source": {"type": "local", "path": "plugins/peergo"},
            "passEnv": ["PEER_HOME"],
        });
        let sc_resources = resources.iter().map(|resource| (resource.key.to_owned(), resource.sc_resource())).collect();
        let output = |resource: &StackResource| {
            (resource.key.to_owned(), json!(format!("${{resource:main/{}.out}}", resource.key)))
        };
        self.repository.declare_sections(&json!([plugin]), &sc_resources, &resources.iter().map(output).collect());

        let mut pulumi_resources: Map<String, Value> =
            resources.iter().map(|resource| (format!("{}--main", resource.key), resource.pulumi_resource())).collect();
        pulumi_resources.insert("peergo".to_owned(), json!({"type": "pulumi:providers:peergo"}));
        let output =
            |resource: &StackResource| (resource.key.to_owned(), json!(format!("${{{}--main.out}}", resource.key)));
        pulumi.program(&Value::Object(pulumi_resources), &resources.iter().map(output).collect());
    }

    fn change_externally(&self, key: &str, external_change: ExternalChange) {
        let home = &self.repository.home;
        let recorded = self.repository.id(key);
        let (id, mut resource) = home.resources().into_iter().find(|(id, _)| *id == recorded).unwrap();
        match external_change {
            ExternalChange::Update(v) => {
                resource["v"] = json!(v);
                home.change(&id, &resource);
            }
            ExternalChange::Delete => home.delete(&id),
        }
    }

    /// Returns the existing resources, by name.
    fn existing_resources(&self) -> Vec<(String, Value)> {
        let name = |id: &str| id.rsplit_once('-').unwrap().0.to_owned();
        let resources = self.repository.home.resources().into_iter();
        let mut resources: Vec<_> = resources.map(|(id, resource)| (name(&id), resource)).collect();
        resources.sort_by_key(|(name, resource)| (name.clone(), resource.to_string()));
        resources
    }
}

fn sc_arguments(command: Command) -> Vec<&'static str> {
    let up = vec!["provision", "-s", "reef", "--yes", "--skip-refresh", "--skip-preview"];
    match command {
        Command::Up => up,
        Command::UpTarget(name) => [up, vec!["--target", name]].concat(),
        Command::UpExclude(name) => [up, vec!["--exclude", name]].concat(),
        Command::Preview => vec!["provision", "-s", "reef", "--skip-refresh", "--preview"],
        Command::Refresh => vec!["refresh", "-s", "reef", "--yes"],
        Command::Destroy => vec!["destroy", "--parent", "-s", "reef", "--yes", "--skip-refresh", "--skip-preview"],
    }
}

fn pulumi_arguments(command: Command) -> Vec<&'static str> {
    let up = vec!["up", "--yes", "--skip-preview"];
    match command {
        Command::Up => up,
        Command::UpTarget(name) => [up, vec!["--target", pattern(name)]].concat(),
        Command::UpExclude(name) => [up, vec!["--exclude", pattern(name)]].concat(),
        Command::Preview => vec!["preview"],
        Command::Refresh => vec!["refresh", "--yes", "--skip-preview"],
        Command::Destroy => vec!["destroy", "--yes", "--skip-preview"],
    }
}

/// Returns a URN pattern for the name of a resource.
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
    for member in ["created", "modified", "sourcePosition", "stackTrace"] {
        members.remove(member);
    }
    let cut = |text: &mut Value, separator: &str| {
        if let Some((name, _)) = text.as_str().and_then(|text| text.rsplit_once(separator)) {
            *text = json!(name);
        }
    };
    if let Some(id) = members.get_mut("id") {
        cut(id, "-");
        if members["type"].as_str().unwrap().starts_with("pulumi:providers:") {
            members.insert("id".to_owned(), json!("random"));
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

/// Returns the calls for each resource, without those that depend on the registration order of independent resources.
/// The order decides whether a replacement sends a Diff for a former dependent, and the order of Create and Delete in
/// that dependent's own replacement. It also decides whether the former dependent is replaced because of its own Diff, after
/// which it is checked a second time, or deleted together with the resource that it used, and checked and created again.
fn without_order_dependent_calls(calls_by_name: &BTreeMap<String, Vec<String>>) -> BTreeMap<&str, Vec<&str>> {
    let texts = calls_by_name.iter().map(|(name, calls)| (name.as_str(), calls.iter().map(String::as_str).collect()));
    let mut calls_by_name: BTreeMap<&str, Vec<&str>> = texts.collect();
    for calls in calls_by_name.values_mut() {
        let registered = calls.iter().position(|call| call.starts_with("Check")).unwrap_or(calls.len());
        let (before, after) = calls.split_at(registered);
        let mut retained: Vec<&str> =
            before.iter().filter(|call| !call.starts_with("Diff")).chain(after).copied().collect();
        retained.sort_unstable();
        if retained.iter().any(|call| call.starts_with("Create")) {
            retained.retain(|call| !call.starts_with("Diff"));
            retained.dedup_by(|call, other| call == other && call.starts_with("Check"));
        }
        *calls = retained;
    }
    calls_by_name.retain(|_, calls| !calls.is_empty());
    calls_by_name
}

/// Executes the steps with four stacks, and compares their calls and states. `is_order_fixed`: the order of calls
/// depends on the program only. An error leaves the rest of the steps out.
fn assert_equal_runs(steps: &[Step], is_order_fixed: bool) -> Result<(), InvalidPulumiState> {
    use Executor::Sc;
    let stacks = [[Sc; 2], [Executor::Pulumi; 2], [Sc, Executor::Pulumi], [Executor::Pulumi, Sc]].map(Stack::new);
    let pulumis = stacks.each_ref().map(|stack| Pulumi::new(&stack.repository));
    for (number, step) in steps.iter().enumerate() {
        let executed = stacks.iter().zip(&pulumis).map(|(stack, pulumi)| stack.execute(number, step, pulumi));
        let calls_by_name: Vec<_> = executed.collect::<Result<_, _>>()?;
        for (stack, calls_of_stack) in stacks.iter().zip(&calls_by_name) {
            let of = |number: usize| -> Vec<String> {
                steps[number]
                    .resources
                    .iter()
                    .map(|resource| format!("{} {}", resource.key, resource.pulumi_resource()))
                    .collect()
            };
            let (description, executors) = (step.description, stack.executors);
            let (before, now) = (of(number.saturating_sub(1)), of(number));
            let description =
                format!("{description}, {executors:?} compared with Pulumi alone: {now:#?} after {before:#?}");
            if is_order_fixed {
                assert_eq!(calls_of_stack, &calls_by_name[1], "{description}");
            } else {
                assert_eq!(
                    without_order_dependent_calls(calls_of_stack),
                    without_order_dependent_calls(&calls_by_name[1]),
                    "{description}"
                );
            }
            let (mut state, pulumi_state) = (recorded(&stack.repository), recorded(&stacks[1].repository));
            if !is_order_fixed {
                // A refresh of Pulumi records plain values that a provider returns for secrets, one of `sc` does not.
                reveal_where_plain(&mut state, &pulumi_state);
            }
            assert!(state == pulumi_state, "{description}:\n{state:#}\n{pulumi_state:#}");
            assert_eq!(stack.existing_resources(), stacks[1].existing_resources(), "{description}");
        }
    }
    Ok(())
}

/// Shows: comparison.md#for-pulumi-users "Provider calls, URNs and state are the same as with Pulumi."
pub(crate) fn common_changes_have_equal_calls_and_states() {
    let b = resource("b", "").input("v", Input::OutputOf("a"));
    let secret = resource("c", "1").input("secret", Input::Secret("first")).depends_on("a");
    // The value is secret by the schema and by an option.
    let with_secret_outputs =
        resource("d", "1").input("secret", Input::Text("no secret?")).option("additionalSecretOutputs", json!(["v"]));
    assert_equal_runs(
        &[
            step("create", Command::Up, &[resource("a", "1"), b.clone(), secret.clone()]),
            step("no change", Command::Up, &[resource("a", "1"), b.clone(), secret.clone()]),
            step("a preview of an update", Command::Preview, &[resource("a", "2"), b.clone(), secret.clone()]),
            step(
                "update of a resource and its dependent",
                Command::Up,
                &[resource("a", "2"), b.clone(), secret.clone()],
            ),
            step("a replacement", Command::Up, &[resource("a", "2").k("x"), b.clone(), secret.clone()]),
            step(
                "change of a secret, and a new resource",
                Command::Up,
                &[
                    resource("a", "2").k("x"),
                    b.clone(),
                    secret.clone().input("secret", Input::Secret("second")),
                    resource("d", "1"),
                ],
            ),
            step(
                "delete of some resources",
                Command::Up,
                &[
                    resource("a", "2").k("x"),
                    with_secret_outputs.clone().option("additionalSecretOutputs", json!(["secret"])),
                ],
            ),
            step("destroy", Command::Destroy, &[resource("a", "2").k("x"), with_secret_outputs]),
            step("create again", Command::Up, &[resource("a", "3"), b]),
            step("destroy again", Command::Destroy, &[]),
        ],
        true,
    )
    .unwrap();
}

pub(crate) fn options_that_name_resources_have_equal_calls_and_states() {
    let a = |v| resource("a", v).option("replaceOnChanges", json!(["v"]));
    let b = resource("b", "1").named("replaceWith", &["a"]);
    let c = resource("c", "1").named("deletedWith", &["a"]);
    let d = |trigger: &str| resource("d", "1").option("replacementTrigger", trigger);
    let e = |v| resource("e", v).option("hideDiffs", json!(["v"]));
    let all = |v, trigger| vec![a(v), b.clone(), c.clone(), d(trigger), e(v)];
    assert_equal_runs(
        &[
            step("create", Command::Up, &all("1", "x")),
            step("unchanged", Command::Up, &all("1", "x")),
            step("replaced with another one, and a hidden change", Command::Up, &all("2", "x")),
            step("replaced by a trigger", Command::Up, &all("2", "y")),
            step("deleted with another one", Command::Up, &[d("y"), e("2")]),
            step("destroy", Command::Destroy, &[]),
        ],
        true,
    )
    .unwrap();
}

pub(crate) fn options_failures_and_drift_have_equal_calls_and_states() {
    let urn = |name: &str| format!("urn:pulumi:reef::tide::peergo:index:Thing::{name}--main");
    let a = resource("a", "1").k("x");
    let b = resource("b", "1").input("k", Input::OutputOf("a"));
    let protected = resource("c", "1").option("protect", true);
    let retained = resource("d", "1").option("retainOnDelete", true);
    let ignoring = |v| resource("e", v).option("ignoreChanges", json!(["v"]));
    let replacing = |v| resource("f", v).option("replaceOnChanges", json!(["v"])).depends_on("e");
    let all = |a: &StackResource, v: &'static str| {
        vec![a.clone(), b.clone(), protected.clone(), retained.clone(), ignoring(v), replacing(v)]
    };
    let first = a.clone().k("y").option("deleteBeforeReplace", true);
    let few = [first.clone(), b.clone()];
    let renamed = resource("c2", "1").option("aliases", json!([urn("c")]));
    let rest = [first.clone(), b.clone(), renamed.clone(), ignoring("2"), replacing("2")];
    // The dependencies determine the order.
    let wrong = StackResource { inputs: Vec::new(), ..b.clone() }.depends_on("a");
    let external_change = |key, change, step: Step| Step { external_change: Some((key, change)), ..step };
    let fails = |step: Step| Step { fails: true, ..step };
    assert_equal_runs(
        &[
            step("create", Command::Up, &all(&a, "1")),
            step("preview of a delete before replace with a dependent", Command::Preview, &all(&first, "1")),
            step("delete before replace with a dependent", Command::Up, &all(&first, "1")),
            step("an ignored change and a replacing change", Command::Up, &all(&first, "2")),
            fails(step("delete of a protected resource", Command::Up, &few)),
            step("rename, and retain on delete", Command::Up, &rest),
            fails(step("invalid input", Command::Up, &[first.clone(), wrong, renamed.depends_on("b")])),
            step("the former program again", Command::Up, &rest),
            external_change("a", ExternalChange::Update("9"), step("refresh of drift", Command::Refresh, &rest)),
            step("update after drift", Command::Up, &rest),
            external_change(
                "b",
                ExternalChange::Delete,
                step("refresh of a missing resource", Command::Refresh, &rest),
            ),
            step("create of the missing resource", Command::Up, &rest),
            step(
                "update of a target",
                Command::UpTarget("b--main"),
                &[a.clone(), b.clone().input("v", Input::Text("5"))],
            ),
            step(
                "update with an exclude",
                Command::UpExclude("b--main"),
                &[first, b.clone().input("v", Input::Text("6")), resource("g", "1")],
            ),
            step("destroy", Command::Destroy, &[]),
        ],
        true,
    )
    .unwrap();
}

/// Shows: server-yaml.md#assets-and-archives "They are written as in Pulumi's YAML"
pub(crate) fn assets_and_archives_have_equal_calls_and_states() {
    let with = |file: Value, files: Value| {
        resource("a", "1").input("file", Input::Asset(file)).input("files", Input::Asset(files))
    };
    let text = |text: &str| json!({"fn::stringAsset": text});
    let file = |name: &str| json!({"fn::fileAsset": format!("files/{name}")});
    let folder = json!({"fn::fileArchive": "files/folder"});
    let packed = |text: &Value| json!({"fn::assetArchive": {"a": file("a.txt"), "b/text": text, "folder": folder}});
    assert_equal_runs(
        &[
            step("create", Command::Up, &[with(file("a.txt"), folder.clone())]),
            step("unchanged", Command::Up, &[with(file("a.txt"), folder.clone())]),
            step("preview of another file", Command::Preview, &[with(file("b.txt"), folder.clone())]),
            step("another file, and an archive of assets", Command::Up, &[with(file("b.txt"), packed(&text("one")))]),
            step("a text", Command::Up, &[with(text("one"), packed(&text("one")))]),
            step("another text in the archive", Command::Up, &[with(text("one"), packed(&text("two")))]),
            // Pulumi's engine sends archives without their content to Read, and records what comes back.
            step("an asset alone", Command::Up, &[resource("a", "1").input("file", Input::Asset(text("one")))]),
            step("refresh", Command::Refresh, &[resource("a", "1").input("file", Input::Asset(text("one")))]),
            step("destroy", Command::Destroy, &[]),
        ],
        true,
    )
    .unwrap();
}

/// Runs as many cases as `SC_TWINS` requests, starting with the seed `SC_TWINS_SEED`.
pub(crate) fn random_steps_have_equal_calls_and_states() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (number("SC_TWINS_SEED").unwrap_or(1), number("SC_TWINS").unwrap_or(3));
    for seed in first..first + count {
        println!("SC_TWINS_SEED={seed} SC_TWINS=1");
        let run = || assert_equal_runs(&random_steps(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)), false);
        if run().is_err() {
            println!("pulumi wrote an invalid state; the steps are executed again");
            run().unwrap();
        }
    }
}

/// Marsaglia's xorshift generator, which returns equal numbers for equal seeds.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % count
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len())]
    }
}

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Options that a resource has in all steps of a case or in none: if one of them comes or goes, `sc` differs from Pulumi on
/// purpose (docs/engine.md, written cases in the lifecycle suite). In a replacement, the new `retainOnDelete` counts, too, and
/// an output that was secret stays so.
type LastingOptions = BTreeMap<&'static str, Vec<&'static str>>;

fn random_lasting_options(random: &mut Random) -> LastingOptions {
    let mut options = LastingOptions::new();
    for key in KEYS {
        for option in ["retainOnDelete", "additionalSecretOutputs"] {
            if random.one_in(7) {
                options.entry(key).or_default().push(option);
            }
        }
    }
    options
}

/// Returns random resources: values differ, and some resources are missing.
fn random_resources(random: &mut Random, lasting: &LastingOptions) -> Vec<StackResource> {
    let mut resources: Vec<StackResource> = Vec::new();
    for key in KEYS {
        if random.one_in(5) {
            continue;
        }
        let earlier: Vec<&str> = resources.iter().map(|resource| resource.key).collect();
        let input = |random: &mut Random, texts: &[&'static str]| match earlier.is_empty() || !random.one_in(3) {
            true => Input::Text(random.of(texts)),
            false => Input::OutputOf(KEYS[random.below(earlier.len())]),
        };
        let known = |input: Input| match input {
            Input::OutputOf(key) if !earlier.contains(&key) => Input::Text("x"),
            input => input,
        };
        let v = known(input(random, &["1", "2", "3"]));
        let mut resource = resource(key, "").input("v", v);
        if random.one_in(2) {
            resource = resource.input("k", known(input(random, &["x", "x", "x", "y"])));
        }
        if random.one_in(4) {
            resource = resource.input("secret", Input::Secret(random.of(&["first", "second"])));
        }
        if let Some(other) = earlier.last().filter(|_| random.one_in(4)) {
            resource = resource.depends_on(KEYS.into_iter().find(|key| key == other).unwrap());
        }
        for option in lasting.get(key).into_iter().flatten().copied() {
            let value = if option == "retainOnDelete" { json!(true) } else { json!(["out"]) };
            resource = resource.option(option, value);
        }
        for (option, value) in
            [("deleteBeforeReplace", json!(true)), ("ignoreChanges", json!(["v"])), ("replaceOnChanges", json!(["v"]))]
        {
            if random.one_in(7) {
                resource = resource.option(option, value);
            }
        }
        resources.push(resource);
    }
    resources
}

fn random_steps(random: &mut Random) -> Vec<Step> {
    let lasting = random_lasting_options(random);
    let mut steps = vec![step("create", Command::Up, &random_resources(random, &lasting))];
    for _ in 0..5 {
        let last = &steps[steps.len() - 1].resources;
        let mut next = match random.below(6) {
            0 => step("a preview", Command::Preview, &random_resources(random, &lasting)),
            1 => step("a refresh", Command::Refresh, last),
            _ => step("a change", Command::Up, &random_resources(random, &lasting)),
        };
        if let Some(resource) = last.first().filter(|_| matches!(next.command, Command::Refresh)) {
            next.external_change = Some((resource.key, ExternalChange::Update("9")));
        }
        if matches!(next.command, Command::Preview) {
            steps.push(next);
            next = step("update after the preview", Command::Up, &steps[steps.len() - 1].resources);
        }
        steps.push(next);
    }
    steps.push(step("destroy", Command::Destroy, &[]));
    steps
}

//! Recorded scenarios: what was run, and what Pulumi's engine did.
//!
//! The format is that of `tests/goldens/engine/README.md`: one line of JSON per scenario.

use std::collections::BTreeMap;
use std::path::Path;

use pulumi_proto::urn::Urn;
use serde::Deserialize;
use serde_json::Value;

use crate::rec::{Call, IdCounters, Script};

/// The stack of every scenario.
pub const STACK: &str = "dev";
/// The project of every scenario.
pub const PROJECT: &str = "t";
/// The type of a resource that does not say.
const THING: &str = "rec:index:Thing";

/// One recorded scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, unique among all.
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// What an engine must have to play it.
    #[serde(default)]
    pub features: Vec<String>,
    /// Component providers it needs.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// Its steps. Each starts from the recorded state of the one before.
    pub steps: Vec<Step>,
}

/// One operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub op: Op,
    /// The program; not looked at where nothing plays it.
    pub program: Program,
    /// What the provider does.
    #[serde(default)]
    pub script: Script,
    /// Options of the command.
    #[serde(default)]
    pub flags: Flags,
    /// Configuration set before this step, and kept.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// How the engine is disturbed once the scripted call hangs.
    #[serde(default)]
    pub interrupt: Option<Interrupt>,
    /// The resource of `import` and `taint`.
    #[serde(default)]
    pub name: String,
    /// Its type.
    #[serde(default = "thing", rename = "type")]
    pub type_token: String,
    /// The id to import.
    #[serde(default)]
    pub id: String,
    /// Whether what is imported is to be protected.
    #[serde(default)]
    pub protect: bool,
    /// Name of the parent of what is imported.
    #[serde(default)]
    pub parent: Option<String>,
    /// Name of the provider of what is imported.
    #[serde(default)]
    pub provider: Option<String>,
    /// Properties named to the import command.
    #[serde(default)]
    pub properties: Vec<String>,
    /// What Pulumi's engine did.
    pub expect: Outcome,
}

fn thing() -> String {
    THING.to_owned()
}

/// What is done in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// `preview`
    Preview,
    /// `up`
    Up,
    /// `refresh`
    Refresh,
    /// `destroy`
    Destroy,
    /// `import`
    Import,
    /// `state taint`
    Taint,
}

/// How an engine is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// SIGKILL.
    Kill,
    /// One SIGINT.
    Signal,
    /// Two SIGINT.
    Signals,
}

/// Options of a command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the options of the command line, by their names there")]
pub struct Flags {
    pub target: Vec<String>,
    pub exclude: Vec<String>,
    pub replace: Vec<String>,
    #[serde(rename = "target-replace")]
    pub target_replace: Vec<String>,
    pub target_dependents: bool,
    pub exclude_dependents: bool,
    pub exclude_protected: bool,
    pub continue_on_error: bool,
    pub refresh: bool,
    pub run_program: bool,
    pub preview_only: bool,
    pub clear_pending_creates: bool,
}

/// A program in no language.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Stack outputs.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// Names for the results of function calls.
    #[serde(default)]
    pub variables: BTreeMap<String, FunctionCall>,
}

/// A function call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCall {
    /// Its token.
    pub function: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
    /// The member of the result that is wanted; the whole result without.
    #[serde(default, rename = "return")]
    pub member: Option<String>,
}

/// One resource of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name, also that by which the program refers to it.
    pub name: String,
    /// Its type.
    #[serde(default = "thing", rename = "type")]
    pub type_token: String,
    /// Its properties.
    #[serde(default)]
    pub props: BTreeMap<String, Value>,
    /// Its options.
    #[serde(default)]
    pub options: ResourceOptions,
    /// It is only read.
    #[serde(default)]
    pub get: Option<Get>,
}

/// What is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Its id.
    pub id: Value,
    /// What is known of it.
    #[serde(default)]
    pub state: BTreeMap<String, Value>,
}

/// Options of a resource, under Pulumi's names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the resource options, by their names there")]
pub struct ResourceOptions {
    pub parent: Option<String>,
    pub depends_on: Vec<String>,
    pub deleted_with: Option<String>,
    pub replace_with: Vec<String>,
    pub provider: Option<String>,
    pub protect: Option<bool>,
    pub delete_before_replace: Option<bool>,
    pub ignore_changes: Vec<String>,
    pub replace_on_changes: Vec<String>,
    pub additional_secret_outputs: Vec<String>,
    pub aliases: Vec<AliasOption>,
    pub custom_timeouts: BTreeMap<String, String>,
    pub import: Option<String>,
    pub retain_on_delete: Option<bool>,
    pub replacement_trigger: Option<Value>,
    pub version: Option<String>,
}

/// Where a resource was.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AliasOption {
    /// A whole URN.
    Urn(String),
    /// What was different.
    Spec(AliasSpec),
}

/// What was different about a resource.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of an alias, by their names there")]
pub struct AliasSpec {
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub type_token: Option<String>,
    pub stack: Option<String>,
    pub project: Option<String>,
    pub parent: Option<String>,
    pub no_parent: bool,
}

/// What an engine did in a step: recorded, or observed of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Whether the operation succeeded.
    pub ok: bool,
    /// Steps begun: op and URN.
    pub steps: Vec<(String, String)>,
    /// URNs of steps that failed, in a real run.
    pub failed: Vec<String>,
    /// Errors told: URN (or nothing) and text.
    pub errors: Vec<(String, String)>,
    /// Successful steps by op, as the summary counts them.
    pub changes: BTreeMap<String, usize>,
    /// What providers were asked.
    pub calls: Vec<Call>,
    /// What ended in the state.
    pub state: Deployment,
    /// What the command said where it refused before it did anything.
    #[serde(default)]
    pub output: Option<String>,
}

/// A state as `stack export --show-secrets` gives it, reduced to what a later step can see.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deployment {
    /// The entries.
    pub resources: Vec<Value>,
    /// Operations that began and are not known to have ended.
    pub pending_operations: Vec<Value>,
}

impl Scenario {
    /// Reads the scenarios of a file.
    ///
    /// # Errors
    /// What is wrong with the file, and where.
    pub fn read(file: &Path) -> Result<Vec<Self>, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", file.display(), number + 1))
            })
            .collect()
    }

    /// The state that a step starts from.
    pub fn base(&self, step: usize) -> Deployment {
        step.checked_sub(1).map(|before| self.steps[before].expect.state.clone()).unwrap_or_default()
    }

    /// The configuration at a step: set by it or by those before.
    pub fn config(&self, step: usize) -> BTreeMap<String, String> {
        self.steps[..=step].iter().flat_map(|step| step.config.clone()).collect()
    }

    /// How many ids the provider has given each name before a step.
    pub fn ids(&self, step: usize) -> IdCounters {
        let mut ids = IdCounters::new();
        for call in self.steps[..step].iter().flat_map(|step| &step.expect.calls) {
            let preview = call.request.get("preview").is_some();
            let failed = call.error.as_ref().is_some_and(|error| error.ends_with("rec: Create fails"));
            if call.rpc == "Create" && !preview && !failed {
                let name = call.request.get("name").and_then(Value::as_str).unwrap_or_default();
                *ids.entry(name.to_owned()).or_default() += 1;
            }
        }
        ids
    }
}

impl Step {
    /// Whether nothing is changed but only shown.
    pub fn is_preview(&self) -> bool {
        self.op == Op::Preview || self.flags.preview_only
    }

    /// Whether the program is played.
    pub fn plays_program(&self) -> bool {
        matches!(self.op, Op::Preview | Op::Up) || self.flags.run_program
    }
}

impl Program {
    /// The URN of each resource by its name. A resource whose parent is not there has none.
    pub fn urns(&self) -> BTreeMap<String, Urn> {
        let mut urns = BTreeMap::new();
        // Parents may be declared after their children; each round settles at least one generation.
        for _ in 0..=self.resources.len() {
            for resource in &self.resources {
                let parent = resource.options.parent.as_ref().map(|parent| urns.get(parent).cloned());
                if let None | Some(Some(_)) = parent {
                    let urn = Urn::new(STACK, PROJECT, parent.flatten().as_ref(), &resource.type_token, &resource.name);
                    urns.insert(resource.name.clone(), urn);
                }
            }
        }
        urns
    }
}

/// The URN that a name on the command line stands for; whole URNs and patterns stand for themselves.
pub fn urn_argument(name: &str) -> String {
    if name.starts_with("urn:") {
        name.to_owned()
    } else {
        Urn::new(STACK, PROJECT, None, THING, name).as_str().to_owned()
    }
}

impl Resource {
    /// Whether its plugin constructs it.
    pub fn is_component(&self) -> bool {
        self.type_token.starts_with("comp:")
    }

    /// Names of the resources that must be there before this one is registered.
    pub fn needs(&self, program: &Program) -> Vec<String> {
        let options = &self.options;
        let mut names: Vec<String> = options.depends_on.iter().chain(&options.replace_with).cloned().collect();
        names.extend([&options.parent, &options.deleted_with, &options.provider].into_iter().flatten().cloned());
        for alias in &options.aliases {
            if let AliasOption::Spec(AliasSpec { parent: Some(parent), .. }) = alias {
                names.push(parent.clone());
            }
        }
        let values = self.props.values().chain(&options.replacement_trigger);
        let values = values.chain(self.get.iter().flat_map(|get| get.state.values().chain([&get.id])));
        for value in values {
            program.named_in(value, &mut names);
        }
        names
    }
}

impl Program {
    /// Adds the names of the resources that a value refers to, through variables as well.
    pub fn named_in(&self, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.named_in(item, names)),
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(path) => {
                    let name = path.split('.').next().unwrap_or_default();
                    match self.variables.get(name) {
                        Some(call) => call.arguments.values().for_each(|argument| self.named_in(argument, names)),
                        None => names.push(name.to_owned()),
                    }
                }
                None => members.values().for_each(|member| self.named_in(member, names)),
            },
            _ => {}
        }
    }
}

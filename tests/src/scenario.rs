//! Recorded scenarios: the operations, and the outcomes of Pulumi's engine.
//!
//! The format is that of `tests/goldens/engine/README.md`: one line of JSON per scenario.

use std::collections::BTreeMap;
use std::path::Path;

use pulumi_proto::urn::Urn;
use serde::Deserialize;
use serde_json::Value;

use crate::rec::{Call, IdCounters, Script};

/// Stack of every scenario.
pub const STACK: &str = "dev";
/// Project of every scenario.
pub const PROJECT: &str = "t";
/// Default type of a resource.
const DEFAULT_TYPE: &str = "rec:index:Thing";

/// Recorded scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique name of the scenario.
    pub name: String,
    /// Description of the scenario.
    #[serde(default)]
    pub about: String,
    /// Features that an engine needs to run the scenario.
    #[serde(default)]
    pub features: Vec<String>,
    /// Component providers that the scenario needs.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// Steps. Each starts from the recorded state of the one before.
    pub steps: Vec<Step>,
}

/// Operation of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Kind of the operation.
    pub op: Op,
    /// Program; ignored if the operation does not run it.
    pub program: Program,
    /// Script of the provider.
    #[serde(default)]
    pub script: Script,
    /// Options of the command.
    #[serde(default)]
    pub flags: Flags,
    /// Configuration set before this step, and kept for later ones.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Interruption of the engine, once the scripted call hangs.
    #[serde(default)]
    pub interrupt: Option<Interrupt>,
    /// Name of the resource of `import` and `taint`.
    #[serde(default)]
    pub name: String,
    /// Type of that resource.
    #[serde(default = "default_type", rename = "type")]
    pub type_token: String,
    /// Id to import.
    #[serde(default)]
    pub id: String,
    /// True if the imported resource is protected.
    #[serde(default)]
    pub protect: bool,
    /// Name of the imported resource's parent.
    #[serde(default)]
    pub parent: Option<String>,
    /// Name of the imported resource's provider.
    #[serde(default)]
    pub provider: Option<String>,
    /// Values of the option `--properties` of the import command.
    #[serde(default)]
    pub properties: Vec<String>,
    /// Outcome of Pulumi's engine.
    pub expect: Outcome,
}

fn default_type() -> String {
    DEFAULT_TYPE.to_owned()
}

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// The command `preview`.
    Preview,
    /// The command `up`.
    Up,
    /// The command `refresh`.
    Refresh,
    /// The command `destroy`.
    Destroy,
    /// The command `import`.
    Import,
    /// The command `state taint`.
    Taint,
}

/// Interruption of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// SIGKILL.
    Kill,
    /// Single SIGINT.
    Signal,
    /// Two SIGINT.
    Signals,
}

/// Options of a command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the options of the command line, by their names there")]
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

/// Program that is independent of a language.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Resources of the program.
    pub resources: Vec<Resource>,
    /// Outputs of the stack.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// Function calls, by the name of their result.
    #[serde(default)]
    pub variables: BTreeMap<String, FunctionCall>,
}

/// Function call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCall {
    /// Token of the function.
    pub function: String,
    /// Arguments of the function.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
    /// Member of the result that is used; `None`: the whole result.
    #[serde(default, rename = "return")]
    pub member: Option<String>,
}

/// Resource of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Name of the resource, by which the program refers to it as well.
    pub name: String,
    /// Type of the resource.
    #[serde(default = "default_type", rename = "type")]
    pub type_token: String,
    /// Properties of the resource.
    #[serde(default)]
    pub props: BTreeMap<String, Value>,
    /// Options of the resource.
    #[serde(default)]
    pub options: ResourceOptions,
    /// Read of an external resource, instead of a registration.
    #[serde(default)]
    pub get: Option<Get>,
}

/// Read of an external resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Id of the resource.
    pub id: Value,
    /// Known properties of the resource.
    #[serde(default)]
    pub state: BTreeMap<String, Value>,
}

/// Options of a resource, under Pulumi's names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the resource options, by their names there")]
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

/// Alias of a resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AliasOption {
    /// Whole URN.
    Urn(String),
    /// Parts of the former URN that were different.
    Spec(AliasSpec),
}

/// Parts of a former URN that were different.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of an alias, by their names there")]
pub struct AliasSpec {
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub type_token: Option<String>,
    pub stack: Option<String>,
    pub project: Option<String>,
    pub parent: Option<String>,
    pub no_parent: bool,
}

/// Outcome of a step: recorded from Pulumi's engine, or observed of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// True if the operation succeeded.
    pub ok: bool,
    /// Started steps: op and URN.
    pub steps: Vec<(String, String)>,
    /// URNs of failed steps; empty in a preview.
    pub failed: Vec<String>,
    /// Reported errors: URN (or an empty text) and message.
    pub errors: Vec<(String, String)>,
    /// Successful steps by op, as counted in the summary.
    pub changes: BTreeMap<String, usize>,
    /// Calls that providers received.
    pub calls: Vec<Call>,
    /// State at the end of the step.
    pub state: Deployment,
    /// Output of a command that was refused before it did anything.
    #[serde(default)]
    pub output: Option<String>,
}

/// State in the format of `stack export --show-secrets`, reduced to the parts that a later step can observe.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deployment {
    /// Entries of the state.
    pub resources: Vec<Value>,
    /// Pending operations.
    pub pending_operations: Vec<Value>,
}

impl Scenario {
    /// Reads the scenarios of a file.
    ///
    /// # Errors
    /// Returns a text with the position and the mistake.
    pub fn read(file: &Path) -> Result<Vec<Self>, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", file.display(), number + 1))
            })
            .collect()
    }

    /// Returns the state that a step starts from.
    pub fn base(&self, step: usize) -> Deployment {
        step.checked_sub(1).map(|before| self.steps[before].expect.state.clone()).unwrap_or_default()
    }

    /// Returns the configuration at a step, set by the step or by earlier ones.
    pub fn config(&self, step: usize) -> BTreeMap<String, String> {
        self.steps[..=step].iter().flat_map(|step| step.config.clone()).collect()
    }

    /// Returns the number of ids that the provider created for each name before a step.
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
    /// Returns whether the step is a preview.
    pub fn is_preview(&self) -> bool {
        self.op == Op::Preview || self.flags.preview_only
    }

    /// Returns whether the step runs the program.
    pub fn runs_program(&self) -> bool {
        matches!(self.op, Op::Preview | Op::Up) || self.flags.run_program
    }
}

impl Program {
    /// Returns the URN of each resource by its name. A resource whose parent is missing has none.
    pub fn urns(&self) -> BTreeMap<String, Urn> {
        let mut urns = BTreeMap::new();
        // A parent may be declared after its children; each round resolves at least one generation.
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

/// Returns the URN for a name on the command line; whole URNs and patterns are returned unchanged.
pub fn urn_argument(name: &str) -> String {
    if name.starts_with("urn:") {
        name.to_owned()
    } else {
        Urn::new(STACK, PROJECT, None, DEFAULT_TYPE, name).as_str().to_owned()
    }
}

impl Resource {
    /// Returns whether a plugin constructs the resource.
    pub fn is_component(&self) -> bool {
        self.type_token.starts_with("comp:")
    }

    /// Returns the names of the resources that must be registered before this one.
    pub fn dependencies(&self, program: &Program) -> Vec<String> {
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
            program.collect_references(value, &mut names);
        }
        names
    }
}

impl Program {
    /// Adds the names of the resources that a value refers to, directly or through variables.
    pub fn collect_references(&self, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect_references(item, names)),
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(path) => {
                    let name = path.split('.').next().unwrap_or_default();
                    match self.variables.get(name) {
                        Some(call) => {
                            call.arguments.values().for_each(|argument| self.collect_references(argument, names))
                        }
                        None => names.push(name.to_owned()),
                    }
                }
                None => members.values().for_each(|member| self.collect_references(member, names)),
            },
            _ => {}
        }
    }
}

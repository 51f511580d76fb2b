//! Secrets: no text of [`secret_text`] is plain, and a path that is secret in the goal or the record stays secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::RegistrationResult;
use engine::events::{StepInfo, StepOp};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use state::{ResourceState, Snapshot};

use crate::fake_cloud::NAMED;
use crate::program::{ProgramResource, Reply};

/// Returns a text that tests only use as a secret.
pub(crate) fn secret_text(name: &str) -> String {
    format!("{SECRET_PREFIX}{name}")
}

const SECRET_PREFIX: &str = "kept-secret-";

/// Returns the plain copies of secret texts in a state.
pub(crate) fn plain_secrets(state: &Snapshot) -> Vec<String> {
    let pending = state.pending_operations.iter().map(|operation| &operation.resource);
    state.resources.iter().chain(pending).flat_map(|resource| plain_secrets_of(resource)).collect()
}

/// Returns the plain copies of secret texts in the values and errors of a resource.
fn plain_secrets_of(resource: &ResourceState) -> Vec<String> {
    fn is_plain(value: &PropertyValue) -> bool {
        match value {
            PropertyValue::String(text) => text.contains(SECRET_PREFIX),
            PropertyValue::List(items) => items.iter().any(is_plain),
            PropertyValue::Map(members) => members.values().any(is_plain),
            _ => false,
        }
    }
    let values = resource.inputs.iter().chain(&*resource.outputs).filter(|(_, value)| is_plain(value));
    let values = values.map(|(key, value)| format!("{key} of {} has a plain secret: {value:?}", resource.urn));
    let errors = resource.init_errors.iter().filter(|error| error.contains(SECRET_PREFIX));
    values.chain(errors.map(|error| format!("an error of {} has a secret: {error}", resource.urn))).collect()
}

/// Returns the secret texts in messages.
pub(crate) fn secrets_in_messages(messages: &[String]) -> Vec<String> {
    let quoting = messages.iter().filter(|message| message.contains(SECRET_PREFIX));
    quoting.map(|message| format!("a message has a secret: {message}")).collect()
}

/// Checks of the secrets of a run.
#[derive(Debug)]
pub(crate) struct SecretChecks {
    /// Inputs of the resources of the program.
    goals: BTreeMap<Urn, PropertyMap>,
    program: Vec<ProgramResource>,
    /// True if the first state or the program has plain copies of secret texts. A run marks them only once it registers
    /// their resources.
    has_plain_texts: bool,
}

impl SecretChecks {
    /// Creates the checks of a run of a program, which is empty if there is none.
    pub(crate) fn new(base: &Snapshot, program: &[ProgramResource]) -> Self {
        let goals = program.iter().map(|resource| (resource.kept_by(program).urn, resource.values()));
        // The program does not show its secrets.
        let has_plain_texts = !plain_secrets(base).is_empty() || format!("{program:?}").contains(SECRET_PREFIX);
        Self { goals: goals.collect(), program: program.to_vec(), has_plain_texts }
    }

    /// Returns the secrets that a record reveals, compared with the state before it.
    pub(crate) fn of_record(&self, before: &Snapshot, after: &Snapshot) -> Vec<String> {
        let pending = after.pending_operations.iter().map(|operation| &operation.resource);
        let entries = after.resources.iter().chain(pending);
        let known =
            before.resources.iter().chain(before.pending_operations.iter().map(|operation| &operation.resource));
        let known: BTreeSet<*const ResourceState> = known.map(Arc::as_ptr).collect();
        let changed = entries.filter(|entry| !known.contains(&Arc::as_ptr(entry)));
        let revealed = changed.flat_map(|entry| self.revealed(entry, before));
        revealed.chain(plain_secrets(after).into_iter().filter(|_| !self.has_plain_texts)).collect()
    }

    /// Returns the secrets that steps reveal, compared with the first state of the run. `in_scope` is true if the run is
    /// not restricted to some resources.
    pub(crate) fn of_steps(&self, base: &Snapshot, steps: &[Arc<StepInfo>], in_scope: bool) -> Vec<String> {
        let mut violations = Vec::new();
        for step in steps {
            let registers = match step.op {
                StepOp::Same | StepOp::Create | StepOp::CreateReplacement | StepOp::Update | StepOp::Replace => {
                    in_scope
                }
                _ => false,
            };
            let goal = self.goals.get(&step.urn).filter(|_| registers);
            for entry in step.old.iter().chain(&step.new) {
                violations.extend(self.of_entry(entry, base));
                violations.extend(goal.iter().flat_map(|goal| revealed_inputs(entry, goal)));
            }
        }
        violations
    }

    /// Returns the secrets that a reported entry reveals, compared with the first state of the run.
    pub(crate) fn of_entry(&self, entry: &ResourceState, base: &Snapshot) -> Vec<String> {
        let texts = plain_secrets_of(entry).into_iter().filter(|_| !self.has_plain_texts);
        self.revealed(entry, base).into_iter().chain(texts).collect()
    }

    /// Returns the secrets of the program that the state of a run reveals after the registration of their resources.
    pub(crate) fn of_end(&self, state: &Snapshot, replies: &BTreeMap<String, Reply>) -> Vec<String> {
        let registered = replies.values().flatten().filter(|reply| reply.result == RegistrationResult::Succeeded);
        let registered: BTreeSet<&Urn> = registered.map(|reply| &reply.urn).collect();
        let entries = state.resources.iter().filter(|entry| !entry.delete && registered.contains(&entry.urn));
        entries
            .filter_map(|entry| Some((entry, self.goals.get(&entry.urn)?)))
            .flat_map(|(entry, goal)| revealed_inputs(entry, goal))
            .collect()
    }

    /// Returns the paths that are plain in an entry, although they are secret in the entry that was recorded for the
    /// resource, in the inputs of the entry itself, or by name. A path that the goal has without a secret is public.
    fn revealed(&self, entry: &ResourceState, before: &Snapshot) -> Vec<String> {
        let recorded = recorded(entry, before);
        // A view, and the child of a component that a plugin constructs, have the inputs of their parents.
        let goal = [Some(&entry.urn), entry.parent.as_ref()].into_iter().flatten().find_map(|urn| self.goals.get(urn));
        // An entry may still have the URN from which the program has renamed the resource, or its component.
        let is_renamed = |resource: &&ProgramResource| resource.may_register(entry);
        let renamed: Vec<PropertyMap> = self.program.iter().filter(is_renamed).map(ProgramResource::values).collect();
        let is_public = |path: &[&str]| goal.into_iter().chain(&renamed).any(|goal| is_plain_at(goal, path));
        let mut violations = Vec::new();
        if let Some(recorded) = recorded {
            for path in secret_paths(&recorded.inputs).into_iter().filter(|path| !is_public(path)) {
                violations.extend(plain_in(entry, &entry.inputs, "inputs", &path, "its recorded inputs"));
                violations.extend(plain_in(entry, &entry.outputs, "outputs", &path, "its recorded inputs"));
            }
            for path in secret_paths(&recorded.outputs).into_iter().filter(|path| !is_public(path)) {
                violations.extend(plain_in(entry, &entry.outputs, "outputs", &path, "its recorded outputs"));
            }
        }
        for path in secret_paths(&entry.inputs) {
            violations.extend(plain_in(entry, &entry.outputs, "outputs", &path, "its inputs"));
        }
        let was_plain = |name: &String| {
            let is_named = |old: &ResourceState| old.additional_secret_outputs.contains(name);
            recorded.is_some_and(|old| is_named(old) && is_plain_at(&old.outputs, &[name]))
        };
        for name in entry.additional_secret_outputs.iter().filter(|name| *name != "id" && !was_plain(name)) {
            violations.extend(plain_in(entry, &entry.outputs, "outputs", &[name], "additionalSecretOutputs"));
        }
        violations
    }
}

/// Returns the entry that was recorded for the resource of an entry: one with its URN, or with its id after it was renamed; or
/// the pending create that it completes.
fn recorded<'s>(entry: &ResourceState, before: &'s Snapshot) -> Option<&'s Arc<ResourceState>> {
    let find = |is_recorded: &dyn Fn(&ResourceState) -> bool| before.resources.iter().find(|other| is_recorded(other));
    let creates = || before.pending_operations.iter().filter(|operation| operation.is_create_with_id());
    let is_of_urn = |other: &ResourceState| other.urn == entry.urn;
    // Several entries may have the id of a resource with the input.
    let identifies = entry.id.is_some() && !entry.inputs.contains_key(NAMED);
    find(&|other| is_of_urn(other) && other.id == entry.id)
        .or_else(|| {
            let mut created = creates().map(|operation| &operation.resource);
            created.find(|created| is_of_urn(created) && created.id == entry.id)
        })
        .or_else(|| find(&|other| is_of_urn(other) && !other.delete))
        .or_else(|| find(&|other| identifies && other.id == entry.id))
}

/// Returns the paths of an entry that are plain although they are secret in the goal.
fn revealed_inputs(entry: &ResourceState, goal: &PropertyMap) -> Vec<String> {
    let revealed = |path: Vec<&str>| {
        let inputs = plain_in(entry, &entry.inputs, "inputs", &path, "the program");
        inputs.into_iter().chain(plain_in(entry, &entry.outputs, "outputs", &path, "the program"))
    };
    secret_paths(goal).into_iter().flat_map(revealed).collect()
}

/// Returns the paths of the values that are secret, and of lists that contain a secret.
fn secret_paths(values: &PropertyMap) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    for (key, value) in values.iter().filter(|(_, value)| value.contains_secrets()) {
        match value {
            PropertyValue::Map(members) => paths.extend(secret_paths(members).into_iter().map(|mut path| {
                path.insert(0, key);
                path
            })),
            _ => paths.push(vec![key]),
        }
    }
    paths
}

/// Returns whether there is a value at a path that is no secret, contains none, and is no part of one.
fn is_plain_at(values: &PropertyMap, path: &[&str]) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    match values.get(*key) {
        Some(PropertyValue::Map(members)) if !rest.is_empty() => is_plain_at(members, rest),
        Some(value) => rest.is_empty() && !value.contains_secrets(),
        None => false,
    }
}

fn plain_in(entry: &ResourceState, values: &PropertyMap, kind: &str, path: &[&str], secret_in: &str) -> Option<String> {
    let text = || format!("{} in the {kind} of {} is plain, but secret in {secret_in}", path.join("."), entry.urn);
    is_plain_at(values, path).then(text)
}

//! Content of the plan of a stack as it is encrypted: JSON, in which property maps are in the encoding of the provider protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::provider::{DiffKind, PropertyDiff};
use engine::SeedKey;
use pulumi_proto::property::PropertyMap;
use pulumi_proto::property::wire::{self, Bag, DecodeOptions, EncodeOptions};
use pulumi_proto::urn::Urn;
use serde::{Deserialize, Serialize};

use super::header::PlanHeader;
use super::planned::{PlannedRead, PlannedRegistration, PlannedResource, PlannedStep, StackPlan, Surroundings};
use super::step_kind::op_named;

/// Sealed content: the header of the plan, the name of the stack, and its plan.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SealedDto {
    pub(super) header: PlanHeader,
    pub(super) project: String,
    pub(super) stack: String,
    state: Option<String>,
    files: BTreeMap<String, String>,
    plugins: Option<BTreeMap<String, String>>,
    seeds: String,
    renewed: BTreeMap<String, BTreeSet<String>>,
    resources: Vec<ResourceDto>,
    outputs: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceDto {
    urn: String,
    custom: bool,
    internal: bool,
    registration: Option<RegistrationDto>,
    steps: Vec<StepDto>,
    read: Option<ReadDto>,
    old_inputs: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegistrationDto {
    options: BTreeMap<String, String>,
    inputs: String,
    checked: Option<String>,
    steps: Vec<StepDto>,
    replace_keys: Vec<String>,
    diffs: Vec<String>,
    detailed_diff: BTreeMap<String, DiffDto>,
}

#[derive(Serialize, Deserialize)]
struct StepDto(String, String);

#[derive(Serialize, Deserialize)]
struct DiffDto(u8, bool);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadDto {
    id: Option<String>,
    properties: String,
}

/// Kinds of changes by their numbers in a plan.
const DIFF_KINDS: [DiffKind; 6] = [
    DiffKind::Add,
    DiffKind::AddReplace,
    DiffKind::Delete,
    DiffKind::DeleteReplace,
    DiffKind::Update,
    DiffKind::UpdateReplace,
];

/// Content that no plan of this format has.
#[derive(Debug, thiserror::Error)]
#[error("the plan of a stack has an invalid {0}")]
pub(super) struct InvalidContent(&'static str);

impl SealedDto {
    /// Returns the content to seal.
    pub(super) fn new(
        header: PlanHeader,
        project: &str,
        stack: &str,
        plan: &StackPlan,
    ) -> Result<Self, InvalidContent> {
        let Surroundings { state, files, plugins } = plan.surroundings.clone();
        Ok(Self {
            header,
            project: project.to_owned(),
            stack: stack.to_owned(),
            state,
            files,
            plugins,
            seeds: BASE64.encode(plan.seeds.as_bytes()),
            renewed: plan.renewed.clone(),
            resources: plan.resources.iter().map(ResourceDto::new).collect::<Result<_, _>>()?,
            outputs: encode(&plan.outputs)?,
        })
    }

    /// Returns the plan.
    pub(super) fn into_plan(self) -> Result<StackPlan, InvalidContent> {
        let seeds = BASE64.decode(&self.seeds).ok().and_then(|bytes| bytes.try_into().ok());
        Ok(StackPlan {
            surroundings: Surroundings { state: self.state, files: self.files, plugins: self.plugins },
            seeds: SeedKey::from_bytes(seeds.ok_or(InvalidContent("key of seeds"))?),
            renewed: self.renewed,
            resources: self.resources.into_iter().map(ResourceDto::into_resource).collect::<Result<_, _>>()?,
            outputs: decode(&self.outputs)?,
        })
    }
}

impl ResourceDto {
    fn new(resource: &PlannedResource) -> Result<Self, InvalidContent> {
        let read = |read: &PlannedRead| {
            Ok::<_, InvalidContent>(ReadDto { id: read.id.clone(), properties: encode(&read.properties)? })
        };
        Ok(Self {
            urn: resource.urn.to_string(),
            custom: resource.custom,
            internal: resource.internal,
            registration: resource.registration.as_ref().map(RegistrationDto::new).transpose()?,
            steps: resource.steps.iter().map(StepDto::new).collect(),
            read: resource.read.as_ref().map(read).transpose()?,
            old_inputs: resource.old_inputs.as_deref().map(encode).transpose()?,
        })
    }

    fn into_resource(self) -> Result<PlannedResource, InvalidContent> {
        let read = |ReadDto { id, properties }| {
            Ok::<_, InvalidContent>(PlannedRead { id, properties: Arc::new(decode(&properties)?) })
        };
        Ok(PlannedResource {
            urn: urn(&self.urn)?,
            custom: self.custom,
            internal: self.internal,
            registration: self.registration.map(RegistrationDto::into_registration).transpose()?,
            steps: self.steps.into_iter().map(StepDto::into_step).collect::<Result<_, _>>()?,
            read: self.read.map(read).transpose()?,
            old_inputs: self.old_inputs.as_deref().map(decode).transpose()?.map(Arc::new),
        })
    }
}

impl RegistrationDto {
    fn new(registration: &PlannedRegistration) -> Result<Self, InvalidContent> {
        let diff = |(path, diff): (&String, &PropertyDiff)| {
            let kind = DIFF_KINDS.iter().position(|kind| *kind == diff.kind).and_then(|at| u8::try_from(at).ok());
            Ok((path.clone(), DiffDto(kind.ok_or(InvalidContent("kind of a change"))?, diff.input_diff)))
        };
        Ok(Self {
            options: registration.options.clone(),
            inputs: encode(&registration.inputs)?,
            checked: registration.checked.as_deref().map(encode).transpose()?,
            steps: registration.steps.iter().map(StepDto::new).collect(),
            replace_keys: registration.replace_keys.clone(),
            diffs: registration.diffs.clone(),
            detailed_diff: registration.detailed_diff.iter().map(diff).collect::<Result<_, _>>()?,
        })
    }

    fn into_registration(self) -> Result<PlannedRegistration, InvalidContent> {
        let diff = |(path, DiffDto(kind, input_diff))| {
            let kind = DIFF_KINDS.get(usize::from(kind)).copied().ok_or(InvalidContent("kind of a change"))?;
            Ok((path, PropertyDiff { kind, input_diff }))
        };
        Ok(PlannedRegistration {
            options: self.options,
            inputs: Arc::new(decode(&self.inputs)?),
            checked: self.checked.as_deref().map(decode).transpose()?.map(Arc::new),
            steps: self.steps.into_iter().map(StepDto::into_step).collect::<Result<_, _>>()?,
            replace_keys: self.replace_keys,
            diffs: self.diffs,
            detailed_diff: self.detailed_diff.into_iter().map(diff).collect::<Result<_, _>>()?,
        })
    }
}

impl StepDto {
    fn new(step: &PlannedStep) -> Self {
        Self(step.op.as_str().to_owned(), step.urn.to_string())
    }

    fn into_step(self) -> Result<PlannedStep, InvalidContent> {
        let op = op_named(&self.0).ok_or(InvalidContent("kind of a step"))?;
        Ok(PlannedStep { op, urn: urn(&self.1)? })
    }
}

fn urn(text: &str) -> Result<Urn, InvalidContent> {
    text.parse().map_err(|_| InvalidContent("URN"))
}

fn encode(values: &PropertyMap) -> Result<String, InvalidContent> {
    let bag = wire::encode(values, &EncodeOptions::EVERYTHING).map_err(|_| InvalidContent("property"))?;
    Ok(BASE64.encode(bag.as_bytes()))
}

fn decode(text: &str) -> Result<PropertyMap, InvalidContent> {
    let invalid = || InvalidContent("property");
    let bag = Bag::from_encoded(BASE64.decode(text).map_err(|_| invalid())?);
    wire::decode(&bag, &DecodeOptions::EVERYTHING).map_err(|_| invalid())
}

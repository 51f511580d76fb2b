//! Text of a plan.
//!
//! ```text
//! {"format":1,"header":{"id":…,"created":…,"expires":…,"stacks":[{"project":…,"stack":…,"store":…}]},
//!  "stacks":[{"project":…,"stack":…,"secrets":{"type":…,"state":…},"sealed":…}]}
//! ```
//! `sealed` is the ciphertext of the header and of the stack's plan, with the key of the stack: whoever does not have the key can
//! neither read nor change a plan, nor test guesses of a file by its digest.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use state::SecretsDescription;
use state::secrets::{Crypter, SecretsError};

use super::header::PlanHeader;
use super::planned::StackPlan;
use super::sealed::SealedDto;

/// Version of the format that this program writes and reads.
const FORMAT: u32 = 1;

/// Maximum size of the text of a plan, in bytes.
pub const MAX_PLAN_BYTES: u64 = 1 << 30;

/// Plan as a text has it: the plans of its stacks are sealed.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// Header.
    pub header: PlanHeader,
    /// SHA-256 of the text, in hexadecimal digits: the name of the plan.
    pub digest: String,
    stacks: Vec<SealedStackDto>,
    text: String,
}

/// Error of the text of a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// The text is no plan, or a part of one.
    #[error("the file is not a plan, or not a whole one")]
    Malformed,
    /// The plan has another format.
    #[error("the plan has format {0}, and this version of sc reads format {FORMAT}")]
    Format(u32),
    /// The plan has no such stack.
    #[error("the plan has no stack {0}")]
    NoStack(String),
    /// The content was changed, or sealed with another key.
    #[error("the plan of stack {0} was changed after it was made, or is encrypted with another key")]
    Changed(String),
    /// The stack has another key now.
    #[error("the plan of stack {0} is encrypted with a key that is not that of the stack")]
    OtherKey(String),
    /// The key is not available.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileDto {
    format: u32,
    header: PlanHeader,
    stacks: Vec<SealedStackDto>,
}

#[derive(Deserialize)]
struct FormatDto {
    format: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SealedStackDto {
    project: String,
    stack: String,
    secrets: SecretsDto,
    sealed: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretsDto {
    #[serde(rename = "type")]
    kind: String,
    state: serde_json::Value,
}

/// Plan of a stack with the key to seal it with.
pub(crate) struct StackToSeal<'a> {
    /// Plan of the stack.
    pub(crate) plan: &'a StackPlan,
    /// Description of the stack's secrets manager.
    pub(crate) secrets: SecretsDescription,
    /// Key of the stack.
    pub(crate) crypter: &'a dyn Crypter,
}

impl PlanFile {
    /// Creates the text of a plan. The stacks are those of the header, in its order.
    ///
    /// # Errors
    /// [`PlanFileError::Secrets`] if a stack cannot be sealed, [`PlanFileError::Malformed`] if a value has no form in a plan.
    pub(crate) fn seal(header: PlanHeader, stacks: &[StackToSeal<'_>]) -> Result<Self, PlanFileError> {
        let seal = |(name, stack): (&super::PlannedStackName, &StackToSeal<'_>)| {
            let content = SealedDto::new(header.clone(), &name.project, &name.stack, stack.plan)
                .map_err(|_| PlanFileError::Malformed)?;
            let content = serde_json::to_string(&content).map_err(|_| PlanFileError::Malformed)?;
            let SecretsDescription { kind, state } = stack.secrets.clone();
            Ok::<_, PlanFileError>(SealedStackDto {
                project: name.project.clone(),
                stack: name.stack.clone(),
                secrets: SecretsDto { kind, state },
                sealed: stack.crypter.encrypt(&content)?,
            })
        };
        let stacks: Vec<SealedStackDto> = header.stacks.iter().zip(stacks).map(seal).collect::<Result<_, _>>()?;
        let file = FileDto { format: FORMAT, header: header.clone(), stacks: stacks.clone() };
        let mut text = serde_json::to_string(&file).map_err(|_| PlanFileError::Malformed)?;
        text.push('\n');
        Ok(Self { header, digest: digest(&text), stacks, text })
    }

    /// Reads the text of a plan.
    ///
    /// # Errors
    /// [`PlanFileError::Malformed`], [`PlanFileError::Format`].
    pub fn parse(text: String) -> Result<Self, PlanFileError> {
        let FormatDto { format } = serde_json::from_str(&text).map_err(|_| PlanFileError::Malformed)?;
        if format != FORMAT {
            return Err(PlanFileError::Format(format));
        }
        let FileDto { header, stacks, .. } = serde_json::from_str(&text).map_err(|_| PlanFileError::Malformed)?;
        let are_same = stacks.len() == header.stacks.len()
            && stacks.iter().zip(&header.stacks).all(|(a, b)| a.stack == b.stack && a.project == b.project);
        if !are_same {
            return Err(PlanFileError::Malformed);
        }
        Ok(Self { header, digest: digest(&text), stacks, text })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the description of the secrets manager that a stack is sealed with.
    ///
    /// # Errors
    /// [`PlanFileError::NoStack`].
    pub(crate) fn secrets(&self, stack: &str) -> Result<SecretsDescription, PlanFileError> {
        let SecretsDto { kind, state } = self.sealed(stack)?.secrets.clone();
        Ok(SecretsDescription { kind, state })
    }

    /// Returns the plan of a stack.
    ///
    /// # Errors
    /// [`PlanFileError::NoStack`]; [`PlanFileError::Changed`] if the plan was changed, or sealed with another key.
    pub(crate) fn open(&self, stack: &str, crypter: &dyn Crypter) -> Result<StackPlan, PlanFileError> {
        let sealed = self.sealed(stack)?;
        let changed = || PlanFileError::Changed(stack.to_owned());
        let content = crypter.decrypt(&sealed.sealed).map_err(|_| changed())?;
        let content: SealedDto = serde_json::from_str(&content).map_err(|_| changed())?;
        let is_same =
            content.header == self.header && content.project == sealed.project && content.stack == sealed.stack;
        if !is_same {
            return Err(changed());
        }
        content.into_plan().map_err(|_| changed())
    }

    fn sealed(&self, stack: &str) -> Result<&SealedStackDto, PlanFileError> {
        let found = self.stacks.iter().find(|sealed| sealed.stack == stack);
        found.ok_or_else(|| PlanFileError::NoStack(stack.to_owned()))
    }
}

/// Returns the SHA-256 of a text in hexadecimal digits.
fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

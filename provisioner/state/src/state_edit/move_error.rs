//! Reasons to refuse a move of resources to another stack.

use bridge::error::Hint;
use bridge::message_text::MessageText;
use pulumi_proto::urn::Urn;

use crate::references::Relation;

/// Reason to refuse a move of resources to another stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The root stack resource was selected.
    #[error("{} is the root of the stack, which cannot move", .0.name())]
    Root(Urn),
    /// A provider resource was selected.
    #[error("{} is a provider resource, which moves with the resources that use it", .0.name())]
    Provider(Urn),
    /// Operations on the resources have not ended, or the resources are to be deleted or replaced.
    #[error("these resources have pending operations, deletes or replacements: {}", names(.0))]
    Pending(Vec<Urn>),
    /// Resources refer to others that stay.
    #[error("what moves refers to resources that stay:{}", lines(.0))]
    Staying(Vec<StayingReference>),
    /// A provider resource moves with the component that it belongs to, and a resource that stays uses it.
    #[error("{} stays, and its provider {} moves with its component", user.name(), provider.name())]
    ProviderOfOthers {
        /// The provider resource.
        provider: Urn,
        /// Resource that uses it and stays.
        user: Urn,
    },
    /// The target has resources of these names.
    #[error("the other stack has these resources already: {}", names(.0))]
    Taken(Vec<Urn>),
    /// The target has another provider resource of the name.
    #[error("the other stack has a provider resource {} of this type with other inputs", .0.name())]
    OtherProvider(Urn),
    /// The target has another extension of the name.
    #[error("the other stack has another extension in place of that of {}", .0.name())]
    Extension(Urn),
}

/// Reference of a resource that moves to one that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StayingReference {
    /// Resource that moves.
    pub urn: Urn,
    /// Relation of the two.
    pub relation: Relation<'static>,
    /// Resource that stays.
    pub target: Urn,
}

impl Hint for MoveError {
    fn hint(&self) -> Option<MessageText> {
        Some(match self {
            Self::Root(_) => "name the resources to move; a stack without resources needs no move: `sc stack rename`".into(),
            Self::Provider(_) => "name the resources that use it".into(),
            Self::Pending(_) => "run `sc provision` or `sc refresh` first, until nothing is pending".into(),
            Self::Staying(found) => {
                let mut targets: Vec<&Urn> = found.iter().map(|reference| &reference.target).collect();
                targets.sort();
                targets.dedup();
                let names: Vec<&str> = targets.iter().map(|urn| urn.name()).collect();
                MessageText::new(format_args!(
                    "move these as well: {}; or provision without these references first",
                    names.join(", ")
                ))
            }
            Self::ProviderOfOthers { user, .. } => MessageText::new(format_args!("move {} as well", user.name())),
            Self::Taken(_) => {
                "rename them with `sc state rename`, or remove those of the other stack from its state with `sc state rm`".into()
            }
            Self::OtherProvider(_) => {
                "the resources would be managed with other settings: give both plugins the same version and `config`, \
                 provision both stacks, and move then; or give one of the plugins another name"
                    .into()
            }
            Self::Extension(_) => "give both plugins the same version, and provision both stacks first".into(),
        })
    }
}

fn names(urns: &[Urn]) -> String {
    urns.iter().map(Urn::name).collect::<Vec<_>>().join(", ")
}

fn lines(found: &[StayingReference]) -> String {
    let line = |found: &StayingReference| {
        format!("\n  {} has the {} {}", found.urn.name(), found.relation, found.target.name())
    };
    found.iter().map(line).collect()
}

//! Where a resource may have been before (engine semantics, section 2.3).

use bridge::provider::{Alias, AliasParent};
use pulumi_proto::urn::Urn;

use crate::goal::Goal;

/// The URNs to look a resource up by, its own first. `alias_of` tells under which old URN a resource of this run was found.
pub(crate) fn candidates<'a>(urn: &Urn, goal: &Goal, alias_of: impl Fn(&Urn) -> Option<&'a Urn>) -> Vec<Urn> {
    let mut found = vec![urn.clone()];
    let mut add = |urn: Urn| {
        if !found.contains(&urn) {
            found.push(urn);
        }
    };
    let spelled: Vec<Urn> = goal.aliases.iter().map(|alias| spell_out(urn, goal, alias, &alias_of)).collect();
    spelled.iter().cloned().for_each(&mut add);
    if let Some((parent, old_parent)) = goal.parent.as_ref().and_then(|parent| Some((parent, alias_of(parent)?))) {
        add(under_old_parent(goal.type_token.as_str(), &goal.name, parent, old_parent));
        for alias in &spelled {
            add(under_old_parent(alias.type_token(), alias.name(), parent, old_parent));
        }
    }
    found
}

fn spell_out<'a>(urn: &Urn, goal: &Goal, alias: &Alias, alias_of: impl Fn(&Urn) -> Option<&'a Urn>) -> Urn {
    match alias {
        Alias::Urn(urn) => urn.clone(),
        Alias::Spec { name, type_token, stack, project, parent } => {
            let parent = match parent {
                AliasParent::None => None,
                AliasParent::Same => goal.parent.as_ref(),
                AliasParent::Urn(parent) => Some(alias_of(parent).unwrap_or(parent)),
            };
            Urn::new(
                stack.as_deref().unwrap_or(urn.stack()),
                project.as_deref().unwrap_or(urn.project()),
                parent,
                type_token.as_deref().unwrap_or(goal.type_token.as_str()),
                name.as_deref().unwrap_or(&goal.name),
            )
        }
    }
}

/// The child of a renamed parent; a name that begins with the parent's is taken to have begun with its old one.
fn under_old_parent(type_token: &str, name: &str, parent: &Urn, old_parent: &Urn) -> Urn {
    let name = match name.strip_prefix(parent.name()) {
        Some(rest) => format!("{}{rest}", old_parent.name()),
        None => name.to_owned(),
    };
    Urn::new(old_parent.stack(), old_parent.project(), Some(old_parent), type_token, &name)
}

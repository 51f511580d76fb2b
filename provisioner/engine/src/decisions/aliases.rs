//! Recorded URNs under which a resource may be found (docs/spec/engine-semantics.md#2.3).

use bridge::provider::{Alias, AliasParent};
use pulumi_proto::urn::Urn;

use crate::goal::Goal;

/// Returns the URNs under which a resource may be recorded, its own first. `alias_of` returns the recorded URN of a
/// resource of this run, if it is another one.
pub(crate) fn candidate_urns<'a>(urn: &Urn, goal: &Goal, alias_of: impl Fn(&Urn) -> Option<&'a Urn>) -> Vec<Urn> {
    let mut found = vec![urn.clone()];
    let mut add = |urn: Urn| {
        if !found.contains(&urn) {
            found.push(urn);
        }
    };
    let resolved: Vec<Urn> = goal.aliases.iter().map(|alias| resolve_alias(urn, goal, alias, &alias_of)).collect();
    resolved.iter().cloned().for_each(&mut add);
    if let Some((parent, old_parent)) = goal.parent.as_ref().and_then(|parent| Some((parent, alias_of(parent)?))) {
        add(urn_below_old_parent(goal.type_token.as_str(), &goal.name, parent, old_parent));
        for alias in &resolved {
            add(urn_below_old_parent(alias.type_token(), alias.name(), parent, old_parent));
        }
    }
    found
}

fn resolve_alias<'a>(urn: &Urn, goal: &Goal, alias: &Alias, alias_of: impl Fn(&Urn) -> Option<&'a Urn>) -> Urn {
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

/// Returns the URN of a child below the old URN of its parent. If the name of the child begins with that of the parent,
/// it begins with the old name of the parent instead.
fn urn_below_old_parent(type_token: &str, name: &str, parent: &Urn, old_parent: &Urn) -> Urn {
    let name = match name.strip_prefix(parent.name()) {
        Some(rest) => format!("{}{rest}", old_parent.name()),
        None => name.to_owned(),
    };
    Urn::new(old_parent.stack(), old_parent.project(), Some(old_parent), type_token, &name)
}

//! Names of resources in messages.

use pulumi_proto::urn::Urn;

/// Returns the names of the first ten resources, and the number of further resources.
pub(super) fn names(urns: &[Urn]) -> String {
    const MAX_NAMES: usize = 10;
    let names: Vec<&str> = urns.iter().take(MAX_NAMES).map(Urn::name).collect();
    let rest = if urns.len() > MAX_NAMES { format!(" and {} more", urns.len() - MAX_NAMES) } else { String::new() };
    names.join(", ") + &rest
}

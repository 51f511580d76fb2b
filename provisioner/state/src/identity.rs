//! Identity of actual resources by their ids.

use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::TypeToken;

/// Ids of resources that have none.
const PLACEHOLDERS: [&str; 2] = ["-", "none"];

/// Returns whether an id can identify a resource of a type: it is neither empty nor a placeholder nor the name of the
/// type.
pub fn can_identify(id: &ResourceId, type_token: &TypeToken) -> bool {
    let (id, token) = (id.as_str(), type_token.as_str());
    let name = token.rsplit([':', '/']).next().unwrap_or_default();
    !id.is_empty() && !PLACEHOLDERS.iter().chain([&name, &token]).any(|other| id.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_or_name_of_type_identifies_no_resource() {
        let password = TypeToken::new("random:index/randomPassword:RandomPassword");
        let table = [
            ("a-1", true),
            ("7", true),
            ("-", false),
            ("none", false),
            ("None", false),
            ("RandomPassword", false),
            ("randompassword", false),
            ("random:index/randomPassword:RandomPassword", false),
        ];
        for (id, expected) in table {
            assert_eq!(can_identify(&ResourceId::new(id).unwrap(), &password), expected, "{id}");
        }
    }
}

//! URNs, type tokens, references to provider resources.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::resource_id::ReferenceId;

/// Prefix of every URN.
const URN_PREFIX: &str = "urn:pulumi:";

/// Type of the root resource of every stack.
pub const ROOT_STACK_TYPE: &str = "pulumi:pulumi:Stack";

/// Prefix of the types of provider resources, `pulumi:providers:<package>`.
const PROVIDER_TYPE_PREFIX: &str = "pulumi:providers:";

/// Error for a text that is not a URN, type token or provider reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text lacks the prefix or one of the four parts of a URN.
    #[error("{0:?} is not a URN (expected urn:pulumi:STACK::PROJECT::TYPE::NAME)")]
    Urn(String),
    /// The text does not have the three parts of a type token.
    #[error("{0:?} is not a type token (expected package:module:Name)")]
    TypeToken(String),
    /// The text is not the URN of a provider resource followed by its id.
    #[error("{0:?} is not a provider reference (expected URN::ID of a provider resource)")]
    ProviderReference(String),
}

/// Unique name of a resource in all stacks: `urn:pulumi:STACK::PROJECT::QUALIFIED_TYPE::NAME`.
///
/// The qualified type consists of the types of the ancestors and of the resource, joined by `$`, without the root
/// stack. The name is the text after the third `::` and may contain `::`.
///
/// Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urn(Arc<str>);

/// Returns the parts before and after the first `::`.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut colons = text.match_indices(':').map(|(at, _)| at);
    let at = colons.find(|at| text[at + 1..].starts_with(':'))?;
    Some((&text[..at], &text[at + 2..]))
}

impl Urn {
    /// Creates the URN of a resource from the names of its stack and project, its optional parent, its type and its
    /// name.
    pub fn new(stack: &str, project: &str, parent: Option<&Urn>, type_token: &str, name: &str) -> Self {
        let parent = parent.map(Urn::qualified_type).filter(|parent| *parent != ROOT_STACK_TYPE);
        let (ancestors, joint) = parent.map_or(("", ""), |parent| (parent, "$"));
        Self([URN_PREFIX, stack, "::", project, "::", ancestors, joint, type_token, "::", name].concat().into())
    }

    /// Creates the URN of the root resource of a stack: type `pulumi:pulumi:Stack`, name `PROJECT-STACK`.
    pub fn root_stack(stack: &str, project: &str) -> Self {
        Self::new(stack, project, None, ROOT_STACK_TYPE, &format!("{project}-{stack}"))
    }

    /// Returns the URN of the same resource in another stack. The root resource of a stack becomes that of the other one.
    #[must_use]
    pub fn in_stack(&self, stack: &str, project: &str) -> Self {
        if *self == Self::root_stack(self.stack(), self.project()) {
            return Self::root_stack(stack, project);
        }
        Self([URN_PREFIX, stack, "::", project, "::", self.qualified_type(), "::", self.name()].concat().into())
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn part(&self, index: usize) -> &str {
        let mut rest = &self.0[URN_PREFIX.len()..];
        for _ in 0..index {
            rest = split(rest).map_or("", |(_, after)| after);
        }
        if index == 3 { rest } else { split(rest).map_or(rest, |(part, _)| part) }
    }

    /// Returns true if the qualified type is that of a child of `parent`. Names, stacks and projects are not compared.
    pub fn is_child_of(&self, parent: &Urn) -> bool {
        let (own, parent) = (self.qualified_type(), parent.qualified_type());
        let ancestors = own.strip_suffix(self.type_token()).unwrap_or_default();
        if parent == ROOT_STACK_TYPE { ancestors.is_empty() } else { ancestors.strip_suffix('$') == Some(parent) }
    }

    /// Returns the name of the stack.
    pub fn stack(&self) -> &str {
        self.part(0)
    }

    /// Returns the name of the project.
    pub fn project(&self) -> &str {
        self.part(1)
    }

    /// Returns the types of the ancestors and of the resource, joined by `$`.
    pub fn qualified_type(&self) -> &str {
        self.part(2)
    }

    /// Returns the type token of the resource, without its ancestors.
    pub fn type_token(&self) -> &str {
        let qualified = self.qualified_type();
        qualified.rsplit_once('$').map_or(qualified, |(_, own)| own)
    }

    /// Returns the name of the resource.
    pub fn name(&self) -> &str {
        self.part(3)
    }
}

impl FromStr for Urn {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut rest = text.strip_prefix(URN_PREFIX);
        for _ in 0..3 {
            rest = rest.and_then(split).map(|(_, rest)| rest);
        }
        if rest.is_some() { Ok(Self(text.into())) } else { Err(NameError::Urn(text.to_owned())) }
    }
}

impl fmt::Display for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Type of a resource: `package:module:Name`, or any text for a local component.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeToken(Arc<str>);

impl TypeToken {
    /// Creates a type token from any text, because local components may have any type.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the type of the provider resources of a package.
    pub fn provider(package: &str) -> Self {
        Self(format!("{PROVIDER_TYPE_PREFIX}{package}").into())
    }

    /// Parses the type of a custom resource.
    ///
    /// # Errors
    /// [`NameError::TypeToken`] unless the text has three non-empty parts.
    pub fn custom(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.splitn(3, ':').collect();
        if parts.len() == 3 && parts.iter().all(|part| !part.is_empty()) {
            Ok(Self(text.into()))
        } else {
            Err(NameError::TypeToken(text.to_owned()))
        }
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the package, the part before the first `:`.
    pub fn package(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// Returns the package of a provider resource type. `None` for other types.
    pub fn provider_package(&self) -> Option<&str> {
        self.0.strip_prefix(PROVIDER_TYPE_PREFIX)
    }

    /// Returns the form in which Pulumi's documentation writes the type, for display: without the name of the type in the
    /// module, and without the module `index`. `random:index/randomPet:RandomPet` is `random:RandomPet`,
    /// `aws:s3/bucket:Bucket` is `aws:s3:Bucket`. Types of the package `pulumi` and types without three parts are
    /// unchanged.
    pub fn short_form(&self) -> Cow<'_, str> {
        let mut parts = self.0.splitn(3, ':');
        let (Some(package), Some(full_module), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Cow::Borrowed(&self.0);
        };
        let repeated = full_module.rsplit_once('/').filter(|(_, last)| last.eq_ignore_ascii_case(name));
        let module = repeated.map_or(full_module, |(module, _)| module);
        match module {
            _ if package == "pulumi" => Cow::Borrowed(&self.0),
            "index" => Cow::Owned([package, ":", name].concat()),
            module if module == full_module => Cow::Borrowed(&self.0),
            module => Cow::Owned([package, ":", module, ":", name].concat()),
        }
    }

    /// Returns true if this is the type of a provider resource.
    pub fn is_provider(&self) -> bool {
        self.provider_package().is_some()
    }
}

impl fmt::Display for TypeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TypeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reference to the provider resource of a resource: URN and id, joined by `::`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderReference {
    /// URN of the provider resource.
    pub urn: Urn,
    /// Id of the provider resource: a UUID, or unknown in the preview that would create it.
    pub id: ReferenceId,
}

impl ProviderReference {
    /// Creates a reference.
    pub fn new(urn: Urn, id: impl Into<ReferenceId>) -> Self {
        Self { urn, id: id.into() }
    }
}

impl FromStr for ProviderReference {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let reference = || {
            let (urn, id) = text.rsplit_once("::")?;
            let urn: Urn = urn.parse().ok()?;
            TypeToken::new(urn.type_token()).is_provider().then(|| Self::new(urn, id))
        };
        reference().ok_or_else(|| NameError::ProviderReference(text.to_owned()))
    }
}

impl fmt::Display for ProviderReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.urn, self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: server-yaml.md#plugins "the display shows the short form"
    #[test]
    fn short_form_of_a_type_is_that_of_the_documentation() {
        for (token, short) in [
            ("random:index/randomPet:RandomPet", "random:RandomPet"),
            ("docker:index:Image", "docker:Image"),
            ("aws:s3/bucket:Bucket", "aws:s3:Bucket"),
            ("aws:waf/ipSet:IPSet", "aws:waf:IPSet"),
            ("kubernetes:core/v1:Pod", "kubernetes:core/v1:Pod"),
            ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v3:Release"),
            ("azure-native:compute:VirtualMachine", "azure-native:compute:VirtualMachine"),
            ("pulumi:pulumi:Stack", "pulumi:pulumi:Stack"),
            ("pulumi:providers:index", "pulumi:providers:index"),
            ("my:Component", "my:Component"),
            ("component", "component"),
            ("", ""),
        ] {
            assert_eq!(TypeToken::new(token).short_form(), short, "{token}");
        }
    }

    #[test]
    fn urn_has_four_parts_and_its_name_may_contain_colons() {
        let urn: Urn = "urn:pulumi:dev::reef::a:b:C$d:e:F::x::y z".parse().unwrap();
        assert_eq!((urn.stack(), urn.project()), ("dev", "reef"));
        assert_eq!((urn.qualified_type(), urn.type_token(), urn.name()), ("a:b:C$d:e:F", "d:e:F", "x::y z"));
        assert!("urn:pulumi:dev::reef::a".parse::<Urn>().is_err());
        assert!("urn:other:dev::reef::a::b".parse::<Urn>().is_err());
    }

    #[test]
    fn parent_type_qualifies_the_urn_unless_it_is_the_stack() {
        let root = Urn::root_stack("dev", "reef");
        assert_eq!(root.as_str(), "urn:pulumi:dev::reef::pulumi:pulumi:Stack::reef-dev");
        let child = Urn::new("dev", "reef", Some(&root), "a:b:C", "one");
        assert_eq!(child.as_str(), "urn:pulumi:dev::reef::a:b:C::one");
        let grandchild = Urn::new("dev", "reef", Some(&child), "d:e:F", "two");
        assert_eq!(grandchild.as_str(), "urn:pulumi:dev::reef::a:b:C$d:e:F::two");
        let is_child = |urn: &Urn| [&root, &child, &grandchild].map(|parent| urn.is_child_of(parent));
        assert_eq!(is_child(&child), [true, false, false]);
        assert_eq!(is_child(&grandchild), [false, true, false]);
        assert_eq!(is_child(&Urn::new("dev", "reef", Some(&grandchild), "d:e:F", "x")), [false, false, true]);
    }

    #[test]
    fn custom_type_has_three_parts() {
        assert_eq!(TypeToken::custom("aws:s3/bucket:Bucket").unwrap().package(), "aws");
        for bad in ["aws", "aws:s3", "aws::Bucket", ":a:b", "a:b:"] {
            assert!(TypeToken::custom(bad).is_err(), "{bad}");
        }
        assert_eq!(TypeToken::provider("aws").provider_package(), Some("aws"));
    }

    #[test]
    fn provider_reference_is_split_at_the_last_colons() {
        let text = "urn:pulumi:dev::reef::pulumi:providers:a::na::me::1234";
        let reference: ProviderReference = text.parse().unwrap();
        assert_eq!((reference.urn.name(), reference.id.as_str()), ("na::me", "1234"));
        assert_eq!(reference.to_string(), text);
        assert!("urn:pulumi:dev::reef::a:b:C::x::1".parse::<ProviderReference>().is_err());
    }
}

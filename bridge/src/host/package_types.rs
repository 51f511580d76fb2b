//! Information about resource types and functions from the schema of a package (GetSchema), needed to check and to register resources.
//! Pulumi programs have it in their generated SDKs or in their language host.
//!
//! A package may have thousands of types, and a stack uses few of them: types that were cached are parsed on use.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Information about the resource types and the functions of a package. Cloning is cheap.
#[derive(Clone, Default)]
pub struct PackageTypes(Arc<Types>);

#[derive(Default)]
struct Types {
    /// Types by token; `pulumi:providers:PACKAGE` is the provider itself.
    infos: BTreeMap<String, Stored<TypeInfo>>,
    /// Object types by token.
    objects: BTreeMap<String, Stored<ObjectInfo>>,
    /// Functions by token.
    functions: BTreeMap<String, Stored<TypeInfo>>,
    header: Header,
    /// Lines that [`Stored::Line`] refers to.
    lines: String,
}

/// First line of the cached information.
#[derive(Default, Serialize, Deserialize)]
struct Header {
    /// Number of types.
    types: usize,
    /// Number of object types.
    objects: usize,
    /// Number of functions.
    functions: usize,
    has_components: bool,
    /// Tokens of the types that have a former type (alias), by the former type.
    former_types: BTreeMap<String, Vec<String>>,
}

enum Stored<T> {
    Parsed(Box<T>),
    /// JSON text in [`Types::lines`].
    Line(Range<usize>),
}

impl<T: Clone + DeserializeOwned> Stored<T> {
    fn get(&self, lines: &str) -> Option<Cow<'_, T>> {
        match self {
            Self::Parsed(info) => Some(Cow::Borrowed(info)),
            Self::Line(range) => serde_json::from_str(lines.get(range.clone())?).ok().map(Cow::Owned),
        }
    }
}

/// Information about a resource type from the schema, or about a function: its inputs are the arguments, its outputs the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TypeInfo {
    /// True for a component, which its plugin constructs (Construct).
    #[serde(skip_serializing_if = "is_default")]
    pub is_component: bool,
    /// Input properties by name.
    pub inputs: BTreeMap<String, InputInfo>,
    /// Output properties by name, with the place of the objects in their values if the schema has the type of the objects.
    pub outputs: BTreeMap<String, Option<NestedObjects>>,
    /// Inputs that are always secret.
    #[serde(skip_serializing_if = "is_default")]
    pub secret_inputs: Vec<String>,
    /// Outputs that are secret.
    #[serde(skip_serializing_if = "is_default")]
    pub secret_outputs: Vec<String>,
    /// Inputs with a constant value: booleans, numbers and strings.
    #[serde(skip_serializing_if = "is_default")]
    pub constants: BTreeMap<String, serde_json::Value>,
    /// Property paths whose changes force replacement.
    #[serde(skip_serializing_if = "is_default")]
    pub replace_on_changes: Vec<String>,
    /// Former types (aliases) under which resources may be recorded.
    #[serde(skip_serializing_if = "is_default")]
    pub former_types: Vec<String>,
}

/// Information about an object type from the schema: the type of a property, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// Properties by name.
    pub properties: BTreeMap<String, InputInfo>,
}

/// Place of the objects in the value of a property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NestedObjects {
    /// The value is an object of the type with this token.
    Object(String),
    /// The items of the list contain the objects.
    List(Box<Self>),
    /// The values of the map contain the objects.
    Map(Box<Self>),
}

/// Information about an input property of a resource type, an argument of a function, or a property of an object type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputInfo {
    /// True if the schema requires a value.
    #[serde(skip_serializing_if = "is_default")]
    pub is_required: bool,
    /// Values of the enum type of the property; empty if the property has another type.
    #[serde(skip_serializing_if = "is_default")]
    pub enum_values: Vec<serde_json::Value>,
    /// Objects in the value, if the schema has their type.
    #[serde(skip_serializing_if = "is_default")]
    pub nested: Option<NestedObjects>,
    /// Kind of the value, or of the values in it; `None` for objects, and if the schema allows several kinds or any.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: Option<ValueKind>,
}

/// Kind of a value that is no object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// A text.
    Text,
    /// A number or a boolean.
    Plain,
    /// An asset or an archive.
    Asset,
    /// An archive.
    Archive,
    /// A list of values of a kind.
    List(Box<Self>),
    /// A map with values of a kind.
    Map(Box<Self>),
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Separates the token of a type from its information in a line of the cache.
const SEPARATOR: char = '\t';

impl PackageTypes {
    /// Returns the tokens of all types, in alphabetical order; `pulumi:providers:PACKAGE` is the provider itself.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.0.infos.keys().map(String::as_str)
    }

    /// Returns the tokens of all functions, in alphabetical order.
    pub fn function_tokens(&self) -> impl Iterator<Item = &str> {
        self.0.functions.keys().map(String::as_str)
    }

    /// Returns true if the schema has resource types: it is neither missing nor empty.
    pub fn has_resources(&self) -> bool {
        self.tokens().any(|token| !token.starts_with("pulumi:providers:"))
    }

    /// True if a type is a component.
    pub fn has_components(&self) -> bool {
        self.0.header.has_components
    }

    /// Returns the information about the type with exactly this token.
    pub fn get(&self, token: &str) -> Option<Cow<'_, TypeInfo>> {
        self.0.infos.get(token)?.get(&self.0.lines)
    }

    /// Returns the information about the function with exactly this token.
    pub fn function(&self, token: &str) -> Option<Cow<'_, TypeInfo>> {
        self.0.functions.get(token)?.get(&self.0.lines)
    }

    /// Returns the token of the function that a text names, by the forms of [`PackageTypes::resolve`]. Returns `None` if no function has
    /// the name, or more than one.
    pub fn resolve_function(&self, text: &str) -> Option<&str> {
        let expanded = expand_index_module(text);
        let functions = &self.0.functions;
        let named = find_key(functions, text).or_else(|| find_key(functions, &expanded));
        named.or_else(|| find_repeated_name(functions, &expanded)).map(|(token, _)| token)
    }

    /// Returns the token of the only function that a text names in another case, as [`PackageTypes::resolve_in_any_case`] does.
    pub fn resolve_function_in_any_case(&self, text: &str) -> Option<&str> {
        find_in_any_case(text, || self.function_tokens())
    }

    /// Returns the information about the object type with this token. Object types that neither inputs nor outputs use are
    /// omitted.
    pub fn object(&self, token: &str) -> Option<Cow<'_, ObjectInfo>> {
        self.0.objects.get(token)?.get(&self.0.lines)
    }

    /// Returns the token of the type that a text names, as Pulumi's YAML language does: the text itself,
    /// `package:index:Type` for `package:Type`, or `package:module/type:Type` for `package:module:Type`, where `type`
    /// differs from `Type` in case only. A former type in one of these forms names the type that replaced it. Returns
    /// `None` if no type has the name, or more than one.
    pub fn resolve(&self, text: &str) -> Option<&str> {
        let expanded = expand_index_module(text);
        let (infos, former) = (&self.0.infos, &self.0.header.former_types);
        let current = find_key(infos, text).or_else(|| find_key(infos, &expanded));
        if let Some((token, _)) = current.or_else(|| find_repeated_name(infos, &expanded)) {
            return Some(token);
        }
        let named = find_key(former, text).or_else(|| find_key(former, &expanded));
        match named.or_else(|| find_repeated_name(former, &expanded))?.1.as_slice() {
            [token] => infos.get_key_value(token).map(|(token, _)| token.as_str()),
            [..] => None,
        }
    }

    /// Returns the token of the only type that a text names in another case, by the forms of [`PackageTypes::resolve`]; the
    /// first form that names a type counts. Pulumi's YAML language accepts these texts since its version 1.35.
    pub fn resolve_in_any_case(&self, text: &str) -> Option<&str> {
        find_in_any_case(text, || self.tokens())
    }

    /// Returns the types as text: a line with facts about all types, then a line for each type, then one for each object
    /// type, then one for each function. Returns `None` if a type has no JSON form.
    pub fn to_lines(&self) -> Option<String> {
        let mut lines = serde_json::to_string(&self.0.header).ok()?;
        for token in self.tokens() {
            let info = serde_json::to_string(&*self.get(token)?).ok()?;
            lines.extend(["\n", token, "\t", &info]);
        }
        for token in self.0.objects.keys() {
            let info = serde_json::to_string(&*self.object(token)?).ok()?;
            lines.extend(["\n", token, "\t", &info]);
        }
        for token in self.function_tokens() {
            let info = serde_json::to_string(&*self.function(token)?).ok()?;
            lines.extend(["\n", token, "\t", &info]);
        }
        lines.push('\n');
        Some(lines)
    }

    /// Reads what [`PackageTypes::to_lines`] wrote, without parsing the information about each type. Returns `None` for
    /// another text, or a part of the text.
    pub fn from_lines(lines: String) -> Option<Self> {
        let (header, rest) = lines.split_once('\n')?;
        let header: Header = serde_json::from_str(header).ok()?;
        let mut start = lines.len() - rest.len();
        let mut infos = Vec::with_capacity(header.types);
        let mut objects = Vec::with_capacity(header.objects);
        let mut functions = Vec::with_capacity(header.functions);
        for line in rest.split_inclusive('\n') {
            let (token, info) = line.strip_suffix('\n')?.split_once(SEPARATOR)?;
            if !info.starts_with('{') || !info.ends_with('}') {
                return None;
            }
            let end = start + line.len() - 1;
            let range = end - info.len()..end;
            if infos.len() < header.types {
                infos.push((token.to_owned(), Stored::Line(range)));
            } else if objects.len() < header.objects {
                objects.push((token.to_owned(), Stored::Line(range)));
            } else {
                functions.push((token.to_owned(), Stored::Line(range)));
            }
            start += line.len();
        }
        let is_complete =
            infos.len() == header.types && objects.len() == header.objects && functions.len() == header.functions;
        let (infos, objects) = (infos.into_iter().collect(), objects.into_iter().collect());
        let functions = functions.into_iter().collect();
        is_complete.then(|| Self(Arc::new(Types { infos, objects, functions, header, lines })))
    }

    /// Collects types and object types by token. Omits a token with a control character, which no type has.
    pub fn new(
        types: impl IntoIterator<Item = (String, TypeInfo)>,
        objects: impl IntoIterator<Item = (String, ObjectInfo)>,
    ) -> Self {
        Self::with_functions(types, objects, [])
    }

    /// Collects types, object types and functions, as [`PackageTypes::new`] does.
    pub fn with_functions(
        types: impl IntoIterator<Item = (String, TypeInfo)>,
        objects: impl IntoIterator<Item = (String, ObjectInfo)>,
        functions: impl IntoIterator<Item = (String, TypeInfo)>,
    ) -> Self {
        let is_token = |token: &str| !token.chars().any(char::is_control);
        let (mut infos, mut header) = (BTreeMap::new(), Header::default());
        for (token, info) in types.into_iter().filter(|(token, _)| is_token(token)) {
            header.has_components |= info.is_component;
            for former in info.former_types.iter().filter(|former| **former != token) {
                let current = header.former_types.entry(former.clone()).or_default();
                if !current.contains(&token) {
                    current.push(token.clone());
                }
            }
            infos.insert(token, Stored::Parsed(info.into()));
        }
        let objects = objects.into_iter().filter(|(token, _)| is_token(token));
        let objects: BTreeMap<_, _> = objects.map(|(token, info)| (token, Stored::Parsed(info.into()))).collect();
        let functions = functions.into_iter().filter(|(token, _)| is_token(token));
        let functions: BTreeMap<_, _> = functions.map(|(token, info)| (token, Stored::Parsed(info.into()))).collect();
        (header.types, header.objects, header.functions) = (infos.len(), objects.len(), functions.len());
        Self(Arc::new(Types { infos, objects, functions, header, lines: String::new() }))
    }
}

impl FromIterator<(String, TypeInfo)> for PackageTypes {
    fn from_iter<I: IntoIterator<Item = (String, TypeInfo)>>(types: I) -> Self {
        Self::new(types, [])
    }
}

impl fmt::Debug for PackageTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tokens()).finish()
    }
}

/// Returns the type that a text names by the rules for `package:Type`: `package:index:Type`; other texts unchanged.
pub fn expand_index_module(text: &str) -> Cow<'_, str> {
    match text.split_once(':') {
        Some((package, name)) if !name.contains(':') => Cow::Owned(format!("{package}:index:{name}")),
        _ => Cow::Borrowed(text),
    }
}

/// Returns the only token that a text names in another case, by its forms; the first form that names a token counts.
fn find_in_any_case<'t, T: Iterator<Item = &'t str>>(text: &str, tokens: impl Fn() -> T) -> Option<&'t str> {
    let expanded = expand_index_module(text);
    let repeated = expanded.rsplit_once(':').map(|(module, name)| format!("{module}/{name}:{name}"));
    let forms = [Some(text), Some(&*expanded), repeated.as_deref()].into_iter().flatten();
    let named = |form: &str| tokens().filter(|token| token.eq_ignore_ascii_case(form)).collect::<Vec<_>>();
    let mut named = forms.map(named).find(|tokens| !tokens.is_empty())?;
    named.pop().filter(|_| named.is_empty())
}

fn find_key<'t, T>(types: &'t BTreeMap<String, T>, token: &str) -> Option<(&'t str, &'t T)> {
    types.get_key_value(token).map(|(token, value)| (token.as_str(), value))
}

/// Returns the only type `package:module/type:Type` for `package:module:Type`, where `type` differs from `Type` in case
/// only.
fn find_repeated_name<'t, T>(types: &'t BTreeMap<String, T>, text: &str) -> Option<(&'t str, &'t T)> {
    let (module, name) = text.rsplit_once(':')?;
    let prefix = format!("{module}/");
    let is_repeated = |token: &str| {
        let repeated = token.strip_prefix(&prefix).and_then(|rest| rest.split_once(':'));
        repeated.is_some_and(|(module, own)| own == name && module.eq_ignore_ascii_case(name))
    };
    let in_module = types.range(prefix.clone()..).take_while(|(token, _)| token.starts_with(&prefix));
    let mut named = in_module.filter(|(token, _)| is_repeated(token));
    let (token, value) = named.next()?;
    named.next().is_none().then_some((token.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(tokens: &[(&str, &[&str])]) -> PackageTypes {
        let info = |former: &[&str]| TypeInfo {
            former_types: former.iter().map(|former| (*former).to_owned()).collect(),
            ..TypeInfo::default()
        };
        tokens.iter().map(|(token, former)| ((*token).to_owned(), info(former))).collect()
    }

    /// Shows: server-yaml.md#plugins "The type may be written in each form of Pulumi's documentation."
    /// Shows: server-yaml.md#plugins "another spelling in upper and lower case is accepted with a warning"
    #[test]
    fn documented_forms_resolve_to_the_token_of_the_schema() {
        let types = types(&[
            ("p:index/randomPet:RandomPet", &["p:index/pet:Pet"]),
            ("p:index:Plain", &["p:old:Plain", "p:index:Plain"]),
            ("p:s3/bucket:Bucket", &["p:s3/bucketV2:BucketV2", "p:legacy:Bucket"]),
            ("p:waf/ipSet:IPSet", &[]),
            ("p:core/v1:Pod", &["p:core/v1beta1:Pod", "p:shared:Former"]),
            ("p:core/v1:PodList", &["p:shared:Former"]),
            ("p:both:Type", &["p:s3/bucket:Bucket"]),
            ("p:both/type:Type", &[]),
            ("p:two/NAME:Name", &[]),
            ("p:two/name:Name", &[]),
            ("pulumi:providers:p", &[]),
        ]);
        let cached = PackageTypes::from_lines(types.to_lines().unwrap()).unwrap();
        for (text, token) in [
            // The token itself, and both short forms.
            ("p:index/randomPet:RandomPet", Some("p:index/randomPet:RandomPet")),
            ("p:index:RandomPet", Some("p:index/randomPet:RandomPet")),
            ("p:RandomPet", Some("p:index/randomPet:RandomPet")),
            ("p:Plain", Some("p:index:Plain")),
            ("p:s3:Bucket", Some("p:s3/bucket:Bucket")),
            ("p:core/v1:Pod", Some("p:core/v1:Pod")),
            ("p:waf:IPSet", Some("p:waf/ipSet:IPSet")),
            ("pulumi:providers:p", Some("pulumi:providers:p")),
            // A token comes before a short form and a former type.
            ("p:both:Type", Some("p:both:Type")),
            // Former types, in each form.
            ("p:index/pet:Pet", Some("p:index/randomPet:RandomPet")),
            ("p:Pet", Some("p:index/randomPet:RandomPet")),
            ("p:s3:BucketV2", Some("p:s3/bucket:Bucket")),
            ("p:legacy:Bucket", Some("p:s3/bucket:Bucket")),
            ("p:core/v1beta1:Pod", Some("p:core/v1:Pod")),
            // More than one type.
            ("p:shared:Former", None),
            ("p:two:Name", None),
            // Case, the module and the package matter.
            ("p:randomPet", None),
            ("p:S3:Bucket", None),
            ("p:Bucket", None),
            ("p:core:Pod", None),
            ("q:RandomPet", None),
            ("", None),
            (":", None),
            ("p", None),
            ("p:", None),
        ] {
            assert_eq!(types.resolve(text), token, "{text}");
            assert_eq!(cached.resolve(text), token, "{text}, cached");
        }
        for (text, token) in [
            ("p:randomPet", Some("p:index/randomPet:RandomPet")),
            ("p:index/RANDOMPET:randompet", Some("p:index/randomPet:RandomPet")),
            ("p:S3:Bucket", Some("p:s3/bucket:Bucket")),
            ("p:plain", Some("p:index:Plain")),
            ("p:Core/V1:pod", Some("p:core/v1:Pod")),
            // A token comes before a short form.
            ("p:both:type", Some("p:both:Type")),
            // More than one type, or none.
            ("p:two:name", None),
            ("p:Pods", None),
            ("p:Bucket", None),
            ("q:randomPet", None),
            ("p:", None),
            ("", None),
        ] {
            assert_eq!(types.resolve_in_any_case(text), token, "{text}");
        }
    }

    #[test]
    fn cached_types_are_equal_and_incomplete_text_is_rejected() {
        let nested = Some(NestedObjects::List(Box::new(NestedObjects::Object("p:index:Rule".to_owned()))));
        let rule = ObjectInfo {
            properties: [("x".to_owned(), InputInfo { nested: nested.clone(), ..InputInfo::default() })].into(),
        };
        let pair = TypeInfo {
            is_component: true,
            inputs: [
                (
                    "a".to_owned(),
                    InputInfo { is_required: true, enum_values: vec!["x".into()], ..InputInfo::default() },
                ),
                ("b".to_owned(), InputInfo { nested: nested.clone(), ..InputInfo::default() }),
                (
                    "c".to_owned(),
                    InputInfo { kind: Some(ValueKind::Map(ValueKind::Text.into())), ..InputInfo::default() },
                ),
            ]
            .into(),
            outputs: [("a".to_owned(), nested.clone()), ("é\n\t".to_owned(), None)].into(),
            secret_inputs: vec!["a".to_owned()],
            ..TypeInfo::default()
        };
        let expected = [("p:index:Pair", pair), ("p:index:Empty", TypeInfo::default())];
        let types = expected.iter().map(|(token, info)| ((*token).to_owned(), info.clone()));
        let types = types.chain([("p:index:\tInvalid".to_owned(), TypeInfo::default())]);
        let ask = TypeInfo { outputs: [("answer".to_owned(), None)].into(), ..TypeInfo::default() };
        let functions = [("p:index/ask:ask".to_owned(), ask.clone())];
        let types = PackageTypes::with_functions(types, [("p:index:Rule".to_owned(), rule.clone())], functions);
        let lines = types.to_lines().unwrap();
        let cached = PackageTypes::from_lines(lines.clone()).unwrap();
        for (token, info) in &expected {
            assert_eq!(types.get(token).as_deref(), Some(info));
            assert_eq!(cached.get(token).as_deref(), Some(info));
        }
        for types in [&types, &cached] {
            assert_eq!(types.function("p:index/ask:ask").as_deref(), Some(&ask));
            assert_eq!(types.resolve_function("p:ask"), Some("p:index/ask:ask"));
            assert_eq!((types.resolve_function("p:Ask"), types.resolve("p:ask")), (None, None));
            assert_eq!(types.resolve_function_in_any_case("p:Ask"), Some("p:index/ask:ask"));
        }
        assert_eq!((cached.get("p:index:Other"), cached.has_components()), (None, true));
        assert_eq!((cached.object("p:index:Rule").as_deref(), cached.object("p:index:Pair")), (Some(&rule), None));
        assert!(cached.tokens().eq(["p:index:Empty", "p:index:Pair"]), "{cached:?}");
        assert!(
            PackageTypes::from_lines(PackageTypes::default().to_lines().unwrap()).unwrap().tokens().next().is_none()
        );
        for end in (0..lines.len()).filter(|end| lines.is_char_boundary(*end)) {
            assert!(PackageTypes::from_lines(lines[..end].to_owned()).is_none(), "{:?}", &lines[..end]);
        }
    }
}

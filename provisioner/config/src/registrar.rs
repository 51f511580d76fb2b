//! `resources.registrar` of server.yaml, own or inherited (docs/spec/simple-container.md#7.19).

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::inherit::{self, REGISTRAR, RawStacks};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::Reader;
use crate::sections::{MissingType, check_type};
use crate::stack::{Options, Resource, ResourceImplementation};
use crate::tree::{Mapping, Node, Value};
use crate::types::TypeTable;

/// Returns the registrar of a stack; `None` if it has none, or an invalid one, which is reported.
pub(super) fn read(
    name: &str,
    stacks: &RawStacks,
    types: &TypeTable,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Resource> {
    let node = inherit::block(name, REGISTRAR, stacks, diagnostics).ok()?.filter(|node| !node.is_null())?;
    let mut reader = Reader::new(diagnostics);
    let section = reader.mapping(node, "`resources.registrar`")?;
    reader.warn_of_unknown_keys(section, &["type", "config", "inherit"]);
    if !check_type(section, REGISTRAR, MissingType::Allowed, types, &mut reader) {
        return None;
    }
    let (type_name, type_span) = reader.text_at(section, "type").filter(|(text, _)| !text.is_empty())?;
    let Some(registrar) = types.registrar(&type_name) else {
        let summary = MessageText::new(format_args!("{type_name:?} is no type of a registrar"));
        let names: Vec<&str> = types.registrars().map(|registrar| registrar.name()).collect();
        let error = Diagnostic::error(Code("unknown-type"), type_span, summary);
        diagnostics.push(error.help(format_args!("the types are {}", names.join(", "))));
        return None;
    };
    let config = match section.get("config") {
        Some(node) => resolver.resolve(node, ReferenceRule::KnownBefore),
        None => Node { value: Value::Mapping(Mapping::default()), span: type_span },
    };
    registrar.check(&config, diagnostics);
    Some(Resource {
        key: REGISTRAR.to_owned(),
        key_span: node.span,
        name: REGISTRAR.to_owned(),
        implementation: ResourceImplementation::Core { type_name },
        type_span,
        config,
        options: Options::default(),
    })
}

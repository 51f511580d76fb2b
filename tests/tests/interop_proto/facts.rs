//! Descriptors as lists of facts, one for each part that client and server must define equally.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use prost_types::{FileDescriptorProto, ServiceDescriptorProto};

/// Facts by the name of the part.
pub(crate) type Facts = BTreeMap<String, String>;

/// Lists the definitions of the files in the packages.
pub(crate) fn facts(files: &FileDescriptorSet, packages: &[&str]) -> Facts {
    let mut facts = Facts::new();
    for file in files.file.iter().filter(|file| packages.contains(&file.package())) {
        file_facts(file, &mut facts);
    }
    facts
}

/// Returns the differences; empty if there are none.
pub(crate) fn differences(ours: &Facts, theirs: &Facts) -> Vec<String> {
    let names: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let difference = |name: &String| match (ours.get(name), theirs.get(name)) {
        (Some(ours), Some(theirs)) if ours == theirs => None,
        (Some(ours), Some(theirs)) => Some(format!("{name}: ours is {ours}, theirs {theirs}")),
        (Some(ours), None) => Some(format!("{name}: only ours ({ours})")),
        (None, theirs) => Some(format!("{name}: missing ({})", theirs.map_or("", String::as_str))),
    };
    names.into_iter().filter_map(difference).collect()
}

fn file_facts(file: &FileDescriptorProto, facts: &mut Facts) {
    let package = file.package();
    for message in &file.message_type {
        message_facts(package, message, facts);
    }
    for of in &file.enum_type {
        enum_facts(package, of, facts);
    }
    for service in &file.service {
        service_facts(package, service, facts);
    }
}

fn message_facts(scope: &str, message: &DescriptorProto, facts: &mut Facts) {
    let name = format!("{scope}.{}", message.name());
    let is_map_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
    facts.insert(format!("message {name}"), if is_map_entry { "entry of a map" } else { "a message" }.to_owned());
    for field in &message.field {
        facts.insert(format!("field {name}.{}", field.name()), field_fact(message, field));
    }
    for range in &message.reserved_range {
        facts.insert(format!("reserved {name} {}..{}", range.start(), range.end()), "reserved".to_owned());
    }
    for reserved in &message.reserved_name {
        facts.insert(format!("reserved {name}.{reserved}"), "reserved".to_owned());
    }
    for nested in &message.nested_type {
        message_facts(&name, nested, facts);
    }
    for of in &message.enum_type {
        enum_facts(&name, of, facts);
    }
}

fn field_fact(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let label = match field.label() {
        Label::Repeated => "repeated ",
        Label::Required => "required ",
        Label::Optional if field.proto3_optional() => "optional ",
        Label::Optional => "",
    };
    let of = match field.r#type() {
        Type::Message | Type::Enum | Type::Group => field.type_name().to_owned(),
        scalar => scalar.as_str_name().to_owned(),
    };
    // The compiler generates the oneof of an optional field.
    let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
    let oneof = oneof.and_then(|index| message.oneof_decl.get(usize::try_from(index).ok()?));
    let oneof = oneof.map_or(String::new(), |oneof| format!(" in oneof {}", oneof.name()));
    format!("{label}{of} = {}{oneof}", field.number())
}

fn enum_facts(scope: &str, of: &EnumDescriptorProto, facts: &mut Facts) {
    let name = format!("{scope}.{}", of.name());
    facts.insert(format!("enum {name}"), "an enum".to_owned());
    for value in &of.value {
        facts.insert(format!("value {name}.{}", value.name()), value.number().to_string());
    }
    for range in &of.reserved_range {
        facts.insert(format!("reserved {name} {}..={}", range.start(), range.end()), "reserved".to_owned());
    }
}

fn service_facts(scope: &str, service: &ServiceDescriptorProto, facts: &mut Facts) {
    let name = format!("{scope}.{}", service.name());
    facts.insert(format!("service {name}"), "a service".to_owned());
    for method in &service.method {
        let stream = |is: bool| if is { "stream " } else { "" };
        let text = format!(
            "{}{} -> {}{}",
            stream(method.client_streaming()),
            method.input_type(),
            stream(method.server_streaming()),
            method.output_type()
        );
        facts.insert(format!("method {name}/{}", method.name()), text);
    }
}

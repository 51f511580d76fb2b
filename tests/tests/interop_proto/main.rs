//! Compares our interface definitions with those in Pulumi's own Python SDK.

mod facts;

use std::path::Path;
use std::process::Command;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use tests::{commands, sdks};

use crate::facts::{Facts, differences, facts};

/// Oldest SDK with all definitions that we have. A newer SDK may be installed; its additions have to be added here.
const SDK: &str = "pulumi>=3.272.0";

/// Modules of the SDK with the definitions for hosts and providers.
const MODULES: [&str; 10] =
    ["alias", "callback", "engine", "errors", "plugin", "provider", "resource", "resource_status", "source", "status"];

const PACKAGES: [&str; 2] = ["pulumirpc", "google.rpc"];

/// Returns our definitions, without the details of errors, which are Google's and not in the SDK.
fn our_descriptors() -> FileDescriptorSet {
    let mut set = FileDescriptorSet::decode(pulumi_proto::FILE_DESCRIPTOR_SET).expect("the build wrote them");
    set.file.retain(|file| file.name() != "google/rpc/error_details.proto");
    set
}

fn our_facts() -> Facts {
    facts(&our_descriptors(), &PACKAGES)
}

#[test]
fn definitions_match_the_python_sdk() {
    let venv = sdks::python_venv("python-pulumi", &[SDK]).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_proto/descriptors.py");
    let descriptors = commands::run(Command::new(venv.python()).arg(script).args(MODULES)).unwrap();

    let theirs = FileDescriptorSet::decode(descriptors.as_slice()).unwrap();
    assert_eq!(theirs.file.len(), MODULES.len());
    let differences = differences(&our_facts(), &facts(&theirs, &PACKAGES));
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Alters the file `pulumi/provider.proto` of the SDK, and returns the differences.
fn differences_after(alter: impl FnOnce(&mut prost_types::FileDescriptorProto)) -> Vec<String> {
    let mut theirs = our_descriptors();
    alter(theirs.file.iter_mut().find(|file| file.name() == "pulumi/provider.proto").expect("the file is there"));
    differences(&our_facts(), &facts(&theirs, &PACKAGES))
}

fn message<'a>(file: &'a mut prost_types::FileDescriptorProto, name: &str) -> &'a mut prost_types::DescriptorProto {
    file.message_type.iter_mut().find(|message| message.name() == name).expect("the message is there")
}

#[test]
fn changed_field_number_is_detected() {
    let differences = differences_after(|file| message(file, "CheckFailure").field[1].number = Some(3));
    assert_eq!(differences, ["field pulumirpc.CheckFailure.reason: ours is TYPE_STRING = 2, theirs TYPE_STRING = 3"]);
}

#[test]
fn changed_label_and_oneof_are_detected() {
    let differences = differences_after(|file| {
        message(file, "ConfigureRequest")
            .field
            .iter_mut()
            .find(|field| field.name() == "urn")
            .unwrap()
            .proto3_optional = None;
    });
    assert_eq!(
        differences,
        [
            "field pulumirpc.ConfigureRequest.urn: ours is optional TYPE_STRING = 8, theirs TYPE_STRING = 8 in oneof _urn"
        ]
    );
}

#[test]
fn missing_and_additional_definitions_are_detected() {
    let differences = differences_after(|file| {
        let failure = message(file, "CheckFailure");
        failure.field[0].name = Some("path".to_owned());
        file.service[0].method.retain(|method| method.name() != "List");
    });
    assert_eq!(
        differences,
        [
            "field pulumirpc.CheckFailure.path: missing (TYPE_STRING = 1)",
            "field pulumirpc.CheckFailure.property: only ours (TYPE_STRING = 1)",
            "method pulumirpc.ResourceProvider/List: only ours (.pulumirpc.ListRequest -> stream .pulumirpc.ListResponse)",
        ]
    );
}

#[test]
fn changed_enum_value_and_stream_are_detected() {
    let differences = differences_after(|file| {
        let list = file.service[0].method.iter_mut().find(|method| method.name() == "List").unwrap();
        list.server_streaming = Some(false);
        message(file, "PropertyDiff").enum_type[0].value[1].number = Some(7);
    });
    assert_eq!(
        differences,
        [
            "method pulumirpc.ResourceProvider/List: ours is .pulumirpc.ListRequest -> stream .pulumirpc.ListResponse, \
             theirs .pulumirpc.ListRequest -> .pulumirpc.ListResponse",
            "value pulumirpc.PropertyDiff.Kind.ADD_REPLACE: ours is 1, theirs 7",
        ]
    );
}

//! Checkpoints that are written and read back are equal.

use proptest::prelude::*;
use pulumi_proto::property::wire::{DecodeOptions, EncodeOptions, MAX_DEPTH, decode, encode};
use pulumi_proto::property::{Archive, ArchiveContent, PropertyMap, PropertyValue};
use state::format::FormatError;
use state::secrets::{CiphertextReuse, Keyring, MarkerManager, SecretsManager};
use state::{Snapshot, decode_checkpoint, encode_checkpoint};
use std::sync::Arc;

use crate::arbitrary::snapshots;
use crate::fixture::resource;

proptest! {
    #[test]
    fn snapshot_survives_a_round_trip(snapshot in snapshots()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check(snapshot));
    }
}

async fn check(mut snapshot: Snapshot) {
    let manager: Arc<dyn SecretsManager> = Arc::new(MarkerManager::new("m"));
    snapshot.secrets = Some(manager.describe());
    let keyring = Keyring::new(None).with_manager(Arc::clone(&manager));
    let text = encode_checkpoint("s", Some(&snapshot), Some(&*manager), &CiphertextReuse::default()).await.unwrap();
    let loaded = decode_checkpoint(&text, &keyring).await.unwrap();
    let read = loaded.checkpoint.snapshot.unwrap();
    assert_eq!(read, snapshot);
    assert_eq!(encode_checkpoint("s", Some(&read), Some(&*manager), &loaded.reuse).await.unwrap(), text);
}

/// NaN is not equal to itself, so the bits are compared.
#[tokio::test]
async fn special_numbers_keep_their_bits() {
    for bits in [
        0x7ff8_0000_0000_0001,
        0xfff8_0000_0000_0000,
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        (-0.0_f64).to_bits(),
    ] {
        let Ok(PropertyValue::Number(number)) = read_back(PropertyValue::Number(f64::from_bits(bits))).await else {
            panic!()
        };
        assert_eq!(number.to_bits(), bits);
    }
}

#[tokio::test]
async fn output_values_are_flattened() {
    use pulumi_proto::property::OutputValue;
    let output = |value: Option<PropertyValue>| {
        PropertyValue::Output(Box::new(OutputValue { value, secret: false, dependencies: Vec::new() }))
    };
    assert_eq!(read_back(output(Some("x".into()))).await.unwrap(), "x".into());
    assert_eq!(read_back(output(None)).await.unwrap(), PropertyValue::UNKNOWN);
}

async fn read_back(value: PropertyValue) -> Result<PropertyValue, FormatError> {
    let mut resource = state::ResourceState::clone(&crate::fixture::resource("a"));
    resource.inputs = Arc::new(PropertyMap::from([("v".to_owned(), value)]));
    let snapshot = Snapshot { resources: vec![Arc::new(resource)], ..Snapshot::default() };
    let text = encode_checkpoint("s", Some(&snapshot), None, &CiphertextReuse::default()).await?;
    let loaded = decode_checkpoint(&text, &Keyring::new(None)).await?;
    Ok(loaded.checkpoint.snapshot.unwrap().resources[0].inputs["v"].clone())
}

/// Values in responses of a plugin are written to the state as they are, so the deepest value that a message allows
/// must be readable.
///
/// Shows: plugin-authoring.md#calls "properties are nested at most 250 levels deep"
#[tokio::test]
async fn deepest_value_of_a_message_can_be_read_back() {
    let lists = (2..MAX_DEPTH).fold(PropertyValue::Null, |inside, _| vec![inside].into());
    let archive = |content| PropertyValue::Archive(Archive { hash: Some("ab".to_owned()), content });
    let archives = (2..MAX_DEPTH).fold(archive(ArchiveContent::Path("a.zip".to_owned())), |inside, _| {
        archive(ArchiveContent::Assets([("in".to_owned(), inside)].into()))
    });
    let deepest = PropertyMap::from([("archives".to_owned(), archives), ("lists".to_owned(), lists)]);
    let decoded = decode(&encode(&deepest, &EncodeOptions::EVERYTHING).unwrap(), &DecodeOptions::EVERYTHING).unwrap();
    let mut state = (*resource("a")).clone();
    state.outputs = Arc::new(decoded);
    check(Snapshot { resources: vec![Arc::new(state)], ..Snapshot::default() }).await;
}

/// Large states are read on several threads, which must keep the order and the position of errors.
#[tokio::test]
async fn large_state_keeps_its_order_and_error_positions() {
    let resources: Vec<_> = (0..1_000).map(|number| resource(&format!("r{number}"))).collect();
    let snapshot = Snapshot { resources, ..Snapshot::default() };
    check(snapshot.clone()).await;

    let text = encode_checkpoint("s", Some(&snapshot), None, &CiphertextReuse::default()).await.unwrap();
    let lines = text.replace("{\"urn\"", "\n{\"urn\"");
    let damaged = lines.replacen("T::r900\",\"custom\":true", "T::r900\",\"custom\":7", 1);
    assert_ne!(damaged, lines);
    let Err(FormatError::Malformed(error)) = decode_checkpoint(&damaged, &Keyring::new(None)).await else {
        panic!("`custom` is not a bool")
    };
    assert_eq!(error.line(), 902, "{error}");

    let invalid_urn = lines.replacen("urn:pulumi:dev::reef::t:m:T::r700", "r700", 1);
    let Err(FormatError::Name { resource, .. }) = decode_checkpoint(&invalid_urn, &Keyring::new(None)).await else {
        panic!("r700 is not a URN")
    };
    assert_eq!(resource, "r700");
}

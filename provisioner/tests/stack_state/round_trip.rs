//! What is written reads the same.

use proptest::prelude::*;
use provisioner::state::format::FormatError;
use provisioner::state::secrets::{CiphertextReuse, Keyring, MarkerManager, SecretsManager};
use provisioner::state::{Snapshot, decode_checkpoint, encode_checkpoint};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use std::sync::Arc;

use crate::arbitrary::snapshots;

proptest! {
    #[test]
    fn any_snapshot_comes_back_and_is_written_the_same_again(snapshot in snapshots()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check(snapshot));
    }
}

async fn check(mut snapshot: Snapshot) {
    let manager: Arc<dyn SecretsManager> = Arc::new(MarkerManager::new("m"));
    snapshot.secrets = Some(manager.describe());
    let keyring = Keyring::new(None).with(Arc::clone(&manager));
    let text = encode_checkpoint("s", Some(&snapshot), Some(&*manager), &CiphertextReuse::default()).await.unwrap();
    let loaded = decode_checkpoint(&text, &keyring).await.unwrap();
    let read = loaded.checkpoint.snapshot.unwrap();
    assert_eq!(read, snapshot);
    assert_eq!(encode_checkpoint("s", Some(&read), Some(&*manager), &loaded.reuse).await.unwrap(), text);
}

/// Equality does not see them, so their bits are compared.
#[tokio::test]
async fn numbers_that_equal_nothing_keep_their_bits() {
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
async fn what_only_travels_is_flattened() {
    use pulumi_proto::property::OutputValue;
    let output = |value: Option<PropertyValue>| {
        PropertyValue::Output(Box::new(OutputValue { value, secret: false, dependencies: Vec::new() }))
    };
    assert_eq!(read_back(output(Some("x".into()))).await.unwrap(), "x".into());
    assert_eq!(read_back(output(None)).await.unwrap(), PropertyValue::UNKNOWN);
}

async fn read_back(value: PropertyValue) -> Result<PropertyValue, FormatError> {
    let mut resource = provisioner::state::ResourceState::clone(&crate::fixture::resource("a"));
    resource.inputs = Arc::new(PropertyMap::from([("v".to_owned(), value)]));
    let snapshot = Snapshot { resources: vec![Arc::new(resource)], ..Snapshot::default() };
    let text = encode_checkpoint("s", Some(&snapshot), None, &CiphertextReuse::default()).await?;
    let loaded = decode_checkpoint(&text, &Keyring::new(None)).await?;
    Ok(loaded.checkpoint.snapshot.unwrap().resources[0].inputs["v"].clone())
}

//! Generators of random snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use pulumi_proto::duration::Timeouts;
use pulumi_proto::property::{
    Archive, ArchiveContent, Asset, AssetContent, PropertyMap, PropertyValue, ResourceReference,
};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, Urn};
use state::{Manifest, OperationKind, PendingOperation, ResourceState, Snapshot, SnapshotRest};

/// Returns a strategy for snapshots, valid or not, that a file preserves exactly.
pub(crate) fn snapshots() -> impl Strategy<Value = Snapshot> {
    let kinds =
        prop_oneof![Just(OperationKind::Creating), Just(OperationKind::Deleting), Just(OperationKind::Importing)];
    let pending =
        (resources(), kinds).prop_map(|(resource, kind)| PendingOperation { resource: Arc::new(resource), kind });
    (vec(resources(), 0..4), vec(pending, 0..2), non_empty_strings()).prop_map(
        |(resources, pending_operations, version)| Snapshot {
            manifest: Manifest { time: Some("2026-09-01T08:00:00.5+02:00".to_owned()), version, wrong_checksum: None },
            secrets: None,
            resources: resources.into_iter().map(Arc::new).collect(),
            pending_operations,
            rest: SnapshotRest::default(),
        },
    )
}

fn resources() -> impl Strategy<Value = ResourceState> {
    let flags = any::<[bool; 8]>();
    let texts = (vec(strings(), 2), vec(non_empty_strings(), 3), vec(non_empty_strings(), 0..3));
    let lists = vec(vec(strings(), 0..3), 4);
    let urn_lists = vec(vec(urns(), 0..3), 3);
    let maps = (properties(), properties(), values(), btree_map(strings(), vec(urns(), 0..2), 0..3));
    let times = vec(prop::option::of((0_i64..4_000_000_000, 0..1_000_000_000)), 2);
    let references = (urns(), vec(prop::option::of(urns()), 3), prop::option::of((urns(), strings())));
    (flags, texts, lists, urn_lists, maps, times, references).prop_map(
        |(flags, texts, lists, urn_lists, maps, times, (urn, optional, provider))| {
            let [delete, protect, taint, external, pending_replacement, retain_on_delete, refresh, custom] = flags;
            let time = |index: usize| {
                times[index].map(|(second, nanosecond)| jiff::Timestamp::new(second, nanosecond).unwrap())
            };
            ResourceState {
                delete,
                id: ResourceId::new(texts.0[0].as_str()),
                inputs: Arc::new(maps.0),
                outputs: Arc::new(maps.1),
                parent: optional[0].clone(),
                protect,
                taint,
                external,
                dependencies: urn_lists[0].clone(),
                init_errors: lists[0].clone(),
                provider: provider.map(|(urn, id)| {
                    let urn = Urn::new("s", "p", None, "pulumi:providers:t", urn.name());
                    ProviderReference::new(urn, id.replace(':', "").as_str())
                }),
                property_dependencies: maps.3,
                pending_replacement,
                additional_secret_outputs: lists[1].clone(),
                aliases: urn_lists[1].clone(),
                custom_timeouts: Timeouts {
                    create: Some(Duration::from_millis(500)),
                    update: Some(Duration::from_secs(90)),
                    ..Timeouts::default()
                }
                .into(),
                import_id: ResourceId::new(texts.0[1].as_str()),
                retain_on_delete,
                deleted_with: optional[1].clone(),
                replace_with: urn_lists[2].clone(),
                created: time(0),
                modified: time(1),
                source_position: texts.1[0].clone(),
                stack_trace: texts.2,
                ignore_changes: lists[2].clone(),
                hide_diff: lists[3].clone(),
                replacement_trigger: maps.2,
                refresh_before_update: refresh,
                view_of: optional[2].clone(),
                resource_hooks: BTreeMap::from([("OnError".to_owned(), lists[0].clone())]),
                extension_ref: texts.1[1].clone(),
                snippet_id: texts.1[2].clone(),
                ..ResourceState::new(urn, custom)
            }
        },
    )
}

pub(crate) fn properties() -> impl Strategy<Value = PropertyMap> {
    btree_map(strings(), values(), 0..4)
}

fn values() -> impl Strategy<Value = PropertyValue> {
    let leaves = prop_oneof![
        Just(PropertyValue::Null),
        Just(PropertyValue::UNKNOWN),
        any::<bool>().prop_map(PropertyValue::Bool),
        any::<f64>()
            .prop_filter("NaN is not equal to itself", |number| !number.is_nan())
            .prop_map(PropertyValue::Number),
        any::<i32>().prop_map(|number| PropertyValue::Number(number.into())),
        strings().prop_map(PropertyValue::String),
        vec(any::<u8>(), 0..4).prop_map(|mut bytes| {
            bytes.push(0xff);
            PropertyValue::Bytes(bytes)
        }),
        assets(),
        references(),
    ];
    leaves.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(PropertyValue::List),
            btree_map(strings(), inner.clone(), 0..4).prop_map(PropertyValue::Map),
            inner.prop_map(PropertyValue::secret_verbatim),
            btree_map(strings(), assets(), 0..3).prop_map(|assets| {
                PropertyValue::Archive(Archive { hash: Some("a".to_owned()), content: ArchiveContent::Assets(assets) })
            }),
        ]
    })
}

fn assets() -> impl Strategy<Value = PropertyValue> {
    let non_empty = "[a-z/<]{1,5}";
    prop_oneof![
        non_empty.prop_map(|text| Asset { hash: Some(text.clone()), content: AssetContent::Text(text) }),
        non_empty.prop_map(|path| Asset { hash: None, content: AssetContent::Path(path) }),
        non_empty.prop_map(|uri| Asset { hash: Some(uri.clone()), content: AssetContent::Uri(uri) }),
        non_empty.prop_map(|hash| Asset { hash: Some(hash), content: AssetContent::Elided }),
    ]
    .prop_map(PropertyValue::Asset)
}

fn references() -> impl Strategy<Value = PropertyValue> {
    let ids = prop_oneof![
        Just(None),
        Just(Some(ReferenceId::Unknown)),
        "[a-z&]{1,4}".prop_map(|id| Some(ReferenceId::from(id.as_str()))),
    ];
    (urns(), ids, proptest::option::of("[0-9.]{1,4}"))
        .prop_map(|(urn, id, package_version)| PropertyValue::Resource(ResourceReference { urn, id, package_version }))
}

fn urns() -> impl Strategy<Value = Urn> {
    "[a-z:<ü]{1,4}".prop_map(|name| Urn::new("s", "p", None, "t:m:T", &name))
}

/// Returns a strategy for strings that are `None` rather than empty.
fn non_empty_strings() -> impl Strategy<Value = Option<String>> {
    prop::option::of(strings()).prop_map(|text| text.filter(|text| !text.is_empty()))
}

/// Returns a strategy for strings, many with characters that need escaping.
fn strings() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a\"\\\\<&\u{2028}\u{7f}\n\u{0}é]{0,6}"]
}

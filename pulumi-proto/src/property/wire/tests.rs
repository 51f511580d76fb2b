//! Tests of the encoder and the decoder.

use proptest::prelude::*;
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use super::{
    Bag, DecodeOptions, EncodeOptions, MAX_DEPTH, Unknowns, WireProblem, decode, decode_value, encode, encode_value,
};
use crate::property::secretness::copy_secretness;
use crate::property::{
    ARCHIVE_SIGNATURE, ASSET_SIGNATURE, Archive, ArchiveContent, Asset, AssetContent, BYTES_SIGNATURE,
    OUTPUT_SIGNATURE, OutputValue, PropertyMap, PropertyValue, RESOURCE_SIGNATURE, ResourceReference, SECRET_SIGNATURE,
    SIGNATURE_KEY, UNKNOWN_STRING, UnknownKind,
};
use crate::resource_id::ReferenceId;
use crate::urn::Urn;

const URN: &str = "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::assets";

fn urn() -> Urn {
    URN.parse().unwrap()
}

fn map<const N: usize>(members: [(&str, PropertyValue); N]) -> PropertyMap {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn text(value: &str) -> Value {
    Value { kind: Some(Kind::StringValue(value.to_owned())) }
}

fn list(values: Vec<Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values })) }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value { kind: Some(Kind::StructValue(bag(fields))) }
}

fn bag<const N: usize>(fields: [(&str, Value); N]) -> Struct {
    Struct { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

fn reference(id: Option<ReferenceId>) -> PropertyValue {
    PropertyValue::Resource(ResourceReference { urn: urn(), id, package_version: None })
}

fn output(value: Option<PropertyValue>, secret: bool) -> PropertyValue {
    PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies: vec![urn()] }))
}

fn sent(value: PropertyValue, options: EncodeOptions) -> Result<Option<Value>, String> {
    let sent = encode_value(&value, &options).map_err(|error| error.to_string())?;
    Ok(sent.map(|sent| sent.open().unwrap()))
}

fn received(value: Value, options: DecodeOptions) -> Result<Option<PropertyValue>, String> {
    decode_value(&value.into(), &options).map_err(|error| error.to_string())
}

const ENCODE_ALL: EncodeOptions = EncodeOptions::EVERYTHING;
const DECODE_ALL: DecodeOptions = DecodeOptions::EVERYTHING;

#[test]
fn tagged_value_is_an_object_with_a_signature() {
    let tagged = |signature: &str, key: &str, value: Value| object([(SIGNATURE_KEY, text(signature)), (key, value)]);
    let asset = Asset { hash: Some("ab".into()), content: AssetContent::Path("./a".into()) };
    let archive = Archive { hash: None, content: ArchiveContent::Assets(PropertyMap::new()) };
    let cases = [
        (PropertyValue::secret("x".into()), tagged(SECRET_SIGNATURE, "value", text("x"))),
        (PropertyValue::Bytes(vec![0xff]), tagged(BYTES_SIGNATURE, "value", text("/w=="))),
        (
            PropertyValue::Asset(asset),
            object([(SIGNATURE_KEY, text(ASSET_SIGNATURE)), ("hash", text("ab")), ("path", text("./a"))]),
        ),
        (PropertyValue::Archive(archive), tagged(ARCHIVE_SIGNATURE, "assets", object([]))),
        (
            reference(Some(ReferenceId::Unknown)),
            object([
                (SIGNATURE_KEY, text(RESOURCE_SIGNATURE)),
                ("urn", text(URN)),
                ("name", text("assets")),
                ("type", text("aws:s3/bucket:Bucket")),
                ("id", text("")),
            ]),
        ),
        (output(None, false), tagged(OUTPUT_SIGNATURE, "dependencies", list(vec![text(URN)]))),
        (PropertyValue::Unknown(UnknownKind::Map), text("dd056dcd-154b-4c76-9bd3-c8f88648b5ff")),
    ];
    for (value, wire) in cases {
        assert_eq!(sent(value.clone(), ENCODE_ALL), Ok(Some(wire.clone())));
        assert_eq!(received(wire, DECODE_ALL), Ok(Some(value)));
    }
}

#[test]
fn unknown_value_keeps_its_kind() {
    use UnknownKind::{Archive, Asset, Bool, List, Map, Number, String};
    for kind in [Bool, Number, String, List, Asset, Archive, Map] {
        assert_eq!(UnknownKind::from_sentinel(kind.sentinel()), Some(kind));
        assert_eq!(received(text(kind.sentinel()), DECODE_ALL), Ok(Some(PropertyValue::Unknown(kind))));
    }
    assert_eq!(UnknownKind::from_sentinel("04da6b54-80e4-46f7-96ec-000000000000"), None);
}

#[test]
fn encoder_drops_unknowns_from_maps_and_lists_with_their_secrets() {
    let value = PropertyValue::Map(map([
        ("gone", PropertyValue::UNKNOWN),
        ("hidden", PropertyValue::secret(PropertyValue::UNKNOWN)),
        ("list", vec![PropertyValue::UNKNOWN, true.into()].into()),
        ("output", output(None, false)),
    ]));
    let options = EncodeOptions { unknowns: Unknowns::Drop, ..ENCODE_ALL };
    let rest = object([("list", list(vec![Value { kind: Some(Kind::BoolValue(true)) }]))]);
    assert_eq!(sent(value, options), Ok(Some(rest)));
    assert_eq!(sent(PropertyValue::UNKNOWN, options), Ok(None));
}

#[test]
fn decoder_replaces_a_dropped_list_item_by_null() {
    let options = DecodeOptions { unknowns: Unknowns::Drop, ..DECODE_ALL };
    let wire = object([("gone", text(UNKNOWN_STRING)), ("list", list(vec![text(UNKNOWN_STRING), text("x")]))]);
    let rest = map([("list", vec![PropertyValue::Null, "x".into()].into())]);
    assert_eq!(received(wire, options), Ok(Some(rest.into())));
}

#[test]
fn rejected_unknown_is_reported_with_its_path() {
    let value = map([("a", vec![PropertyValue::secret(map([("b c", PropertyValue::UNKNOWN)]).into())].into())]);
    let error = encode(&value, &EncodeOptions { unknowns: Unknowns::Reject, ..ENCODE_ALL }).unwrap_err();
    assert_eq!(error.to_string(), r#"property a[0]["b c"]: unexpected unknown value"#);

    let wire = encode(&value, &ENCODE_ALL).unwrap();
    let error = decode(&wire, &DecodeOptions { unknowns: Unknowns::Reject, ..DECODE_ALL }).unwrap_err();
    assert_eq!(error.to_string(), r#"property a[0]["b c"]: unexpected unknown value"#);
}

#[test]
fn secret_is_replaced_by_its_value_unless_kept() {
    let value = PropertyValue::secret(vec!["x".into(), PropertyValue::secret("y".into())].into());
    let plain = list(vec![text("x"), text("y")]);
    assert_eq!(sent(value.clone(), EncodeOptions { keep_secrets: false, ..ENCODE_ALL }), Ok(Some(plain)));

    let wire = sent(value.clone(), ENCODE_ALL).unwrap().unwrap();
    let options = DecodeOptions { keep_secrets: false, ..DECODE_ALL };
    assert_eq!(received(wire, options), Ok(Some(value.without_wrappers())));
}

#[test]
fn reference_is_replaced_by_its_id_or_urn_unless_kept() {
    let cases = [
        (Some(ReferenceId::from("i-1")), text("i-1"), PropertyValue::from("i-1")),
        (Some(ReferenceId::Unknown), text(UNKNOWN_STRING), PropertyValue::UNKNOWN),
        (None, text(URN), PropertyValue::from(URN)),
    ];
    for (id, wire, value) in cases {
        assert_eq!(sent(reference(id.clone()), EncodeOptions { keep_resources: false, ..ENCODE_ALL }), Ok(Some(wire)));
        let kept = sent(reference(id), ENCODE_ALL).unwrap().unwrap();
        assert_eq!(received(kept, DecodeOptions { keep_resources: false, ..DECODE_ALL }), Ok(Some(value)));
    }
}

#[test]
fn output_value_is_replaced_by_its_value_or_an_unknown_unless_kept() {
    let secret = || PropertyValue::secret("x".into());
    let cases = [
        (output(Some("x".into()), false), PropertyValue::from("x")),
        (output(Some("x".into()), true), secret()),
        (output(Some(secret()), true), secret()),
        (output(Some(output(Some(secret()), false)), true), secret()),
        (output(None, false), PropertyValue::UNKNOWN),
        (output(None, true), PropertyValue::secret(PropertyValue::UNKNOWN)),
    ];
    for (value, rest) in cases {
        let wire = sent(value.clone(), EncodeOptions { keep_outputs: false, ..ENCODE_ALL }).unwrap().unwrap();
        assert_eq!(received(wire, DECODE_ALL), Ok(Some(rest.clone())));
        let kept = sent(value, ENCODE_ALL).unwrap().unwrap();
        assert_eq!(received(kept, DecodeOptions { keep_outputs: false, ..DECODE_ALL }), Ok(Some(rest)));
    }
}

#[test]
fn bytes_are_refused_for_receivers_that_do_not_support_them() {
    let options = EncodeOptions { keep_bytes: false, ..ENCODE_ALL };
    let error = "the string is not UTF-8, which the receiver does not support";
    assert_eq!(sent(PropertyValue::Bytes(vec![0xff]), options), Err(error.into()));
    assert_eq!(sent(PropertyValue::Bytes(b"ok".to_vec()), options), Ok(Some(text("ok"))));
}

#[test]
fn elided_assets_and_archives_keep_their_hash() {
    let options = EncodeOptions { elide_assets: true, ..ENCODE_ALL };
    let hash = || Some("ab".to_owned());
    let asset = PropertyValue::Asset(Asset { hash: hash(), content: AssetContent::Text("t".into()) });
    let members = map([("a", asset.clone())]);
    let archive = PropertyValue::Archive(Archive { hash: hash(), content: ArchiveContent::Assets(members) });
    for (value, signature) in [(asset, ASSET_SIGNATURE), (archive, ARCHIVE_SIGNATURE)] {
        let wire = object([(SIGNATURE_KEY, text(signature)), ("hash", text("ab"))]);
        assert_eq!(sent(value.clone(), options), Ok(Some(wire.clone())));
        let back = received(wire, DECODE_ALL).unwrap().unwrap();
        assert_eq!(back, value, "equal by hash");
        assert!(matches!(
            back,
            PropertyValue::Asset(Asset { content: AssetContent::Elided, .. })
                | PropertyValue::Archive(Archive { content: ArchiveContent::Elided, .. })
        ));
    }
}

#[test]
fn asset_with_several_contents_is_decoded_by_path_then_uri_then_text() {
    let wire = |path: &str, uri: &str| {
        object([(SIGNATURE_KEY, text(ASSET_SIGNATURE)), ("path", text(path)), ("uri", text(uri)), ("text", text("t"))])
    };
    let cases = [
        (wire("p", "u"), AssetContent::Path("p".into())),
        (wire("", "u"), AssetContent::Uri("u".into())),
        (wire("", ""), AssetContent::Text("t".into())),
        (object([(SIGNATURE_KEY, text(ASSET_SIGNATURE))]), AssetContent::Text(String::new())),
    ];
    for (wire, content) in cases {
        let asset = PropertyValue::Asset(Asset { hash: None, content });
        assert_eq!(received(wire, DECODE_ALL), Ok(Some(asset)));
    }
}

#[test]
fn asset_with_unknown_content_and_archive_with_unknown_member_are_unknown() {
    let unknown = || object([(SIGNATURE_KEY, text(ASSET_SIGNATURE)), ("text", text(UNKNOWN_STRING))]);
    assert_eq!(received(unknown(), DECODE_ALL), Ok(Some(PropertyValue::Unknown(UnknownKind::Asset))));
    let archive = object([(SIGNATURE_KEY, text(ARCHIVE_SIGNATURE)), ("assets", object([("a", unknown())]))]);
    assert_eq!(received(archive.clone(), DECODE_ALL), Ok(Some(PropertyValue::Unknown(UnknownKind::Archive))));
    let options = DecodeOptions { unknowns: Unknowns::Drop, ..DECODE_ALL };
    assert_eq!(received(archive, options), Ok(None));
}

#[test]
fn reference_id_is_unknown_if_empty_or_sentinel_or_unknown_output() {
    let with_id = |id| object([(SIGNATURE_KEY, text(RESOURCE_SIGNATURE)), ("urn", text(URN)), ("id", id)]);
    let unknown_output = object([(SIGNATURE_KEY, text(OUTPUT_SIGNATURE))]);
    let kept = object([(SIGNATURE_KEY, text(OUTPUT_SIGNATURE)), ("value", text("i-1"))]);
    let rejecting = DecodeOptions { unknowns: Unknowns::Reject, ..DECODE_ALL };
    for id in [text(""), text(UNKNOWN_STRING), unknown_output] {
        assert_eq!(received(with_id(id.clone()), DECODE_ALL), Ok(Some(reference(Some(ReferenceId::Unknown)))));
        assert_eq!(received(with_id(id.clone()), rejecting).is_ok(), id == text(""));
    }
    let known = reference(Some(ReferenceId::from("i-1")));
    assert_eq!(received(with_id(kept), DECODE_ALL), Ok(Some(known)));
    let null = Value { kind: Some(Kind::NullValue(0)) };
    assert_eq!(received(with_id(null), DECODE_ALL), Ok(Some(reference(None))));
}

#[test]
fn malformed_value_is_reported_with_its_path() {
    let signed = |signature: &str| object([(SIGNATURE_KEY, text(signature))]);
    let signed_with = |signature, key, value| object([(SIGNATURE_KEY, text(signature)), (key, value)]);
    let cases = [
        (signed("nonsense"), r#"property a: unrecognized signature "nonsense""#),
        (object([(SIGNATURE_KEY, list(vec![]))]), r#"property a: unrecognized signature "not a string""#),
        (signed(SECRET_SIGNATURE), "property a: malformed secret: no value"),
        (signed(RESOURCE_SIGNATURE), "property a: malformed resource reference: the URN is invalid"),
        (signed(BYTES_SIGNATURE), "property a: malformed byte string: no value"),
        (
            signed_with(BYTES_SIGNATURE, "value", text("%")),
            "property a: malformed byte string: the value is not base64",
        ),
        (
            signed_with(OUTPUT_SIGNATURE, "secret", text("yes")),
            "property a: malformed output value: the field secret is not a bool",
        ),
        (
            signed_with(ARCHIVE_SIGNATURE, "assets", object([("m", text("x"))])),
            "property a.m: malformed archive: a member is neither asset nor archive",
        ),
        (list(vec![text("x"), Value { kind: None }]), "property a[1]: the value has no kind"),
    ];
    for (wire, error) in cases {
        assert_eq!(decode(&bag([("a", wire)]).into(), &DECODE_ALL).unwrap_err().to_string(), error);
    }
}

/// Shows: plugin-authoring.md#calls "properties are nested at most 250 levels deep"
#[test]
fn nesting_limit_applies_to_encoder_and_decoder() {
    let nested = |depth| (1..depth).fold(PropertyValue::Null, |inside, _| vec![inside].into());
    let wire = encode_value(&nested(MAX_DEPTH), &ENCODE_ALL).unwrap().unwrap();
    assert_eq!(decode_value(&wire, &DECODE_ALL).unwrap(), Some(nested(MAX_DEPTH)));

    let error = encode_value(&nested(MAX_DEPTH + 1), &ENCODE_ALL).unwrap_err();
    assert_eq!(error.problem, WireProblem::TooDeep);
    let deeper = nested_on_the_wire(MAX_DEPTH + 1);
    let error = decode_value(&deeper, &DECODE_ALL).unwrap_err();
    assert_eq!(error.problem, WireProblem::TooDeep);
    assert_eq!(error.path.elements().len(), MAX_DEPTH);
}

/// Returns a null inside `depth - 1` nested lists.
fn nested_on_the_wire(depth: usize) -> super::Value {
    let mut bytes = vec![0x08, 0];
    for _ in 1..depth {
        for tag in [1, 6] {
            let mut message = Vec::new();
            prost::encoding::bytes::encode(tag, &bytes, &mut message);
            bytes = message;
        }
    }
    super::Value::from_encoded(bytes)
}

#[test]
fn malformed_struct_bytes_are_refused() {
    let field = |tag, bytes: &[u8]| {
        let mut message = Vec::new();
        prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut message);
        message
    };
    let cases = [
        vec![0x0a],                               // a field that ends after its key
        vec![0x0a, 0x05, 0x0a],                   // a field shorter than its length
        vec![0x08, 0x01],                         // a number instead of a member
        field(1, &[0x0a, 0x01, 0xff]),            // a key that is not UTF-8
        field(1, &field(2, &field(3, &[0xff]))),  // a text that is not UTF-8
        field(1, &field(2, &[0x11, 0, 0])),       // a number of two bytes
        field(1, &field(2, &[0x1d, 0, 0, 0, 0])), // a text of four bytes
    ];
    for bytes in cases {
        let error = decode(&Bag::from_encoded(bytes.clone()), &DECODE_ALL).unwrap_err();
        assert_eq!(error.problem, WireProblem::Unreadable, "{bytes:?}");
        assert!(Bag::from_encoded(bytes.clone()).open().is_err(), "prost accepts {bytes:?}");
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let mut bytes = bag([("a", text("x"))]).encode_to_vec();
    bytes.extend([0x10, 0x07, 0x1d, 1, 2, 3, 4, 0x22, 0x01, 0x00]);
    let bag = Bag::decode(bytes.as_slice()).unwrap();
    assert_eq!(decode(&bag, &DECODE_ALL).unwrap(), map([("a", "x".into())]));
    assert_eq!(bag.open().unwrap().fields.len(), 1);
}

#[test]
fn debug_output_of_a_bag_hides_its_content() {
    let bag = encode(&map([("token", "s3cr3t".into())]), &ENCODE_ALL).unwrap();
    assert_eq!(format!("{bag:?}"), "[19 bytes]");
}

#[test]
fn nested_references_as_ids_are_refused() {
    let chain = |id| object([(SIGNATURE_KEY, text(RESOURCE_SIGNATURE)), ("urn", text(URN)), ("id", id)]);
    let wire = (0..500).fold(text("i-1"), |id, _| chain(id));
    assert_eq!(received(wire, DECODE_ALL), Err("malformed resource reference: the id is not a string".into()));
}

#[test]
fn numbers_without_json_representation_are_encoded_unchanged() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        let wire = sent(number.into(), ENCODE_ALL).unwrap().unwrap();
        let Ok(Some(PropertyValue::Number(back))) = received(wire, DECODE_ALL) else { panic!("a number") };
        assert_eq!(back.to_bits(), number.to_bits());
    }
}

#[test]
fn secretness_is_copied_by_key_and_covers_whole_lists() {
    let secret = |value: PropertyValue| PropertyValue::secret(value);
    let sent = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", vec!["x".into(), secret("y".into())].into()),
        ("map", map([("a", secret("x".into())), ("b", "y".into())]).into()),
        ("whole", secret(map([("a", "x".into())]).into())),
        ("absent", secret("x".into())),
        ("kept", vec!["x".into(), secret("y".into())].into()),
    ]);
    let mut received = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", vec!["x".into(), "y".into()].into()),
        ("map", map([("a", "x".into()), ("b", "y".into()), ("c", "z".into())]).into()),
        ("whole", map([("a", "x".into())]).into()),
        ("new", "x".into()),
        ("kept", vec!["x".into(), secret("z".into())].into()),
    ]);
    copy_secretness(&sent, &mut received);
    let expected = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", secret(vec!["x".into(), "y".into()].into())),
        ("map", map([("a", secret("x".into())), ("b", "y".into()), ("c", "z".into())]).into()),
        ("whole", secret(map([("a", "x".into())]).into())),
        ("new", "x".into()),
        ("kept", vec!["x".into(), secret("z".into())].into()),
    ]);
    assert_eq!(received, expected);
}

fn arbitrary_asset() -> impl Strategy<Value = Asset> {
    let content = prop_oneof![
        "[a-z ]{0,8}".prop_map(AssetContent::Text),
        "[a-z/]{1,8}".prop_map(AssetContent::Path),
        "https://[a-z]{1,8}".prop_map(AssetContent::Uri),
    ];
    (prop::option::of("[0-9a-f]{1,4}"), content).prop_map(|(hash, content)| Asset { hash, content })
}

fn arbitrary_archive() -> impl Strategy<Value = Archive> {
    let leaf =
        prop_oneof!["[a-z/]{1,8}".prop_map(ArchiveContent::Path), "https://[a-z]{1,8}".prop_map(ArchiveContent::Uri),];
    let content = leaf.prop_recursive(2, 8, 3, |inner| {
        let member = prop_oneof![
            arbitrary_asset().prop_map(PropertyValue::Asset),
            (prop::option::of("[0-9a-f]{1,4}"), inner)
                .prop_map(|(hash, content)| PropertyValue::Archive(Archive { hash, content })),
        ];
        prop::collection::btree_map("[a-z/]{1,4}", member, 0..3).prop_map(ArchiveContent::Assets)
    });
    (prop::option::of("[0-9a-f]{1,4}"), content).prop_map(|(hash, content)| Archive { hash, content })
}

fn arbitrary_leaf() -> impl Strategy<Value = PropertyValue> {
    let id = prop_oneof![Just(ReferenceId::Unknown), "[a-z]{1,4}".prop_map(|id| ReferenceId::from(id.as_str()))];
    let kind = prop::sample::select(vec![
        UnknownKind::Bool,
        UnknownKind::Number,
        UnknownKind::String,
        UnknownKind::List,
        UnknownKind::Asset,
        UnknownKind::Archive,
        UnknownKind::Map,
    ]);
    prop_oneof![
        Just(PropertyValue::Null),
        any::<bool>().prop_map(PropertyValue::Bool),
        prop::num::f64::NORMAL.prop_map(PropertyValue::Number),
        any::<String>().prop_map(PropertyValue::String),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(|mut bytes| {
            bytes.push(0xff);
            PropertyValue::Bytes(bytes)
        }),
        arbitrary_asset().prop_map(PropertyValue::Asset),
        arbitrary_archive().prop_map(PropertyValue::Archive),
        (prop::option::of(id), prop::option::of("[0-9.]{1,5}")).prop_map(|(id, package_version)| {
            PropertyValue::Resource(ResourceReference { urn: urn(), id, package_version })
        }),
        kind.prop_map(PropertyValue::Unknown),
    ]
}

fn arbitrary_property() -> impl Strategy<Value = PropertyValue> {
    arbitrary_leaf().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(PropertyValue::List),
            prop::collection::btree_map(any::<String>(), inner.clone(), 0..4).prop_map(PropertyValue::Map),
            inner.clone().prop_map(PropertyValue::secret_verbatim),
            (prop::option::of(inner), any::<bool>(), 0..2_usize).prop_map(|(value, secret, count)| {
                PropertyValue::Output(Box::new(OutputValue { value, secret, dependencies: vec![urn(); count] }))
            }),
        ]
    })
}

fn arbitrary_bag() -> impl Strategy<Value = PropertyMap> {
    prop::collection::btree_map(any::<String>(), arbitrary_property(), 0..5)
}

/// Describes a message that prost decoded, for comparison with [`describe_value`].
fn describe_message(bag: &Struct) -> std::collections::BTreeMap<String, String> {
    fn kind(value: &Value) -> String {
        match value.kind.as_ref().unwrap() {
            Kind::NullValue(_) => "null".to_owned(),
            Kind::BoolValue(value) => value.to_string(),
            Kind::NumberValue(value) => value.to_string(),
            Kind::StringValue(text) => format!("{text:?}"),
            Kind::ListValue(list) => {
                format!("[{}]", list.values.iter().map(|item| kind(item) + ",").collect::<String>())
            }
            Kind::StructValue(map) => match map.fields.get(SIGNATURE_KEY) {
                Some(_) => "tagged".to_owned(),
                None => format!("{:?}", describe_message(map)),
            },
        }
    }
    bag.fields.iter().map(|(key, value)| (key.clone(), kind(value))).collect()
}

/// Describes a property value, for comparison with [`describe_message`].
fn describe_value(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Null => "null".to_owned(),
        PropertyValue::Bool(value) => value.to_string(),
        PropertyValue::Number(value) => value.to_string(),
        PropertyValue::String(text) => format!("{text:?}"),
        PropertyValue::Unknown(kind) => format!("{:?}", kind.sentinel()),
        PropertyValue::List(items) => {
            format!("[{}]", items.iter().map(|item| describe_value(item) + ",").collect::<String>())
        }
        PropertyValue::Map(map) => {
            let members = map.iter().map(|(key, value)| (key, describe_value(value)));
            format!("{:?}", members.collect::<std::collections::BTreeMap<_, _>>())
        }
        _ => "tagged".to_owned(),
    }
}

/// Encodes the value without loss and applies the options in the decoder.
fn decode_with_options(value: &PropertyValue, options: &EncodeOptions) -> Option<PropertyValue> {
    let everything = encode_value(value, &ENCODE_ALL).unwrap().unwrap();
    let options = DecodeOptions {
        unknowns: options.unknowns,
        keep_secrets: options.keep_secrets,
        keep_resources: options.keep_resources,
        keep_outputs: options.keep_outputs,
    };
    decode_value(&everything, &options).unwrap()
}

proptest! {
    #[test]
    fn round_trip_without_loss_returns_the_same_bag(bag in arbitrary_bag()) {
        let wire = encode(&bag, &ENCODE_ALL).unwrap();
        let back = decode(&wire, &DECODE_ALL).unwrap();
        // Assets are equal by hash, so the contents are compared in encoded form.
        prop_assert_eq!(encode(&back, &ENCODE_ALL).unwrap(), wire);
        prop_assert_eq!(back, bag);
    }

    /// Compares with prost, an independent implementation, in both directions.
    #[test]
    fn encoded_bag_equals_the_message_of_prost(bag in arbitrary_bag()) {
        let wire = encode(&bag, &ENCODE_ALL).unwrap();
        let message = wire.open().unwrap();
        let description = bag.iter().map(|(key, value)| (key.clone(), describe_value(value))).collect();
        prop_assert_eq!(describe_message(&message), description);
        prop_assert_eq!(decode(&message.into(), &DECODE_ALL).unwrap(), bag);
    }

    #[test]
    fn decoder_accepts_only_bytes_that_prost_accepts(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = decode(&Bag::from_encoded(bytes.clone()), &DECODE_ALL);
        let is_valid = Struct::decode(bytes.as_slice()).is_ok();
        prop_assert!(ours.is_err() || is_valid, "prost rejects accepted bytes: {ours:?}");
    }

    #[test]
    fn encoder_options_and_decoder_options_have_the_same_effect(
        value in arbitrary_property(),
        keep_secrets: bool,
        keep_resources: bool,
        keep_outputs: bool,
    ) {
        let options = EncodeOptions { keep_secrets, keep_resources, keep_outputs, ..ENCODE_ALL };
        let out = encode_value(&value, &options).unwrap().unwrap();
        prop_assert_eq!(decode_value(&out, &DECODE_ALL).unwrap(), decode_with_options(&value, &options));
    }

    #[test]
    fn encoder_without_secrets_and_outputs_writes_no_secret(value in arbitrary_property()) {
        let options = EncodeOptions { keep_secrets: false, keep_outputs: false, ..ENCODE_ALL };
        let back = decode_value(&encode_value(&value, &options).unwrap().unwrap(), &DECODE_ALL).unwrap().unwrap();
        prop_assert!(!back.contains_secrets());
        prop_assert_eq!(back, value.without_wrappers());
    }

    #[test]
    fn encoder_rejects_exactly_the_bags_from_which_it_would_drop_values(bag in arbitrary_bag()) {
        let rejecting = encode(&bag, &EncodeOptions { unknowns: Unknowns::Reject, ..ENCODE_ALL });
        let dropping = encode(&bag, &EncodeOptions { unknowns: Unknowns::Drop, ..ENCODE_ALL }).unwrap();
        let kept = encode(&bag, &ENCODE_ALL).unwrap();
        prop_assert_eq!(rejecting.is_ok(), dropping == kept);
    }

    #[test]
    fn copy_secretness_changes_no_value(sent in arbitrary_bag(), received in arbitrary_bag()) {
        let mut marked = received.clone();
        copy_secretness(&sent, &mut marked);
        let revealed = |bag: PropertyMap| PropertyValue::Map(bag).without_wrappers();
        prop_assert_eq!(revealed(marked), revealed(received));
    }
}

//! What goes over the wire, seen from both sides.

use proptest::prelude::*;
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use super::{
    Bag, DecodeOptions, EncodeOptions, MAX_DEPTH, Unknowns, WireProblem, copy_secretness, decode, decode_value, encode,
    encode_value,
};
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

const ALL_OUT: EncodeOptions = EncodeOptions::EVERYTHING;
const ALL_IN: DecodeOptions = DecodeOptions::EVERYTHING;

#[test]
fn special_values_are_objects_with_a_signature() {
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
        assert_eq!(sent(value.clone(), ALL_OUT), Ok(Some(wire.clone())));
        assert_eq!(received(wire, ALL_IN), Ok(Some(value)));
    }
}

#[test]
fn all_seven_unknowns_keep_their_kind() {
    use UnknownKind::{Archive, Asset, Bool, List, Map, Number, String};
    for kind in [Bool, Number, String, List, Asset, Archive, Map] {
        assert_eq!(UnknownKind::from_sentinel(kind.sentinel()), Some(kind));
        assert_eq!(received(text(kind.sentinel()), ALL_IN), Ok(Some(PropertyValue::Unknown(kind))));
    }
    assert_eq!(UnknownKind::from_sentinel("04da6b54-80e4-46f7-96ec-000000000000"), None);
}

#[test]
fn dropped_unknowns_vanish_from_maps_and_lists_and_take_their_secret_with_them() {
    let value = PropertyValue::Map(map([
        ("gone", PropertyValue::UNKNOWN),
        ("hidden", PropertyValue::secret(PropertyValue::UNKNOWN)),
        ("list", vec![PropertyValue::UNKNOWN, true.into()].into()),
        ("promise", output(None, false)),
    ]));
    let options = EncodeOptions { unknowns: Unknowns::Drop, ..ALL_OUT };
    let rest = object([("list", list(vec![Value { kind: Some(Kind::BoolValue(true)) }]))]);
    assert_eq!(sent(value, options), Ok(Some(rest)));
    assert_eq!(sent(PropertyValue::UNKNOWN, options), Ok(None));
}

#[test]
fn an_unknown_item_becomes_null_where_it_is_dropped_on_arrival() {
    let options = DecodeOptions { unknowns: Unknowns::Drop, ..ALL_IN };
    let wire = object([("gone", text(UNKNOWN_STRING)), ("list", list(vec![text(UNKNOWN_STRING), text("x")]))]);
    let rest = map([("list", vec![PropertyValue::Null, "x".into()].into())]);
    assert_eq!(received(wire, options), Ok(Some(rest.into())));
}

#[test]
fn a_rejected_unknown_is_named_by_its_path() {
    let value = map([("a", vec![PropertyValue::secret(map([("b c", PropertyValue::UNKNOWN)]).into())].into())]);
    let error = encode(&value, &EncodeOptions { unknowns: Unknowns::Reject, ..ALL_OUT }).unwrap_err();
    assert_eq!(error.to_string(), r#"property a[0]["b c"]: unexpected unknown value"#);

    let wire = encode(&value, &ALL_OUT).unwrap();
    let error = decode(&wire, &DecodeOptions { unknowns: Unknowns::Reject, ..ALL_IN }).unwrap_err();
    assert_eq!(error.to_string(), r#"property a[0]["b c"]: unexpected unknown value"#);
}

#[test]
fn a_secret_that_is_not_kept_is_the_value_inside() {
    let value = PropertyValue::secret(vec!["x".into(), PropertyValue::secret("y".into())].into());
    let plain = list(vec![text("x"), text("y")]);
    assert_eq!(sent(value.clone(), EncodeOptions { keep_secrets: false, ..ALL_OUT }), Ok(Some(plain)));

    let wire = sent(value.clone(), ALL_OUT).unwrap().unwrap();
    let options = DecodeOptions { keep_secrets: false, ..ALL_IN };
    assert_eq!(received(wire, options), Ok(Some(value.without_wrappers())));
}

#[test]
fn a_reference_that_is_not_kept_is_its_id_or_else_its_urn() {
    let cases = [
        (Some(ReferenceId::from("i-1")), text("i-1"), PropertyValue::from("i-1")),
        (Some(ReferenceId::Unknown), text(UNKNOWN_STRING), PropertyValue::UNKNOWN),
        (None, text(URN), PropertyValue::from(URN)),
    ];
    for (id, wire, value) in cases {
        assert_eq!(sent(reference(id.clone()), EncodeOptions { keep_resources: false, ..ALL_OUT }), Ok(Some(wire)));
        let whole = sent(reference(id), ALL_OUT).unwrap().unwrap();
        assert_eq!(received(whole, DecodeOptions { keep_resources: false, ..ALL_IN }), Ok(Some(value)));
    }
}

#[test]
fn an_output_value_that_is_not_kept_is_the_value_inside_or_an_unknown() {
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
        let wire = sent(value.clone(), EncodeOptions { keep_outputs: false, ..ALL_OUT }).unwrap().unwrap();
        assert_eq!(received(wire, ALL_IN), Ok(Some(rest.clone())));
        let whole = sent(value, ALL_OUT).unwrap().unwrap();
        assert_eq!(received(whole, DecodeOptions { keep_outputs: false, ..ALL_IN }), Ok(Some(rest)));
    }
}

#[test]
fn bytes_are_refused_for_receivers_that_do_not_take_them() {
    let options = EncodeOptions { keep_bytes: false, ..ALL_OUT };
    let error = "the string is not UTF-8, which the receiver does not support";
    assert_eq!(sent(PropertyValue::Bytes(vec![0xff]), options), Err(error.into()));
    assert_eq!(sent(PropertyValue::Bytes(b"ok".to_vec()), options), Ok(Some(text("ok"))));
}

#[test]
fn elided_assets_and_archives_are_their_hash() {
    let options = EncodeOptions { elide_assets: true, ..ALL_OUT };
    let hash = || Some("ab".to_owned());
    let asset = PropertyValue::Asset(Asset { hash: hash(), content: AssetContent::Text("t".into()) });
    let members = map([("a", asset.clone())]);
    let archive = PropertyValue::Archive(Archive { hash: hash(), content: ArchiveContent::Assets(members) });
    for (value, signature) in [(asset, ASSET_SIGNATURE), (archive, ARCHIVE_SIGNATURE)] {
        let wire = object([(SIGNATURE_KEY, text(signature)), ("hash", text("ab"))]);
        assert_eq!(sent(value.clone(), options), Ok(Some(wire.clone())));
        let back = received(wire, ALL_IN).unwrap().unwrap();
        assert_eq!(back, value, "equal by hash");
        assert!(matches!(
            back,
            PropertyValue::Asset(Asset { content: AssetContent::Elided, .. })
                | PropertyValue::Archive(Archive { content: ArchiveContent::Elided, .. })
        ));
    }
}

#[test]
fn an_asset_of_several_contents_is_read_by_path_then_uri_then_text() {
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
        assert_eq!(received(wire, ALL_IN), Ok(Some(asset)));
    }
}

#[test]
fn an_asset_of_unknown_content_and_an_archive_of_unknown_members_are_unknown() {
    let unknown = || object([(SIGNATURE_KEY, text(ASSET_SIGNATURE)), ("text", text(UNKNOWN_STRING))]);
    assert_eq!(received(unknown(), ALL_IN), Ok(Some(PropertyValue::Unknown(UnknownKind::Asset))));
    let archive = object([(SIGNATURE_KEY, text(ARCHIVE_SIGNATURE)), ("assets", object([("a", unknown())]))]);
    assert_eq!(received(archive.clone(), ALL_IN), Ok(Some(PropertyValue::Unknown(UnknownKind::Archive))));
    let options = DecodeOptions { unknowns: Unknowns::Drop, ..ALL_IN };
    assert_eq!(received(archive, options), Ok(None));
}

#[test]
fn a_reference_has_an_unknown_id_where_that_is_empty_a_sentinel_or_an_unknown_output() {
    let with_id = |id| object([(SIGNATURE_KEY, text(RESOURCE_SIGNATURE)), ("urn", text(URN)), ("id", id)]);
    let promise = object([(SIGNATURE_KEY, text(OUTPUT_SIGNATURE))]);
    let kept = object([(SIGNATURE_KEY, text(OUTPUT_SIGNATURE)), ("value", text("i-1"))]);
    let rejecting = DecodeOptions { unknowns: Unknowns::Reject, ..ALL_IN };
    for id in [text(""), text(UNKNOWN_STRING), promise] {
        assert_eq!(received(with_id(id.clone()), ALL_IN), Ok(Some(reference(Some(ReferenceId::Unknown)))));
        assert_eq!(received(with_id(id.clone()), rejecting).is_ok(), id == text(""));
    }
    let known = reference(Some(ReferenceId::from("i-1")));
    assert_eq!(received(with_id(kept), ALL_IN), Ok(Some(known)));
    let null = Value { kind: Some(Kind::NullValue(0)) };
    assert_eq!(received(with_id(null), ALL_IN), Ok(Some(reference(None))));
}

#[test]
fn what_is_malformed_is_refused_with_its_place() {
    let signed = |signature: &str| object([(SIGNATURE_KEY, text(signature))]);
    let signed_with = |signature, key, value| object([(SIGNATURE_KEY, text(signature)), (key, value)]);
    let cases = [
        (signed("nonsense"), r#"property a: unrecognized signature "nonsense""#),
        (object([(SIGNATURE_KEY, list(vec![]))]), r#"property a: unrecognized signature "not a text""#),
        (signed(SECRET_SIGNATURE), "property a: malformed secret: no value"),
        (signed(RESOURCE_SIGNATURE), "property a: malformed resource reference: the URN is none"),
        (signed(BYTES_SIGNATURE), "property a: malformed byte string: no value"),
        (signed_with(BYTES_SIGNATURE, "value", text("%")), "property a: malformed byte string: the value is no base64"),
        (
            signed_with(OUTPUT_SIGNATURE, "secret", text("yes")),
            "property a: malformed output value: whether it is secret is no bool",
        ),
        (
            signed_with(ARCHIVE_SIGNATURE, "assets", object([("m", text("x"))])),
            "property a.m: malformed archive: a member is neither asset nor archive",
        ),
        (list(vec![text("x"), Value { kind: None }]), "property a[1]: the value has no kind"),
    ];
    for (wire, error) in cases {
        assert_eq!(decode(&bag([("a", wire)]).into(), &ALL_IN).unwrap_err().to_string(), error);
    }
}

#[test]
fn nesting_has_a_limit_in_both_directions() {
    let nested = |depth| (1..depth).fold(PropertyValue::Null, |inside, _| vec![inside].into());
    let wire = encode_value(&nested(MAX_DEPTH), &ALL_OUT).unwrap().unwrap();
    assert_eq!(decode_value(&wire, &ALL_IN).unwrap(), Some(nested(MAX_DEPTH)));

    let error = encode_value(&nested(MAX_DEPTH + 1), &ALL_OUT).unwrap_err();
    assert_eq!(error.problem, WireProblem::TooDeep);
    let deeper = nested_on_the_wire(MAX_DEPTH + 1);
    let error = decode_value(&deeper, &ALL_IN).unwrap_err();
    assert_eq!(error.problem, WireProblem::TooDeep);
    assert_eq!(error.path.elements().len(), MAX_DEPTH);
}

/// A null in so many lists, less one.
fn nested_on_the_wire(depth: usize) -> super::Value {
    let mut bytes = vec![0x08, 0];
    for _ in 1..depth {
        for tag in [1, 6] {
            let mut message = Vec::new();
            prost::encoding::bytes::encode(tag, &bytes, &mut message);
            bytes = message;
        }
    }
    super::Value::of(bytes)
}

#[test]
fn bytes_that_are_no_struct_are_refused() {
    let field = |tag, bytes: &[u8]| {
        let mut message = Vec::new();
        prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut message);
        message
    };
    let cases = [
        vec![0x0a],                               // a field that ends after its key
        vec![0x0a, 0x05, 0x0a],                   // one shorter than it says
        vec![0x08, 0x01],                         // a number for a member
        field(1, &[0x0a, 0x01, 0xff]),            // a key that is not UTF-8
        field(1, &field(2, &field(3, &[0xff]))),  // a text that is not UTF-8
        field(1, &field(2, &[0x11, 0, 0])),       // a number of two bytes
        field(1, &field(2, &[0x1d, 0, 0, 0, 0])), // a text of four bytes
    ];
    for bytes in cases {
        let error = decode(&Bag::of(bytes.clone()), &ALL_IN).unwrap_err();
        assert_eq!(error.problem, WireProblem::Unreadable, "{bytes:?}");
        assert!(Bag::of(bytes.clone()).open().is_err(), "prost takes {bytes:?}");
    }
}

#[test]
fn fields_that_nobody_knows_are_passed_over() {
    let mut bytes = bag([("a", text("x"))]).encode_to_vec();
    bytes.extend([0x10, 0x07, 0x1d, 1, 2, 3, 4, 0x22, 0x01, 0x00]);
    let bag = Bag::decode(bytes.as_slice()).unwrap();
    assert_eq!(decode(&bag, &ALL_IN).unwrap(), map([("a", "x".into())]));
    assert_eq!(bag.open().unwrap().fields.len(), 1);
}

#[test]
fn debug_of_a_bag_shows_nothing_of_what_is_in_it() {
    let bag = encode(&map([("token", "s3cr3t".into())]), &ALL_OUT).unwrap();
    assert_eq!(format!("{bag:?}"), "[19 bytes]");
}

#[test]
fn a_chain_of_references_as_ids_is_refused_however_long_it_is() {
    let chain = |id| object([(SIGNATURE_KEY, text(RESOURCE_SIGNATURE)), ("urn", text(URN)), ("id", id)]);
    let wire = (0..500).fold(text("i-1"), |id, _| chain(id));
    assert_eq!(received(wire, ALL_IN), Err("malformed resource reference: the id is no text".into()));
}

#[test]
fn numbers_that_json_cannot_hold_travel_as_they_are() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        let wire = sent(number.into(), ALL_OUT).unwrap().unwrap();
        let Ok(Some(PropertyValue::Number(back))) = received(wire, ALL_IN) else { panic!("a number") };
        assert_eq!(back.to_bits(), number.to_bits());
    }
}

#[test]
fn secretness_is_copied_by_key_and_covers_what_is_not_a_map() {
    let secret = |value: PropertyValue| PropertyValue::secret(value);
    let sent = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", vec!["x".into(), secret("y".into())].into()),
        ("map", map([("a", secret("x".into())), ("b", "y".into())]).into()),
        ("whole", secret(map([("a", "x".into())]).into())),
        ("absent", secret("x".into())),
    ]);
    let mut received = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", vec!["x".into(), "y".into()].into()),
        ("map", map([("a", "x".into()), ("b", "y".into()), ("c", "z".into())]).into()),
        ("whole", map([("a", "x".into())]).into()),
        ("new", "x".into()),
    ]);
    copy_secretness(&sent, &mut received);
    let expected = map([
        ("plain", "x".into()),
        ("token", secret("x".into())),
        ("list", secret(vec!["x".into(), "y".into()].into())),
        ("map", map([("a", secret("x".into())), ("b", "y".into()), ("c", "z".into())]).into()),
        ("whole", secret(map([("a", "x".into())]).into())),
        ("new", "x".into()),
    ]);
    assert_eq!(received, expected);
}

fn any_asset() -> impl Strategy<Value = Asset> {
    let content = prop_oneof![
        "[a-z ]{0,8}".prop_map(AssetContent::Text),
        "[a-z/]{1,8}".prop_map(AssetContent::Path),
        "https://[a-z]{1,8}".prop_map(AssetContent::Uri),
    ];
    (prop::option::of("[0-9a-f]{1,4}"), content).prop_map(|(hash, content)| Asset { hash, content })
}

fn any_archive() -> impl Strategy<Value = Archive> {
    let leaf =
        prop_oneof!["[a-z/]{1,8}".prop_map(ArchiveContent::Path), "https://[a-z]{1,8}".prop_map(ArchiveContent::Uri),];
    let content = leaf.prop_recursive(2, 8, 3, |inner| {
        let member = prop_oneof![
            any_asset().prop_map(PropertyValue::Asset),
            (prop::option::of("[0-9a-f]{1,4}"), inner)
                .prop_map(|(hash, content)| PropertyValue::Archive(Archive { hash, content })),
        ];
        prop::collection::btree_map("[a-z/]{1,4}", member, 0..3).prop_map(ArchiveContent::Assets)
    });
    (prop::option::of("[0-9a-f]{1,4}"), content).prop_map(|(hash, content)| Archive { hash, content })
}

fn any_leaf() -> impl Strategy<Value = PropertyValue> {
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
        any_asset().prop_map(PropertyValue::Asset),
        any_archive().prop_map(PropertyValue::Archive),
        (prop::option::of(id), prop::option::of("[0-9.]{1,5}")).prop_map(|(id, package_version)| {
            PropertyValue::Resource(ResourceReference { urn: urn(), id, package_version })
        }),
        kind.prop_map(PropertyValue::Unknown),
    ]
}

fn any_property() -> impl Strategy<Value = PropertyValue> {
    any_leaf().prop_recursive(4, 32, 4, |inner| {
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

fn any_bag() -> impl Strategy<Value = PropertyMap> {
    prop::collection::btree_map(any::<String>(), any_property(), 0..5)
}

/// What kind of value is where, as prost reads it.
fn spelled(bag: &Struct) -> std::collections::BTreeMap<String, String> {
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
                None => format!("{:?}", spelled(map)),
            },
        }
    }
    bag.fields.iter().map(|(key, value)| (key.clone(), kind(value))).collect()
}

/// The same of a value of ours.
fn outline(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Null => "null".to_owned(),
        PropertyValue::Bool(value) => value.to_string(),
        PropertyValue::Number(value) => value.to_string(),
        PropertyValue::String(text) => format!("{text:?}"),
        PropertyValue::Unknown(kind) => format!("{:?}", kind.sentinel()),
        PropertyValue::List(items) => format!("[{}]", items.iter().map(|item| outline(item) + ",").collect::<String>()),
        PropertyValue::Map(map) => {
            let members = map.iter().map(|(key, value)| (key, outline(value)));
            format!("{:?}", members.collect::<std::collections::BTreeMap<_, _>>())
        }
        _ => "tagged".to_owned(),
    }
}

/// As a receiver would do it.
fn stripped(value: &PropertyValue, options: &EncodeOptions) -> Option<PropertyValue> {
    let everything = encode_value(value, &ALL_OUT).unwrap().unwrap();
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
    fn what_is_encoded_in_full_is_decoded_in_full(bag in any_bag()) {
        let wire = encode(&bag, &ALL_OUT).unwrap();
        let back = decode(&wire, &ALL_IN).unwrap();
        // Assets are equal by hash; their content shows once more on the wire.
        prop_assert_eq!(encode(&back, &ALL_OUT).unwrap(), wire);
        prop_assert_eq!(back, bag);
    }

    /// prost, which had no part in writing it, reads the same; and writes what we read the same.
    #[test]
    fn what_is_encoded_is_the_message_that_prost_knows(bag in any_bag()) {
        let wire = encode(&bag, &ALL_OUT).unwrap();
        let message = wire.open().unwrap();
        prop_assert_eq!(spelled(&message), bag.iter().map(|(key, value)| (key.clone(), outline(value))).collect());
        prop_assert_eq!(decode(&message.into(), &ALL_IN).unwrap(), bag);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let ours = decode(&Bag::of(bytes.clone()), &ALL_IN);
        prop_assert!(ours.is_err() || Struct::decode(bytes.as_slice()).is_ok(), "prost refuses what we take: {ours:?}");
    }

    #[test]
    fn leaving_out_on_the_way_out_is_leaving_out_on_the_way_in(
        value in any_property(),
        keep_secrets: bool,
        keep_resources: bool,
        keep_outputs: bool,
    ) {
        let options = EncodeOptions { keep_secrets, keep_resources, keep_outputs, ..ALL_OUT };
        let out = encode_value(&value, &options).unwrap().unwrap();
        prop_assert_eq!(decode_value(&out, &ALL_IN).unwrap(), stripped(&value, &options));
    }

    #[test]
    fn without_secrets_and_outputs_nothing_secret_is_sent(value in any_property()) {
        let options = EncodeOptions { keep_secrets: false, keep_outputs: false, ..ALL_OUT };
        let back = decode_value(&encode_value(&value, &options).unwrap().unwrap(), &ALL_IN).unwrap().unwrap();
        prop_assert!(!back.contains_secrets());
        prop_assert_eq!(back, value.without_wrappers());
    }

    #[test]
    fn rejecting_fails_exactly_where_dropping_loses_something(bag in any_bag()) {
        let rejecting = encode(&bag, &EncodeOptions { unknowns: Unknowns::Reject, ..ALL_OUT });
        let dropping = encode(&bag, &EncodeOptions { unknowns: Unknowns::Drop, ..ALL_OUT }).unwrap();
        let whole = encode(&bag, &ALL_OUT).unwrap();
        prop_assert_eq!(rejecting.is_ok(), dropping == whole);
    }

    #[test]
    fn copying_secretness_changes_no_value(sent in any_bag(), received in any_bag()) {
        let mut marked = received.clone();
        copy_secretness(&sent, &mut marked);
        let revealed = |bag: PropertyMap| PropertyValue::Map(bag).without_wrappers();
        prop_assert_eq!(revealed(marked), revealed(received));
    }
}

//! Detection of items that exist in tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Returns whether an item with these attributes is compiled for tests only.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| evaluate_for_product(&condition) == Some(false))
    })
}

/// Evaluates a condition for product code. `None`: it depends on the platform or on features.
fn evaluate_for_product(condition: &Meta) -> Option<bool> {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test").then_some(false);
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let mut values = parts.iter().map(evaluate_for_product);
    let known = |values: &[Option<bool>], decisive: bool| match values {
        values if values.contains(&Some(decisive)) => Some(decisive),
        values if values.contains(&None) => None,
        _ => Some(!decisive),
    };
    match list.path.get_ident()?.to_string().as_str() {
        "not" => values.next()?.map(|value| !value),
        "all" => known(&values.collect::<Vec<_>>(), false),
        "any" => known(&values.collect::<Vec<_>>(), true),
        _ => None,
    }
}

pub(crate) fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn impl_item_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn trait_item_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

#[test]
fn cfg_conditions_for_tests_only_are_recognized() {
    let check = |condition: &str| {
        let item: Item = syn::parse_str(&format!("#[cfg({condition})] fn f() {{}}")).unwrap();
        is_test_only(item_attributes(&item))
    };
    let test_only = ["test", "all(test, unix)", "any(test, all(test, unix))", "all(unix, not(not(test)))"];
    let product = ["unix", "not(test)", "any(test, unix)", "any(test, feature = \"fake\")", "all(unix, not(test))"];
    assert_eq!(test_only.map(check), [true; 4]);
    assert_eq!(product.map(check), [false; 5]);
}

//! Rule: an implementation of a trait that wraps another one implements each method of the trait.
//!
//! An implementation is a wrapper if half of its methods call a method of their own name. A method with a default answer that a wrapper does not forward gives that answer, whatever the wrapped value would answer,
//! and the compiler does not report it.

use std::collections::BTreeSet;

use syn::visit::Visit;
use syn::{ExprMethodCall, Ident, ImplItem, Item, ItemImpl, ItemTrait, TraitItem, Type};

use super::assert_none;
use crate::modules::{name_of, parse};
use crate::workspace::{Workspace, product, test_workspace};

/// Traits with default answers that have wrappers: crate and name.
const WRAPPED: [(&str, &str); 2] = [("bridge", "Provider"), ("state", "Objects")];

fn violations(workspace: &Workspace, wrapped: &[(&str, &str)]) -> Vec<String> {
    let modules = parse(workspace);
    let mut found = Vec::new();
    for (home, name) in wrapped {
        let in_home = modules.list.iter().filter(|module| workspace.crates[module.krate].name == *home);
        let mut traits = in_home.flat_map(|module| &module.items).filter_map(|item| match item {
            Item::Trait(item) if item.ident == *name => Some(item),
            _ => None,
        });
        let methods = methods(traits.next().expect("the trait exists"));
        for module in &modules.list {
            let krate = &workspace.crates[module.krate];
            if krate.name != *home && !krate.externs.contains(*home) {
                continue;
            }
            for item in &module.items {
                let Item::Impl(item) = item else { continue };
                if !implements(item, name) || !is_wrapper(item) {
                    continue;
                }
                let missing: Vec<_> = methods.difference(&implemented(item)).cloned().collect();
                if !missing.is_empty() {
                    let (of, missing) = (type_name(&item.self_ty), missing.join(", "));
                    found.push(format!("{}: `{of}` does not implement {missing} of `{name}`", module.file));
                }
            }
        }
    }
    found
}

fn implements(item: &ItemImpl, name: &str) -> bool {
    let path = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
    path.is_some_and(|segment| segment.ident == name)
}

fn is_wrapper(item: &ItemImpl) -> bool {
    let methods = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) => Some(method),
        _ => None,
    });
    let forwards = methods.map(|method| {
        let mut calls = CallsOf { name: &method.sig.ident, found: false };
        calls.visit_block(&method.block);
        calls.found
    });
    let (forwarding, other): (Vec<_>, Vec<_>) = forwards.partition(|forwards| *forwards);
    forwarding.len() >= other.len().max(1)
}

/// True once a call of a method with a name was found.
struct CallsOf<'n> {
    name: &'n Ident,
    found: bool,
}

impl<'ast> Visit<'ast> for CallsOf<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.found |= call.method == *self.name;
        syn::visit::visit_expr_method_call(self, call);
    }
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| name_of(&segment.ident)).unwrap_or_default(),
        _ => String::new(),
    }
}

fn methods(item: &ItemTrait) -> BTreeSet<String> {
    let methods = item.items.iter().filter_map(|item| match item {
        TraitItem::Fn(method) => Some(name_of(&method.sig.ident)),
        _ => None,
    });
    methods.collect()
}

fn implemented(item: &ItemImpl) -> BTreeSet<String> {
    let methods = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) => Some(name_of(&method.sig.ident)),
        _ => None,
    });
    methods.collect()
}

#[test]
fn wrappers_implement_each_method() {
    assert_none(&violations(product(), &WRAPPED));
}

#[test]
fn method_that_is_not_forwarded_is_reported() {
    let workspace = test_workspace(&[(
        "lib.rs",
        "pub trait Call { fn a(&self); fn b(&self) -> bool { false } }\n\
         struct Leaf; impl Call for Leaf { fn a(&self) {} }\n\
         struct Whole(Leaf); impl Call for Whole { fn a(&self) { self.0.a() } fn b(&self) -> bool { self.0.b() } }\n\
         struct Half(Leaf); impl crate::Call for Half { fn a(&self) { self.0.a() } }\n\
         struct Other; impl Other { fn a(&self) {} }\n\
         #[cfg(test)] mod tests { struct Fake; impl Call for Fake { fn a(&self) {} } }",
    )]);
    assert_eq!(violations(&workspace, &[("app", "Call")]), ["lib.rs: `Half` does not implement b of `Call`"]);
}

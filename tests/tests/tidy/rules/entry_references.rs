//! Rule: the references of a recorded resource are listed in one place.
//!
//! A function elsewhere that names three or more of the members of one value lists them by hand, and misses the next one.
//! The types of values are not resolved: a goal and a request have members of the same names.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Expr, ExprField, Fields, FieldsNamed, Item, Member, PatStruct};

use super::assert_none;
use crate::modules::{Modules, name_of, parse};
use crate::workspace::{Workspace, product, test_workspace};

/// Type of a recorded resource, and the code that may list its references.
struct Rule<'a> {
    /// Module of the type.
    module: &'a str,
    name: &'a str,
    /// Module that lists the members with references.
    visitor: &'a str,
    /// Functions that give each member a place of its own: they make one value of another one.
    conversions: &'a [&'a str],
}

const RULE: Rule<'_> = Rule {
    module: "state::resource",
    name: "ResourceState",
    visitor: "state::references",
    conversions: &[
        // A stored resource.
        "state::format::resource::read_entry",
        "state::format::resource_dto::of",
        // Requests of programs, of plugins, and to them.
        "provisioner::program::goals::goal",
        "engine::resource_monitor::goal",
        "engine::phases::components::call_construct",
        // A goal: the URNs that it names, its entry, what the table of registrations has of it, what its parent adds.
        "engine::goal::all_dependencies",
        "engine::step_generator::registration::new_state",
        "engine::step_generator::identify::find_old",
        "engine::step_generator::inherit::inherit",
        // The goal of a read, which has no other members, and its entry.
        "engine::phases::reads::read",
        "engine::phases::reads::new_state",
        // Texts of a goal in a saved plan, each with a name.
        "provisioner::plan::recorder::options",
        // Lines for a person, each with a name.
        "sc::cli::commands::state::show::as_lines",
    ],
};

/// Members with URNs that are no references: those of the resource itself.
const OWN_URNS: [&str; 2] = ["urn", "aliases"];

/// Smallest number of members that are a list.
const LIST: usize = 3;

fn violations(workspace: &Workspace, rule: &Rule<'_>) -> Vec<String> {
    let modules = parse(workspace);
    let members = reference_members(&modules, rule);
    let (home, _) = rule.module.split_once("::").expect("a module lies in a crate");
    let mut found = BTreeSet::new();
    let mut used = BTreeSet::new();
    let mut visited = BTreeSet::new();
    let knows_entries = |index: usize| {
        let krate = &workspace.crates[index];
        krate.name == home || krate.externs.contains(home)
    };
    for module in modules.list.iter().filter(|module| knows_entries(module.krate)) {
        let path = module.path.join("::");
        for item in &module.items {
            let mut functions = Functions { members: &members, list: Vec::new() };
            functions.visit_item(item);
            for Function { name, line, named } in functions.list {
                if path == rule.visitor {
                    visited.extend(named.into_values().flatten());
                    continue;
                }
                let Some(named) = named.into_values().find(|named| named.len() >= LIST) else { continue };
                let function = format!("{path}::{name}");
                if rule.conversions.iter().any(|conversion| *conversion == function) {
                    used.insert(function);
                } else {
                    let named = named.into_iter().collect::<Vec<_>>().join(", ");
                    found.insert(format!("{}:{line}: `{function}` lists references by hand: {named}", module.file));
                }
            }
        }
    }
    let unvisited = members.difference(&visited).map(|member| format!("`{}` does not visit `{member}`", rule.visitor));
    let stale = rule.conversions.iter().filter(|conversion| !used.contains(**conversion));
    let stale = stale.map(|conversion| format!("`{conversion}` lists no references"));
    found.into_iter().chain(unvisited).chain(stale).collect()
}

/// Returns the members of a recorded resource whose types contain URNs of other resources.
fn reference_members(modules: &Modules, rule: &Rule<'_>) -> BTreeSet<String> {
    let module = modules.list.iter().find(|module| module.path.join("::") == rule.module).expect("the module exists");
    let fields = module.items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == rule.name => match &item.fields {
            Fields::Named(FieldsNamed { named, .. }) => Some(named),
            Fields::Unnamed(_) | Fields::Unit => None,
        },
        _ => None,
    });
    let has_urns = |field: &&syn::Field| {
        let mut urns = Urns(false);
        urns.visit_type(&field.ty);
        urns.0
    };
    let names = fields.expect("the type has named members").iter().filter(has_urns);
    let names = names.filter_map(|field| field.ident.as_ref()).map(name_of);
    names.filter(|name| !OWN_URNS.contains(&name.as_str())).collect()
}

/// True if a type contains URNs.
struct Urns(bool);

impl<'ast> Visit<'ast> for Urns {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.0 |= segment.ident == "Urn" || segment.ident == "ProviderReference";
        syn::visit::visit_path_segment(self, segment);
    }
}

struct Function {
    name: String,
    line: usize,
    named: ByValue,
}

/// Members with references that a function reads or writes, by the value that has them.
type ByValue = BTreeMap<String, BTreeSet<String>>;

/// Functions of an item, with the members that they name.
struct Functions<'m> {
    members: &'m BTreeSet<String>,
    list: Vec<Function>,
}

impl Functions<'_> {
    fn function(&mut self, ident: &syn::Ident, visit: impl FnOnce(&mut NamedMembers<'_>)) {
        let mut members = NamedMembers { members: self.members, named: ByValue::new() };
        visit(&mut members);
        let line = ident.span().start().line;
        self.list.push(Function { name: name_of(ident), line, named: members.named });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, |members| members.visit_block(&function.block));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, |members| members.visit_block(&function.block));
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig.ident, |members| members.visit_block(block));
        }
    }
}

/// Members that code accesses as fields, or that a pattern takes apart.
struct NamedMembers<'m> {
    members: &'m BTreeSet<String>,
    named: ByValue,
}

impl NamedMembers<'_> {
    fn member(&mut self, value: &str, member: &Member) {
        if let Member::Named(ident) = member
            && let Some(member) = self.members.get(&name_of(ident))
        {
            self.named.entry(value.to_owned()).or_default().insert(member.clone());
        }
    }
}

impl<'ast> Visit<'ast> for NamedMembers<'_> {
    fn visit_expr_field(&mut self, field: &'ast ExprField) {
        self.member(&value_of(&field.base), &field.member);
        syn::visit::visit_expr_field(self, field);
    }

    fn visit_pat_struct(&mut self, pattern: &'ast PatStruct) {
        let place = format!("{:?}", pattern.brace_token.span.open().start());
        pattern.fields.iter().for_each(|field| self.member(&place, &field.member));
        syn::visit::visit_pat_struct(self, pattern);
    }
}

/// Returns the variable, with its members, that an expression reads; the same text for all other expressions.
fn value_of(expression: &Expr) -> String {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(name_of).unwrap_or_default(),
        Expr::Field(field) => match &field.member {
            Member::Named(member) => format!("{}.{}", value_of(&field.base), name_of(member)),
            Member::Unnamed(member) => format!("{}.{}", value_of(&field.base), member.index),
        },
        Expr::MethodCall(call) => value_of(&call.receiver),
        Expr::Paren(inner) => value_of(&inner.expr),
        Expr::Reference(inner) => value_of(&inner.expr),
        Expr::Unary(inner) => value_of(&inner.expr),
        _ => String::new(),
    }
}

#[test]
fn references_of_entries_are_listed_in_one_place() {
    assert_none(&violations(product(), &RULE));
}

#[test]
fn list_by_hand_and_member_without_a_visit_are_reported() {
    let workspace = test_workspace(&[
        ("lib.rs", "mod entry; mod visit; mod other; mod copy;"),
        (
            "entry.rs",
            "pub struct Entry { urn: Urn, aliases: Vec<Urn>, a: Option<Urn>, b: Vec<Urn>, c: BTreeMap<String, Vec<Urn>>, \
             d: Option<ProviderReference>, text: String }",
        ),
        ("visit.rs", "impl Entry { fn all(&self) { (self.a, self.b, self.c) } }"),
        (
            "other.rs",
            "fn two(e: Entry, f: Entry) { (e.a, e.b, f.c, e.urn, e.text) }\nfn three(e: Entry) { (e.a, e.b.len(), f(|| e.c)) }\n\
             impl X { fn apart(e: Entry) { let Entry { a, b, d: x, .. } = e; } }\n\
             #[cfg(test)] mod tests { fn three(e: Entry) { (e.a, e.b, e.c) } }",
        ),
        ("copy.rs", "fn copy(e: Entry) -> Copy { Copy { a: e.a, b: e.b, c: e.c } }"),
    ]);
    let conversions = &["app::copy::copy", "app::gone"];
    let rule = Rule { module: "app::entry", name: "Entry", visitor: "app::visit", conversions };
    assert_eq!(
        violations(&workspace, &rule),
        [
            "other.rs:2: `app::other::three` lists references by hand: a, b, c",
            "other.rs:3: `app::other::apart` lists references by hand: a, b, d",
            "`app::visit` does not visit `d`",
            "`app::gone` lists no references",
        ]
    );
}

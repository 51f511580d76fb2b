//! Collection of the paths in the code of a module: in `use` items, expressions, types, patterns, attributes and macro
//! tokens.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, ImplItem, Item, ItemUse, Macro, Meta, Pat, PatIdent, Path, Stmt, Token, TraitItem};

use crate::conditions::{impl_item_attributes, is_test_only, item_attributes, trait_item_attributes};
use crate::modules::{Module, Namespaces, UsePath, is_public, name_of, use_leaves};
use crate::resolution::{Local, Scope};

/// Path in the code.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) path: UsePath,
    pub(crate) namespaces: Namespaces,
    pub(crate) line: usize,
    /// Names that the enclosing blocks add.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) kind: ReferenceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    Use {
        is_public: bool,
    },
    Glob {
        is_public: bool,
    },
    /// Path in code, which the compiler requires to be valid.
    Code,
    /// Path in tokens, which may be no path at all.
    Tokens,
}

#[derive(Debug, Default)]
pub(crate) struct References {
    pub(crate) list: Vec<Reference>,
    /// Lines with `async` or `.await`.
    pub(crate) asynchronous: BTreeSet<usize>,
}

/// Collects the paths in the code of a module.
pub(crate) fn collect(module: &Module) -> References {
    let mut collector = Collector { found: References::default(), scopes: Vec::new(), locals: Vec::new() };
    module.items.iter().for_each(|item| collector.visit_item(item));
    collector.found
}

struct Collector {
    found: References,
    scopes: Vec<Scope>,
    /// Variables and generic parameters of the enclosing items.
    locals: Vec<HashSet<String>>,
}

impl Collector {
    fn add(&mut self, path: UsePath, namespaces: Namespaces, line: usize, kind: ReferenceKind) {
        let is_local = matches!(path.as_slice(), [name] if self.locals.iter().any(|names| names.contains(name)));
        if !is_local && path.first().is_some_and(|first| first != "Self") {
            self.found.list.push(Reference { path, namespaces, line, scopes: self.scopes.clone(), kind });
        }
    }

    fn add_path(&mut self, path: &Path, namespaces: Namespaces, kind: ReferenceKind) {
        let leading = path.leading_colon.map(|_| String::new());
        let names = leading.into_iter().chain(path.segments.iter().map(|segment| name_of(&segment.ident))).collect();
        self.add(names, namespaces, path.span().start().line, kind);
    }

    fn with_locals(&mut self, names: HashSet<String>, visit: impl FnOnce(&mut Self)) {
        self.locals.push(names);
        visit(self);
        self.locals.pop();
    }

    /// Visits the tokens of a macro as expressions, else as statements, else token by token.
    fn tokens(&mut self, tokens: &TokenStream) {
        if let Ok(arguments) = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone()) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(statements) = Block::parse_within.parse2(tokens.clone()) {
            self.statements(&statements);
        } else {
            self.scan(tokens);
        }
    }

    fn scan(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => self.scan(&group.stream()),
                TokenTree::Ident(ident) => {
                    if ident == "async" || ident == "await" {
                        self.found.asynchronous.insert(ident.span().start().line);
                    }
                    let begins_path = match tokens[..at].last() {
                        Some(TokenTree::Punct(before)) if before.as_char() == '$' => ident == "crate",
                        Some(TokenTree::Punct(before)) => !['.', '\''].contains(&before.as_char()),
                        _ => true,
                    };
                    let is_absolute = at >= 2 && is_path_separator(&tokens, at - 2);
                    let mut path = if is_absolute { vec![String::new()] } else { Vec::new() };
                    path.push(name_of(ident));
                    while is_path_separator(&tokens, at + 1)
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                    {
                        path.push(name_of(next));
                        at += 3;
                    }
                    if begins_path {
                        self.add(path, Namespaces::ALL, ident.span().start().line, ReferenceKind::Tokens);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    fn statements(&mut self, statements: &[Stmt]) {
        let mut scope = Scope::new();
        for statement in statements {
            match statement {
                Stmt::Item(Item::Use(item)) => scope.extend(
                    use_leaves(item).into_iter().filter_map(|leaf| Some((leaf.name?, Local::Import(leaf.path)))),
                ),
                Stmt::Item(item) => scope.extend(defined_name(item).map(|name| (name, Local::Item))),
                _ => {}
            }
        }
        self.scopes.push(scope);
        statements.iter().for_each(|statement| self.visit_stmt(statement));
        self.scopes.pop();
    }

    /// Visits attributes with paths in text, such as `#[serde(with = "path")]`.
    fn paths_in_text(&mut self, attribute: &Attribute) {
        const KEYS: [&str; 10] = [
            "with",
            "serialize_with",
            "deserialize_with",
            "default",
            "skip_serializing_if",
            "from",
            "into",
            "try_from",
            "remote",
            "schema_with",
        ];
        let is_known = ["serde", "schemars"].iter().any(|name| attribute.path().is_ident(name));
        let Meta::List(list) = &attribute.meta else { return };
        let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else { return };
        for part in parts {
            if let Meta::NameValue(pair) = &part
                && is_known
                && KEYS.iter().any(|key| pair.path.is_ident(key))
                && let Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value
                && let Ok(path) = text.parse::<Path>()
            {
                self.add_path(&path, Namespaces::ALL, ReferenceKind::Tokens);
            }
        }
    }
}

/// Returns whether `::` is at an index.
fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    matches!(
        (tokens.get(at), tokens.get(at + 1)),
        (Some(TokenTree::Punct(first)), Some(TokenTree::Punct(second)))
            if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':'
    )
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name_of(ident))
}

/// Collector of the variables of a function. A name with a capital first letter may be a constant and is left out.
#[derive(Default)]
struct Variables(HashSet<String>);

impl Visit<'_> for Variables {
    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        let name = name_of(&pattern.ident);
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

fn variables(visit: impl FnOnce(&mut Variables)) -> HashSet<String> {
    let mut variables = Variables::default();
    visit(&mut variables);
    variables.0
}

fn parameters(generics: &syn::Generics) -> HashSet<String> {
    let types = generics.type_params().map(|parameter| name_of(&parameter.ident));
    types.chain(generics.const_params().map(|parameter| name_of(&parameter.ident))).collect()
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(item_attributes(item)) {
            return;
        }
        let names = match item {
            Item::Fn(item) => &parameters(&item.sig.generics) | &variables(|found| found.visit_item_fn(item)),
            Item::Const(item) => variables(|found| found.visit_item_const(item)),
            Item::Static(item) => variables(|found| found.visit_item_static(item)),
            Item::Enum(item) => parameters(&item.generics),
            Item::Impl(item) => parameters(&item.generics),
            Item::Struct(item) => parameters(&item.generics),
            Item::Trait(item) => parameters(&item.generics),
            Item::Type(item) => parameters(&item.generics),
            _ => HashSet::new(),
        };
        self.with_locals(names, |own| visit::visit_item(own, item));
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if is_test_only(impl_item_attributes(item)) {
            return;
        }
        let names = match item {
            ImplItem::Fn(function) => {
                &parameters(&function.sig.generics) | &variables(|found| found.visit_impl_item(item))
            }
            item => variables(|found| found.visit_impl_item(item)),
        };
        self.with_locals(names, |own| visit::visit_impl_item(own, item));
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if is_test_only(trait_item_attributes(item)) {
            return;
        }
        let names = match item {
            TraitItem::Fn(function) => {
                &parameters(&function.sig.generics) | &variables(|found| found.visit_trait_item(item))
            }
            item => variables(|found| found.visit_trait_item(item)),
        };
        self.with_locals(names, |own| visit::visit_trait_item(own, item));
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_public = is_public(&item.vis);
        for leaf in use_leaves(item) {
            let kind = if leaf.is_glob { ReferenceKind::Glob { is_public } } else { ReferenceKind::Use { is_public } };
            // A path of a `use` in a block starts in the module.
            self.found.list.push(Reference {
                path: leaf.path,
                namespaces: Namespaces::ALL,
                line: leaf.line,
                scopes: Vec::new(),
                kind,
            });
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.ident.is_some() {
            self.scan(&item.mac.tokens);
        } else {
            visit::visit_item_macro(self, item);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.statements(&block.stmts);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_path(&called.path, Namespaces::MACRO, ReferenceKind::Tokens);
        self.tokens(&called.tokens);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if ["doc", "cfg", "allow", "expect", "warn"].iter().any(|name| attribute.path().is_ident(name)) {
            return;
        }
        self.add_path(attribute.path(), Namespaces::MACRO, ReferenceKind::Tokens);
        if let Meta::List(list) = &attribute.meta {
            self.scan(&list.tokens);
        }
        self.paths_in_text(attribute);
    }

    // `pub(in path)` contains a module path, but is no import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        self.add_path(path, Namespaces::TYPE_OR_VALUE, ReferenceKind::Code);
        visit::visit_path(self, path);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Ident(PatIdent { ident, .. }) = pattern
            && name_of(ident).starts_with(|c: char| c.is_ascii_uppercase())
        {
            let line = ident.span().start().line;
            self.add(vec![name_of(ident)], Namespaces::TYPE_OR_VALUE, line, ReferenceKind::Code);
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.found.asynchronous.insert(signature.span().start().line);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, expression: &'ast syn::ExprAsync) {
        self.found.asynchronous.insert(expression.span().start().line);
        visit::visit_expr_async(self, expression);
    }

    fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
        self.found.asynchronous.insert(expression.await_token.span.start().line);
        visit::visit_expr_await(self, expression);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        if closure.asyncness.is_some() {
            self.found.asynchronous.insert(closure.span().start().line);
        }
        visit::visit_expr_closure(self, closure);
    }
}

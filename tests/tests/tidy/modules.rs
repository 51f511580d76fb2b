//! Modules of the crates, with their files and the names that they define and import.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, ExprLit, Fields, Item, ItemMod, Lit, Meta, UseTree, Visibility};

use crate::conditions::{impl_item_attributes, is_test_only, item_attributes, trait_item_attributes};
use crate::workspace::Workspace;

pub(crate) type ModuleId = usize;

/// Namespaces that a name can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespaces(u8);

impl Namespaces {
    pub(crate) const TYPE: Self = Self(1);
    pub(crate) const VALUE: Self = Self(2);
    pub(crate) const MACRO: Self = Self(4);
    pub(crate) const TYPE_OR_VALUE: Self = Self(3);
    pub(crate) const ALL: Self = Self(7);

    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Meaning of a name in a module.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Module(ModuleId),
    Item { namespaces: Namespaces, is_trait: bool },
    Import(UsePath),
}

/// Binding of a name in a module.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) meaning: Meaning,
    /// True if the binding has any `pub`. A private name is visible to the module and its descendants only.
    pub(crate) is_public: bool,
}

/// Path of a `use` item. A leading `::` is the empty first segment.
pub(crate) type UsePath = Vec<String>;

/// Leaf of a `use` item.
#[derive(Clone, Debug)]
pub(crate) struct UseLeaf {
    pub(crate) path: UsePath,
    /// Name that the leaf binds; `None` for a glob and for `as _`.
    pub(crate) name: Option<String>,
    pub(crate) is_glob: bool,
    pub(crate) line: usize,
}

pub(crate) struct Module {
    /// Index of the crate in the workspace.
    pub(crate) krate: usize,
    /// Names of the crate and of the modules below it.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    pub(crate) parent: Option<ModuleId>,
    pub(crate) names: HashMap<String, Vec<Binding>>,
    pub(crate) globs: Vec<(UsePath, bool)>,
    /// True if a macro defines items in the module, whose names are therefore unknown.
    pub(crate) is_generated: bool,
    /// Items of the module, without modules and without items for tests only.
    pub(crate) items: Vec<Item>,
}

/// Source file.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    /// Number of lines, without those of items for tests only.
    pub(crate) lines: usize,
    /// True if the file is compiled for tests only.
    pub(crate) is_test: bool,
    /// Reason for the length of the file, if the comments at its top state one.
    pub(crate) reason_for_length: Option<String>,
}

/// All modules of a workspace.
#[derive(Default)]
pub(crate) struct Modules {
    pub(crate) list: Vec<Module>,
    pub(crate) files: BTreeMap<String, File>,
    /// Root module of each crate, by the crate's index in the workspace.
    pub(crate) roots: Vec<ModuleId>,
}

/// Parses every file that the roots of the crates lead to.
///
/// # Panics
///
/// Panics if a file does not parse, if a declared module has no file, and if a file belongs to no module.
pub(crate) fn parse(workspace: &Workspace) -> Modules {
    let mut parser = Parser { workspace, modules: Modules::default() };
    for (index, krate) in workspace.crates.iter().enumerate() {
        let folder = Path::new(&krate.root).parent().expect("a file lies in a folder").to_path_buf();
        let id = parser.file(&krate.root, &folder, index, vec![krate.name.clone()], None);
        parser.modules.roots.push(id);
    }
    let unread: Vec<&String> =
        workspace.files.keys().filter(|path| !parser.modules.files.contains_key(*path)).collect();
    assert!(unread.is_empty(), "no `mod` leads to {unread:?}");
    parser.modules
}

struct Parser<'a> {
    workspace: &'a Workspace,
    modules: Modules,
}

impl Parser<'_> {
    fn file(
        &mut self,
        path: &str,
        children: &Path,
        krate: usize,
        module: Vec<String>,
        parent: Option<ModuleId>,
    ) -> ModuleId {
        let text = &self.workspace.files[path];
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut tests = Vec::new();
        test_only_lines(&parsed.items, &mut tests);
        let lines = (1..=text.lines().count()).filter(|line| !tests.iter().any(|lines| lines.contains(line))).count();
        let reason_for_length = reason_for_length(&parsed.attrs);
        self.modules.files.insert(path.to_owned(), File { lines, is_test: false, reason_for_length });
        self.module(parsed.items, path, children, krate, module, parent)
    }

    fn module(
        &mut self,
        items: Vec<Item>,
        file: &str,
        children: &Path,
        krate: usize,
        path: Vec<String>,
        parent: Option<ModuleId>,
    ) -> ModuleId {
        let id = self.modules.list.len();
        self.modules.list.push(Module {
            krate,
            path: path.clone(),
            file: file.to_owned(),
            parent,
            names: HashMap::new(),
            globs: Vec::new(),
            is_generated: false,
            items: Vec::new(),
        });
        for item in items {
            let test_only = is_test_only(item_attributes(&item));
            match item {
                Item::Mod(item) if test_only => self.test_module(&item, children),
                _ if test_only => {}
                Item::Mod(item) => {
                    let name = name_of(&item.ident);
                    let child_path = [path.clone(), vec![name.clone()]].concat();
                    let child = match item.content {
                        Some((_, items)) => {
                            self.module(items, file, &children.join(&name), krate, child_path, Some(id))
                        }
                        None => {
                            let (file, folder) = self.find(&item, children);
                            self.file(&file, &folder, krate, child_path, Some(id))
                        }
                    };
                    let binding = Binding { meaning: Meaning::Module(child), is_public: is_public(&item.vis) };
                    self.modules.list[id].names.entry(name).or_default().push(binding);
                }
                item => {
                    let module = &mut self.modules.list[id];
                    bind(module, &item);
                    module.items.push(item);
                }
            }
        }
        id
    }

    /// Marks the files of a module that is compiled for tests only.
    fn test_module(&mut self, item: &ItemMod, children: &Path) {
        let (items, folder) = match &item.content {
            Some((_, items)) => (items.clone(), children.join(name_of(&item.ident))),
            None => {
                let (file, folder) = self.find(item, children);
                let parsed = syn::parse_file(&self.workspace.files[&file]).expect("a source file parses");
                self.modules.files.insert(file, File { is_test: true, ..File::default() });
                (parsed.items, folder)
            }
        };
        for item in items {
            if let Item::Mod(item) = item {
                self.test_module(&item, &folder);
            }
        }
    }

    /// Returns the file of a module and the folder in which its children are.
    fn find(&self, item: &ItemMod, children: &Path) -> (String, PathBuf) {
        let name = name_of(&item.ident);
        let explicit = item.attrs.iter().find(|attribute| attribute.path().is_ident("path")).and_then(text_of);
        let candidates = match explicit {
            Some(path) => {
                let path = children.join(path);
                vec![(path.clone(), path.parent().expect("a file lies in a folder").to_path_buf())]
            }
            None => vec![
                (children.join(format!("{name}.rs")), children.join(&name)),
                (children.join(&name).join("mod.rs"), children.join(&name)),
            ],
        };
        candidates
            .into_iter()
            .map(|(file, folder)| (file.to_string_lossy().into_owned(), folder))
            .find(|(file, _)| self.workspace.files.contains_key(file))
            .unwrap_or_else(|| panic!("the module `{name}` below {} has no file", children.display()))
    }
}

/// Adds the names that an item defines or imports to its module.
fn bind(module: &mut Module, item: &Item) {
    let mut define = |ident: &syn::Ident, visibility: &Visibility, namespaces, is_trait| {
        let binding = Binding { meaning: Meaning::Item { namespaces, is_trait }, is_public: is_public(visibility) };
        module.names.entry(name_of(ident)).or_default().push(binding);
    };
    match item {
        Item::Const(item) => define(&item.ident, &item.vis, Namespaces::VALUE, false),
        Item::Enum(item) => define(&item.ident, &item.vis, Namespaces::TYPE, false),
        Item::Fn(item) => define(&item.sig.ident, &item.vis, Namespaces::VALUE, false),
        Item::Static(item) => define(&item.ident, &item.vis, Namespaces::VALUE, false),
        Item::Struct(item) => {
            let named = matches!(item.fields, Fields::Named(_));
            let namespaces = if named { Namespaces::TYPE } else { Namespaces::TYPE_OR_VALUE };
            define(&item.ident, &item.vis, namespaces, false);
        }
        Item::Trait(item) => define(&item.ident, &item.vis, Namespaces::TYPE, true),
        Item::TraitAlias(item) => define(&item.ident, &item.vis, Namespaces::TYPE, true),
        Item::Type(item) => define(&item.ident, &item.vis, Namespaces::TYPE, false),
        Item::Union(item) => define(&item.ident, &item.vis, Namespaces::TYPE, false),
        Item::Macro(item) => match &item.ident {
            Some(name) => {
                let exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
                let binding = Binding {
                    meaning: Meaning::Item { namespaces: Namespaces::MACRO, is_trait: false },
                    is_public: exported,
                };
                module.names.entry(name_of(name)).or_default().push(binding);
            }
            None => module.is_generated = true,
        },
        Item::Use(item) => {
            for leaf in use_leaves(item) {
                match leaf.name {
                    Some(name) => {
                        let binding = Binding { meaning: Meaning::Import(leaf.path), is_public: is_public(&item.vis) };
                        module.names.entry(name).or_default().push(binding);
                    }
                    None if leaf.is_glob => module.globs.push((leaf.path, is_public(&item.vis))),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Returns the leaves of a `use` item.
pub(crate) fn use_leaves(item: &syn::ItemUse) -> Vec<UseLeaf> {
    fn walk(tree: &UseTree, prefix: &UsePath, leaves: &mut Vec<UseLeaf>) {
        let mut leaf = |ident: &syn::Ident, name: Option<String>| {
            let line = ident.span().start().line;
            let own = name_of(ident);
            if own == "self" {
                let name = name.or_else(|| prefix.last().cloned());
                leaves.push(UseLeaf { path: prefix.clone(), name, is_glob: false, line });
            } else {
                let path = [prefix.clone(), vec![own.clone()]].concat();
                leaves.push(UseLeaf { path, name: name.or(Some(own)), is_glob: false, line });
            }
        };
        match tree {
            UseTree::Path(tree) => walk(&tree.tree, &[prefix.clone(), vec![name_of(&tree.ident)]].concat(), leaves),
            UseTree::Name(tree) => leaf(&tree.ident, None),
            UseTree::Rename(tree) => leaf(&tree.ident, Some(name_of(&tree.rename))),
            UseTree::Glob(tree) => leaves.push(UseLeaf {
                path: prefix.clone(),
                name: None,
                is_glob: true,
                line: tree.star_token.span.start().line,
            }),
            UseTree::Group(tree) => tree.items.iter().for_each(|tree| walk(tree, prefix, leaves)),
        }
    }
    let mut leaves = Vec::new();
    let prefix = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
    walk(&item.tree, &prefix, &mut leaves);
    leaves.iter_mut().filter(|leaf| leaf.name.as_deref() == Some("_")).for_each(|leaf| leaf.name = None);
    leaves
}

/// Returns an identifier without the `r#` prefix.
pub(crate) fn name_of(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// Returns the text of `#[name = "text"]`.
fn text_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the text after `//! Length:` in the comments at the top of a file.
fn reason_for_length(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(text_of)
        .find_map(|line| line.trim().strip_prefix("Length:").map(|reason| reason.trim().to_owned()))
        .filter(|reason| !reason.is_empty())
}

/// Collects the lines of items for tests only, their attributes included.
fn test_only_lines(items: &[Item], found: &mut Vec<RangeInclusive<usize>>) {
    let lines = |span: proc_macro2::Span| span.start().line..=span.end().line;
    for item in items {
        match item {
            item if is_test_only(item_attributes(item)) => found.push(lines(item.span())),
            Item::Mod(ItemMod { content: Some((_, items)), .. }) => test_only_lines(items, found),
            Item::Impl(item) => {
                let tests = item.items.iter().filter(|item| is_test_only(impl_item_attributes(item)));
                found.extend(tests.map(|item| lines(item.span())));
            }
            Item::Trait(item) => {
                let tests = item.items.iter().filter(|item| is_test_only(trait_item_attributes(item)));
                found.extend(tests.map(|item| lines(item.span())));
            }
            _ => {}
        }
    }
}

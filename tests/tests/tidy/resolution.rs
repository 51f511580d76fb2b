//! Resolution of paths: follows `crate`, `self`, `super`, names in scope, imports, globs and re-exports to the module
//! that defines the item.

use std::collections::HashMap;

use crate::modules::{Meaning, ModuleId, Modules, Namespaces, UsePath};
use crate::workspace::{Crate, Workspace};

/// Target that a path resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Module(ModuleId),
    /// Item, with the module that defines it. Segments after the item (a variant, an associated function) belong to the
    /// item.
    Item {
        module: ModuleId,
        name: String,
        is_trait: bool,
    },
    /// Path into a crate that is no member of the workspace.
    External(UsePath),
}

/// Names that the enclosing blocks of a function add to those of the module.
pub(crate) type Scope = HashMap<String, Local>;

#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// Item of the block itself.
    Item,
    Import(UsePath),
}

#[derive(Clone, Copy)]
pub(crate) struct Resolver<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) modules: &'a Modules,
}

/// Imports that a resolution has followed so far. No import is followed twice, so circular imports end.
type Followed = Vec<(ModuleId, usize, String)>;

/// Index that marks a lookup through the globs of a module instead of one binding.
const GLOBS: usize = usize::MAX;

impl Resolver<'_> {
    /// Returns all targets of a path in a module, in the given namespaces. Empty for a name of the prelude, a generic
    /// parameter, a local variable, or an unknown name.
    pub(crate) fn resolve(&self, module: ModuleId, scopes: &[Scope], path: &[String], last: Namespaces) -> Vec<Target> {
        let Some(first) = path.first() else { return Vec::new() };
        match scopes.iter().rev().find_map(|scope| scope.get(first)) {
            Some(Local::Item) => Vec::new(),
            Some(Local::Import(import)) => {
                // The import is resolved in the module: a block seldom imports through another of its imports.
                let path = [import.as_slice(), &path[1..]].concat();
                self.follow(module, &path, last, &mut Vec::new())
            }
            None => self.follow(module, path, last, &mut Vec::new()),
        }
    }

    fn follow(&self, module: ModuleId, path: &[String], last: Namespaces, followed: &mut Followed) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let namespaces = |rest: &[String]| if rest.is_empty() { last } else { Namespaces::TYPE };
        let root = self.modules.roots[self.modules.list[module].krate];
        let mut found = match first.as_str() {
            "crate" => vec![Target::Module(root)],
            "self" => vec![Target::Module(module)],
            "super" => match self.modules.list[module].parent {
                Some(parent) => vec![Target::Module(parent)],
                None => return Vec::new(),
            },
            "" => match rest.split_first() {
                Some((name, others)) => {
                    rest = others;
                    self.external(module, name)
                }
                None => return Vec::new(),
            },
            name => match self.look_up(module, name, module, namespaces(rest), false, followed) {
                found if found.is_empty() => self.external(module, name),
                found => found,
            },
        };
        while let Some((name, others)) = rest.split_first() {
            rest = others;
            found = found
                .into_iter()
                .flat_map(|target| match target {
                    Target::Module(inner) if name == "super" => {
                        self.modules.list[inner].parent.map(Target::Module).into_iter().collect()
                    }
                    Target::Module(inner) => self.look_up(inner, name, module, namespaces(rest), true, followed),
                    Target::External(path) => vec![Target::External([path, vec![name.clone()]].concat())],
                    item @ Target::Item { .. } => vec![item],
                })
                .collect();
        }
        found
    }

    /// Returns the targets of a name in a module, for a path in the code of the module `from`.
    fn look_up(
        &self,
        module: ModuleId,
        name: &str,
        from: ModuleId,
        namespaces: Namespaces,
        is_qualified: bool,
        followed: &mut Followed,
    ) -> Vec<Target> {
        let definition = &self.modules.list[module];
        let sees_private = self.modules.is_within(from, module);
        let mut found = Vec::new();
        for (index, binding) in definition.names.get(name).into_iter().flatten().enumerate() {
            if !sees_private && !binding.is_public {
                continue;
            }
            match &binding.meaning {
                Meaning::Module(child) if namespaces.meets(Namespaces::TYPE) => found.push(Target::Module(*child)),
                Meaning::Item { namespaces: own, is_trait } if namespaces.meets(*own) => {
                    found.push(Target::Item { module, name: name.to_owned(), is_trait: *is_trait });
                }
                Meaning::Import(path) if !followed.contains(&(module, index, name.to_owned())) => {
                    followed.push((module, index, name.to_owned()));
                    found.extend(self.follow(module, path, namespaces, followed));
                }
                _ => {}
            }
        }
        if found.is_empty() && !followed.contains(&(module, GLOBS, name.to_owned())) {
            followed.push((module, GLOBS, name.to_owned()));
            for (path, is_public) in &definition.globs {
                if !sees_private && !is_public {
                    continue;
                }
                for target in self.follow(module, path, Namespaces::TYPE, followed) {
                    if let Target::Module(inner) = target {
                        found.extend(self.look_up(inner, name, module, namespaces, is_qualified, followed));
                    }
                }
            }
        }
        // An unqualified name may also be one of the prelude.
        if found.is_empty() && definition.is_generated && is_qualified {
            found.push(Target::Item { module, name: name.to_owned(), is_trait: false });
        }
        found
    }

    /// Returns the targets of a path that starts with the name of another crate.
    fn external(&self, module: ModuleId, name: &str) -> Vec<Target> {
        let own = &self.workspace.crates[self.modules.list[module].krate];
        if !own.externs.contains(name) {
            return Vec::new();
        }
        let is_library = |krate: &Crate| krate.name == name && krate.package.replace('-', "_") == name;
        match self.workspace.crates.iter().position(is_library) {
            Some(index) => vec![Target::Module(self.modules.roots[index])],
            None => vec![Target::External(vec![name.to_owned()])],
        }
    }

    /// Returns a target's path from its crate on.
    pub(crate) fn canonical(&self, target: &Target) -> Vec<String> {
        match target {
            Target::Module(module) => self.modules.list[*module].path.clone(),
            Target::Item { module, name, .. } => [self.modules.list[*module].path.clone(), vec![name.clone()]].concat(),
            Target::External(path) => path.clone(),
        }
    }
}

impl Modules {
    /// Returns whether a module is `outer` or lies within it.
    pub(crate) fn is_within(&self, module: ModuleId, outer: ModuleId) -> bool {
        std::iter::successors(Some(module), |module| self.list[*module].parent).any(|module| module == outer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::parse;
    use crate::workspace::test_workspace;

    /// Returns the targets of a path in the module `app::a`.
    fn resolve(files: &[(&str, &str)], path: &str) -> Vec<String> {
        let workspace = test_workspace(files);
        let modules = parse(&workspace);
        let module = modules.list.iter().position(|module| module.path == ["app", "a"]).unwrap();
        let resolver = Resolver { workspace: &workspace, modules: &modules };
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        let found = resolver.resolve(module, &[], &path, Namespaces::ALL);
        found.iter().map(|target| resolver.canonical(target).join("::")).collect()
    }

    #[test]
    fn paths_resolve_from_crate_self_and_super() {
        let files = [
            ("lib.rs", "mod a; pub(crate) struct Top;"),
            ("a.rs", "mod inner { pub(crate) struct Inner; } pub fn own() {}"),
        ];
        assert_eq!(resolve(&files, "crate::Top"), ["app::Top"]);
        assert_eq!(resolve(&files, "super::Top"), ["app::Top"]);
        assert_eq!(resolve(&files, "self::own"), ["app::a::own"]);
        assert_eq!(resolve(&files, "inner::Inner"), ["app::a::inner::Inner"]);
        assert_eq!(resolve(&files, "self::super::a::own"), ["app::a::own"]);
        assert_eq!(resolve(&files, "String"), [""; 0]);
    }

    #[test]
    fn imports_and_re_exports_resolve_to_the_definition() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::{Thing, deep::*};"),
            ("a.rs", "use crate::Thing as Renamed; use super::b; use crate::*;"),
            ("b/mod.rs", "pub mod deep; pub use self::deep::Deep; pub(crate) struct Thing;"),
            ("b/deep.rs", "pub(crate) struct Deep; pub enum Choice { One } pub fn thing() {}"),
        ];
        assert_eq!(resolve(&files, "Renamed"), ["app::b::Thing"]);
        assert_eq!(resolve(&files, "b::Deep"), ["app::b::deep::Deep"]);
        assert_eq!(resolve(&files, "crate::Choice::One"), ["app::b::deep::Choice"]);
        assert_eq!(resolve(&files, "thing"), ["app::b::deep::thing"]);
        assert_eq!(resolve(&files, "b"), ["app::b"]);
    }

    #[test]
    fn glob_imports_only_visible_names() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::*; use crate::c::*;"),
            ("b.rs", "use crate::c::Thing;"),
            ("c.rs", "pub(crate) struct Thing;"),
        ];
        assert_eq!(resolve(&files, "Thing"), ["app::c::Thing"]);
    }

    #[test]
    fn paths_to_other_crates_resolve_by_name() {
        let files = [("lib.rs", "mod a;"), ("a.rs", "use std::time::{self, Instant}; use tokio as runtime;")];
        assert_eq!(resolve(&files, "Instant::now"), ["std::time::Instant::now"]);
        assert_eq!(resolve(&files, "time::Duration"), ["std::time::Duration"]);
        assert_eq!(resolve(&files, "runtime::spawn"), ["tokio::spawn"]);
        assert_eq!(resolve(&files, "::uuid::Uuid"), ["uuid::Uuid"]);
        assert_eq!(resolve(&files, "unheard_of::Thing"), [""; 0]);
    }

    #[test]
    fn circular_imports_terminate() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::*; pub use crate::b::Thing;"),
            ("b.rs", "pub use crate::a::*; pub use crate::a::Thing;"),
        ];
        assert_eq!(resolve(&files, "Thing"), [""; 0]);
    }

    #[test]
    fn macro_generated_items_belong_to_their_module() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", ""), ("b.rs", "macro_rules! make { () => {} } make!();")];
        assert_eq!(resolve(&files, "crate::b::Made"), ["app::b::Made"]);
        assert_eq!(resolve(&files, "Made"), [""; 0]);
    }
}

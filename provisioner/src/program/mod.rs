//! Program of a stack: registers its resources, in the order of their dependencies.
//!
//! Input: a [`Stack`] with valid references and without dependency cycles. Output: registrations through [`Registrar`],
//! each as soon as its dependencies are registered; the position of every registration in the files. Excluded: targets
//! and excludes, treatment of failures (both are decided by the deployment), reading of files.

mod assets;
mod collected_goals;
mod core_resources;
mod function_check;
mod functions;
mod goals;
mod graph_nodes;
mod imports;
mod option_check;
mod output_check;
mod packages;
mod positions;
mod references;
mod run;
mod schema_findings;
mod type_check;
mod types;
mod value_check;
mod written_texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bridge::host::{AssetHashes, PackageTypes};

use crate::registry::recipe::{Effects, RecipeTable};
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, Span};
use config::{Resource, ResourceImplementation, Stack};
use engine::events::{Message, SourceRef};
use engine::{ImportGoal, ImportProvider, Registrar};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::TypeToken;

use core_resources::CoreResources;
use functions::FunctionReplies;
use types::ResolvedType;

pub use imports::ImportLookupError;
pub use packages::{ResolvedPlugins, UndeclaredPackage};
pub use run::ProgramResult;
pub use schema_findings::{SchemaFindings, SchemaWarning};

/// Program of a stack. Several deployments of one stack (preview, then update) share one program.
#[derive(Clone, Debug)]
pub struct Program {
    stack: Arc<Stack>,
    core: RecipeTable,
    /// Result of the inspection of the core resources, which all copies of the program share.
    core_resources: Arc<OnceLock<CoreResources>>,
    /// The plugins, once they are resolved, which all copies of the program share.
    resolved: Arc<OnceLock<ResolvedPlugins>>,
    /// Hashes of assets and archives, which all copies of the program share.
    assets: Arc<AssetHashes>,
    /// Replies to calls of functions, which all copies of the program share.
    replies: Arc<FunctionReplies>,
    /// The stack that messages are about: that of the last program that was made of this one.
    shown: Arc<RwLock<Arc<Stack>>>,
}

impl Program {
    /// Creates the program of a stack. `core` has the recipes of its core types. Paths of assets start at the working directory
    /// of this process.
    pub fn new(stack: Arc<Stack>, core: RecipeTable) -> Self {
        let (core_resources, resolved, replies) = Default::default();
        let shown = Arc::new(RwLock::new(Arc::clone(&stack)));
        Self { stack, core, core_resources, resolved, assets: Arc::new(AssetHashes::new(".")), replies, shown }
    }

    /// Sets the folder at which paths of assets and archives start: the repository, which is the working directory of the plugins.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Self {
        Self { assets: Arc::new(AssetHashes::new(folder)), ..self }
    }

    /// Returns the program of the stack as it was read again. Both share what is known of plugins, and the replies to calls of functions;
    /// positions are those of the new one from then on.
    #[must_use]
    pub fn on(&self, stack: Arc<Stack>) -> Self {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&stack);
        Self { stack, core_resources: Arc::default(), ..self.clone() }
    }

    /// Returns the program that calls the functions which decide about the stack, and registers nothing but their providers.
    #[must_use]
    pub fn of_deciding_functions(&self) -> Self {
        let mut stack = Stack::clone(&self.stack);
        stack.outputs.clear();
        stack.registrar = None;
        stack.environments.iter_mut().for_each(|environment| environment.resources.clear());
        let deciding = std::mem::take(&mut stack.deciding);
        for function in &mut stack.functions {
            function.is_enabled &= deciding.contains(&(function.environment.clone(), function.name.clone()));
        }
        for (index, declaration) in stack.plugins.iter_mut().enumerate() {
            declaration.plugin.enabled &= stack.functions.iter().any(|it| it.is_enabled && it.plugin == index);
        }
        let stack = Arc::new(stack);
        let shown = Arc::new(RwLock::new(Arc::clone(&stack)));
        Self { stack, core_resources: Arc::default(), shown, ..self.clone() }
    }

    /// The stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    pub fn is_of(&self, stack: &Arc<Stack>) -> bool {
        Arc::ptr_eq(&self.stack, stack)
    }

    /// Returns what the core resources need and would register. The first call inspects their recipes.
    fn core_resources(&self) -> &CoreResources {
        self.core_resources.get_or_init(|| CoreResources::inspect(&self.stack, &self.core))
    }

    /// Returns the names that the resources of the stack have in a state.
    pub async fn resource_names(&self) -> BTreeSet<String> {
        let is_of_plugin =
            |resource: &Resource| matches!(resource.implementation, ResourceImplementation::Plugin { .. });
        let of_plugins = self.stack.resources().filter(|(_, resource)| is_of_plugin(resource));
        let of_plugins = of_plugins.map(|(environment, resource)| goals::resource_name(resource, &environment.name));
        let of_core = self.goals_of_core_resources().await;
        of_plugins.chain(of_core.into_iter().filter(|goal| goal.custom).map(|goal| goal.name)).collect()
    }

    /// Checks the plugins that the stack declares for the packages of its core types, and that no two resources of core types
    /// register different resources under one name. Returns errors and warnings.
    pub fn check_core_types(&self) -> Vec<Diagnostic> {
        [packages::check(&self.stack, self.core_resources()), self.core_resources().conflicts.clone()].concat()
    }

    /// Checks what can be checked before any plugin starts: as [`Program::check_core_types`], and that the files of assets and
    /// archives are there. Returns errors and warnings.
    pub fn check_before_plugins(&self) -> Vec<Diagnostic> {
        [self.check_core_types(), assets::check(&self.stack, &self.assets)].concat()
    }

    /// Returns the paths of assets and archives, as far as they are known before a run. They start at the root of the repository.
    pub fn asset_paths(&self) -> Vec<String> {
        assets::paths(&self.stack)
    }

    /// Sets what is known of the plugins once they are resolved. The first call counts. Returns errors about resources that expect
    /// another version, and warnings about packages of core types.
    pub fn set_resolved(&self, resolved: ResolvedPlugins) -> Vec<Diagnostic> {
        let ResolvedPlugins { versions, .. } = self.resolved.get_or_init(|| resolved);
        let of_packages = packages::check_versions(&self.stack, self.core_resources(), versions);
        [packages::check_expected_versions(&self.stack, versions), of_packages].concat()
    }

    /// Sets the version of the provider of an import goal, once it is resolved.
    pub fn set_import_version(&self, goal: &mut ImportGoal) {
        if let ImportProvider::Declared(provider) = &mut goal.provider
            && let Some(plugin) = self.stack.plugins.iter().find(|plugin| plugin.name() == provider.name)
        {
            goals::set_version(provider, plugin, self.resolved.get());
        }
    }

    /// Returns the packages that core types of the stack use and that no plugin of the stack declares.
    pub fn undeclared_packages(&self) -> Vec<UndeclaredPackage> {
        packages::undeclared(&self.stack, self.core_resources())
    }

    /// Returns the names of the plugins whose package types [`Program::check_types`] needs.
    pub fn plugins_with_package_types(&self) -> BTreeSet<String> {
        packages::plugins_with_package_types(&self.stack, self.core_resources())
    }

    /// Checks the resources and the functions of plugins against the schemas. `types` are the types of the packages, by name of the
    /// plugin.
    pub fn check_types(&self, types: &BTreeMap<String, PackageTypes>) -> SchemaFindings {
        let mut findings = type_check::check(&self.stack, types);
        function_check::check(&self.stack, types, &mut findings);
        findings
    }

    /// Checks the references to outputs of plugin resources and results of functions against the schemas. `types` are the types of the packages, by
    /// name of the plugin; `recorded_output` returns the output that is recorded for the resource with a name.
    pub fn check_outputs(
        &self,
        types: &BTreeMap<String, PackageTypes>,
        recorded_output: impl Fn(&str, &str) -> Option<PropertyValue>,
    ) -> Vec<Diagnostic> {
        let of_functions = types::resolve_functions(&self.stack, types);
        output_check::check(&self.stack, &types::resolve_all(&self.stack, types), &of_functions, recorded_output)
    }

    /// Returns a warning as a diagnostic, with its position in the file.
    pub fn diagnostic_of(&self, warning: SchemaWarning) -> Diagnostic {
        let SchemaWarning { code, message } = warning;
        // A path that cannot be parsed leads to the position of the whole resource.
        let path = message.property.as_deref().and_then(|property| property.parse().ok());
        let span = message.source.and_then(|source| self.source_of(source, path.as_ref()));
        let diagnostic = Diagnostic::warning(code, span, message.text);
        message.hint.into_iter().fold(diagnostic, Diagnostic::help)
    }

    /// Returns an error of a run as a diagnostic, with its position in the file.
    pub fn error_of(&self, message: Message) -> Diagnostic {
        let path = message.property.as_deref().and_then(|property| property.parse().ok());
        let span = message.source.and_then(|source| self.source_of(source, path.as_ref()));
        let error = Diagnostic::error(Code("function"), span, message.text);
        let plugin = message.plugin.map(|plugin| MessageText::new(format_args!("the plugin {plugin} says so")));
        let error = plugin.into_iter().fold(error, Diagnostic::detail);
        message.hint.into_iter().fold(error, Diagnostic::help)
    }

    /// Registers all resources and outputs of the stack. `effects` makes what core types need beside resources.
    ///
    /// # Cancellation
    /// Once the deployment is stopped, it rejects registrations. The program then waits for the running registrations
    /// and returns.
    pub async fn run(&self, registrar: &dyn Registrar, effects: &dyn Effects) -> ProgramResult {
        let announced = self.goals_of_core_resources().await;
        let program = run::ProgramParts { replies: Some(&self.replies), ..self.parts(Some(&self.assets)) };
        run::run(program, announced, registrar, effects).await
    }

    /// Returns the parts of the program, which calls no functions; without `assets`, goals have no hashes of assets.
    fn parts<'p>(&'p self, assets: Option<&'p AssetHashes>) -> run::ProgramParts<'p> {
        let (core_resources, resolved) = (self.core_resources(), self.resolved.get());
        run::ProgramParts { stack: &self.stack, core: &self.core, core_resources, resolved, assets, replies: None }
    }

    /// Returns the import goal of an existing resource that the stack declares, by its name in the state:
    /// `<key>--<environment>`.
    ///
    /// # Errors
    /// [`ImportLookupError`] if the stack declares no plugin resource with this name.
    pub fn import(&self, name: &str, id: &ResourceId) -> Result<ImportGoal, ImportLookupError> {
        imports::find_import(&self.stack, name, id)
    }

    /// Replaces the type of an import goal, which is that of the file, by the token that the schema of its package has.
    /// `types` are the types of the package.
    pub fn resolve_import_type(goal: &mut ImportGoal, types: &PackageTypes) {
        let resolved = ResolvedType::new(goal.type_token.as_str(), Some(types));
        goal.type_token = TypeToken::new(&resolved.token);
        goal.aliases.extend(goals::type_aliases(&resolved.former_types));
    }

    /// Returns the position of a registration in the file, or of the deepest element of the property path that the file
    /// has. `None` for the root stack resource, which no file declares.
    pub fn source_of(&self, source: SourceRef, property: Option<&PropertyPath>) -> Option<Span> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        positions::find(&shown, source, property)
    }
}

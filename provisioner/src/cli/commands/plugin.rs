//! `sc plugin`: the provider plugins that stacks declare.

use std::iter;

use bridge::host::PluginPool;
use bridge::install::{InstallError, VerifiedPackage};
use bridge::launch::describe_sandbox;
use bridge::message_text::MessageText;
use bridge::plugin::{Platform, PluginConfig, PluginSource, Sha256Digest};
use bridge::process::Spawner;
use clap::{Args, Subcommand};
use provisioner::operation::{
    InstallReport, InstalledPlugin, LocatedPackage, OperationError, PackageLocation, PluginSettings, Stacks, key_stack,
};

use super::plugin_add::{self, AddArgs};
use super::plugin_debug::{self, DebugArgs};
use super::plugin_details::{self, origin};
use super::plugin_lock::{self, LockFileArgs, UpdateArgs};
use super::plugin_mirror::{self, MirrorArgs};
use super::plugin_prune::{self, PruneArgs};
use super::plugin_schema::{self, SchemaArgs};
use super::plugin_verify::{self, VerifyArgs};
use crate::cli::args::{GlobalArgs, StacksArgs};
use crate::cli::attached_plugins;
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::Exit;
use crate::cli::listing::table;
use crate::cli::output::Output;
use crate::cli::plugins::plugin_settings;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, SessionOptions};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Install, list and debug provider plugins
#[derive(Debug, Args)]
pub(crate) struct PluginCommand {
    #[command(subcommand)]
    pub(crate) verb: PluginVerb,
}

/// Subcommands of `sc plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    /// Add a plugin that is published as a release to the server.yaml of a stack, and record what it means in `.sc/sc.lock`
    ///
    /// The file keeps its comments and its order. Without a version, the range of the newest release is written: `^4.19` for v4.19.2.
    Add(AddArgs),
    /// Download and verify the plugins that the stacks declare and the packages of their core types, without starting them
    ///
    /// Plugins in the cache are not downloaded again, nor are packages of core types that `pulumi` has installed. Prints the
    /// checksum of each installed plugin for the current platform: set it as `checksum` in server.yaml to pin the plugin, so
    /// that no other file is ever run.
    Install(InstallArgs),
    /// List the plugins that the stacks declare and the packages of their core types: version, source, sandbox, pins
    ///
    /// Prints the declared checksum of a pinned plugin for the current platform, and the checksum that pins a `local`
    /// plugin. `sc plugin install` prints those of the other plugins. With a name, prints what is known about one plugin: what is wanted and
    /// locked, by what it is verified, for which platforms, and why it is used in this version.
    Ls(LsArgs),
    /// Record in `.sc/sc.lock` which releases and commits the plugins are, and repair the file after a merge
    ///
    /// Keeps recorded versions, and resolves missing ones: the highest version of a range, the latest release, the commit of a branch.
    /// Entries that no stack declares are removed. A plugin is downloaded only if no digest of it is published. Commit the file: each
    /// machine runs what it records.
    Lock(LockFileArgs),
    /// Record the newest versions that the stacks accept in `.sc/sc.lock`
    ///
    /// A version changes by this command only, or where it no longer fits the declaration.
    Update(UpdateArgs),
    /// Read all packages in the cache, and compare them with what was fetched
    ///
    /// A run compares what the file system says about each file of a package, and reads those that have changed. This command reads
    /// all of them. It fetches and removes nothing: a package that is damaged is fetched again by the next run that needs it.
    Verify(VerifyArgs),
    /// Copy what `.sc/sc.lock` records into a folder, for machines without network or a static file server
    ///
    /// `SC_PLUGIN_PATH` names such folders, and `SC_PLUGIN_MIRROR` the address of a server with the same files. What is copied is
    /// verified by the lock file, and so is what is taken from a copy.
    Mirror(MirrorArgs),
    /// Print the schema of a plugin, as the plugin returns it
    ///
    /// The plugin is started and not configured. `sc schema-gen` writes schemas for editors.
    Schema(SchemaArgs),
    /// Remove packages from the cache that were not used for some time, or until it is small enough
    ///
    /// A package that a process uses stays. The next run that needs a removed package fetches it again.
    Prune(PruneArgs),
    /// Start a plugin for other programs, which attach to it: for a debugger, or for `pulumi`
    ///
    /// The plugin is started as by a run, but is not configured, and ends with this command. Prints the variable by which
    /// `pulumi`, or another `sc`, uses the process instead of one that it starts. A go-plugin server is started without TLS,
    /// and `sandbox: strict` does not apply.
    Debug(DebugArgs),
    /// Serve the provider `files`, an example that is a part of sc; started as a plugin of `sc init --template local`
    #[command(hide = true)]
    ServeExample(ServeExampleArgs),
}

/// Arguments of `sc plugin serve-example`, those of a plugin.
#[derive(Debug, Args)]
pub(crate) struct ServeExampleArgs {
    /// Address of the engine, and flags that are ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Arguments of `sc plugin install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    /// Install the assets for this platform, such as linux-arm64, in place of this machine's; can be repeated
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Vec<Platform>,
}

/// Arguments of `sc plugin ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// Plugin about which everything is printed [default: a line for each]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, command: &PluginCommand) -> anyhow::Result<Exit> {
    match &command.verb {
        PluginVerb::Debug(args) => plugin_debug::run(ui, global, args).await,
        PluginVerb::Ls(args) => list(ui, global, args).await,
        PluginVerb::Install(args) => install(ui, global, args).await,
        PluginVerb::Lock(args) => plugin_lock::lock(ui, global, args).await,
        PluginVerb::Update(args) => plugin_lock::update(ui, global, args).await,
        PluginVerb::Verify(args) => plugin_verify::run(ui, global, args).await,
        PluginVerb::Schema(args) => plugin_schema::run(ui, global, args).await,
        PluginVerb::Add(args) => plugin_add::run(ui, global, args).await,
        PluginVerb::Mirror(args) => plugin_mirror::run(ui, global, args).await,
        PluginVerb::Prune(args) => plugin_prune::run(ui, global, args).await,
        PluginVerb::ServeExample(args) => {
            let variable = |name: &str| std::env::var(name).ok();
            let served = plugins_example::run(args.arguments.iter().cloned(), variable).await;
            served.map_err(|error| anyhow::anyhow!("{error}"))?;
            Ok(Exit::Done)
        }
    }
}

async fn install(ui: &Ui, global: &GlobalArgs, args: &InstallArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let settings = plugin_settings(&stacks)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let (mut rows, mut failed) = (Vec::new(), Vec::new());
        for stack in stacks.requested() {
            let events = session.sink(&stack.name, None);
            let programs: Vec<_> =
                iter::once(stacks.program(stack)).chain(key_stack(stack).map(|key| stacks.program(&key))).collect();
            let provided = match args.platform[..] {
                [] => settings.provide_packages(&programs, &events, &session.signals).await,
                _ => settings.undeclared_packages(&programs),
            };
            let (provided, missing) = match provided {
                Err(OperationError::Stopped) => return Err(OperationError::Stopped.into()),
                Err(error) => (Vec::new(), Some(error)),
                Ok(provided) => (provided, None),
            };
            let installed = settings.install(&stacks, stack, &provided, &args.platform, &events, &session.signals);
            let InstallReport { installed, left_out, error } = installed.await?;
            for error in missing.into_iter().chain(error).map(anyhow::Error::from) {
                print_reasons(&ui.output, session, &stacks, &error);
                failed.push(error);
            }
            for (plugin, platform, reason) in left_out {
                ui.output.inform(format_args!("the plugin {plugin} is not installed for {platform}: {reason}"));
            }
            rows.extend(installed.into_iter().map(|InstalledPlugin { plugin, platform, package, digest }| {
                let digest = digest_or_warning(&ui.output, &plugin, digest);
                Installed { stack: &stack.name, plugin, platform, package, digest }
            }));
        }
        session.pause();
        if ui.output.results_are_json() {
            ui.output.print(&rows.iter().map(|installed| Line::plain(installed.as_json())).collect::<Vec<_>>())?;
        } else if !rows.is_empty() {
            let rows: Vec<Vec<String>> = rows.iter().map(Installed::as_row).collect();
            ui.output.print(&table(&["STACK", "PLUGIN", "REVISION", "CHECKSUM"], &rows))?;
        }
        // The last error is returned as the error of the command.
        let last = failed.pop();
        for error in failed {
            ui.output.fail(&error);
        }
        last.map_or(Ok(Exit::Done), Err)
    })
    .await
}

/// Row of `sc plugin install`.
struct Installed<'s> {
    stack: &'s str,
    plugin: PluginConfig,
    /// Requested platform.
    platform: Option<Platform>,
    package: VerifiedPackage,
    digest: Option<Sha256Digest>,
}

impl Installed<'_> {
    fn as_row(&self) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            self.stack.to_owned(),
            match self.platform {
                Some(platform) => format!("{} ({platform})", self.plugin.name),
                None => self.plugin.name.to_string(),
            },
            or_dash(self.package.revision().map(str::to_owned)),
            or_dash(self.digest.map(|digest| digest.to_string())),
        ]
    }

    fn as_json(&self) -> String {
        serde_json::json!({
            "stack": self.stack,
            "name": self.plugin.name.to_string(),
            "source": self.plugin.source.kind().as_str(),
            "platform": self.platform.map(|platform| platform.to_string()),
            "revision": self.package.revision(),
            "checksum": self.digest.map(|digest| digest.to_string()),
            "folder": self.package.folder().display().to_string(),
        })
        .to_string()
    }
}

/// Returns the digest that pins a plugin. Warns about a plugin that cannot be pinned.
fn digest_or_warning(
    output: &Output,
    plugin: &PluginConfig,
    digest: Result<Option<Sha256Digest>, InstallError>,
) -> Option<Sha256Digest> {
    digest.unwrap_or_else(|error| {
        output.warn(format_args!("the plugin {} cannot be pinned: {}", plugin.name, MessageText::chain(&error)));
        None
    })
}

/// Row of `sc plugin ls`.
struct Listed<'s> {
    stack: &'s str,
    plugin: &'s PluginConfig,
    /// Package of core types that no plugin of the stack declares.
    undeclared: Option<&'s LocatedPackage>,
    /// Tag or commit that the lock file records.
    locked: Option<String>,
    /// Declared checksum, else the digest of what is on this machine.
    digest: Option<Sha256Digest>,
    /// True if what is on this machine has the declared checksum; `None` if one of them is not known, or they cannot be compared.
    matches: Option<bool>,
}

async fn list(ui: &Ui, global: &GlobalArgs, args: &LsArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    // Nothing is started.
    let mut settings = PluginSettings::new(&stacks, Spawner::unsupervised(), PluginPool::new())?;
    settings.attached = attached_plugins::read(&stacks.process_context.environment)?;
    if let Some(name) = &args.name {
        return plugin_details::print(ui, &stacks, &settings, name).await;
    }
    let mut undeclared = Vec::new();
    for stack in &stacks.stacks {
        let located = settings.locate_packages(&stacks.program(stack)).await;
        undeclared
            .push(located.inspect_err(|error| ui.output.print_diagnostics(error.diagnostics(), &stacks.sources))?);
    }
    let Stacks { stacks, .. } = &stacks;
    let mut listed = Vec::new();
    for (stack, undeclared) in stacks.iter().zip(&undeclared) {
        for plugin in stack.plugins.iter().map(|declared| &declared.plugin) {
            // A plugin that is missing is reported by the commands that need it.
            let known = settings.sources.known_digest(plugin).await.unwrap_or_default();
            let declared = plugin.source.checksum().map(|checksum| checksum.for_platform(Platform::current()));
            // A checksum of a release may be that of the asset or of the executable in it.
            let is_comparable = !matches!(plugin.source, PluginSource::GithubRelease(_));
            let matches =
                declared.flatten().zip(known).filter(|_| is_comparable).map(|(declared, known)| declared == known);
            let digest = declared.unwrap_or(known);
            let locked = locked(&settings, plugin);
            listed.push(Listed { stack: &stack.name, plugin, undeclared: None, locked, digest, matches });
        }
        for located in undeclared {
            let digest = match &located.location {
                PackageLocation::Cache(digest) => Some(*digest),
                PackageLocation::Attached | PackageLocation::PulumiFolder(_) | PackageLocation::Release => None,
            };
            let (stack, plugin) = (&stack.name, &located.plugin);
            let locked = locked(&settings, plugin);
            listed.push(Listed { stack, plugin, undeclared: Some(located), locked, digest, matches: None });
        }
    }
    if ui.output.results_are_json() {
        ui.output.print(&listed.iter().map(|plugin| Line::plain(plugin.as_json())).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = listed.iter().map(Listed::as_row).collect();
    ui.output
        .print(&table(&["STACK", "PLUGIN", "PACKAGE", "VERSION", "PINNED", "SANDBOX", "SOURCE", "CHECKSUM"], &rows))?;
    Ok(Exit::Done)
}

/// Returns the tag or the commit that the lock file records for a plugin. A file that cannot be used is reported by the commands that
/// need it.
fn locked(settings: &PluginSettings, plugin: &PluginConfig) -> Option<String> {
    let locked = settings.sources.locked(plugin).ok().flatten()?;
    Some(locked.revision().to_owned())
}

/// Returns where a package of core types is, in a word.
fn found(location: &PackageLocation) -> &'static str {
    match location {
        PackageLocation::Attached => "attached",
        PackageLocation::Cache(_) => "cached",
        PackageLocation::PulumiFolder(_) => "installed by pulumi",
        PackageLocation::Release => "not installed",
    }
}

impl Listed<'_> {
    /// Returns the location of the plugin's source, and its version or revision.
    fn origin(&self) -> (String, String) {
        let (place, version) = origin(&self.plugin.source);
        let version =
            self.undeclared.map_or_else(|| version.to_owned(), |located| format!("v{}", located.package.version));
        (place, version)
    }

    fn as_row(&self) -> Vec<String> {
        let plugin = self.plugin;
        let (place, version) = self.origin();
        let pinned = match (plugin.source.checksum(), self.matches) {
            (None, _) => "no",
            (Some(_), Some(false)) => "differs",
            (Some(_), _) => "yes",
        };
        let version = match &self.locked {
            Some(locked) if *locked != version => format!("{version} ({locked})"),
            _ => version,
        };
        let mark = match self.undeclared {
            Some(located) => format!(" (core types, {})", found(&located.location)),
            None if plugin.enabled => String::new(),
            None => " (disabled)".to_owned(),
        };
        let source = format!("{} {place}{mark}", plugin.source.kind());
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        vec![
            self.stack.to_owned(),
            plugin.name.to_string(),
            plugin.package.to_string(),
            or_dash(version),
            pinned.to_owned(),
            describe_sandbox(&plugin.sandbox),
            source,
            or_dash(self.digest.map(|digest| digest.to_string()).unwrap_or_default()),
        ]
    }

    fn as_json(&self) -> String {
        let plugin = self.plugin;
        let (place, version) = self.origin();
        serde_json::json!({
            "stack": self.stack,
            "name": plugin.name.to_string(),
            "package": plugin.package.to_string(),
            "enabled": plugin.enabled,
            "source": plugin.source.kind().as_str(),
            "location": place,
            "version": version,
            "locked": self.locked,
            "pinned": plugin.source.checksum().is_some(),
            "matches": self.matches,
            "sandbox": describe_sandbox(&plugin.sandbox),
            "checksum": self.digest.map(|digest| digest.to_string()),
            "declared": self.undeclared.is_none(),
            "found": self.undeclared.map(|located| found(&located.location)),
        })
        .to_string()
    }
}

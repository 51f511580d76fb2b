//! `sc plugin debug`: a plugin that runs for other programs, which attach to it.

use bridge::host::StandalonePlugin;
use bridge::launch::PluginAddress;
use bridge::message_text::MessageText;
use bridge::plugin::{Dialect, PluginConfig};
use bridge::shell::quoted;
use clap::Args;
use config::Stack;
use engine::events::{Event, Message, Severity};
use provisioner::operation::{PluginSettings, Stacks};
use serde_json::{Value, json};

use crate::cli::args::{GlobalArgs, OverrideArgs, StacksArgs};
use crate::cli::attached_plugins;
use crate::cli::display::{Line, Secrets};
use crate::cli::exit::{CliError, Exit};
use crate::cli::plugins::overridden_plugins;
use crate::cli::runs::print_reasons;
use crate::cli::session::{self, Session, SessionOptions};
use crate::cli::stacks::read_stacks;
use crate::cli::ui::Ui;

/// Arguments of `sc plugin debug`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
    sc plugin debug files           prints PULUMI_DEBUG_PROVIDERS=files:41233
    sc plugin debug jvm --wait      prints the variables for a debugger

In another terminal, with the line that was printed:
    PULUMI_DEBUG_PROVIDERS=files:41233 sc preview
    PULUMI_DEBUG_PROVIDERS=files:41233 pulumi preview")]
pub(crate) struct DebugArgs {
    /// Plugin to start, by its name in server.yaml
    #[arg(value_name = "NAME")]
    pub(crate) plugin: String,
    /// Start no process: print the variables with which one that is started elsewhere registers, and wait for it
    ///
    /// For plugins with `protocol: register`.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &DebugArgs) -> anyhow::Result<Exit> {
    let stacks = read_stacks(ui, global, &args.stacks)?;
    let (stack, plugin) = declared(&stacks, &args.plugin)?;
    if args.wait && !matches!(plugin.dialect, Dialect::Register(_)) {
        return Err(without_registration(plugin).into());
    }
    let settings = overridden_plugins(&stacks, &args.overrides)?;
    let options = SessionOptions { diff: false, secrets: Secrets::Masked, limit: None, has_turns: false };
    session::run(ui, options, async |session| {
        let debugged = Debugged { ui, session, settings: &settings, stack, plugin };
        let started = if args.wait { debugged.wait().await } else { debugged.start().await };
        let running = started.inspect_err(|error| print_reasons(&ui.output, session, &stacks, error))?;
        let ended = debugged.serve(&running).await;
        settings.end_standalone(&running, &session.signals).await;
        settings.pool.close().await;
        ended
    })
    .await
}

/// Returns the declaration of a plugin, and a stack with it.
fn declared<'s>(stacks: &'s Stacks, name: &str) -> Result<(&'s Stack, &'s PluginConfig), CliError> {
    let of_stack = |stack: &'s Stack| {
        let mut plugins = stack.plugins.iter().map(|declared| &declared.plugin);
        plugins.find(|plugin| plugin.name.as_str() == name).map(|plugin| (stack, plugin))
    };
    let (found, disabled): (Vec<_>, Vec<_>) =
        stacks.requested().filter_map(|stack| of_stack(stack)).partition(|(_, plugin)| plugin.enabled);
    match found[..] {
        [] if !disabled.is_empty() => {
            Err(CliError::usage(format_args!("the plugin {name} is disabled"), "set `enabled: true` below its name"))
        }
        [] => {
            let message = MessageText::new(format_args!("no selected stack declares a plugin {name:?}"));
            Err(CliError::usage(message, "`sc plugin ls` lists the plugins that the stacks declare"))
        }
        [first, ref others @ ..] => match others.iter().find(|(_, plugin)| !start_same_process(plugin, first.1)) {
            None => Ok(first),
            Some((other, _)) => {
                let message = MessageText::new(format_args!(
                    "the stacks {} and {} declare {name} differently",
                    first.0.name, other.name
                ));
                Err(CliError::usage(message, "select one of them with -s STACK"))
            }
        },
    }
}

/// Returns whether two declarations start the same process. Their configurations may differ: they are not used.
fn start_same_process(a: &PluginConfig, b: &PluginConfig) -> bool {
    let identity = |plugin: &PluginConfig| (plugin.package.clone(), plugin.source.clone(), plugin.pass_env.clone());
    let process = |plugin: &PluginConfig| (plugin.dialect.clone(), plugin.sandbox.clone(), plugin.start_timeout);
    identity(a) == identity(b) && process(a) == process(b)
}

/// Returns the error of `--wait` for a plugin that does not register.
fn without_registration(plugin: &PluginConfig) -> CliError {
    let message = MessageText::new(format_args!(
        "{} does not register: --wait is for plugins with `protocol: register`",
        plugin.name
    ));
    let hint = match plugin.dialect {
        Dialect::GoPlugin(_) => MessageText::new(format_args!(
            "start it with its cookie, and name its address in {}",
            attached_plugins::GO_PLUGIN
        )),
        Dialect::Pulumi | Dialect::Register(_) => MessageText::new(format_args!(
            "start it, and name the port that it prints in {}={}:PORT",
            attached_plugins::PULUMI,
            plugin.names().package
        )),
    };
    CliError::usage(message, hint)
}

/// Plugin that is debugged.
struct Debugged<'a> {
    ui: &'a Ui,
    session: &'a Session<'a>,
    settings: &'a PluginSettings,
    stack: &'a Stack,
    plugin: &'a PluginConfig,
}

impl Debugged<'_> {
    async fn start(&self) -> anyhow::Result<StandalonePlugin> {
        let events = self.session.sink(&self.stack.name, None);
        Ok(self.settings.start_standalone(self.stack, self.plugin, &events, &self.session.signals).await?)
    }

    /// Prints the variables of a process that another program starts, and waits until it has registered.
    async fn wait(&self) -> anyhow::Result<StandalonePlugin> {
        let (events, signals) = (self.session.sink(&self.stack.name, None), &self.session.signals);
        let awaited = self.settings.expect_registration(self.stack, self.plugin, &events, signals).await?;
        let variables = awaited.environment().iter().map(|(name, value)| (*name, value.to_string_lossy()));
        let lines = if self.ui.output.results_are_json() {
            let variables = variables.map(|(name, value)| (name.to_owned(), Value::from(value.into_owned())));
            let environment = variables.collect::<serde_json::Map<_, _>>();
            vec![Line::plain(json!({ "plugin": self.plugin.name.as_str(), "environment": environment }).to_string())]
        } else {
            variables.map(|(name, value)| Line::plain(format!("{name}={}", quoted(&value)))).collect()
        };
        self.session.pause();
        self.ui.output.print(&lines)?;
        self.report(
            Severity::Info,
            "start it with these variables: they are valid for one registration, as long as this command runs",
        );
        Ok(self.settings.await_registration(self.stack, self.plugin, awaited, signals).await?)
    }

    /// Prints how other programs attach to the plugin, and waits for its end, or that of the command.
    async fn serve(&self, running: &StandalonePlugin) -> anyhow::Result<Exit> {
        let (variable, value) = reattach_variable(self.plugin, running);
        let address = running.address();
        let line = if self.ui.output.results_are_json() {
            let result = json!({
                "plugin": self.plugin.name.as_str(),
                "package": self.plugin.package.as_str(),
                "process": running.process_id(),
                "address": address.to_string(),
                "variable": variable,
                "value": value,
            });
            result.to_string()
        } else {
            format!("{variable}={}", quoted(&value))
        };
        self.session.pause();
        self.ui.output.print(&[Line::plain(line)])?;
        let process = running.process_id().map(|id| format!("process {id}")).unwrap_or_else(|| "a process".to_owned());
        self.report(
            Severity::Info,
            &format!("{process} listens at {address} and is not configured; Ctrl-C ends this command"),
        );
        if !running.is_attachable() {
            self.report(
                Severity::Warning,
                "it does not implement Attach, without which `pulumi` does not attach: another sc does by the line above; for `pulumi`, \
                 implement Attach (ResourceProvider), which receives the address of the engine",
            );
        }
        if let PluginAddress::Tcp(address) = address {
            let port = address.port();
            self.report(
                Severity::Warning,
                &format!(
                    "every account of this machine can call it at port {port}, with the credentials that it is given"
                ),
            );
        }
        tokio::select! {
            () = self.session.signals.stop.cancelled() => Ok(Exit::Done),
            reason = running.ended() => Err(CliError::failed(format_args!("plugin {}: {reason}", self.plugin.name), "").into()),
        }
    }

    fn report(&self, severity: Severity, text: &str) {
        let message = Message { plugin: Some(self.plugin.name.to_string()), ..Message::new(severity, text.to_owned()) };
        self.session.sink(&self.stack.name, None).emit(Event::Message(message));
    }
}

/// Returns the variable by which a host attaches to a plugin, and its value.
fn reattach_variable(plugin: &PluginConfig, running: &StandalonePlugin) -> (&'static str, String) {
    let address = running.address();
    if let (PluginAddress::Tcp(address), Dialect::Pulumi | Dialect::Register(_)) = (address, &plugin.dialect)
        && running.is_attachable()
    {
        return (attached_plugins::PULUMI, format!("{}:{}", plugin.names().package, address.port()));
    }
    let network = match address {
        PluginAddress::Unix(_) => "unix",
        PluginAddress::Tcp(_) => "tcp",
    };
    let mut record = json!({
        "Protocol": "grpc",
        "ProtocolVersion": running.protocol_version().unwrap_or_default(),
        "Test": true,
        "Addr": { "Network": network, "String": address.to_string() },
    });
    if let Some(id) = running.process_id() {
        record["Pid"] = id.into();
    }
    (attached_plugins::GO_PLUGIN, json!({ plugin.name.as_str(): record }).to_string())
}

//! The program of the plugin: arguments, port, signals. Listens on a loopback port and prints the port number as its first line, from
//! which the engine reads it (docs/spec/provider-protocol.md#1.5). If `sc` has started it with `protocol: register`, it registers the
//! port instead.

use std::io::Write as _;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Plugin, Registration, serve};

const USAGE: &str = "usage: pulumi-resource-files [ENGINE]\n\n\
    A Pulumi resource provider, started by an engine, which passes its address HOST:PORT. Without an address it waits \
    for an engine to attach to the printed port. With SC_PLUGIN_HOST in its environment it registers the port there.";

/// Runs the program until a signal ends it. `variable` returns the value of an environment variable.
///
/// # Errors
/// Wrong arguments, and errors of the system.
pub async fn run(
    arguments: impl Iterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = engine_address(arguments)?;
    let host = RegistrationHost::of(variable);
    if let Some(host) = &host {
        engine = Some(host.engine.clone());
    }
    let plugin = Plugin::new(engine.as_deref()).map_err(|error| format!("{engine:?} is not an address: {error}"))?;

    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let shutdown = async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    };

    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let registration = match host {
        Some(host) => Some(Registration::begin(&host.socket, host.token, port).await?),
        None => {
            let mut stdout = std::io::stdout().lock();
            writeln!(stdout, "{port}")?;
            stdout.flush()?;
            None
        }
    };

    serve(plugin, listener, shutdown).await?;
    if let Some(registration) = registration {
        registration.end().await;
    }
    Ok(())
}

/// Host of registrations, from the environment that `sc` sets.
struct RegistrationHost {
    socket: String,
    token: String,
    engine: String,
}

impl RegistrationHost {
    /// Returns the host; `None` for a plugin that was started otherwise.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self {
            socket: variable("SC_PLUGIN_HOST")?,
            token: variable("SC_PLUGIN_TOKEN")?,
            engine: variable("SC_PLUGIN_ENGINE")?,
        })
    }
}

/// Returns the positional argument. Flags for logging and tracing, which engines pass, are ignored.
fn engine_address(arguments: impl Iterator<Item = String>) -> Result<Option<String>, &'static str> {
    let mut arguments = arguments;
    let mut positional = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Err(USAGE),
            "--tracing" | "-tracing" => drop(arguments.next()),
            flag if flag.starts_with('-') => (),
            _ => positional.push(argument),
        }
    }
    match positional.len() {
        0 | 1 => Ok(positional.pop()),
        _ => Err(USAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Option<String>, &'static str> {
        engine_address(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn engine_address_is_the_only_positional_argument() {
        assert_eq!(parsed("127.0.0.1:1"), Ok(Some("127.0.0.1:1".into())));
        assert_eq!(parsed("--logtostderr -v=9 --tracing http://t 127.0.0.1:1"), Ok(Some("127.0.0.1:1".into())));
        assert_eq!(parsed(""), Ok(None));
        assert_eq!(parsed("127.0.0.1:1 127.0.0.1:2"), Err(USAGE));
    }
}

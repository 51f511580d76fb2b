//! Executable `pulumi-resource-files [HOST:PORT]`. Listens on a loopback port and prints the port number as its first
//! line, from which the engine reads it (docs/spec/provider-protocol.md#1.5). If `sc` has started it with `protocol:
//! register`, it registers the port instead.

use std::io::Write as _;
use std::process::ExitCode;

use plugins_example::{Plugin, Registration, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: pulumi-resource-files [ENGINE]\n\n\
    A Pulumi resource provider, started by an engine, which passes its address HOST:PORT. Without an address it waits \
    for an engine to attach to the printed port. With SC_PLUGIN_HOST in its environment it registers the port there.";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "{error}").ok();
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = engine_address(std::env::args().skip(1))?;
    let host = RegistrationHost::from_environment();
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
    #[expect(clippy::disallowed_methods, reason = "the binary of a plugin")]
    fn from_environment() -> Option<Self> {
        let variable = |name| std::env::var(name).ok();
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

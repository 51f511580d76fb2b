//! Executable `pulumi-resource-files [HOST:PORT]`.

use std::io::Write as _;
use std::process::ExitCode;

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "the binary of a plugin")]
async fn main() -> ExitCode {
    match plugins_example::run(std::env::args().skip(1), |name| std::env::var(name).ok()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "{error}").ok();
            ExitCode::FAILURE
        }
    }
}

//! `cargo quickstart [COMMAND...]`: builds `sc` and the example plugin, and runs `sc COMMAND...` on the stack in
//! `.sc/stacks/quickstart`. The default command is `provision`.
//!
//! `cargo run` builds only one program, so this program builds both with Cargo.

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the crate lies in the tree")?;
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(root).arg("build").args(["--package", "provisioner", "--bin", "sc"]);
    build.args(["--package", "plugins-example", "--bin", "pulumi-resource-files"]);
    if !build.status()?.success() {
        return Ok(ExitCode::FAILURE);
    }

    // This program is target/debug/examples/quickstart, the two others are in target/debug.
    let this = std::env::current_exe()?;
    let programs = this.ancestors().nth(2).ok_or("Cargo puts examples into a folder of their own")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = if arguments.is_empty() { vec!["provision".to_owned()] } else { arguments };
    let mut sc = Command::new(programs.join("sc"));
    sc.current_dir(root).args(command).env("QUICKSTART_PLUGINS", programs);
    let code = sc.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

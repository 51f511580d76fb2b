//! Plugin process of the fake cloud providers; `REC_DIR` names the folder for `calls.jsonl` and `script.json`.

use std::path::Path;

use tests::fake_clouds::service;
use tests::rec::call_recorder_from_environment;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = std::env::var_os("REC_DIR").map(|folder| Path::new(&folder).join("script.json"));
    tests::plugin_process::serve(service(call_recorder_from_environment(), script)).await
}

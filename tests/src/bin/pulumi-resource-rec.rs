//! Plugin process of the scripted provider.
//!
//! `REC_DIR` names the folder with `script.json`, `calls.jsonl` and `ids.json`; without it the default rules apply and
//! nothing is recorded. Arguments are accepted and ignored.

use tests::rec::{call_recorder_from_environment, service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin_process::serve(service(call_recorder_from_environment())).await
}

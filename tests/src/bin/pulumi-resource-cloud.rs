//! Plugin process of the fake cloud providers; `REC_DIR` names the folder for `calls.jsonl`.

use tests::fake_clouds::service;
use tests::rec::call_recorder_from_environment;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin_process::serve(service(call_recorder_from_environment())).await
}

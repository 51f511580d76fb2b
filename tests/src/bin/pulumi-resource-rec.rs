//! The scripted provider as a plugin process.
//!
//! `REC_DIR` names the folder with `script.json`, `calls.jsonl` and `ids.json`; without it the default rules hold and
//! nothing is recorded. Arguments are accepted and ignored.

use tests::rec::{book_of_environment, service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin::serve(service(book_of_environment())).await
}

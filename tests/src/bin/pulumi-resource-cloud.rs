//! Plugin process of the fake cloud providers; `REC_DIR` names the folder for `calls.jsonl`.

use tests::clouds::service;
use tests::rec::book_of_environment;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin::serve(service(book_of_environment())).await
}

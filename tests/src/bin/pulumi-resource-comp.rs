//! Plugin process of the component provider [`tests::comp`]. Arguments are accepted and ignored.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin_process::serve(tests::comp::service()).await
}

//! The component provider of [`tests::comp`] as a plugin process. Arguments are accepted and ignored.

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tests::plugin::serve(tests::comp::service()).await
}

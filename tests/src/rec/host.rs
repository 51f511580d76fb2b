//! A host whose providers live in the same process: real client code, no sockets.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::Provider;
use bridge::provider::grpc::GrpcProvider;

use super::book::Book;

/// Boots instances of the scripted provider, all with one book. Needs a runtime to run them in.
#[derive(Debug)]
pub struct RecHost {
    book: Arc<dyn Book>,
}

impl RecHost {
    /// A host of instances that share a book.
    pub fn new(book: Arc<dyn Book>) -> Self {
        Self { book }
    }
}

#[async_trait]
impl ProviderHost for RecHost {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        if request.package != "rec" {
            let message = format!("there is no plugin for the package {}", request.package);
            return Err(HostError { message, hint: String::new() });
        }
        let channel = crate::channel::in_memory(super::service(Arc::clone(&self.book)));
        Ok(Arc::new(GrpcProvider::new(channel, "rec", None, "1.0.0", None)))
    }
}

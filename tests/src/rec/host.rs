//! Host whose providers run in the same process: real client code, no sockets.

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{BootRequest, HostError, ProviderHost};
use bridge::provider::Provider;

use super::book::Book;
use crate::service::start_in_memory;

/// Host that starts instances of the scripted provider, which share one book, and of the component provider. It needs a
/// runtime for them.
#[derive(Debug)]
pub struct RecHost {
    book: Arc<dyn Book>,
    others: Option<Arc<dyn ProviderHost>>,
}

impl RecHost {
    /// Creates a host whose instances share a book.
    pub fn new(book: Arc<dyn Book>) -> Self {
        Self { book, others: None }
    }

    /// Delegates all packages except `rec` to another host, if one is given.
    #[must_use]
    pub fn beside(self, others: Option<Arc<dyn ProviderHost>>) -> Self {
        Self { others, ..self }
    }
}

#[async_trait]
impl ProviderHost for RecHost {
    async fn boot(&self, request: &BootRequest) -> Result<Arc<dyn Provider>, HostError> {
        if let Some(others) = self.others.as_ref().filter(|_| request.package != "rec") {
            return others.boot(request).await;
        }
        match request.package.as_str() {
            "rec" => Ok(start_in_memory(super::service(Arc::clone(&self.book)), "rec", Some("1.0.0".to_owned()))),
            "comp" => Ok(start_in_memory(crate::comp::service(), "comp", Some("1.0.0".to_owned()))),
            other => {
                let message = format!("there is no plugin for the package {other}");
                Err(HostError::new(message))
            }
        }
    }
}

//! Client of a container: that of `object_store`, with removals and copies of its own.

use std::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::azure::MicrosoftAzure;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::requests::BlobRequests;

/// Names in a page of a listing. The service's own number is larger than what a reply may have.
const PAGE: usize = 1000;

/// Container with its client.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) client: MicrosoftAzure,
    pub(super) requests: BlobRequests,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

#[async_trait]
impl PaginatedListStore for Container {
    async fn list_paginated(&self, prefix: Option<&str>, options: PaginatedListOptions) -> Result<PaginatedListResult> {
        let options = PaginatedListOptions { max_keys: options.max_keys.or(Some(PAGE)), ..options };
        self.client.list_paginated(prefix, options).await
    }
}

#[async_trait]
impl ObjectStore for Container {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.client.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.client.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.client.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let requests = self.requests.clone();
        let remove = move |location: Path| {
            let requests = requests.clone();
            async move { requests.remove(&location).await.map(|()| location) }
        };
        locations.and_then(remove).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.client.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.client.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.client.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        match options.mode {
            CopyMode::Overwrite => self.requests.copy(from, to).await,
            CopyMode::Create => self.client.copy_opts(from, to, options).await,
        }
    }
}

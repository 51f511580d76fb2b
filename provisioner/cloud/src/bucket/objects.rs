//! Objects in a bucket by key, and the beginnings of keys.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion,
};
use percent_encoding::percent_decode_str;
use state::store::{
    Durability, ListedObject, ObjectError, ObjectErrorKind, ObjectVersion, Objects, OutageWatch, StoredObject,
    WriteCondition, WriteError, content_type,
};

use super::connector::longest_request;
use super::failure::Failure;
use super::pages::{EndlessListing, Pages};
use super::transport::TransportFailure;

/// Number of attempts to read an object whose content ends early, each with the repetitions of the client.
const READ_ATTEMPTS: usize = 2;
/// Time within which a reply that is cut has come. A store that is away takes the client longer.
const CUT_REPLY: Duration = Duration::from_secs(10);
/// Largest part of a content for which memory is reserved before it is received.
const MAX_RESERVED: u64 = 64 << 20;

/// Words and credentials of a service with buckets.
#[async_trait]
pub(crate) trait BucketService: Send + Sync + 'static {
    /// Returns the kind of a failure, and its description for the user.
    fn explain(&self, operation: &'static str, failure: &Failure) -> (ObjectErrorKind, String);

    /// Requests new credentials after a failure that says that the used ones have expired. Returns `false` if that is
    /// not the case, or there are no others.
    async fn renew_credentials(&self, failure: &Failure) -> bool;

    /// Returns what identifies a version.
    fn version(&self, tag: Option<String>, generation: Option<String>) -> ObjectVersion;
}

/// Bucket, or the part of one below a prefix.
pub(crate) struct Bucket<S, E> {
    /// Client.
    pub(crate) store: S,
    /// Beginning of all keys; empty, or with a slash at its end.
    pub(crate) prefix: String,
    /// URL without credentials.
    pub(crate) location: String,
    /// URL to which a key is appended.
    pub(crate) base: String,
    /// Service of the bucket.
    pub(crate) service: E,
    /// Watch over the requests, which the client informs about failed attempts.
    pub(crate) watch: OutageWatch,
}

/// Request for messages: operation, key or folder, and size of the content.
type Described<'d> = (&'static str, &'d str, usize);

impl<S: ObjectStore + PaginatedListStore, E: BucketService> Bucket<S, E> {
    fn error(&self, operation: &'static str, key: &str, kind: ObjectErrorKind, text: String) -> ObjectError {
        ObjectError {
            operation,
            location: format!("{}{key}", self.base),
            kind,
            effect: kind.effect(),
            source: text.into(),
        }
    }

    fn explain(&self, operation: &'static str, key: &str, failure: &Failure) -> ObjectError {
        let (kind, text) = self.service.explain(operation, failure);
        self.error(operation, key, kind, text)
    }

    fn path(&self, operation: &'static str, key: &str) -> Result<Path, ObjectError> {
        Path::parse(format!("{}{key}", self.prefix))
            .map_err(|error| self.error(operation, key, ObjectErrorKind::Other, error.to_string()))
    }

    /// Sends a request, and once more with new credentials if those of the first one have expired. Reports one that is tried
    /// for long.
    async fn request<'a, T>(
        &self,
        (operation, key, size): Described<'_>,
        send: impl Fn() -> BoxFuture<'a, object_store::Result<T>> + Send + Sync,
    ) -> Result<T, Failure> {
        let location = || format!("{}{key}", self.base);
        let watched = async || {
            let sent = self.watch.watch((operation, location), size, longest_request(size), send());
            sent.await.map_err(|error| Failure::of(&error))
        };
        let failure = match watched().await {
            Ok(reply) => return Ok(reply),
            Err(failure) => failure,
        };
        if !self.service.renew_credentials(&failure).await {
            return Err(failure);
        }
        watched().await
    }

    /// Returns `None` if there is no object, and an error within the result if its content ended early.
    async fn read_once(&self, key: &str, limit: u64) -> Result<Option<Result<StoredObject, Failure>>, ObjectError> {
        let path = self.path("read", key)?;
        let result = match self.request(("read", key, 0), || Box::pin(self.store.get(&path))).await {
            Ok(result) => result,
            Err(failure) if failure.is_missing() => return Ok(None),
            Err(failure) => return Err(self.explain("read", key, &failure)),
        };
        let meta = result.meta.clone();
        let version = self.service.version(meta.e_tag.clone(), meta.version.clone());
        if version.tag.is_none() && version.generation.is_none() {
            let text = "the reply has no version of the object (ETag): it is not from a store".to_owned();
            return Err(self.error("read", key, ObjectErrorKind::Other, text));
        }
        let size = meta.size;
        if size > limit {
            let text = format!("it has {size} bytes; the limit is {limit}");
            return Err(self.error("read", key, ObjectErrorKind::TooLarge, text));
        }
        let content = match receive(result).await {
            Ok(content) => content,
            Err(failure) => return Ok(Some(Err(failure))),
        };
        let modified = self.modified("read", key, &meta)?;
        Ok(Some(Ok(StoredObject { content, version, modified })))
    }

    fn modified(&self, operation: &'static str, key: &str, meta: &ObjectMeta) -> Result<Timestamp, ObjectError> {
        let (seconds, nanoseconds) = (meta.last_modified.timestamp(), meta.last_modified.timestamp_subsec_nanos());
        Timestamp::new(seconds, nanoseconds.try_into().unwrap_or_default())
            .map_err(|error| self.error(operation, key, ObjectErrorKind::Other, error.to_string()))
    }

    async fn list_pages(
        &self,
        folder: &str,
        delimiter: Option<&'static str>,
    ) -> Result<Vec<ListedObject>, ObjectError> {
        let prefix = if folder.is_empty() { self.prefix.clone() } else { format!("{}{folder}/", self.prefix) };
        let endless =
            |reason: EndlessListing| self.error("list", folder, ObjectErrorKind::TooLarge, reason.to_string());
        let (mut listed, mut pages) = (Vec::new(), Pages::begin());
        let mut token: Option<String> = None;
        loop {
            let page = self.request(("list", folder, 0), || {
                let page_token = token.clone();
                let options =
                    PaginatedListOptions { delimiter: delimiter.map(Into::into), page_token, ..Default::default() };
                let prefix = (!prefix.is_empty()).then_some(prefix.as_str());
                Box::pin(self.store.list_paginated(prefix, options))
            });
            let page = page.await.map_err(|failure| self.explain("list", folder, &failure))?;
            for object in &page.result.objects {
                // An object that marks the folder itself has its name without the slash.
                let Some(name) = object.location.as_ref().strip_prefix(prefix.as_str()) else { continue };
                pages.add_name(name).map_err(endless)?;
                listed.push(ListedObject { name: name.to_owned(), modified: self.modified("list", folder, object)? });
            }
            token = pages.next(page.page_token).map_err(endless)?;
            if token.is_none() {
                break;
            }
        }
        listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }
}

/// Returns whether a content came too slowly. The client has asked for the rest again, for as long as it repeats requests.
fn is_slow(failure: &Failure) -> bool {
    matches!(failure, Failure::Transport(TransportFailure::TooSlow { .. }))
}

/// Receives a content whole.
async fn receive(result: GetResult) -> Result<Vec<u8>, Failure> {
    let size = result.meta.size;
    let mut content = Vec::with_capacity(usize::try_from(size.min(MAX_RESERVED)).unwrap_or_default());
    let mut parts = result.into_stream();
    while let Some(part) = parts.try_next().await.map_err(|error| Failure::of(&error))? {
        content.extend_from_slice(&part);
        // The rest of a content that was cut may be another one.
        if content.len() as u64 > size {
            return Err(Failure::Other(format!("more than the {size} bytes of the object were received")));
        }
    }
    if content.len() as u64 == size {
        return Ok(content);
    }
    Err(Failure::Other(format!("{} of {size} bytes were received", content.len())))
}

#[async_trait]
impl<S: ObjectStore + PaginatedListStore, E: BucketService> Objects for Bucket<S, E> {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn location_of(&self, key: &str) -> String {
        format!("{}{key}", self.base)
    }

    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError> {
        let mut attempt = 1;
        loop {
            match self.read_once(key, limit).await? {
                None => return Ok(None),
                Some(Ok(object)) => return Ok(Some(object)),
                Some(Err(failure)) if attempt == READ_ATTEMPTS || is_slow(&failure) => {
                    let (_, text) = self.service.explain("read", &failure);
                    return Err(self.error("read", key, ObjectErrorKind::Unreachable, text));
                }
                Some(Err(_)) => attempt += 1,
            }
        }
    }

    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        _: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let path = self.path("write", key)?;
        let mode = match condition {
            WriteCondition::None => PutMode::Overwrite,
            WriteCondition::Missing => PutMode::Create,
            WriteCondition::Unchanged(version) => {
                PutMode::Update(UpdateVersion { e_tag: version.tag.clone(), version: version.generation.clone() })
            }
        };
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::ContentType, content_type(&content).into());
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        // Copies of it share the content.
        let content = object_store::PutPayload::from(content);
        let put = || self.store.put_opts(&path, content.clone(), options.clone());
        let written = self.request(("write", key, content.content_length()), || Box::pin(put())).await;
        match written {
            Ok(result) => Ok(self.service.version(result.e_tag, result.version)),
            Err(failure) if *condition != WriteCondition::None && failure.is_condition() => Err(WriteError::Condition),
            Err(failure) => Err(self.explain("write", key, &failure).into()),
        }
    }

    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (source, target) = (self.path("copy", from)?, self.path("copy", to)?);
        match self.request(("copy", from, 0), || Box::pin(self.store.copy(&source, &target))).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_missing() => Ok(false),
            Err(failure) => Err(self.explain("copy", from, &failure)),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), ObjectError> {
        let path = self.path("remove", key)?;
        let send = || self.request(("remove", key, 0), || Box::pin(self.store.delete(&path)));
        let begun = Instant::now();
        let mut removed = send().await;
        // After a lost reply, the client gets the reply that there is no such object. It does not repeat the request if that is cut, too.
        let is_cut = matches!(&removed, Err(Failure::Transport(TransportFailure::Connection { .. })));
        if is_cut && begun.elapsed() < CUT_REPLY {
            removed = send().await;
        }
        match removed {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_missing() => Ok(()),
            Err(failure) => Err(self.explain("remove", key, &failure)),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.list_pages(folder, Some("/")).await
    }

    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.list_pages(folder, None).await
    }
}

/// Decodes the path of a URL and makes it a prefix, as Pulumi does: without slashes before it, with one after it.
///
/// # Errors
/// The reason why no key can have it.
pub(crate) fn parse_prefix(path: &str) -> Result<String, &'static str> {
    let Ok(decoded) = percent_decode_str(path).decode_utf8() else { return Err("it is not UTF-8") };
    let trimmed = decoded.trim_start_matches('/');
    if trimmed.is_empty() {
        return Ok(String::new());
    }
    let folders = trimmed.strip_suffix('/').unwrap_or(trimmed);
    for folder in folders.split('/') {
        match folder {
            "" => return Err("two slashes follow each other"),
            "." | ".." => return Err("a folder is `.` or `..`"),
            _ if folder.chars().any(char::is_control) => return Err("it has a control character"),
            _ => {}
        }
    }
    Ok(format!("{folders}/"))
}

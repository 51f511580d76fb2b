//! Bucket in memory, as the stand-ins of S3 and Google Cloud Storage share it: objects with generations, and the XML of
//! their listings and errors.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use percent_encoding::percent_decode_str;

use crate::http::{Request, Response};
use crate::releases::sha256;

/// Number of keys in a page of a listing.
const PAGE: usize = 1000;
/// Name of the bucket.
const BUCKET: &str = "reef";

/// Objects by key.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    objects: BTreeMap<String, Object>,
    generations: u64,
}

/// Object of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) content: Vec<u8>,
    pub(crate) content_type: String,
    pub(crate) generation: u64,
    modified: Timestamp,
}

/// Page of a listing: keys with their objects, and folders without one.
pub(crate) struct Page<'b> {
    pub(crate) entries: Vec<(String, Option<&'b Object>)>,
    /// Token of the next page.
    pub(crate) next: Option<String>,
}

impl Bucket {
    pub(crate) fn get(&self, key: &str) -> Option<&Object> {
        self.objects.get(key)
    }

    /// Returns the object that a header names as `bucket/key`, percent-encoded.
    pub(crate) fn source(&self, header: &str) -> Option<&Object> {
        let source = percent_decode_str(header.trim_start_matches('/')).decode_utf8_lossy();
        source.split_once('/').and_then(|(_, key)| self.objects.get(key))
    }

    /// Returns whether there was an object.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        self.objects.remove(key).is_some()
    }

    pub(crate) fn put(&mut self, key: &str, content: Vec<u8>, content_type: String) -> &Object {
        self.generations += 1;
        // As Google's: microseconds of its clock, unique.
        let generation = 1_790_000_000_000_000 + self.generations;
        let object = Object { content, content_type, generation, modified: Timestamp::now() };
        self.objects.entry(key.to_owned()).insert_entry(object).into_mut()
    }

    /// Returns a page of the keys with a prefix that follow a token.
    pub(crate) fn page(&self, prefix: &str, delimiter: &str, token: &str) -> Page<'_> {
        let mut entries: Vec<(String, Option<&Object>)> = Vec::new();
        for (key, object) in self.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let rest = &key[prefix.len()..];
            let folder = (!delimiter.is_empty()).then(|| rest.find(delimiter)).flatten();
            let entry = match folder {
                Some(end) => (key[..prefix.len() + end + delimiter.len()].to_owned(), None),
                None => (key.clone(), Some(object)),
            };
            if entry.0.as_str() > token && entries.last().is_none_or(|last| last.0 != entry.0) {
                entries.push(entry);
            }
        }
        let is_truncated = entries.len() > PAGE;
        entries.truncate(PAGE);
        let next = entries.last().filter(|_| is_truncated).map(|(key, _)| key.clone());
        Page { entries, next }
    }

    /// Lists a page. `known` are the parameters that the service accepts.
    pub(crate) fn list(&self, query: &str, known: &[&str]) -> Response {
        let mut parameters = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned();
            parameters.insert(name, value);
        }
        if let Some(unknown) = parameters.keys().find(|name| !known.contains(name)) {
            return error(400, "InvalidArgument", &format!("The stand-in does not know the parameter {unknown}."));
        }
        let text = |name| parameters.get(name).map_or("", String::as_str);
        let prefix = text("prefix");
        let Page { entries, next } = self.page(prefix, text("delimiter"), text("continuation-token"));
        let mut body = format!("<ListBucketResult><Name>{BUCKET}</Name><KeyCount>{}</KeyCount>", entries.len());
        body += &format!("<Prefix>{}</Prefix><IsTruncated>{}</IsTruncated>", escape(prefix), next.is_some());
        if let Some(next) = &next {
            body += &format!("<NextContinuationToken>{}</NextContinuationToken>", escape(next));
        }
        for (key, object) in &entries {
            body += &match object {
                Some(object) => format!(
                    "<Contents><Key>{}</Key><Generation>{}</Generation><LastModified>{:.3}</LastModified>\
                     <ETag>{}</ETag><Size>{}</Size></Contents>",
                    escape(key),
                    object.generation,
                    object.modified,
                    escape(&object.tag()),
                    object.content.len()
                ),
                None => format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(key)),
            };
        }
        xml(200, body + "</ListBucketResult>")
    }
}

impl Object {
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", &sha256(&self.content)[..32])
    }

    /// Returns the object with its headers, or its rest from a place on: the client continues a reply that was cut.
    pub(crate) fn response(&self, request: &Request) -> Response {
        let first =
            request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')?.0.parse().ok());
        let size = self.content.len();
        let response = match first.filter(|first: &usize| *first < size) {
            Some(first) => Response::new(206, &self.content[first..])
                .with("Content-Range", format!("bytes {first}-{}/{size}", size - 1)),
            None => Response::new(200, self.content.clone()),
        };
        response
            .with("Content-Type", &self.content_type)
            .with("Last-Modified", http_date(self.modified))
            .with("ETag", self.tag())
    }

    pub(crate) fn modified(&self) -> Timestamp {
        self.modified
    }
}

/// Returns the key in the path of a request, empty for the bucket itself.
///
/// # Errors
/// The reply to a request for another bucket.
pub(crate) fn key_of(path: &str) -> Result<String, Response> {
    let decoded = percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy().into_owned();
    let (bucket, key) = decoded.split_once('/').unwrap_or((&decoded, ""));
    if bucket == BUCKET {
        return Ok(key.to_owned());
    }
    Err(error(404, "NoSuchBucket", "The specified bucket does not exist."))
}

fn http_date(time: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}

pub(crate) fn no_key() -> Response {
    error(404, "NoSuchKey", "The specified key does not exist.")
}

pub(crate) fn error(status: u16, code: &str, message: &str) -> Response {
    let (code, message) = (escape(code), escape(message));
    xml(status, format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
}

/// Returns a reply with a document.
pub(crate) fn xml(status: u16, document: impl std::fmt::Display) -> Response {
    let body = format!("<?xml version='1.0' encoding='UTF-8'?>{document}");
    Response::new(status, body).with("Content-Type", "application/xml; charset=UTF-8")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

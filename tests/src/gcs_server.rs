//! Stand-in for Google Cloud Storage: the part of its XML API that our client uses, with generations, in memory.
//!
//! Strict where the service is: a request without the token, a condition that is not met, a listing of more than 1,000
//! keys, a parameter or header that it does not know. `fake-gcs-server` has no uploads by this API, and no conditions.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use percent_encoding::percent_decode_str;

use crate::http::{HttpServer, Request, Response};
use crate::releases::sha256;

/// Number of keys in a page of a listing.
const PAGE: usize = 1000;
const BUCKET: &str = "reef";

/// Running server with the bucket `reef`. It ends when it is dropped.
#[derive(Debug)]
pub struct GcsServer {
    http: HttpServer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Object>,
    generations: u64,
    /// Token that requests need, with its requests at `/token`.
    token: Option<String>,
    /// Replies to the next requests, before they are processed.
    faults: Vec<Response>,
}

#[derive(Clone, Debug)]
struct Object {
    content: Vec<u8>,
    content_type: String,
    generation: u64,
    modified: Timestamp,
}

impl GcsServer {
    /// Starts a server on a free port of the loopback interface. Requests need the access token, if there is one.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(token: Option<&str>) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State { token: token.map(str::to_owned), ..State::default() }));
        let shared = Arc::clone(&state);
        let http = HttpServer::start(move |request| {
            let response = shared.lock().unwrap_or_else(PoisonError::into_inner).respond(&request);
            async { response }
        })
        .await?;
        Ok(Self { http, state })
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        self.http.requests()
    }

    /// Replies to the next requests with an error instead of processing them.
    pub fn fail_next(&self, count: usize, status: u16, code: &str, message: &str) {
        let faults = std::iter::repeat_n(error(status, code, message), count);
        self.state().faults.extend(faults);
    }

    /// Demands another token from now on.
    pub fn set_token(&self, token: &str) {
        self.state().token = Some(token.to_owned());
    }

    /// Returns the content type and the content of an object.
    pub fn object(&self, key: &str) -> Option<(String, Vec<u8>)> {
        self.state().objects.get(key).map(|object| (object.content_type.clone(), object.content.clone()))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn respond(&mut self, request: &Request) -> Response {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if path == "/token" {
            let token = self.token.clone().unwrap_or_default();
            let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":3600}}"#);
            return Response::new(200, body).with("Content-Type", "application/json");
        }
        if let Some(fault) = (!self.faults.is_empty()).then(|| self.faults.remove(0)) {
            return fault;
        }
        match (&self.token, request.header("authorization")) {
            (Some(token), Some(sent)) if *sent == format!("Bearer {token}") => {}
            (None, None) => {}
            (_, None) => return error(401, "AuthenticationRequired", "Authentication required."),
            (_, Some(_)) => return error(401, "AuthenticationRequired", "Invalid Credentials."),
        }
        let decoded = percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy().into_owned();
        let (bucket, key) = decoded.split_once('/').unwrap_or((&decoded, ""));
        if bucket != BUCKET {
            return error(404, "NoSuchBucket", "The specified bucket does not exist.");
        }
        match (request.method.as_str(), key) {
            ("GET", "") => self.list(query),
            ("GET" | "HEAD", key) => self.read(request, key),
            ("PUT", key) if !key.is_empty() => self.write(request, key),
            ("DELETE", key) if !key.is_empty() => match self.objects.remove(key) {
                Some(_) => Response::new(204, ""),
                None => no_key(),
            },
            _ => error(405, "MethodNotAllowed", "The specified method is not allowed against this resource."),
        }
    }

    /// Returns an object, or its rest from a place on: the client continues a reply that was cut.
    fn read(&self, request: &Request, key: &str) -> Response {
        let Some(object) = self.objects.get(key) else { return no_key() };
        let first =
            request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')?.0.parse().ok());
        let size = object.content.len();
        let response = match first.filter(|first: &usize| *first < size) {
            Some(first) => Response::new(206, &object.content[first..])
                .with("Content-Range", format!("bytes {first}-{}/{size}", size - 1)),
            None => Response::new(200, object.content.clone()),
        };
        response
            .with("Content-Type", &object.content_type)
            .with("Last-Modified", http_date(object.modified))
            .with("ETag", object.tag())
            .with("x-goog-generation", object.generation)
    }

    fn write(&mut self, request: &Request, key: &str) -> Response {
        let current = self.objects.get(key).map_or(0, |object| object.generation);
        let mut content_type = String::new();
        let mut source = None;
        for (name, value) in &request.headers {
            match name.as_str() {
                "x-goog-if-generation-match" if *value != current.to_string() => {
                    let message = "At least one of the pre-conditions you specified did not hold.";
                    return error(412, "PreconditionFailed", message);
                }
                "x-goog-if-generation-match" => {}
                "x-goog-copy-source" => source = Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
                "content-type" => content_type.clone_from(value),
                name if name.starts_with("x-goog") || name.starts_with("if-") => {
                    return error(400, "InvalidArgument", &format!("The stand-in does not know the header {name}."));
                }
                _ => {}
            }
        }
        let mut content = request.body.clone();
        if let Some(source) = source {
            let found = source.split_once('/').and_then(|(_, source)| self.objects.get(source));
            let Some(found) = found else { return no_key() };
            content.clone_from(&found.content);
            content_type.clone_from(&found.content_type);
        }
        self.generations += 1;
        // As the service's: microseconds of its clock, unique.
        let generation = 1_790_000_000_000_000 + self.generations;
        let object = Object { content, content_type, generation, modified: Timestamp::now() };
        let response = Response::new(200, "").with("ETag", object.tag()).with("x-goog-generation", generation);
        self.objects.insert(key.to_owned(), object);
        response
    }

    fn list(&self, query: &str) -> Response {
        let mut parameters = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned();
            parameters.insert(name, value);
        }
        let known = ["list-type", "prefix", "delimiter", "continuation-token"];
        if let Some(unknown) = parameters.keys().find(|name| !known.contains(name)) {
            return error(400, "InvalidArgument", &format!("The stand-in does not know the parameter {unknown}."));
        }
        let text = |name| parameters.get(name).map_or("", String::as_str);
        let (prefix, delimiter, after) = (text("prefix"), text("delimiter"), text("continuation-token"));
        let mut entries: Vec<(String, Option<&Object>)> = Vec::new();
        for (key, object) in self.objects.iter().filter(|(key, _)| key.starts_with(prefix)) {
            let rest = &key[prefix.len()..];
            let folder = (!delimiter.is_empty()).then(|| rest.find(delimiter)).flatten();
            let entry = match folder {
                Some(end) => (key[..prefix.len() + end + delimiter.len()].to_owned(), None),
                None => (key.clone(), Some(object)),
            };
            if entry.0.as_str() > after && entries.last().is_none_or(|last| last.0 != entry.0) {
                entries.push(entry);
            }
        }
        let is_truncated = entries.len() > PAGE;
        entries.truncate(PAGE);
        let mut body = format!("<?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>{BUCKET}</Name>");
        body += &format!("<Prefix>{}</Prefix><IsTruncated>{is_truncated}</IsTruncated>", escape(prefix));
        if let Some((last, _)) = entries.last().filter(|_| is_truncated) {
            body += &format!("<NextContinuationToken>{}</NextContinuationToken>", escape(last));
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
        Response::new(200, body + "</ListBucketResult>").with("Content-Type", "application/xml; charset=UTF-8")
    }
}

impl Object {
    fn tag(&self) -> String {
        format!("\"{}\"", &sha256(&self.content)[..32])
    }
}

fn http_date(time: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}

fn no_key() -> Response {
    error(404, "NoSuchKey", "The specified key does not exist.")
}

fn error(status: u16, code: &str, message: &str) -> Response {
    let (code, message) = (escape(code), escape(message));
    let body =
        format!("<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>");
    Response::new(status, body).with("Content-Type", "application/xml; charset=UTF-8")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

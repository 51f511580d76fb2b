//! Stand-in for Google Cloud Storage: the part of its XML API that our client uses, with generations, in memory, and the part of
//! its JSON API that the client of `pulumi` uses.
//!
//! Strict where the service is: a request without the token, a condition that is not met, a listing of more than 1,000
//! keys, a parameter or header that it does not know. `fake-gcs-server` has no uploads by the XML API, and no conditions.

mod json_api;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bucket::{Bucket, error, key_of, no_key};
use crate::http::{HttpServer, Request, Response};

/// Parameters of a listing.
const LIST: [&str; 4] = ["list-type", "prefix", "delimiter", "continuation-token"];

/// Running server with the bucket `reef`. It ends when it is dropped.
#[derive(Debug)]
pub struct GcsServer {
    http: HttpServer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    bucket: Bucket,
    /// True as long as the bucket does not exist.
    is_missing: bool,
    /// Token that requests need, with its requests at `/token`.
    token: Option<String>,
    /// True if requests need no token and may have any, as emulators let them.
    is_open: bool,
    /// Replies to the next requests, before they are processed.
    faults: Vec<Response>,
}

impl GcsServer {
    /// Starts a server on a free port of the loopback interface. Requests need the access token, if there is one.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(token: Option<&str>) -> io::Result<Self> {
        Self::with_state(State { token: token.map(str::to_owned), ..State::default() }).await
    }

    /// Starts a server that accepts requests with any token, and without one.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start_open() -> io::Result<Self> {
        Self::with_state(State { is_open: true, ..State::default() }).await
    }

    async fn with_state(state: State) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let http = HttpServer::start(move |request| {
            let response = shared.lock().unwrap_or_else(PoisonError::into_inner).respond(&request);
            async { response }
        })
        .await?;
        Ok(Self { http, state })
    }

    /// Makes the bucket missing until a request creates it.
    pub fn remove_bucket(&self) {
        self.state().is_missing = true;
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
        self.state().bucket.get(key).map(|object| (object.content_type.clone(), object.content.clone()))
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
            _ if self.is_open => {}
            (Some(token), Some(sent)) if *sent == format!("Bearer {token}") => {}
            (None, None) => {}
            (_, None) => return error(401, "AuthenticationRequired", "Authentication required."),
            (_, Some(_)) => return error(401, "AuthenticationRequired", "Invalid Credentials."),
        }
        if let Some(response) = json_api::respond(&mut self.bucket, request) {
            return response;
        }
        if let Some(name) = path.strip_prefix("/storage/v1/b") {
            return self.respond_about_bucket(&request.method, name, request);
        }
        if self.is_missing {
            return error(404, "NoSuchBucket", "The specified bucket does not exist.");
        }
        let key = match key_of(path) {
            Ok(key) => key,
            Err(refused) => return refused,
        };
        match (request.method.as_str(), &*key) {
            ("GET", "") => self.bucket.list(query, &LIST),
            ("GET" | "HEAD", key) => match self.bucket.get(key) {
                Some(object) => object.response(request).with("x-goog-generation", object.generation),
                None => no_key(),
            },
            ("PUT", key) if !key.is_empty() => self.write(request, key),
            ("DELETE", key) if !key.is_empty() => {
                if self.bucket.remove(key) {
                    Response::new(204, "")
                } else {
                    no_key()
                }
            }
            _ => error(405, "MethodNotAllowed", "The specified method is not allowed against this resource."),
        }
    }

    /// Responds to a request of the JSON API for the attributes of the bucket, or for its creation.
    fn respond_about_bucket(&mut self, method: &str, name: &str, request: &Request) -> Response {
        let refuse = |code: u16, message: &str| {
            let body = format!(r#"{{"error":{{"code":{code},"message":"{message}"}}}}"#);
            Response::new(code, body).with("Content-Type", "application/json")
        };
        let attributes: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match (method, name) {
            ("GET", "/reef") if !self.is_missing => {
                Response::new(200, r#"{"name":"reef"}"#).with("Content-Type", "application/json")
            }
            ("GET", _) => refuse(404, "The specified bucket does not exist."),
            ("POST", "") if attributes["name"] != "reef" || !request.path.contains("project=") => {
                refuse(400, "Invalid argument.")
            }
            ("POST", "") if !self.is_missing => refuse(409, "Your previous request to create the bucket succeeded."),
            ("POST", "") => {
                self.is_missing = false;
                Response::new(200, request.body.clone()).with("Content-Type", "application/json")
            }
            _ => refuse(405, "The specified method is not allowed."),
        }
    }

    fn write(&mut self, request: &Request, key: &str) -> Response {
        let current = self.bucket.get(key).map_or(0, |object| object.generation);
        let mut content_type = String::new();
        let mut source = None;
        for (name, value) in &request.headers {
            match name.as_str() {
                "x-goog-if-generation-match" if *value != current.to_string() => {
                    let message = "At least one of the pre-conditions you specified did not hold.";
                    return error(412, "PreconditionFailed", message);
                }
                "x-goog-if-generation-match" => {}
                "x-goog-copy-source" => source = Some(value),
                "content-type" => content_type.clone_from(value),
                name if name.starts_with("x-goog") || name.starts_with("if-") => {
                    return error(400, "InvalidArgument", &format!("The stand-in does not know the header {name}."));
                }
                _ => {}
            }
        }
        let mut content = request.body.clone();
        if let Some(source) = source {
            let Some(found) = self.bucket.source(source) else { return no_key() };
            content.clone_from(&found.content);
            content_type.clone_from(&found.content_type);
        }
        let object = self.bucket.put(key, content, content_type);
        Response::new(200, "").with("ETag", object.tag()).with("x-goog-generation", object.generation)
    }
}

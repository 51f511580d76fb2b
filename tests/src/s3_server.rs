//! Stand-in for S3: the part of its API that `sc` and `pulumi` use, with conditional writes, in memory. Each request takes
//! at least a given time, as in a network.
//!
//! Strict where the service is: a condition that is not met, a listing of more than 1,000 keys, a parameter or condition
//! that it does not know. It requires a signature, and does not verify it. `moto`, against which the client is tested, takes
//! longer for a request than a benchmark can allow.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::bucket::{Bucket, error, key_of, no_key, xml};
use crate::http::{HttpServer, Request, Response};

/// Parameters of a listing. Amazon's SDKs add the name of the operation as `x-id`.
const LIST: [&str; 6] = ["list-type", "prefix", "delimiter", "continuation-token", "max-keys", "x-id"];

/// Running server with the bucket `reef`. It ends when it is dropped.
#[derive(Debug)]
pub struct S3Server {
    http: HttpServer,
}

impl S3Server {
    /// Starts a server on a free port of the loopback interface. It replies after the delay.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(delay: Duration) -> io::Result<Self> {
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let http = HttpServer::start(move |request| {
            let bucket = Arc::clone(&bucket);
            async move {
                tokio::time::sleep(delay).await;
                respond(&mut bucket.lock().unwrap_or_else(PoisonError::into_inner), &request)
            }
        })
        .await?;
        Ok(Self { http })
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.http.url()
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        self.http.requests()
    }
}

fn respond(bucket: &mut Bucket, request: &Request) -> Response {
    if request.header("authorization").is_none_or(|sent| !sent.starts_with("AWS4-HMAC-SHA256 ")) {
        return error(403, "AccessDenied", "Access Denied");
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let key = match key_of(path) {
        Ok(key) => key,
        Err(refused) => return refused,
    };
    if key.is_empty() && request.method == "GET" {
        return bucket.list(query, &LIST);
    }
    if let Some(unknown) = query.split('&').find(|pair| !pair.is_empty() && !pair.starts_with("x-id=")) {
        return error(400, "InvalidArgument", &format!("The stand-in does not know the parameter {unknown}."));
    }
    match (request.method.as_str(), &*key) {
        (_, "") => error(405, "MethodNotAllowed", "The specified method is not allowed against this resource."),
        ("GET", key) => bucket.get(key).map_or_else(no_key, |object| object.response(request)),
        ("HEAD", key) => {
            let found = bucket.get(key).map_or_else(no_key, |object| object.response(request));
            Response { body: Vec::new(), ..found }
        }
        ("PUT", key) => write(bucket, request, key),
        // S3 does not say whether there was an object.
        ("DELETE", key) => {
            bucket.remove(key);
            Response::new(204, "")
        }
        _ => error(405, "MethodNotAllowed", "The specified method is not allowed against this resource."),
    }
}

fn write(bucket: &mut Bucket, request: &Request, key: &str) -> Response {
    let current = bucket.get(key).map(|object| object.tag());
    let not_met = || error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
    for (name, value) in request.headers.iter().filter(|(name, _)| name.starts_with("if-")) {
        match (name.as_str(), value.as_str(), &current) {
            ("if-none-match", "*", None) => {}
            ("if-none-match", "*", Some(_)) => return not_met(),
            ("if-match", tag, Some(current)) if tag == current => {}
            ("if-match", _, Some(_)) => return not_met(),
            ("if-match", _, None) => return no_key(),
            _ => return error(501, "NotImplemented", &format!("The stand-in does not know the header {name}.")),
        }
    }
    if request.header("content-encoding").is_some_and(|encoding| encoding.contains("aws-chunked")) {
        return error(501, "NotImplemented", "The stand-in does not know bodies in chunks of their own.");
    }
    if let Some(source) = request.header("x-amz-copy-source") {
        let Some(found) = bucket.source(source).cloned() else { return no_key() };
        let copy = bucket.put(key, found.content, found.content_type);
        let document = format!(
            "<CopyObjectResult><LastModified>{:.3}</LastModified><ETag>{}</ETag></CopyObjectResult>",
            copy.modified(),
            copy.tag()
        );
        return xml(200, document);
    }
    let content_type = request.header("content-type").unwrap_or("binary/octet-stream").to_owned();
    let object = bucket.put(key, request.body.clone(), content_type);
    Response::new(200, "").with("ETag", object.tag())
}

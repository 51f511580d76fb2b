//! Part of the JSON API of Google Cloud Storage that Google's client for Go uses for objects, which `pulumi` has.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::bucket::{Bucket, Object};
use crate::http::{Request, Response};

/// Returns the reply to a request for objects; `None` for another path.
pub(super) fn respond(bucket: &mut Bucket, request: &Request) -> Option<Response> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if path == "/upload/storage/v1/b/reef/o" {
        return Some(upload(bucket, request, query));
    }
    let path = path.strip_prefix("/storage/v1/b/reef/o")?;
    Some(match (request.method.as_str(), path.strip_prefix('/')) {
        ("GET", None) => list(bucket, query),
        ("GET", Some(key)) => match bucket.get(&decoded(key)) {
            Some(object) => reply(200, &attributes(&decoded(key), object)),
            None => refusal(404, "No such object"),
        },
        ("DELETE", Some(key)) => {
            if bucket.remove(&decoded(key)) {
                Response::new(204, "")
            } else {
                refusal(404, "No such object")
            }
        }
        ("POST", Some(path)) => match path.split_once("/rewriteTo/b/reef/o/") {
            Some((source, target)) => rewrite(bucket, &decoded(source), &decoded(target)),
            None => refusal(400, "The stand-in knows only rewriteTo."),
        },
        _ => refusal(405, "The specified method is not allowed."),
    })
}

/// Stores the second part of a body of two: attributes and content.
fn upload(bucket: &mut Bucket, request: &Request, query: &str) -> Response {
    if parameter(query, "uploadType").as_deref() != Some("multipart") {
        return refusal(400, "The stand-in knows only uploads of the type multipart.");
    }
    let boundary = request.header("content-type").and_then(|kind| kind.split_once("boundary=")).map(|(_, text)| text);
    let Some(parts) = boundary.and_then(|boundary| parts(&request.body, boundary.trim_matches('"'))) else {
        return refusal(400, "The body has not two parts.");
    };
    let named: Value = serde_json::from_slice(parts[0]).unwrap_or_default();
    let Some(key) = parameter(query, "name").or_else(|| named["name"].as_str().map(str::to_owned)) else {
        return refusal(400, "Required parameter: name");
    };
    let content_type = named["contentType"].as_str().unwrap_or("application/octet-stream").to_owned();
    reply(200, &attributes(&key, bucket.put(&key, parts[1].to_vec(), content_type)))
}

/// Returns the contents of the two parts of a body.
fn parts<'b>(body: &'b [u8], boundary: &str) -> Option<[&'b [u8]; 2]> {
    let separator = format!("--{boundary}");
    let find = |text: &'b [u8], wanted: &str| text.windows(wanted.len()).position(|bytes| bytes == wanted.as_bytes());
    let content = |part: &'b [u8]| Some(&part[find(part, "\r\n\r\n")? + 4..]);
    let second = separator.len() + find(&body[separator.len()..], &separator)?;
    let last = second + separator.len() + find(&body[second + separator.len()..], &separator)?;
    let without_newline = |part: &'b [u8]| part.strip_suffix(b"\r\n").unwrap_or(part);
    Some([content(without_newline(&body[..second]))?, content(without_newline(&body[second..last]))?])
}

fn rewrite(bucket: &mut Bucket, source: &str, target: &str) -> Response {
    let Some(Object { content, content_type, .. }) = bucket.get(source).cloned() else {
        return refusal(404, "No such object");
    };
    let size = content.len().to_string();
    let copied = attributes(target, bucket.put(target, content, content_type));
    reply(200, &json!({ "done": true, "totalBytesRewritten": size, "objectSize": size, "resource": copied }))
}

fn list(bucket: &Bucket, query: &str) -> Response {
    let text = |name| parameter(query, name).unwrap_or_default();
    let page = bucket.page(&text("prefix"), &text("delimiter"), &text("pageToken"));
    let mut listing = json!({ "items": [], "prefixes": [] });
    for (key, object) in &page.entries {
        let (list, entry) = match object {
            Some(object) => ("items", attributes(key, object)),
            None => ("prefixes", json!(key)),
        };
        listing[list].as_array_mut().expect("it is a list").push(entry);
    }
    if let Some(next) = page.next {
        listing["nextPageToken"] = json!(next);
    }
    reply(200, &listing)
}

fn attributes(key: &str, object: &Object) -> Value {
    json!({
        "bucket": "reef",
        "name": key,
        "generation": object.generation.to_string(),
        "size": object.content.len().to_string(),
        "contentType": object.content_type,
        "updated": object.modified().to_string(),
        "etag": object.tag(),
    })
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(known, _)| *known == name).map(|(_, value)| decoded(&value.replace('+', " ")));
    values.next()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn reply(status: u16, body: &Value) -> Response {
    Response::new(status, body.to_string()).with("Content-Type", "application/json")
}

fn refusal(status: u16, message: &str) -> Response {
    reply(status, &json!({ "error": { "code": status, "message": message } }))
}

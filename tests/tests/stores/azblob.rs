//! Requests to Azure Blob Storage and the replies to them, against a server of the test.

use std::error::Error;
use std::sync::{Arc, Mutex};

use cloud::azblob::{AzblobUrl, open_azblob};
use state::store::{ObjectError, ObjectErrorKind, Objects, OutageReport};
use tests::http::{HttpServer, Response};

/// Starts a server that sends these replies, one after the other, and opens a container of it.
async fn start(replies: Vec<Response>) -> (HttpServer, Arc<dyn Objects>) {
    let replies = Arc::new(Mutex::new(replies.into_iter()));
    let server = HttpServer::start(move |_| {
        let reply = replies.lock().unwrap().next();
        async move { reply.unwrap_or_else(|| Response::new(418, "")) }
    });
    let server = server.await.unwrap();
    let host = server.url().replace("http://", "");
    let url = format!("azblob://state/team?domain={host}&protocol=http");
    let variables = [("AZURE_STORAGE_ACCOUNT", "reef"), ("AZURE_STORAGE_KEY", "aGlkZGVu")];
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let objects = open_azblob(&AzblobUrl::parse(&url).unwrap(), &environment, OutageReport::default()).unwrap();
    (server, objects)
}

/// Returns the methods and the paths of the requests.
fn requests(server: &HttpServer) -> Vec<String> {
    server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

fn copying(status: u16, copy: &str) -> Response {
    Response::new(status, "").with("x-ms-copy-status", copy)
}

fn refused(status: u16, code: &str) -> Response {
    let body = format!("<?xml version='1.0'?><Error><Code>{code}</Code><Message>Words</Message></Error>");
    Response::new(status, body).with("Content-Type", "application/xml")
}

fn text(server: &HttpServer, error: &ObjectError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(!text.contains("aGlkZGVu") && !text.contains("SharedKey"), "{text}");
    text.replace(server.url().trim_start_matches("http://"), "HOST")
}

#[tokio::test]
async fn copy_is_complete_once_the_service_says_so() {
    let replies = vec![copying(202, "pending"), copying(200, "pending"), copying(200, "success")];
    let (server, objects) = start(replies).await;
    assert!(objects.copy("a.json", "a.json.bak").await.unwrap());
    let target = "/reef/state/team/a.json.bak";
    assert_eq!(requests(&server), [format!("PUT {target}"), format!("HEAD {target}"), format!("HEAD {target}")]);
    let requests = server.requests();
    let source = format!("{}/reef/state/team/a.json", server.url());
    assert_eq!(requests[0].header("x-ms-copy-source"), Some(&*source));
    assert!(requests.iter().all(|request| request.header("authorization").unwrap().starts_with("SharedKey reef:")));
}

#[tokio::test]
async fn copy_that_does_not_succeed_is_an_error() {
    let gone = Response::new(404, "").with("x-ms-error-code", "BlobNotFound");
    let rows = [
        (vec![copying(202, "aborted")], "the copy has ended with the status `aborted`"),
        (vec![copying(202, "pending"), copying(200, "failed")], "the copy has ended with the status `failed`"),
        (vec![Response::new(202, "")], "the reply has no status of the copy"),
    ];
    for (replies, expected) in rows {
        let (server, objects) = start(replies).await;
        let error = objects.copy("a.json", "b.json").await.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::Other, "{error:?}");
        assert!(text(&server, &error).contains(expected), "{error:?}");
    }
    for missing in [refused(404, "BlobNotFound"), refused(404, "CannotVerifyCopySource")] {
        let (_server, objects) = start(vec![missing]).await;
        assert!(!objects.copy("a.json", "b.json").await.unwrap());
    }
    // Another program has removed the copy meanwhile.
    let (_server, objects) = start(vec![copying(202, "pending"), gone]).await;
    assert!(!objects.copy("a.json", "b.json").await.unwrap());
}

#[tokio::test]
async fn removal_is_one_request_that_is_repeated() {
    let cut = Response { content_length: Some(9), ..Response::new(503, "") };
    let (server, objects) = start(vec![refused(503, "ServerBusy"), cut, refused(404, "BlobNotFound")]).await;
    objects.remove("a b.json").await.unwrap();
    assert_eq!(requests(&server), ["DELETE /reef/state/team/a%20b.json"; 3]);
    let (server, objects) = start(vec![refused(403, "AuthorizationFailure")]).await;
    let error = objects.remove("a.json").await.unwrap_err();
    assert_eq!((error.kind, requests(&server).len()), (ObjectErrorKind::Denied, 1), "{error:?}");
    let (server, objects) = start(vec![Response::new(200, "<html>Please log in</html>")]).await;
    let error = objects.remove("a.json").await.unwrap_err();
    let expected = "HOST did not reply as a store of objects does: it sent a content where none belongs (`<html>`)";
    assert!(text(&server, &error).contains(expected), "{error:?}");
}

/// Shows: state.md#stores "a page of a proxy or of a login is neither an empty listing nor a lock that is gone"
#[tokio::test]
async fn pages_of_a_listing_are_requested_until_the_last_one() {
    let page = |name: &str, next: &str| {
        let blob = format!(
            "<Blob><Name>team/locks/{name}</Name><Properties><Last-Modified>Sun, 29 Nov 2026 10:00:00 GMT</Last-Modified>\
             <Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob>"
        );
        let body =
            format!("<EnumerationResults><Blobs>{blob}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>");
        Response::new(200, body).with("Content-Type", "application/xml")
    };
    let (server, objects) = start(vec![page("a.json", "m 1"), page("b.json", "")]).await;
    let listed: Vec<_> = objects.list("locks").await.unwrap().into_iter().map(|object| object.name).collect();
    assert_eq!(listed, ["a.json", "b.json"]);
    let query = "GET /reef/state?restype=container&comp=list&prefix=team%2Flocks%2F&delimiter=%2F";
    assert_eq!(requests(&server), [format!("{query}&maxresults=1000"), format!("{query}&marker=m+1&maxresults=1000")]);

    let (server, objects) = start(vec![Response::new(200, "<html>Please log in</html>")]).await;
    let error = objects.list("locks").await.unwrap_err();
    let expected = "HOST did not reply as a store of objects does: it sent no list of objects (`<html>`); check the domain of \
                    the account, and a proxy or login page on the way";
    assert!(text(&server, &error).contains(expected), "{}", text(&server, &error));
}

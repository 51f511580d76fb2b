//! Proxy in front of stores, with a server of the test behind it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tests::http::{HttpServer, Response};
use tests::store_proxy::{Conditions, Fault, StoreProxy, round_trips};

/// Body of each reply of the server.
const BODY: &str = "content of the reply";

/// Proxy, and the requests that reached the server behind it.
struct Store {
    server: HttpServer,
    proxy: StoreProxy,
}

impl Store {
    /// Starts a server that has objects with the tag `"t"` at paths that begin with `/old`, and replies with the same body to all.
    async fn start() -> Self {
        let server = HttpServer::start(|request| async move {
            let status = if request.method == "HEAD" && !request.path.starts_with("/old") { 404 } else { 200 };
            Response::new(status, if request.method == "HEAD" { "" } else { BODY }).with("ETag", "\"t\"")
        });
        let server = server.await.unwrap();
        let proxy = StoreProxy::in_front_of(&server.url()).unwrap();
        Self { server, proxy }
    }

    /// Returns the paths that reached the server, without those of HEAD.
    fn received(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter().filter(|request| request.method != "HEAD");
        requests.map(|request| request.path).collect()
    }

    /// Starts a thread that sends a request with headers, and returns the whole reply.
    fn send(&self, method: &str, path: &str, headers: &str) -> std::thread::JoinHandle<String> {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: store\r\n{headers}Content-Length: 2\r\n\r\nab");
        let port = self.proxy.port();
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        })
    }

    fn get(&self, path: &str) -> String {
        self.send("GET", path, "").join().unwrap()
    }

    fn status(&self, method: &str, path: &str, headers: &str) -> String {
        let reply = self.send(method, path, headers).join().unwrap();
        reply.split(' ').nth(1).unwrap_or_default().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_forwarded_unchanged_and_recorded() {
    let store = Store::start().await;
    let reply = store.send("PUT", "/a?x=1", "If-Match: \"t\"\r\nExpect: 100-continue\r\n").join().unwrap();
    assert!(reply.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200") && reply.ends_with(BODY), "{reply}");
    let received = store.server.requests().remove(0);
    assert_eq!((received.header("host"), received.body.as_slice()), (Some("store"), &b"ab"[..]));
    store.get("/b");
    let requests = store.proxy.requests();
    let first = &requests[0];
    assert_eq!((first.method.as_str(), first.path.as_str(), first.status), ("PUT", "/a?x=1", Some(200)));
    assert_eq!(first.conditions, [("if-match".to_owned(), "\"t\"".to_owned())]);
    assert_eq!(round_trips(&requests), 2);
    store.proxy.forget_requests();
    assert_eq!(store.proxy.requests(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_hit_the_requests_that_they_are_set_for() {
    let store = Store::start().await;
    for (number, fault) in [Fault::CutBefore, Fault::CutAfter, Fault::CutReply, Fault::BUSY].into_iter().enumerate() {
        store.proxy.fail_at(number + 1, fault);
    }
    let replies: Vec<_> = (0..6).map(|number| store.get(&format!("/{number}"))).collect();
    assert!(replies[0].ends_with(BODY) && replies[5].ends_with(BODY));
    assert_eq!((replies[1].as_str(), replies[2].as_str()), ("", ""));
    assert!(replies[3].ends_with("\r\n\r\ncontent of"), "{}", replies[3]);
    assert!(replies[4].starts_with("HTTP/1.1 503") && replies[4].contains("<Code>SlowDown</Code>"), "{}", replies[4]);
    assert_eq!(store.received(), ["/0", "/2", "/3", "/5"]);
    store.proxy.throttle(2);
    let statuses: Vec<_> = (0..3).map(|_| store.status("GET", "/", "")).collect();
    assert_eq!(statuses, ["503", "503", "200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_are_delayed_concurrently() {
    let store = Store::start().await;
    store.proxy.set_delay(Duration::from_millis(200));
    let started = Instant::now();
    let running: Vec<_> = (0..10).map(|number| store.send("GET", &format!("/{number}"), "")).collect();
    running.into_iter().for_each(|running| assert!(running.join().unwrap().ends_with(BODY)));
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(200) && elapsed < Duration::from_millis(1500), "{elapsed:?}");
    assert_eq!(round_trips(&store.proxy.requests()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn overtaken_request_is_received_after_the_next_one() {
    let store = Store::start().await;
    store.proxy.fail_next(Fault::Overtaken);
    let first = store.send("GET", "/first", "");
    while store.proxy.requests().is_empty() {
        std::thread::yield_now();
    }
    store.get("/second");
    first.join().unwrap();
    assert_eq!(store.received(), ["/second", "/first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn held_requests_go_on_when_the_proxy_recovers() {
    for (fault, received) in [(Fault::HeldBefore, 0), (Fault::HeldAfter, 1)] {
        let store = Store::start().await;
        store.proxy.fail_next(fault);
        let held = store.send("GET", "/", "");
        assert!(store.proxy.wait_until_held(|| false));
        assert_eq!(store.received().len(), received, "{fault:?}");
        store.proxy.recover();
        assert!(held.join().unwrap().ends_with(BODY), "{fault:?}");
        assert_eq!(store.received(), ["/"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_checked_by_the_proxy_or_hidden_from_the_store() {
    let store = Store::start().await;
    let cases = [
        ("/old", "If-None-Match: *\r\n", "412"),
        ("/new", "If-None-Match: *\r\n", "200"),
        ("/old", "If-Match: \"t\"\r\n", "200"),
        ("/old", "If-Match: \"u\"\r\n", "412"),
        ("/new", "If-Match: \"t\"\r\n", "412"),
    ];
    store.proxy.set_conditions(Conditions::Proxy);
    for (path, condition, status) in cases {
        assert_eq!(store.status("PUT", path, condition), status, "{path} {condition}");
    }
    assert_eq!(store.received(), ["/new", "/old"]);
    store.proxy.set_conditions(Conditions::Ignored);
    assert_eq!(store.status("PUT", "/old", "If-None-Match: *\r\n"), "200");
    assert_eq!(store.server.requests().pop().unwrap().header("if-none-match"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_another_time_are_refused() {
    let store = Store::start().await;
    let date = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let header = format!("x-amz-date: {date}\r\n");
    store.proxy.check_request_times();
    assert_eq!(store.status("GET", "/", &header), "200");
    for shift in [-3600, 3600] {
        store.proxy.shift_clock(shift);
        assert_eq!(store.status("GET", "/", &header), "403");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_an_earlier_record_do_not_count() {
    let store = Store::start().await;
    store.proxy.fail_next(Fault::HeldBefore);
    let held = store.send("GET", "/", "");
    assert!(store.proxy.wait_until_held(|| false));
    store.proxy.forget_requests();
    store.proxy.recover();
    held.join().unwrap();
    assert_eq!(store.proxy.requests(), []);
}

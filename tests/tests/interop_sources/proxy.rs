//! Packages through a proxy that asks for a password: Tinyproxy (Debian: `tinyproxy`).

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tests::commands::run;
use tests::releases::{Entry, ReleaseServer, tar_gz};
use tests::sdk_providers;

use super::{SDK, install_provision_and_destroy, program};

/// Proxy with the account `reef`. It ends when it is dropped.
struct Proxy {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Proxy {
    fn start() -> Self {
        if Command::new("tinyproxy").arg("-v").output().is_err() {
            run(Command::new("apt-get").arg("update")).unwrap();
            let mut install = Command::new("apt-get");
            install.args(["install", "--yes", "--no-install-recommends", "tinyproxy"]);
            run(install.env("DEBIAN_FRONTEND", "noninteractive")).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let log = folder.path().join("log").display().to_string();
        let config = format!(
            "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nLogFile \"{log}\"\nLogLevel Connect\nBasicAuth reef p4ss\n"
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut process = Command::new("tinyproxy");
        process.args(["-d", "-c"]).arg(folder.path().join("config")).stdout(Stdio::null()).stderr(Stdio::null());
        let process = process.spawn().unwrap();
        let proxy = Self { process, folder, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "tinyproxy does not listen");
            std::thread::yield_now();
        }
        proxy
    }

    /// Returns a repository behind the proxy, whose `sc` trusts the authority of a server.
    fn repository(&self, server: &ReleaseServer, login: &str) -> sdk_providers::Repository {
        let proxy = format!("http://{login}@127.0.0.1:{}", self.port);
        let authority = server.authority().unwrap().display().to_string();
        sdk_providers::Repository::new(&[])
            .with_variable("HTTPS_PROXY", &proxy)
            .with_variable("SSL_CERT_FILE", &authority)
    }

    /// Returns the number of connections that it has made for its account.
    fn connections(&self) -> usize {
        fs::read_to_string(self.folder.path().join("log")).unwrap().matches("Established connection to host").count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended.
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Shows: plugin-recipes.md#hosts-of-the-own-network "`HTTPS_PROXY` and `NO_PROXY`; its certificate in `SSL_CERT_FILE`"
#[tokio::test(flavor = "multi_thread")]
async fn provider_is_fetched_through_a_proxy_with_a_password() {
    let server = ReleaseServer::start_tls().await.unwrap();
    let archive = tar_gz(&[("pulumi-resource-peergo", Entry::File(0o755, &program()))]).unwrap();
    let platform = bridge::plugin::Platform::current().unwrap().to_string();
    let asset = format!("pulumi-resource-peergo-v0.3.1-{platform}.tar.gz");
    server.publish("acme/pulumi-peergo", "v0.3.1", &[(&asset, &archive)]);
    // Loopback addresses are reached without a proxy.
    let address = server.api_url().replace("127.0.0.1", "0.0.0.0");
    let source = json!({
        "type": "github-release", "repository": "acme/pulumi-peergo", "version": "v0.3.1", "apiUrl": address,
    });
    tokio::task::spawn_blocking(move || {
        let proxy = Proxy::start();
        let plugins = json!([{ "name": SDK.package(), "source": source }]);
        let stranger = proxy.repository(&server, "reef:wr0ng");
        stranger.declare_sections(&plugins, &json!({}), &json!({}));
        let (exit, output) = stranger.run(&["plugin", "install"]);
        assert!(exit == 1 && output.contains("hint: a proxy refused the connection"), "{output}");
        assert!(!output.contains("wr0ng"), "{output}");
        assert_eq!((proxy.connections(), server.requests().len()), (0, 0));

        let repository = proxy.repository(&server, "reef:p4ss");
        install_provision_and_destroy(&repository, &source, || server.remove_releases());
        assert!(proxy.connections() > 0);
        let (_, output) = repository.run(&["doctor"]);
        assert!(output.contains(&format!("HTTPS_PROXY names 127.0.0.1:{}", proxy.port)), "{output}");
        assert!(!output.contains("p4ss"), "{output}");

        drop(proxy);
        let (exit, output) = stranger.run(&["plugin", "install"]);
        assert!(exit == 1 && output.contains("hint: ") && output.contains("HTTPS_PROXY"), "{output}");
    })
    .await
    .unwrap();
}

//! Git over ssh, by the server of OpenSSH (Debian: `openssh-server`) on loopback, with keys that are made for a test.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tests::commands::run;
use tests::sdk_providers;

use super::{install_provision_and_destroy, provider_in_git};

const SSHD: &str = "/usr/sbin/sshd";
/// Folder that the server demands if it is run by root.
const SEPARATION: &str = "/run/sshd";

/// Server that accepts one key, a process for each connection. It ends with the process of the test.
struct SshServer {
    folder: tempfile::TempDir,
    port: u16,
}

impl SshServer {
    fn start() -> Self {
        if !Path::new(SSHD).exists() {
            run(Command::new("apt-get").arg("update")).unwrap();
            let mut install = Command::new("apt-get");
            install.args(["install", "--yes", "--no-install-recommends", "openssh-server"]);
            run(install.env("DEBIAN_FRONTEND", "noninteractive")).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all(SEPARATION).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for key in ["host", "known", "other"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path(key))).unwrap();
        }
        fs::copy(path("known.pub"), path("authorized")).unwrap();
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nUsePAM no\nStrictModes no\nPidFile none\n",
            path("host").display(),
            path("authorized").display()
        );
        fs::write(path("config"), config).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let host = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("hosts"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let config = path("config");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (input, output) = (connection.unwrap(), Stdio::null());
                let connection = OwnedFd::from(input.try_clone().unwrap());
                let mut server = Command::new(SSHD);
                server.arg("-i").arg("-f").arg(&config).stdin(OwnedFd::from(input)).stdout(connection).stderr(output);
                let mut server = server.spawn().unwrap();
                std::thread::spawn(move || server.wait());
            }
        });
        Self { folder, port }
    }

    /// Returns a repository whose git uses a key and the known hosts of a file.
    fn repository(&self, key: &str, hosts: &str) -> sdk_providers::Repository {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let command = format!(
            "ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -o UserKnownHostsFile={} -i {}",
            path(hosts),
            path(key)
        );
        sdk_providers::Repository::new(&[]).with_variable("GIT_SSH_COMMAND", &command)
    }

    /// Returns the address of a folder.
    fn url(&self, folder: &Path) -> String {
        let user = String::from_utf8(run(Command::new("id").arg("-un")).unwrap()).unwrap();
        format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, folder.display())
    }
}

/// Shows: plugins.md#git "fetches the repository with your keys and credential helpers"
#[test]
fn provider_from_git_over_ssh_provisions() {
    let (server, origin) = (SshServer::start(), provider_in_git());
    let source = json!({
        "type": "git", "repository": server.url(origin.path()), "version": "^0.3", "subdir": "dist",
    });
    let gone = origin.path().with_extension("gone");
    install_provision_and_destroy(&server.repository("known", "hosts"), &source, || {
        fs::rename(origin.path(), &gone).unwrap()
    });
    fs::rename(&gone, origin.path()).unwrap();

    for (key, hosts, message, hint) in [
        ("other", "hosts", "Permission denied (publickey", "hint: the server accepts none of your ssh keys"),
        (
            "known",
            "authorized",
            "Host key verification failed",
            "hint: connect once with ssh and accept the key of the host",
        ),
    ] {
        let stranger = server.repository(key, hosts);
        let plugins = json!([{ "name": "peergo", "source": source }]);
        stranger.declare_sections(&plugins, &json!({}), &json!({}));
        let (exit, output) = stranger.run(&["plugin", "install"]);
        assert!(exit == 1 && output.contains(message) && output.contains(hint), "{output}");
    }
}

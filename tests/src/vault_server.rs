//! Server of HashiCorp Vault itself, in a process of its own on a free port, with its state in memory and one key to unseal it.
//!
//! Its program is `vault` on PATH, else the one that the command in docs/testing.md has built. [`crate::vault`] is the stand-in for
//! machines without it.

use std::io::{self, BufRead as _, BufReader, PipeReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bridge::process::HostEnvironment;

use crate::commands::run;

/// Token of the server that may do everything.
pub const ROOT_TOKEN: &str = "hidden-root";

/// Beginning of the line with the key that unseals the server, and the words with which it is ready.
const UNSEAL_KEY: &str = "Unseal Key: ";
const READY: &str = "Development mode should NOT be used in production";
/// Number of ports to try. Another process may take a free one first.
const TRIES: usize = 5;

/// Running server. It ends when it is dropped.
#[derive(Debug)]
pub struct VaultServer {
    process: Child,
    /// Kept open: the server writes its log to it.
    _output: BufReader<PipeReader>,
    program: PathBuf,
    home: tempfile::TempDir,
    url: String,
    unseal_key: String,
}

impl VaultServer {
    /// Returns the path of the program `vault`, if it is there.
    pub fn find_program() -> Option<PathBuf> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/interop/vault/vault");
        let on_path = HostEnvironment::new(std::env::vars_os()).find_program("vault");
        on_path.or_else(|| built.is_file().then_some(built))
    }

    /// Starts a server with an engine at `transit`.
    ///
    /// # Errors
    /// Returns an error if the server does not start.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut tried = Err(io::Error::other("vault has not started"));
        for _ in 0..TRIES {
            tried = Self::start_once(program);
            if tried.is_ok() {
                break;
            }
        }
        let server = tried?;
        server.run("secrets enable transit")?;
        Ok(server)
    }

    fn start_once(program: &Path) -> io::Result<Self> {
        let home = tempfile::Builder::new().prefix("sc-vault-").tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        // Errors only: nobody reads the log.
        let (output, writer) = io::pipe()?;
        let process = Command::new(program)
            .args(["server", "-dev", "-dev-no-store-token", "-log-level=error"])
            .arg(format!("-dev-root-token-id={ROOT_TOKEN}"))
            .arg(format!("-dev-listen-address={address}"))
            .env_clear()
            .env("HOME", home.path())
            .env("VAULT_CLI_NO_COLOR", "true")
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        let (url, unseal_key) = (format!("http://{address}"), String::new());
        let output = BufReader::new(output);
        let mut server = Self { process, _output: output, program: program.to_owned(), home, url, unseal_key };
        loop {
            let mut line = String::new();
            if server._output.read_line(&mut line)? == 0 {
                return Err(io::Error::other("vault has not started"));
            }
            if let Some(key) = line.trim().strip_prefix(UNSEAL_KEY) {
                key.clone_into(&mut server.unseal_key);
            }
            if line.contains(READY) {
                return Ok(server);
            }
        }
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a command of `vault` with the root token, whose arguments have no spaces, and returns what it prints.
    ///
    /// # Errors
    /// Returns an error if the command fails; it contains the standard error.
    pub fn run(&self, arguments: &str) -> io::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments.split(' ')).env_clear().env("HOME", self.home.path());
        command.env("VAULT_ADDR", &self.url).env("VAULT_TOKEN", ROOT_TOKEN);
        let printed = String::from_utf8(run(&mut command)?).map_err(io::Error::other)?;
        Ok(printed.trim().to_owned())
    }

    /// Returns a new token with a policy, given in HCL, for a period such as `1h`.
    ///
    /// # Errors
    /// Returns the errors of [`VaultServer::run`].
    pub fn new_token(&self, policy: &str, period: &str) -> io::Result<String> {
        let file = self.home.path().join("policy.hcl");
        std::fs::write(&file, policy)?;
        self.run(&format!("policy write sc {}", file.display()))?;
        self.run(&format!("token create -field=token -no-default-policy -policy=sc -ttl={period}"))
    }

    /// Seals the server.
    ///
    /// # Errors
    /// Returns the errors of [`VaultServer::run`].
    pub fn seal(&self) -> io::Result<()> {
        self.run("operator seal").map(drop)
    }

    /// Unseals the server.
    ///
    /// # Errors
    /// Returns the errors of [`VaultServer::run`].
    pub fn unseal(&self) -> io::Result<()> {
        self.run(&format!("operator unseal {}", self.unseal_key)).map(drop)
    }
}

impl Drop for VaultServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

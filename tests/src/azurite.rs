//! Server with the interface of Azure Blob Storage: `azurite` from npm, in a process of its own on a free port, its state in memory.
//!
//! Signatures of keys and of shared access signatures are checked. Access tokens are accepted over TLS only, and there are no roles.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::commands::run;
use crate::sdks::{NodeModules, first_on_path, node_modules};

/// Account of the server, and its key: those of all emulators.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Key of the account.
pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Beginning of the line with which the server reports its address.
const LISTENS: &str = "Azurite Blob service successfully listens on ";

/// Running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Azurite {
    process: Child,
    /// Kept open: the server writes its last words to it.
    _output: BufReader<ChildStdout>,
    node: NodeModules,
    /// Address and port.
    host: String,
}

impl Azurite {
    /// Starts a server with a container.
    ///
    /// # Errors
    /// Returns an error if `azurite` cannot be installed or does not start.
    pub fn start(container: &str) -> io::Result<Self> {
        let node = node_modules("azurite", 22, &["azurite@3.35.0", "@azure/storage-blob@^12.34.0"])?;
        let options = ["--silent", "--skipApiVersionCheck", "--inMemoryPersistence", "--disableTelemetry"];
        let mut process = Command::new(node.folder().join(".bin/azurite-blob"))
            .args(options)
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
            .env("PATH", first_on_path(&node.bin())?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process.stdout.take().ok_or_else(|| io::Error::other("azurite has no output"))?;
        let mut output = BufReader::new(output);
        let host = loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                return Err(io::Error::other("azurite has not started"));
            }
            if let Some(url) = line.trim().strip_prefix(LISTENS) {
                break url.trim_start_matches("http://").to_owned();
            }
        };
        let server = Self { process, _output: output, node, host };
        server.node(&format!("await service.getContainerClient({container:?}).create()"))?;
        Ok(server)
    }

    /// Returns the address and the port of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    /// Runs lines of JavaScript against the server, and returns what they print: `service` is a client with the key of the account,
    /// `azure` the module.
    ///
    /// # Errors
    /// Returns an error if the lines fail; it contains their output.
    pub fn node(&self, lines: &str) -> io::Result<String> {
        let program = format!(
            "const azure = require('@azure/storage-blob');\n\
             const key = new azure.StorageSharedKeyCredential({ACCOUNT:?}, {KEY:?});\n\
             const service = new azure.BlobServiceClient('http://{host}/{ACCOUNT}', key);\n\
             (async () => {{ {lines} }})().catch((error) => {{ console.error(error); process.exit(1); }});\n",
            host = self.host
        );
        let mut command = Command::new(self.node.bin().join("node"));
        let printed = run(command.args(["-e", &program]).env("NODE_PATH", self.node.folder()))?;
        String::from_utf8(printed).map_err(io::Error::other)
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

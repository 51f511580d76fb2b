//! Server with the interface of AWS: `moto` from PyPI, in a process of its own on a free port, its state in memory.
//!
//! Requests are processed one at a time, so a condition and its write are one step. Signatures are not checked by default.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::commands::run;
use crate::sdks::{PythonVenv, python_venv};

/// Program that serves until it is killed, and prints its port first.
const SERVER: &str = "
import os, sys
os.environ['MOTO_PORT'] = '0'
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
application = DomainDispatcherApplication(create_backend_app)
certificate = tuple(sys.argv[1:3]) or None
server = make_server('127.0.0.1', 0, application, request_handler=MotoRequestHandler, ssl_context=certificate)
print(server.port, flush=True)
server.serve_forever()
";

/// Running server. It ends when it is dropped.
#[derive(Debug)]
pub struct MotoServer {
    process: Child,
    /// Kept open: the server logs the requests to its other output only.
    _output: BufReader<ChildStdout>,
    python: PythonVenv,
    url: String,
}

impl MotoServer {
    /// Starts a server that speaks HTTP.
    ///
    /// # Errors
    /// Returns an error if `moto` cannot be installed or does not start.
    pub fn start() -> io::Result<Self> {
        Self::start_with("http", &[])
    }

    /// Starts a server that speaks HTTPS with a certificate and its key, both in files of the form PEM.
    ///
    /// # Errors
    /// Returns an error if `moto` cannot be installed or does not start.
    pub fn start_tls(certificate: &Path, key: &Path) -> io::Result<Self> {
        Self::start_with("https", &[certificate, key])
    }

    fn start_with(scheme: &str, arguments: &[&Path]) -> io::Result<Self> {
        let python = python_venv("moto", &["moto[server,s3,kms,iam,sts]~=5.2"])?;
        let mut process = Command::new(python.python())
            .args(["-c", SERVER])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process.stdout.take().ok_or_else(|| io::Error::other("moto has no output"))?;
        let mut output = BufReader::new(output);
        let mut port = String::new();
        output.read_line(&mut port)?;
        let port: u16 = port.trim().parse().map_err(|_| io::Error::other("moto has not started"))?;
        let url = format!("{scheme}://127.0.0.1:{port}");
        Ok(Self { process, _output: output, python, url })
    }

    /// Returns the base URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs lines of Python against the server, and returns what they print: `client(NAME)` is the client of a service
    /// with credentials that are valid where no signatures are checked, `post(PATH, CONTENT)` sends a request to the
    /// server itself.
    ///
    /// # Errors
    /// Returns an error if the lines fail; it contains their output.
    pub fn python(&self, lines: &str) -> io::Result<String> {
        let program = format!(
            "import boto3, json, urllib.request\n\
             def client(name): return boto3.client(name, endpoint_url={url:?}, region_name='us-east-1',\n    \
             aws_access_key_id='AKIATEST', aws_secret_access_key='test', verify=False)\n\
             def post(path, content): urllib.request.urlopen(urllib.request.Request({url:?} + path, content.encode(),\n    \
             headers={{'Content-Type': 'text/plain'}})).read()\n\
             {lines}\n",
            url = self.url
        );
        let printed = run(Command::new(self.python.python()).args(["-W", "ignore", "-c", &program]))?;
        String::from_utf8(printed).map_err(io::Error::other)
    }
}

impl Drop for MotoServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

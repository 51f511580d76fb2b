//! Client of `yaml-language-server` from npm, which works like an editor: LSP over standard input and output.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tests::sdks::node_modules;

/// URI of the open document.
const DOCUMENT: &str = "file:///repo/.sc/stacks/reef/server.yaml";

/// Running language server, and the schema that documents refer to.
pub(crate) struct LanguageServer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    schema: String,
    version: u32,
}

/// Diagnostic that an editor shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// Line, from 1 on.
    pub(crate) line: u64,
    pub(crate) message: String,
}

impl LanguageServer {
    pub(crate) fn start(schema: &Path) -> Self {
        let node = node_modules("editor", 22, &["yaml-language-server@2.0.0"]).unwrap();
        let mut process = Command::new(node.bin().join("node"))
            .arg(node.folder().join("yaml-language-server/bin/yaml-language-server"))
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let schema = format!("file://{}", schema.display());
        let mut server = Self { process, input, output, schema, version: 0 };
        let capabilities = json!({
            "workspace": { "configuration": true },
            "textDocument": { "completion": { "completionItem": { "snippetSupport": true } } },
        });
        server.request("initialize", json!({ "processId": null, "rootUri": null, "capabilities": capabilities }));
        server.notify("initialized", json!({}));
        server
    }

    /// Opens or changes the document, and returns its diagnostics.
    pub(crate) fn diagnostics(&mut self, text: &str) -> Vec<Diagnostic> {
        self.version += 1;
        let text = format!("# yaml-language-server: $schema={}\n{text}", self.schema);
        if self.version == 1 {
            let document = json!({ "uri": DOCUMENT, "languageId": "yaml", "version": 1, "text": text });
            self.notify("textDocument/didOpen", json!({ "textDocument": document }));
        } else {
            let document = json!({ "uri": DOCUMENT, "version": self.version });
            let changes = json!([{ "text": text }]);
            self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
        }
        let published = self.receive_until(|message| message["method"] == "textDocument/publishDiagnostics");
        let diagnostic = |diagnostic: &Value| Diagnostic {
            // The client adds the first line itself.
            line: diagnostic["range"]["start"]["line"].as_u64().unwrap(),
            message: diagnostic["message"].as_str().unwrap().to_owned(),
        };
        published["params"]["diagnostics"].as_array().unwrap().iter().map(diagnostic).collect()
    }

    /// Returns the completions at a position, both numbers from 0.
    pub(crate) fn completions(&mut self, line: usize, column: usize) -> Vec<String> {
        let position = json!({ "line": line + 1, "character": column });
        // The server returns no completions before it has the settings of the editor.
        for _ in 0..1000 {
            let place = json!({ "textDocument": { "uri": DOCUMENT }, "position": position });
            let reply = self.request("textDocument/completion", place);
            let items = reply["items"].as_array().or(reply.as_array()).unwrap();
            if !items.is_empty() {
                return items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect();
            }
        }
        Vec::new()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        self.receive_until(|message| message["id"] == method && message.get("method").is_none())["result"].take()
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    /// Reads messages until one matches. Requests of the server are replied to in between.
    fn receive_until(&mut self, is_match: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if message.get("id").is_some() && message.get("method").is_some() {
                self.reply(&message);
            } else if is_match(&message) {
                return message;
            }
        }
    }

    fn reply(&mut self, request_message: &Value) {
        let result = match request_message["method"].as_str().unwrap() {
            "workspace/configuration" => Self::configuration(&request_message["params"]["items"]),
            _ => Value::Null,
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": request_message["id"], "result": result }));
    }

    /// Returns the settings of an editor. The document refers to its schema itself.
    fn configuration(items: &Value) -> Value {
        let yaml = json!({ "validate": true, "completion": true, "schemaStore": { "enable": false } });
        let settings = |item: &Value| if item["section"] == "yaml" { yaml.clone() } else { json!({}) };
        items.as_array().unwrap().iter().map(settings).collect()
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the language server has ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", text)) => length = text.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

impl Drop for LanguageServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

//! Stand-in for Google Cloud KMS: the two methods that encrypt and decrypt a data key, over HTTP.
//!
//! Checks what the service documents: the access token, the name and the state of the key, and the additional data of a
//! decryption. The form of a ciphertext is that of the stand-in, which protects nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::http::{HttpServer, Request, Response};

/// Access token that the server accepts.
pub const TOKEN: &str = "ya29.hidden-token";

/// Condition of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyState {
    /// The key can be used.
    #[default]
    Enabled,
    /// The current version of the key is disabled.
    Disabled,
    /// The account may not use the key.
    Denied,
    /// The service is overloaded for this number of further requests.
    Unavailable(usize),
}

#[derive(Debug, Default)]
struct Keys {
    states: BTreeMap<String, KeyState>,
    methods: Vec<String>,
}

/// Running server with some keys.
#[derive(Debug)]
pub struct GoogleKms {
    server: HttpServer,
    keys: Arc<Mutex<Keys>>,
}

fn lock(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GoogleKms {
    /// Starts a server with these keys, `projects/…/cryptoKeys/…`.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start(names: &[&str]) -> io::Result<Self> {
        let states = names.iter().map(|name| ((*name).to_owned(), KeyState::default())).collect();
        let keys = Arc::new(Mutex::new(Keys { states, methods: Vec::new() }));
        let of_server = Arc::clone(&keys);
        let server = HttpServer::start(move |request| {
            let response = response(&mut lock(&of_server), &request);
            async { response }
        });
        Ok(Self { server: server.await?, keys })
    }

    /// Returns the base URL of the server.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Changes the condition of a key.
    pub fn set(&self, name: &str, state: KeyState) {
        lock(&self.keys).states.insert(name.to_owned(), state);
    }

    /// Returns the methods that were called since the previous call of this function, such as `encrypt`.
    pub fn take_methods(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.keys).methods)
    }
}

fn response(keys: &mut Keys, request: &Request) -> Response {
    match reply(keys, request) {
        Ok(body) => Response::new(200, body.to_string()),
        Err((code, status, message)) => {
            let body = json!({ "error": { "code": code, "message": message, "status": status } });
            Response::new(code, body.to_string())
        }
    }
    .with("Content-Type", "application/json; charset=UTF-8")
}

type Refusal = (u16, &'static str, String);

fn reply(keys: &mut Keys, request: &Request) -> Result<Value, Refusal> {
    let malformed = || (400, "INVALID_ARGUMENT", "malformed request".to_owned());
    let path = request.path.split('?').next().unwrap_or_default();
    let (name, method) = path.strip_prefix("/v1/").and_then(|path| path.split_once(':')).ok_or_else(malformed)?;
    keys.methods.push(method.to_owned());
    if request.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return Err((401, "UNAUTHENTICATED", "Request had invalid authentication credentials.".to_owned()));
    }
    match keys.states.get_mut(name) {
        None => return Err((404, "NOT_FOUND", format!("CryptoKey {name} not found."))),
        Some(KeyState::Denied) => {
            let message = format!("Permission 'cloudkms.cryptoKeyVersions.useTo{method}' denied on resource '{name}'");
            return Err((403, "PERMISSION_DENIED", message));
        }
        Some(KeyState::Disabled) => {
            let message = format!("{name}/cryptoKeyVersions/1 is not enabled, current state is: DISABLED.");
            return Err((400, "FAILED_PRECONDITION", message));
        }
        Some(KeyState::Unavailable(left @ 1..)) => {
            *left -= 1;
            return Err((503, "UNAVAILABLE", "The service is currently unavailable.".to_owned()));
        }
        Some(KeyState::Enabled | KeyState::Unavailable(0)) => {}
    }
    let body: Value = serde_json::from_slice(&request.body).map_err(|_| malformed())?;
    let bytes = |member: &str| match body.get(member).and_then(Value::as_str) {
        Some(text) => BASE64.decode(text).map_err(|_| malformed()),
        None => Ok(Vec::new()),
    };
    let header = [name.as_bytes(), b"\n", &bytes("additionalAuthenticatedData")?, b"\n"].concat();
    match method {
        "encrypt" => {
            let inverted: Vec<u8> = bytes("plaintext")?.iter().map(|byte| !byte).collect();
            Ok(
                json!({ "name": format!("{name}/cryptoKeyVersions/1"), "ciphertext": BASE64.encode([header, inverted].concat()) }),
            )
        }
        "decrypt" => {
            let ciphertext = bytes("ciphertext")?;
            let inverted = ciphertext.strip_prefix(&*header).ok_or_else(|| {
                let message = "Decryption failed: verify that 'name' refers to the correct CryptoKey.";
                (400, "INVALID_ARGUMENT", message.to_owned())
            })?;
            let plaintext: Vec<u8> = inverted.iter().map(|byte| !byte).collect();
            Ok(json!({ "plaintext": BASE64.encode(plaintext) }))
        }
        _ => Err(malformed()),
    }
}

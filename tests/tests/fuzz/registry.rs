//! Answers of a registry of Terraform providers, and the files to which they refer: one of them is changed, and the others are as
//! they were published.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bridge::install::TerraformProviders;
use bridge::plugin::{TerraformProviderSource, WantedVersion};
use serde_json::json;
use tests::http::{HttpServer, Request, Response};
use tests::releases::sha256;

use crate::machine::Machine;
use crate::packages::SERVER_CASES;
use crate::{Read, fuzz_valid};

const SERVICES: &str = "/.well-known/terraform.json";
const VERSIONS: &str = "/v1/providers/acme/reef/versions";
const ARCHIVE: &str = "/v1/providers/acme/reef/1.2.0/download/linux/amd64";
const SUMS: &str = "/files/SHA256SUMS";
const SIGNATURE: &str = "/files/SHA256SUMS.sig";
const FILE: &str = "terraform-provider-reef_1.2.0_linux_amd64.zip";

type Files = BTreeMap<String, Vec<u8>>;

/// Returns a file that the harness has made, with a key of `AuthorKey`.
fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/terraform-registry");
    std::fs::read(folder.join(name)).unwrap()
}

/// Returns what a registry with one version serves, by path.
fn files() -> Files {
    let (archive, key) = (golden(FILE), String::from_utf8(golden("key.asc")).unwrap());
    let platforms = json!([{ "os": "linux", "arch": "amd64" }, { "os": "darwin", "arch": "arm64" }]);
    let version = |version: &str| json!({ "version": version, "protocols": ["5.0"], "platforms": platforms });
    let description = json!({
        "protocols": ["5.0"], "os": "linux", "arch": "amd64", "filename": FILE,
        "download_url": format!("/files/{FILE}"), "shasum": sha256(&archive),
        "shasums_url": SUMS, "shasums_signature_url": SIGNATURE,
        "signing_keys": { "gpg_public_keys": [{ "key_id": "0", "ascii_armor": key }] },
    });
    let answers = [
        (SERVICES, json!({ "providers.v1": "/v1/providers/" })),
        (VERSIONS, json!({ "versions": [version("1.1.0"), version("1.2.0")] })),
        (ARCHIVE, description),
    ];
    let answers = answers.map(|(path, answer)| (path.to_owned(), answer.to_string().into_bytes()));
    let files =
        [(SUMS, "SHA256SUMS"), (SIGNATURE, "SHA256SUMS.sig")].map(|(path, name)| (path.to_owned(), golden(name)));
    answers.into_iter().chain(files).chain([(format!("/files/{FILE}"), archive)]).collect()
}

/// Starts a server of files.
fn serve(machine: &Machine, files: &Arc<Mutex<Files>>) -> HttpServer {
    let files = Arc::clone(files);
    let respond = move |request: Request| {
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let response = match files.get(&request.path) {
            Some(content) => Response::new(200, content.clone()).with("Content-Type", "application/json"),
            None => Response::new(404, r#"{"errors":["Not Found"]}"#),
        };
        std::future::ready(response)
    };
    machine.runtime.block_on(HttpServer::start(respond)).unwrap()
}

/// Returns a reader that installs the provider from a registry whose file at a path is the content. What is accepted is the published
/// archive.
fn registry(path: &'static str) -> Read {
    let machine = Machine::online();
    let (published, served) = (files(), Arc::new(Mutex::new(files())));
    let (mut server, mut cases) = (serve(&machine, &served), 0);
    let wanted = WantedVersion::of_terraform("~> 1.0").unwrap();
    Box::new(move |content| {
        cases += 1;
        if cases % SERVER_CASES == 0 {
            server = serve(&machine, &served);
        }
        served.lock().unwrap().insert(path.to_owned(), content.to_vec());
        let source = TerraformProviderSource {
            platform: Some("linux-amd64".parse().unwrap()),
            registry_url: Some(server.url()),
            ..TerraformProviderSource::new("tf.example/acme/reef".parse().unwrap(), wanted.clone())
        };
        let program = machine.install(&TerraformProviders::new(machine.settings()), &source, usize::MAX >> 8)?;
        assert_eq!(program, b"#!/bin/sh\necho 1.2.0\n");
        if path == SUMS {
            assert_eq!(content, published[SUMS], "another checksum file is signed");
        }
        Ok(())
    })
}

fn fuzz_file(reader: &'static str, path: &'static str) {
    fuzz_valid(reader, 16, vec![files()[path].clone()], move || registry(path));
}

#[test]
fn damaged_services_of_a_registry_are_read_or_refused() {
    fuzz_file("services of a registry", SERVICES);
}

#[test]
fn damaged_versions_of_a_registry_are_read_or_refused() {
    fuzz_file("versions of a registry", VERSIONS);
}

#[test]
fn damaged_archive_description_of_a_registry_is_read_or_refused() {
    fuzz_file("description of an archive", ARCHIVE);
}

#[test]
fn damaged_signed_checksum_file_is_refused() {
    fuzz_file("signed checksum file", SUMS);
}

#[test]
fn damaged_signature_is_read_or_refused() {
    fuzz_file("signature", SIGNATURE);
}

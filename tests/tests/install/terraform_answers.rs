//! Tests of registries of Terraform providers that answer with something else than what they were asked for.

use std::sync::Arc;

use bridge::error::chain;
use serde_json::{Value, json};
use tests::http::Response;
use tests::releases::sha256;
use tests::terraform_registry::{AuthorKey, TerraformRegistry, provider_archive};

use super::Machine;
use super::terraform::{PROVIDER, install, provider_source, publish_provider, signed_registry};

/// Parts of the paths of the answer about an archive, of the checksum file, and of its signature.
const DOWNLOAD: &str = "/download/linux/amd64";
const SUMS: &str = "/SHA256SUMS";
/// The first one that a path contains counts, in the order of the texts.
const SIGNATURE: &str = "/SHA256SUMS.sig";

async fn refusal(registry: &TerraformRegistry) -> String {
    let machine = Machine::new();
    let error = install(&machine, &provider_source(registry, "1.2.0")).await.unwrap_err();
    machine.assert_empty();
    chain(&error)
}

fn set(key: &'static str, value: Value) -> impl Fn(&mut Value) + Send + Sync + 'static {
    move |answer| answer[key] = value.clone()
}

/// Shows: plugins.md#terraform-providers "The answer has to be about the provider that was asked for"
#[tokio::test]
async fn answer_about_something_else_is_refused() {
    let (registry, key) = signed_registry().await;
    let digest = sha256(b"other");
    let invalid = "cannot use the signature of the checksums of version 1.2.0 of tf.example/acme/reef at 127.0.0.1";
    let other_key = format!("it is made by none of the keys that the registry names ({})", key.fingerprint());
    for (key, value, expected) in [
        (
            "filename",
            json!("terraform-provider-lake_1.2.0_linux_amd64.zip"),
            "its archive is \"terraform-provider-lake",
        ),
        (
            "filename",
            json!("terraform-provider-reef_1.1.0_linux_amd64.zip"),
            "its archive is \"terraform-provider-reef_1.1.0",
        ),
        ("filename", json!("../../x.zip"), "its archive is"),
        ("os", json!("darwin"), "it describes the archive of another platform"),
        ("arch", json!("arm64"), "it describes the archive of another platform"),
        ("shasum", json!(digest), "its checksum file has sha256:"),
        ("shasum", json!("x"), "its `shasum` is not a SHA-256"),
        ("shasum", Value::Null, "not an archive"),
        ("download_url", json!("//evil.example/x.zip"), "a relative address leads to another server"),
        ("download_url", json!("file:///etc/passwd"), "it is neither https nor http"),
        ("download_url", json!("http://files.example/x.zip"), "it is not encrypted"),
        ("download_url", json!("/files/acme/reef/1.2.0/SHA256SUMS"), "expected an archive"),
        ("download_url", json!("/nothing"), "not found"),
        ("shasums_url", json!("/nothing"), "not found"),
        ("shasums_url", Value::Null, &other_key),
        ("shasums_url", json!("/files/acme/reef/1.1.0/SHA256SUMS"), &other_key),
        ("shasums_signature_url", Value::Null, "the registry names keys of the author, but no signature"),
        ("shasums_signature_url", json!("/files/acme/reef/1.2.0/SHA256SUMS"), invalid),
        ("shasums_signature_url", json!("/files/acme/reef/1.1.0/SHA256SUMS.sig"), &other_key),
    ] {
        registry.change(DOWNLOAD, set(key, value.clone()));
        let text = refusal(&registry).await;
        assert!(text.contains(expected), "{key} {value}: {text}");
        registry.clear();
    }
}

#[tokio::test]
async fn signature_that_none_of_the_named_keys_has_made_is_refused() {
    let (registry, _) = signed_registry().await;
    let other = AuthorKey::generate().unwrap();
    registry.name_keys(&[other.public().unwrap()]);
    let text = refusal(&registry).await;
    assert!(text.contains(&other.fingerprint()) && text.contains("none of the keys"), "{text}");
    for (keys, expected) in [
        (vec!["no key".to_owned()], "a key that the registry names cannot be read"),
        (vec![other.public().unwrap(), String::new()], "a key that the registry names cannot be read"),
    ] {
        registry.name_keys(&keys);
        let text = refusal(&registry).await;
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn checksum_file_without_the_archive_or_of_other_bytes_is_refused() {
    let (registry, key) = (TerraformRegistry::start().await.unwrap(), AuthorKey::generate().unwrap());
    publish_provider(&registry, "1.2.0", "one");
    let name = "terraform-provider-reef_1.2.0_linux_amd64.zip";
    for (sums, expected) in [
        (String::new(), "has no line for terraform-provider-reef_1.2.0_linux_amd64.zip"),
        (format!("{}\n", sha256(b"x")), "has no line for"),
        (format!("{}  lake.zip\n", sha256(b"x")), "has no line for"),
        (format!("{}  {name}\n", sha256(b"x")), "its checksum file has sha256:"),
        (format!("{}  {name}\n{}  {name}\n", sha256(b"x"), sha256(b"y")), "has no line for"),
        (format!("{}  {name}\n{}", sha256(b"x"), " ".repeat(2 << 20)), "its checksum file is too large"),
    ] {
        // With and without a signature: the file has to be about the archive.
        for keys in [Vec::new(), vec![key.public().unwrap()]] {
            registry.name_keys(&keys);
            registry.override_response(SIGNATURE, Response::new(200, key.sign(sums.as_bytes()).unwrap()));
            registry.override_response(&format!("1.2.0{SUMS}"), Response::new(200, sums.clone()));
            let text = refusal(&registry).await;
            assert!(text.contains(expected), "{text}");
        }
        registry.clear();
    }
}

#[tokio::test]
async fn archive_that_is_another_one_or_has_no_program_is_refused() {
    let (registry, _) = signed_registry().await;
    let file = "terraform-provider-reef_1.2.0_linux_amd64.zip";
    let other = provider_archive(&[("terraform-provider-reef", 0o755, b"#!/bin/sh\n")]).unwrap();
    registry.override_response(file, Response::new(200, other));
    let text = refusal(&registry).await;
    assert!(text.starts_with("checksum mismatch") || text.contains("sha256:"), "{text}");
    registry.clear();
    for (program, content, expected) in [
        ("terraform-provider-reefs", &b"#!/bin/sh\n"[..], "holds no program terraform-provider-reef; it holds"),
        ("bin/terraform-provider-reef", b"#!/bin/sh\n", "holds no program terraform-provider-reef; it holds"),
        ("terraform-provider-reef", b"text", "expected an executable"),
    ] {
        let archive = provider_archive(&[(program, 0o755, content)]).unwrap();
        registry.publish(PROVIDER, "1.2.0", &[("linux_amd64", &archive)]);
        let text = refusal(&registry).await;
        assert!(text.contains(expected), "{program}: {text}");
    }
}

#[tokio::test]
async fn host_without_a_registry_is_reported() {
    let (registry, _) = signed_registry().await;
    for (answer, expected) in [
        (json!({}), "the address of the registry of Terraform providers not found at 127.0.0.1"),
        (json!({ "providers.v2": "/v2/" }), "not found at 127.0.0.1"),
        (json!({ "providers.v1": null }), "not found at 127.0.0.1"),
        (json!({ "providers.v1": {} }), "not a list of services"),
        (json!({ "providers.v1": "//evil.example/" }), "a relative address leads to another server"),
        (json!({ "providers.v1": "http://evil.example/" }), "it is not encrypted"),
        (json!([]), "not a list of services"),
    ] {
        registry.change("/.well-known/", move |services| *services = answer.clone());
        let text = refusal(&registry).await;
        assert!(text.contains(expected), "{text}");
        registry.clear();
    }
    // Addresses without a slash at their end, and whole ones, are those of the same service.
    for address in
        ["/v1/providers".to_owned(), "../../v1/providers/".to_owned(), format!("{}/v1/providers/", registry.url())]
    {
        registry.change("/.well-known/", set("providers.v1", json!(address)));
        assert!(install(&Machine::new(), &provider_source(&registry, "1.2.0")).await.is_ok(), "{address}");
        registry.clear();
    }
}

/// Mutates the answers of a registry: none makes the client panic, and none installs another archive. Runs more cases with `FUZZ_CASES`.
#[tokio::test]
async fn mutated_answers_install_nothing_else() {
    let cases: u64 = std::env::var("FUZZ_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let (registry, _) = signed_registry().await;
    let mut installed = 0;
    for seed in 0..cases {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below.max(1) as u64).unwrap()
        };
        let path = ["/.well-known/", "/versions", DOWNLOAD][next(3)];
        let random = Arc::new(std::sync::Mutex::new(next));
        registry.change(path, move |answer| mutate(answer, &mut *random.lock().unwrap()));
        let machine = Machine::new();
        match install(&machine, &provider_source(&registry, "1.2.0")).await {
            Ok(provider) => {
                let words = super::run_program(provider.program(), &[]).await;
                assert_eq!(words, "1.2.0", "seed {seed}");
                installed += 1;
            }
            Err(_) => machine.assert_empty(),
        }
        registry.clear();
    }
    assert!(installed < cases, "no answer was mutated");
}

/// Changes a value somewhere in an answer.
fn mutate(value: &mut Value, next: &mut impl FnMut(usize) -> usize) {
    match value {
        Value::Object(members) if !members.is_empty() && next(8) != 0 => {
            let key = members.keys().nth(next(members.len())).unwrap().clone();
            if next(6) == 0 {
                members.remove(&key);
            } else if let Some(member) = members.get_mut(&key) {
                mutate(member, next);
            }
        }
        Value::Array(items) if !items.is_empty() && next(8) != 0 => {
            let at = next(items.len());
            mutate(&mut items[at], next);
        }
        Value::String(text) if !text.is_empty() && next(4) != 0 => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = next(letters.len());
            match next(3) {
                0 => letters[at] = ['/', '.', '\\', '#', '?', '0', 'é', '\0'][next(8)],
                1 => drop(letters.remove(at)),
                _ => letters.truncate(at),
            }
            *text = letters.into_iter().collect();
        }
        other => *other = [Value::Null, json!({}), json!([]), json!(7), json!(""), json!(true)][next(6)].clone(),
    }
}

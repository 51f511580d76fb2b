//! The readers, one test each.

use std::path::Path;
use std::sync::Arc;

use bridge::plugin::PluginManifest;
use config::diagnostics::{SourceFiles, Style, render, shown};
use config::types::TypeTable;
use config::{ProcessContext, Profile, Repository, Workspace};
use pulumi_proto::property::wire::{Bag, DecodeOptions, EncodeOptions, decode, encode};
use pulumi_proto::property::{Asset, AssetContent, OutputValue, PropertyMap, PropertyValue};
use state::format::UpdateInfo;
use state::secrets::Keyring;
use state::store::{FileUrl, StackReference, StateStore, StoreOptions};
use state::{JournalFolders, StackAccess, StackSettings, StackView, decode_checkpoint, encode_checkpoint};

use crate::{Read, corpus, fuzz, message, runtime, texts};

fn is_checkpoint(path: &str) -> bool {
    path.contains("/.pulumi/stacks/") && path.ends_with(".json")
}

#[test]
fn damaged_configuration_is_read_or_refused() {
    let files = corpus("example/repo", |path| path.ends_with(".yaml"));
    fuzz("configuration", 4, files, || {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let stack = root.join(".sc/stacks/s");
        std::fs::create_dir_all(&stack).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".sc/cfg.default.yaml"), "projectName: p\n").unwrap();
        Box::new(move |content| {
            let _folder = &folder;
            std::fs::write(stack.join("server.yaml"), content).unwrap();
            std::fs::write(stack.join("secrets.yaml"), content).unwrap();
            let repository = Repository::discover(&root);
            let environment = ProcessContext {
                environment: [("SIMPLE_CONTAINER_CONFIG".to_owned(), "projectName: p".to_owned())].into(),
                now: "2024-01-02T03:04:05Z".parse().unwrap(),
                time_zone: Some(jiff::tz::TimeZone::UTC),
                account: None,
            };
            let mut sources = SourceFiles::default();
            let profile = Profile::read("default", &repository, &environment, &mut sources).unwrap();
            let types = TypeTable::default();
            let workspace = Workspace {
                repository: &repository,
                profile: &profile,
                stacks_dir: None,
                process_context: &environment,
                types: &types,
            };
            let loaded = workspace.load(&["s".to_owned()], &mut sources);
            let longest = shown(&loaded.diagnostics).map(|found| render(found, &sources, Style::Plain));
            let longest = longest.max_by_key(String::len).unwrap_or_default();
            assert!(!loaded.stacks.is_empty() || !longest.is_empty(), "neither a stack nor an error");
            if longest.is_empty() { Ok(()) } else { Err(longest) }
        })
    });
}

#[test]
fn damaged_manifest_is_read_or_refused() {
    let manifests = texts(&[
        "runtime: nodejs\n",
        "runtime:\n  name: python\n  options: { virtualenv: venv, toolchain: pip }\nrequiredPulumiVersion: '>=3.1.0'\n",
        "{runtime: {name: go, options: {binary: bin/x}}, template: {description: x}, packages: {}}",
    ]);
    fuzz("manifest", 1, manifests, || {
        Box::new(|content| {
            let text = bridge::fs::utf8(content.to_vec()).map_err(|error| error.to_string())?;
            PluginManifest::parse(&text).map(drop).map_err(|error| message(&error))
        })
    });
}

#[test]
fn damaged_settings_are_read_or_refused() {
    let mut settings = corpus("state", |path| path.contains("/Pulumi.") && path.ends_with(".yaml"));
    settings
        .extend(texts(&["encryptionsalt: v1:x:y\nconfig:\n  p:a: 1\n  b: {secure: v1:x}\n  c: [1, {d: 2.5}, null]\n"]));
    fuzz("settings", 1, settings, || {
        Box::new(|content| {
            let text = bridge::fs::utf8(content.to_vec()).map_err(|error| error.to_string())?;
            let settings = StackSettings::parse(&text, "p").map_err(|error| message(&error))?;
            settings
                .config
                .values()
                .filter(|value| !value.is_secret())
                .for_each(|value| drop(value.program_text(None)));
            Ok(())
        })
    });
}

#[test]
fn damaged_checkpoint_is_read_or_refused_and_writing_it_is_stable() {
    fuzz("checkpoint", 2, corpus("state", is_checkpoint), || {
        let (runtime, keyring) = (runtime(), Keyring::new(None));
        Box::new(move |content| {
            let text = bridge::fs::utf8(content.to_vec()).map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let write = async |text: &str| {
                    let loaded = decode_checkpoint(text, &keyring).await.map_err(|error| message(&error))?;
                    let (stack, snapshot) = (&loaded.checkpoint.stack, loaded.checkpoint.snapshot.as_ref());
                    let written = encode_checkpoint(stack, snapshot, None, &loaded.reuse).await;
                    written.map_err(|error| message(&error))
                };
                let written = write(&text).await?;
                assert_eq!(write(&written).await.as_ref(), Ok(&written), "what was written is read differently");
                Ok(())
            })
        })
    });
}

#[test]
fn damaged_history_entry_is_read_or_refused_and_writing_it_is_stable() {
    fuzz("history", 1, corpus("state", |path| path.ends_with(".history.json")), || {
        Box::new(|content| {
            let text = bridge::fs::utf8(content.to_vec()).map_err(|error| error.to_string())?;
            let entry = UpdateInfo::from_json(&text).map_err(|error| message(&error))?;
            let written = entry.to_json();
            assert_eq!(UpdateInfo::from_json(&written).unwrap().to_json(), written);
            Ok(())
        })
    });
}

/// Returns a reader of a file of a backend: opens the store and the stack, and reads tags, history and locks.
fn backend_file(path: &'static str) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let file = folder.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    Box::new(move |content| {
        std::fs::write(&file, content).unwrap();
        runtime.block_on(async {
            let url = FileUrl::parse(&format!("file://{}", folder.path().display()), Path::new("/"), None).unwrap();
            let opened = StateStore::open_folder(&url, StoreOptions::default()).await;
            let store = opened.map_err(|error| message(&error))?;
            let stack = StackReference::new("p", "s").unwrap();
            let locks = store.locks(&stack).await.map_err(|error| message(&error))?;
            let tags = store.tags(&stack).await.map_err(|error| message(&error))?;
            if !tags.is_empty() {
                store.set_tags(&stack, &tags).await.unwrap();
                assert_eq!(store.tags(&stack).await.unwrap(), tags);
            }
            store.history(&stack).await.map_err(|error| message(&error))?;
            let access = StackAccess {
                store: store.clone(),
                stack,
                keyring: Arc::new(Keyring::new(None)),
                configured_secrets: None,
                config: Default::default(),
                journals: JournalFolders::of_backend(folder.path()),
                journal_mode: Default::default(),
                unrecorded: Default::default(),
                locks: state::LockSettings::default(),
                begins_anew: false,
                engine_version: "v0".to_owned(),
            };
            let view = StackView::open(&access).await.map_err(|error| message(&error))?;
            match (view.conflict, locks.as_slice()) {
                (Some(conflict), _) => Err(conflict.to_string()),
                // A malformed lock counts as a lock of an unknown holder.
                (None, [lock]) if lock.holder.is_none() => Err(lock.to_string()),
                (None, _) => Ok(()),
            }
        })
    })
}

#[test]
fn damaged_journal_is_read_or_refused() {
    let mut journals = corpus("state", |path| path.contains("/.sc/journal/"));
    let resource = r#"{"urn":"urn:pulumi:s::p::t:m:T::n","type":"t:m:T","custom":false,"inputs":{"a":[1,{"b":"c"}]}}"#;
    journals.push(
        format!(
            "{{\"journal\":1,\"base\":null,\"started\":\"2026-01-01T00:00:00Z\",\"secrets\":null}}\n\
             {{\"begin\":{{\"operation\":0,\"kind\":\"creating\",\"resource\":{resource}}}}}\n\
             {{\"end\":{{\"operation\":0,\"effects\":[{{\"add\":{{\"entry\":0,\"resource\":{resource}}}}}]}}}}\n\
             {{\"phase\":{{}}}}\n"
        )
        .into_bytes(),
    );
    fuzz("journal", 2, journals, || backend_file(".sc/journal/p/s/00000000-0000-4000-8000-000000000000"));
}

#[test]
fn damaged_lock_counts_as_a_lock() {
    let locks = texts(&[r#"{"pid":77,"username":"ada","hostname":"engine","timestamp":"2026-11-20T08:00:00Z"}"#]);
    fuzz("lock", 2, locks, || backend_file(".pulumi/locks/organization/p/s/lock.json"));
}

#[test]
fn damaged_tags_are_read_or_refused() {
    let tags = texts(&[r#"{"version":1,"tags":{"a":"b","c":""}}"#]);
    fuzz("tags", 2, tags, || backend_file(".pulumi/stacks/p/s.pulumi-tags"));
}

#[test]
fn damaged_metadata_are_read_or_refused() {
    fuzz("metadata", 2, texts(&["version: 1\n", "{version: 0}"]), || backend_file(".pulumi/meta.yaml"));
}

#[test]
fn damaged_compressed_checkpoint_is_read_or_refused() {
    let files = corpus("state", |path| path.contains("/.pulumi/stacks/") && path.ends_with(".json.gz"));
    fuzz("compressed checkpoint", 2, files, || backend_file(".pulumi/stacks/p/s.json.gz"));
}

/// Returns encoded properties: one of each kind, and values that nest deeper than any that is accepted.
fn encoded_properties() -> Vec<Vec<u8>> {
    let text = || PropertyValue::from("text");
    let output = OutputValue { value: Some(text()), secret: true, dependencies: Vec::new() };
    let values = [
        PropertyValue::Null,
        text(),
        PropertyValue::from(2.5),
        PropertyValue::from(vec![PropertyValue::from(true), text()]),
        PropertyValue::secret(text()),
        PropertyValue::Asset(Asset { hash: None, content: AssetContent::Text("a".to_owned()) }),
        PropertyValue::Output(Box::new(output)),
    ];
    let kinds: PropertyMap = values.into_iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect();
    let kinds = prost::Message::encode_to_vec(&encode(&kinds, &EncodeOptions::EVERYTHING).unwrap());
    // `Struct.fields` (1) with the key `a` (1) and a value (2), which is a `list_value` (6) with one value (1), and so on.
    let field = |number: u8, content: &[u8]| {
        let mut encoded = vec![number << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut encoded);
        encoded.extend_from_slice(content);
        encoded
    };
    let nested = (0..2000).fold(Vec::new(), |value, _| field(6, &field(1, &value)));
    let deep = field(1, &[field(1, b"a"), field(2, &nested)].concat());
    vec![kinds, deep]
}

#[test]
fn damaged_properties_are_decoded_or_refused_and_encoding_them_is_stable() {
    fuzz("properties", 1, encoded_properties(), || {
        Box::new(|content| {
            let read = |bytes: &[u8]| decode(&Bag::from_encoded(bytes.to_vec()), &DecodeOptions::EVERYTHING);
            let write = |values: &PropertyMap| {
                prost::Message::encode_to_vec(&encode(values, &EncodeOptions::EVERYTHING).unwrap())
            };
            let written = write(&read(content).map_err(|error| message(&error))?);
            assert_eq!(write(&read(&written).unwrap()), written, "what was written is read differently");
            Ok(())
        })
    });
}

#[test]
fn damaged_urls_and_names_are_parsed_or_refused() {
    let names = texts(&[
        "file://~/a/b?create_dir=true&dir_file_mode=0700",
        "urn:pulumi:s::p::t:m:T$u:m:U::name",
        "a.b[0][\"c\"].*",
        "https://user:word@example.org/a.git?x#y",
        ">=3.1.0 <4.0.0 || 5.x",
        "v1.2.3-rc.1+build",
        "pkg:mod/file:Type",
    ]);
    fuzz("names", 1, names, || {
        Box::new(|content| {
            let text = String::from_utf8_lossy(content);
            let mut errors = Vec::new();
            let mut keep = |error: Option<String>| errors.extend(error);
            keep(FileUrl::parse(&text, Path::new("/"), None).err().map(|error| message(&error)));
            keep(StackReference::new(&text, &text).err().map(|error| message(&error)));
            keep(text.parse::<bridge::plugin::PluginVersion>().err().map(|error| message(&error)));
            keep(text.parse::<bridge::plugin::VersionRange>().err().map(|error| message(&error)));
            match text.parse::<pulumi_proto::urn::Urn>() {
                Ok(urn) => assert_eq!(urn.to_string(), text),
                Err(error) => keep(Some(message(&error))),
            }
            match text.parse::<pulumi_proto::property::path::PropertyPath>() {
                // A key that ends with a backslash and contains a dot or a bracket has no notation.
                Ok(_) if text.contains('\\') => {}
                Ok(path) => assert_eq!(path.to_string().parse().as_ref(), Ok(&path)),
                Err(error) => keep(Some(message(&error))),
            }
            // Each of the errors is short.
            errors.into_iter().max_by_key(String::len).map_or(Ok(()), Err)
        })
    });
}

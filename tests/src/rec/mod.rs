//! Scripted provider with the same replies as the one that the recordings of Pulumi's engine were made with.
//!
//! Input: a [`Script`] and calls over gRPC. Output: replies, and a [`Call`] for each call, in protobuf's JSON form of
//! the message on the wire. Excluded: our own types of requests and replies, or an expectation of what an engine
//! requests. The rules are those of `tests/goldens/engine/README.md`.

mod call_recorder;
mod host;
mod parameters;
mod provider;
mod request_json;
mod rules;
mod script;
mod status;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use pulumi_proto::rpc::resource_provider_server::ResourceProviderServer;

pub use call_recorder::{Call, CallRecorder, FolderCallRecorder, IdCounters, MemoryCallRecorder, NoCallRecorder};
pub use host::ScriptedProviderHost;
pub use provider::ScriptedProvider;
pub(crate) use request_json::RequestJson;
pub use script::{Behaviour, Script};

/// Largest message that is sent or accepted, in bytes.
const MESSAGE_LIMIT: usize = 400 << 20;

/// Package schema: one resource, one function, two configuration variables.
const SCHEMA: &str = include_str!("schema.json");

/// Returns the recorder of a plugin process, which writes to the folder in `REC_DIR`, and adds a line to the file `starts`
/// there; without the variable, nothing is recorded.
pub fn call_recorder_from_environment() -> Arc<dyn CallRecorder> {
    match std::env::var_os("REC_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => {
            let starts = Path::new(&folder).join("starts");
            let file = OpenOptions::new().append(true).create(true).open(starts);
            // A folder that cannot be written is reported by the first call.
            file.and_then(|mut file| file.write_all(b"start\n")).unwrap_or_default();
            Arc::new(FolderCallRecorder::new(folder))
        }
        None => Arc::new(NoCallRecorder),
    }
}

/// Returns an instance of the provider as a service.
pub fn service(call_recorder: Arc<dyn CallRecorder>) -> ResourceProviderServer<ScriptedProvider> {
    ResourceProviderServer::new(ScriptedProvider::new(call_recorder))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prost_types::Struct;
    use pulumi_proto::property::wire::Bag;
    use pulumi_proto::rpc::resource_provider_server::ResourceProvider as _;
    use pulumi_proto::rpc::{CheckRequest, ConfigureRequest, CreateRequest, DeleteRequest};
    use serde_json::json;
    use tonic::Request;

    use super::*;

    const URN: &str = "urn:pulumi:dev::t::rec:index:Thing::a";

    fn create(preview: bool) -> CreateRequest {
        let properties = Some(Struct { fields: [("v".to_owned(), rules::text("x"))].into() }.into());
        CreateRequest { urn: URN.to_owned(), properties, preview, timeout: 1.5, ..CreateRequest::default() }
    }

    fn scripted(script: serde_json::Value) -> (Arc<MemoryCallRecorder>, ScriptedProvider) {
        let script = serde_json::from_value(script).unwrap();
        let call_recorder = Arc::new(MemoryCallRecorder::new(script, [("a".to_owned(), 2)].into()));
        (Arc::clone(&call_recorder), ScriptedProvider::new(call_recorder))
    }

    #[tokio::test]
    async fn call_is_recorded_as_the_wire_message() {
        let (call_recorder, provider) = scripted(json!({}));
        let created = provider.create(Request::new(create(false))).await.unwrap().into_inner();
        assert_eq!(created.id, "a-3");
        provider
            .check(Request::new(CheckRequest {
                urn: URN.to_owned(),
                olds: Some(Bag::default()),
                random_seed: vec![1],
                ..Default::default()
            }))
            .await
            .unwrap();
        provider
            .configure(Request::new(ConfigureRequest {
                accept_secrets: true,
                urn: Some(URN.to_owned()),
                ..Default::default()
            }))
            .await
            .unwrap();
        let calls: Vec<_> = call_recorder.calls().into_iter().map(|call| (call.rpc, call.request)).collect();
        let expected = [
            ("Create".to_owned(), json!({"urn": URN, "properties": {"v": "x"}, "timeout": 1.5})),
            ("Check".to_owned(), json!({"urn": URN, "olds": {}})),
            ("Configure".to_owned(), json!({"acceptSecrets": true, "urn": URN})),
        ];
        assert_eq!(calls, expected);
    }

    #[tokio::test]
    async fn partial_create_uses_an_id_and_failed_create_does_not() {
        let (call_recorder, provider) = scripted(json!({"resources": {"a": {"create": "error"}}}));
        assert_eq!(provider.create(Request::new(create(false))).await.unwrap_err().message(), "rec: Create fails");
        assert_eq!(provider.create(Request::new(create(true))).await.unwrap().into_inner().id, "");
        assert_eq!(
            call_recorder.calls()[0].error.as_deref(),
            Some("rpc error: code = Unknown desc = rec: Create fails")
        );
        assert_eq!(call_recorder.next_id("a"), "a-3");

        let (call_recorder, provider) = scripted(json!({"resources": {"a": {"create": "partial"}}}));
        assert!(!provider.create(Request::new(create(false))).await.unwrap_err().details().is_empty());
        assert_eq!(call_recorder.next_id("a"), "a-4");
    }

    #[tokio::test]
    async fn hanging_call_returns_after_cancel() {
        let (call_recorder, provider) = scripted(json!({"resources": {"a": {"hang": "delete"}}}));
        let delete = provider.delete(Request::new(DeleteRequest { urn: URN.to_owned(), ..DeleteRequest::default() }));
        let cancel = async {
            call_recorder.wait_for_hanging_call().await;
            provider.cancel(Request::new(())).await.unwrap();
        };
        let (deleted, ()) = tokio::join!(delete, cancel);
        deleted.unwrap();
        let rpcs: Vec<_> = call_recorder.calls().into_iter().map(|call| call.rpc).collect();
        assert_eq!(rpcs, ["Delete", "Cancel"]);
    }
}

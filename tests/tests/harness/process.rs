//! Test of the scripted provider as a process, whose log is in a folder.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use pulumi_proto::rpc::CreateRequest;
use pulumi_proto::rpc::resource_provider_client::ResourceProviderClient;
use serde_json::{Value, json};

#[tokio::test]
async fn plugin_prints_its_port_and_records_calls() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("script.json"), r#"{"resources": {"b": {"create": "error"}}}"#).unwrap();
    let mut plugin = Command::new(env!("CARGO_BIN_EXE_pulumi-resource-rec"))
        .arg("--logtostderr")
        .env("REC_DIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(plugin.stdout.take().unwrap()).read_line(&mut port).unwrap();

    let mut client = ResourceProviderClient::connect(format!("http://127.0.0.1:{}", port.trim())).await.unwrap();
    let create = |name: &str| CreateRequest {
        urn: format!("urn:pulumi:dev::t::rec:index:Thing::{name}"),
        ..CreateRequest::default()
    };
    assert_eq!(client.create(create("a")).await.unwrap().into_inner().id, "a-1");
    assert_eq!(client.create(create("a")).await.unwrap().into_inner().id, "a-2");
    client.create(create("b")).await.unwrap_err();
    plugin.kill().unwrap();
    plugin.wait().unwrap();

    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("ids.json")).unwrap(), json!({"a": 2}));
    let calls: Vec<Value> = read("calls.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = json!({"seq": 3, "rpc": "Create", "request": {"urn": create("b").urn}, "error": "rpc error: code = Unknown desc = rec: Create fails"});
    assert_eq!((calls.len(), &calls[2]), (3, &failed));
}

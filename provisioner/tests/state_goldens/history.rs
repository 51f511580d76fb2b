//! History entries that the command line wrote come out of our own values to the byte.

use std::collections::BTreeMap;
use std::path::Path;

use provisioner::state::format::{ConfigValue, UpdateInfo, UpdateKind, UpdateResult};
use serde_json::Value;

#[test]
fn entries_are_written_as_the_command_line_writes_them() {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/state");
    let mut seen = 0;
    for case in std::fs::read_dir(goldens).unwrap() {
        let history = case.unwrap().path().join("backend/.pulumi/history/reef");
        for stack in std::fs::read_dir(history).into_iter().flatten() {
            for file in std::fs::read_dir(stack.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.to_str().unwrap().ends_with(".history.json") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert_eq!(info(&serde_json::from_str(&text).unwrap()).to_json(), text, "{}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

fn info(entry: &Value) -> UpdateInfo {
    let kind = match entry["kind"].as_str().unwrap() {
        "update" => UpdateKind::Update,
        "refresh" => UpdateKind::Refresh,
        "destroy" => UpdateKind::Destroy,
        "resource-import" => UpdateKind::Import,
        other => panic!("{other}"),
    };
    let result = match entry["result"].as_str().unwrap() {
        "succeeded" => UpdateResult::Succeeded,
        "failed" => UpdateResult::Failed,
        other => panic!("{other}"),
    };
    let members = |name: &str| entry[name].as_object().cloned().unwrap_or_default().into_iter();
    UpdateInfo {
        kind,
        start_time: entry["startTime"].as_i64().unwrap(),
        message: entry["message"].as_str().unwrap().to_owned(),
        environment: members("environment").map(|(name, value)| (name, value.as_str().unwrap().to_owned())).collect(),
        config: members("config").map(|(name, value)| (name, ConfigValue(value))).collect(),
        result,
        end_time: entry["endTime"].as_i64().unwrap(),
        resource_changes: members("resourceChanges")
            .map(|(name, value)| (name, value.as_u64().unwrap()))
            .collect::<BTreeMap<_, _>>(),
    }
}

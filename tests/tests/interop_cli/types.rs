//! Types in the forms of Pulumi's documentation: both programs find the same types, and refuse the same texts.

use serde_json::{Map, Value, json};
use tests::sdk_providers::{PASSPHRASE, Repository, Sdk};

use crate::pulumi::Pulumi;

const ACCEPTED: [&str; 7] = [
    "peergo:Thing",
    "peergo:index:Thing",
    "peergo:SmallThing",
    "peergo:index:SmallThing",
    "peergo:index/smallThing:SmallThing",
    "peergo:sea:Thing",
    "peergo:sea/thing:Thing",
];
/// Types in another case, with the tokens of the schema. Pulumi's YAML language accepts them since its version 1.35.
const IN_OTHER_CASE: [(&str, &str); 3] = [
    ("peergo:smallThing", "peergo:index/smallThing:SmallThing"),
    ("peergo:sea:thing", "peergo:sea/thing:Thing"),
    ("peergo:sea/Thing:Thing", "peergo:sea/thing:Thing"),
];
const REFUSED: [&str; 1] = ["peergo:Things"];

/// Writes a server.yaml and a Pulumi program with one resource for each type.
fn declare(repository: &Repository, pulumi: &Pulumi<'_>, types: &[&str]) {
    let plugin = json!({
        "name": Sdk::Go.package(),
        "source": {"type": "local", "path": "plugins/peergo"},
        "passEnv": ["PEER_HOME"],
    });
    let (mut ours, mut theirs) = (Map::new(), Map::new());
    theirs.insert("peergo".to_owned(), json!({"type": "pulumi:providers:peergo"}));
    for (index, text) in types.iter().enumerate() {
        ours.insert(format!("r{index}"), json!({"type": text, "config": {"v": "1"}}));
        let options = json!({"provider": "${peergo}"});
        let resource = json!({"type": text, "properties": {"v": "1"}, "options": options});
        theirs.insert(format!("r{index}--main"), resource);
    }
    repository.declare_sections(&json!([plugin]), &Value::Object(ours), &json!({}));
    pulumi.program(&Value::Object(theirs), &json!({}));
}

pub(crate) fn both_programs_find_the_same_types() {
    let repository = Repository::new(&[Sdk::Go]);
    let pulumi = Pulumi::new(&repository);
    declare(&repository, &pulumi, &ACCEPTED);
    repository.provision();
    pulumi.copy_secrets_provider();
    pulumi.run_successfully(&["preview", "--expect-no-changes"]);
    let tokens: Vec<Value> = pulumi.resources().into_iter().map(|mut resource| resource["type"].take()).collect();
    for token in ["peergo:index:Thing", "peergo:index/smallThing:SmallThing", "peergo:sea/thing:Thing"] {
        assert!(tokens.iter().any(|recorded| recorded == token), "{token}: {tokens:?}");
    }
    for (text, token) in IN_OTHER_CASE {
        declare(&repository, &pulumi, &[text]);
        let (_, stdout, stderr) = pulumi.run(&["preview"], PASSPHRASE);
        let is_older = [stdout, stderr].iter().any(|text| text.contains("unable to find resource type"));
        let (code, text_of_sc) = repository.run(&["validate", "-s", "reef"]);
        assert_eq!(code, 0, "sc refuses {text}:\n{text_of_sc}");
        assert!(text_of_sc.contains("warning") && text_of_sc.contains("spells the type"), "{text}:\n{text_of_sc}");
        repository.provision();
        let recorded = repository.entry("r0")["type"].clone();
        assert_eq!(recorded, token, "{text}");
        if !is_older {
            pulumi.run_successfully(&["preview", "--expect-no-changes"]);
        }
    }
    for text in REFUSED {
        declare(&repository, &pulumi, &[text]);
        let (code, stdout, stderr) = pulumi.run(&["preview"], PASSPHRASE);
        assert_ne!(code, 0, "pulumi accepts {text}:\n{stdout}\n{stderr}");
        let (code, text_of_sc) = repository.run(&["validate", "-s", "reef"]);
        assert_ne!(code, 0, "sc accepts {text}:\n{text_of_sc}");
    }
}

//! Failures with details of google.rpc, as `docs/plugin-authoring.md` shows them for each SDK.

use serde_json::{Value, json};
use tests::sdk_providers::{Repository, Sdk, resource_inputs};

/// Shows: plugin-authoring.md#failures-with-details "`RetryInfo` and `BadRequest` of google.rpc are details of a
///   status. These files make them"
pub(crate) fn failures(sdk: Sdk) {
    let repository = Repository::new(&[sdk]);
    let declare = |mutations: bool, resources: Value| {
        let source = json!({"type": "local", "path": format!("plugins/{}", sdk.package())});
        let retry = json!({"mutations": mutations});
        let plugin = json!({"name": sdk.package(), "source": source, "passEnv": ["PEER_HOME"], "retry": retry});
        repository.declare_sections(&json!([plugin]), &resources, &json!({}));
    };
    let thing = |v: &str| {
        let thing =
            json!({"type": format!("{}:index:Thing", sdk.package()), "config": resource_inputs(v, "busy", "first")});
        json!({ "a": thing })
    };
    let provision = ["provision", "-s", "reef", "--yes", "-S"];

    declare(false, thing("busy"));
    let (text, _) = repository.run_successfully(&provision);
    assert!(text.contains("Check is repeated in ") && text.contains(" (attempt 2): Check must wait\n"), "{text}");

    declare(false, thing("bad"));
    let (code, text) = repository.run(&provision);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("the thing is refused\n"), "{text}");
    let at_property = text.split_once(":Thing): property v: must be good\n").map(|(_, rest)| rest);
    let excerpt: Vec<&str> = at_property.unwrap_or(&text).lines().take(3).collect();
    assert!(excerpt[0].contains("server.yaml:") && excerpt[2].contains("\"v\": \"bad\""), "{text}");

    declare(false, json!({}));
    let (code, text) = repository.run(&provision);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("Delete must wait\n") && text.contains("not repeated: Delete is repeated only with"),
        "{text}"
    );
    assert_eq!(repository.home.resources().len(), 1);

    declare(true, json!({}));
    let (text, _) = repository.run_successfully(&provision);
    assert!(text.contains("Delete is repeated in ") && text.contains(" (attempt 2): Delete must wait\n"), "{text}");
    assert_eq!(repository.home.resources(), []);
}

//! Tests of `sandbox` in an entry of `plugins`, with `readable`, `writable` and `ports`.

use bridge::plugin::{Sandbox, StrictSandbox};

use crate::repository::Files;

#[test]
fn sandbox_is_declared_with_its_files_and_ports() {
    let declared = |entry: &str| {
        let entry = format!("plugins: [{{ name: acme, source: {{ type: local, path: p }}{entry} }}]\n");
        Files::sections(&entry).stack().plugins[0].plugin.sandbox.clone()
    };
    assert_eq!(declared(""), Sandbox::Basic);
    assert_eq!(declared(", sandbox: basic"), Sandbox::Basic);
    assert_eq!(declared(", sandbox: none"), Sandbox::None);
    assert_eq!(declared(", sandbox: strict"), Sandbox::Strict(StrictSandbox::default()));
    let allowed = "readable: [data, ~/.aws], writable: [/var/lib/x], ports: [443, 5432]";
    let expected = StrictSandbox {
        readable: vec!["data".into(), "~/.aws".into()],
        writable: vec!["/var/lib/x".into()],
        ports: vec![443, 5432],
    };
    assert_eq!(declared(&format!(", sandbox: strict, {allowed}")), Sandbox::Strict(expected));
    let none = StrictSandbox { ports: Vec::new(), ..StrictSandbox::default() };
    assert_eq!(declared(", sandbox: strict, ports: []"), Sandbox::Strict(none));
}

#[test]
fn each_error_in_a_sandbox_is_reported_at_its_line() {
    let table = [
        ("sandbox: cage", "unknown sandbox \"cage\"", 14),
        ("readable: [data]", "readable has no effect without `sandbox: strict`", 5),
        ("sandbox: basic\n    writable: [data]", "writable has no effect without `sandbox: strict`", 5),
        ("sandbox: none\n    ports: [80]", "ports has no effect without `sandbox: strict`", 5),
        ("sandbox: strict\n    readable: ['']", "\"\" in readable is not a path", 16),
        ("sandbox: strict\n    writable: data", "`writable` must be a list", 15),
        ("sandbox: strict\n    ports: [0]", "\"0\" in ports is not the number of a port", 13),
        ("sandbox: strict\n    ports: [70000]", "\"70000\" in ports is not the number of a port", 13),
        ("sandbox: strict\n    ports: [https]", "\"https\" in ports is not the number of a port", 13),
    ];
    for (entry, summary, column) in table {
        let text = format!("\nplugins:\n  - name: a\n    source: {{ type: local, path: p }}\n    {entry}\n");
        let messages = Files::sections(&text).messages();
        let position = format!("server.yaml:{}:{column}\n", 9 + entry.lines().count());
        assert!(messages.contains(summary) && messages.contains(&position), "{position}{messages}");
    }
}

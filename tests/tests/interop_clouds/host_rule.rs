//! Runs the worker of a host rule, which leads a domain to another host, in Node.js.

use std::path::Path;
use std::process::Command;

use tests::commands::run;
use tests::sdks::node_modules;

#[test]
fn worker_of_a_domain_asks_the_other_host_and_keeps_redirects_at_the_domain() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let node = node_modules("host-rule", 22, &[]).unwrap();
    let mut command = Command::new(node.bin().join("node"));
    command.arg(here.join("tests/interop_clouds/host_rule.mjs"));
    command.arg(here.join("../provisioner/src/registry/texts/host_rule.js"));
    insta::assert_snapshot!(String::from_utf8(run(&mut command).unwrap()).unwrap(), @r#"
    GET https://b.s3.example/a?x=1 | 200 | 1
    GET https://b.s3.example/a?x=1&y=2 | 302 | https://www.example/c?y=3&x=1
    GET https://b.s3.example/a?x=1 | 302 | https://other.example/c
    GET https://b.s3.example/ | 200 | Bearer
    401 | Basic realm="s / e / i", charset="UTF-8"
    401 | Basic realm="s / e / i", charset="UTF-8"
    401 | Basic realm="s / e / i", charset="UTF-8"
    GET https://d.pkg.dev/p/r/v2/ | 200
    "#);
}

//! The complete stacks of `docs/cloud-stacks.md`.

use std::fs;
use std::path::Path;

use bridge::plugin::PluginSource;

use crate::repository::Files;
use crate::schema_agreement::{Reported, disagreement};

/// Returns the YAML block after a text of the page.
fn block<'p>(page: &'p str, after: &str) -> &'p str {
    let (_, rest) = page.split_once(after).unwrap();
    let (_, block) = rest.split_once("```yaml\n").unwrap();
    block.split_once("\n```\n").unwrap().0
}

/// Shows: cloud-stacks.md#complete-stacks-for-aws-and-google-cloud "Both are read without a diagnostic and agree with
///   the schema for editors"
/// Shows: cloud-stacks.md#complete-stacks-for-aws-and-google-cloud "The version of each plugin is fixed"
#[test]
fn complete_stacks_have_no_diagnostics_and_pin_the_plugins_of_the_templates() {
    let provisioner = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(provisioner.join("../docs/cloud-stacks.md")).unwrap();
    let secrets = block(&page, "Both files use");
    for (name, resources) in [("aws", 10), ("gcp", 9)] {
        let text = block(&page, &format!("<!-- file: {name} -->"));
        // The comparison with the schema leaves out files with anchors.
        assert!(!text.contains('&'), "{name}");
        assert_eq!(disagreement(text, Reported { any: false, of_schema: false }), None);
        let stack = Files::server(text).secrets(secrets).stack();
        let declared: usize = stack.environments.iter().map(|environment| environment.resources.len()).sum();
        assert_eq!(declared, resources, "{name}");
        let template = provisioner.join("src/cli/commands/init").join(format!("{name}.yaml"));
        let template = fs::read_to_string(template).unwrap();
        for declaration in &stack.plugins {
            let PluginSource::GithubRelease(release) = &declaration.plugin.source else { panic!("{name}") };
            assert!(release.version.as_str().starts_with('v'), "{}", release.version);
            if declaration.name() == name {
                assert!(template.contains(&format!("version: {}\n", release.version)), "{}", release.version);
            }
        }
    }
}

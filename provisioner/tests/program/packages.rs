//! Tests of the packages of core types: plugins that are declared for them, and packages that no plugin declares.

use crate::fake::StackProgram;

const AWS: &str =
    "- { name: aws, source: { type: github-release, repository: pulumi/pulumi-aws, version: v6.83.4 } }\n";

/// Two buckets on AWS and one on Google Cloud, with these plugins.
fn buckets(plugins: &str) -> StackProgram {
    StackProgram::server(&format!(
        "plugins:
{plugins}resources:
  resources:
    e:
      resources:
        a:
          type: s3-bucket
          config: {{ region: sea }}
        b:
          type: s3-bucket
          config: {{ region: sea }}
        c: {{ type: gcp-bucket, config: {{ credentials: x, projectId: p, location: EU }} }}
"
    ))
}

/// Shows: plugins.md#packages-of-core-types "A run takes each package that its stacks use from the first of these
///   places"
#[test]
fn package_is_undeclared_unless_a_plugin_has_it() {
    let gcp = "- { name: gcp, source: { type: local, path: gcp } }\n";
    let sea = "- { name: sea, package: aws, source: { type: local, path: aws } }\n";
    let disabled = "- { name: aws, enabled: false, source: { type: local, path: aws } }\n";
    let other = "- { name: p, source: { type: local, path: p } }\n";
    for (plugins, expected) in [
        (other, &["aws 6.83.4 for a", "gcp 8.41.1 for c"][..]),
        (gcp, &["aws 6.83.4 for a"]),
        (AWS, &["gcp 8.41.1 for c"]),
        (sea, &["gcp 8.41.1 for c"]),
        // An error instead, or none if no resource is registered.
        (disabled, &["gcp 8.41.1 for c"]),
        (&format!("{AWS}{gcp}"), &[]),
    ] {
        let undeclared = buckets(plugins).program.undeclared_packages();
        let undeclared: Vec<_> = undeclared
            .iter()
            .map(|needed| format!("{} {} for {}", needed.package.name, needed.package.version, needed.resource))
            .collect();
        assert_eq!(undeclared, expected, "{plugins}");
    }
}

/// Shows: server-yaml.md#core-types "A plugin that `plugins` declares for one of them, such as `aws`, is used instead."
/// Shows: server-yaml.md#core-types "If it declares another version than that for which the core types are written,
///   there is a warning"
#[test]
fn plugin_that_is_declared_for_the_package_of_a_core_type_is_checked() {
    let diagnostics = |plugins: &str| {
        let subject = buckets(plugins);
        subject.render(&subject.program.check_core_types())
    };
    assert_eq!(diagnostics("- { name: p, source: { type: local, path: p } }\n"), "");
    assert_eq!(diagnostics(AWS), "");
    assert_eq!(diagnostics("- { name: sea, package: aws, source: { type: local, path: aws } }\n"), "");
    insta::assert_snapshot!(diagnostics("- { name: aws, enabled: false, source: { type: local, path: aws } }\n"), @r#"
    error[package]: the core type "s3-bucket" needs the package "aws", and no enabled plugin serves it
     --> .sc/stacks/s/server.yaml:9:17
      |
    3 | - { name: aws, enabled: false, source: { type: local, path: aws } }
      |           --- this plugin is disabled
    ...
    9 |           type: s3-bucket
      |                 ^^^^^^^^^
      |
      = hint: set `enabled: true` to use it, or remove it, so that version 6.83.4 is used
    "#);
    insta::assert_snapshot!(diagnostics(&AWS.replace("6.83.4", "7.0.0")), @r#"
    warning[package]: the plugin "aws" is declared with version 7.0.0, but the core types are written for version 6.83.4 of the package "aws"
     --> .sc/stacks/s/server.yaml:3:11
      |
    3 | - { name: aws, source: { type: github-release, repository: pulumi/pulumi-aws, version: v7.0.0 } }
      |           ^^^
    ...
    9 |           type: s3-bucket
      |                 --------- this type uses it
      |
      = hint: declare version 6.83.4, or remove the declaration, so that it is used
    "#);
    let several = format!("{AWS}- {{ name: sea, package: aws, source: {{ type: local, path: aws }} }}\n");
    insta::assert_snapshot!(diagnostics(&several), @r#"
    error[package]: several plugins serve the package "aws" of the core type "s3-bucket"
      --> .sc/stacks/s/server.yaml:10:17
       |
     3 | - { name: aws, source: { type: github-release, repository: pulumi/pulumi-aws, version: v6.83.4 } }
       |           --- one of them
    ...
    10 |           type: s3-bucket
       |                 ^^^^^^^^^
       |
       = hint: enable only one of aws, sea: a core type cannot select a plugin
    "#);
}

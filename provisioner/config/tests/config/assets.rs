//! Assets and archives in server.yaml.

use config::values::evaluate_constant;
use pulumi_proto::property::{ArchiveContent, AssetContent, PropertyValue};

use crate::repository::Files;

fn resource(config: &str) -> Files {
    Files::sections(&format!(
        "plugins: [{{ name: p, source: {{ type: local, path: x }} }}]
resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: 'p:m:T', config: {{ {config} }} }} }} }} }} }}
variables: {{ dir: {{ type: string, value: dist }} }}\n"
    ))
    .secrets("values: { s: hush }")
}

/// Returns the values of a `config`, as text.
fn values(config: &str) -> Vec<String> {
    let stack = resource(config).stack();
    let PropertyValue::Map(values) = evaluate_constant(&stack.environments[0].resources[0].config) else { panic!() };
    values.into_iter().map(|(name, value)| format!("{name}: {}", shown(&value))).collect()
}

fn shown(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Asset(asset) => match &asset.content {
            AssetContent::Text(text) => format!("text {text:?}"),
            AssetContent::Path(path) => format!("file {path}"),
            AssetContent::Uri(uri) => format!("remote {uri}"),
            AssetContent::Elided => "elided".to_owned(),
        },
        PropertyValue::Archive(archive) => match &archive.content {
            ArchiveContent::Path(path) => format!("archive {path}"),
            ArchiveContent::Uri(uri) => format!("remote archive {uri}"),
            ArchiveContent::Assets(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, member)| format!("{name} = {}", shown(member))).collect();
                format!("archive of {}", members.join(", "))
            }
            ArchiveContent::Elided => "elided".to_owned(),
        },
        PropertyValue::Secret(secret) => format!("secret {}", shown(secret.expose())),
        PropertyValue::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        PropertyValue::Map(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, member)| format!("{name}: {}", shown(member))).collect();
            format!("{{{}}}", members.join(", "))
        }
        PropertyValue::Unknown(_) => "unknown".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Shows: server-yaml.md#assets-and-archives "as a mapping with one key, anywhere in the `config` of a plugin's resource"
#[test]
fn functions_make_assets_and_archives_at_any_depth() {
    let config = "
        a: { fn::fileAsset: '${var:dir}/a.txt' }, b: { fn::stringAsset: 1.30 }, c: { fn::remoteAsset: 'https://x/y' },
        d: [{ fn::fileArchive: dist }], e: { f: { fn::remoteArchive: 'https://x/y.zip' } },
        g: { fn::assetArchive: { 'sub/x': { fn::stringAsset: '' }, y: { fn::assetArchive: { z: { fn::fileArchive: d } } } } },
        h: { fn::stringAsset: 'key=${secret:s}' }, i: { fn::assetArchive: { k: { fn::stringAsset: '${secret:s}' } } },
        j: { fn::fileAsset: '${resource:b.path}' }, k: { fn::assetArchive: {} },
        l: { fn::assetArchive: { m: { fn::fileAsset: '${resource:b.path}' } } }
        } }, b: { type: 'p:m:T', config: { x: 1";
    let expected = [
        "a: file dist/a.txt",
        "b: text \"1.30\"",
        "c: remote https://x/y",
        "d: [archive dist]",
        "e: {f: remote archive https://x/y.zip}",
        "g: archive of sub/x = text \"\", y = archive of z = archive d",
        "h: secret text \"key=hush\"",
        "i: secret archive of k = text \"hush\"",
        "j: unknown",
        "k: archive of ",
        "l: unknown",
    ];
    assert_eq!(values(config), expected);
}

/// Shows: server-yaml.md#assets-and-archives "a function with another name, or one beside"
#[test]
fn functions_that_make_no_asset_are_mistakes() {
    for (config, expected) in [
        ("a: { fn::fileAset: x }", "there is no function `fn::fileAset`"),
        ("a: { fn::fileAset: x }", "did you mean `fn::fileAsset`?"),
        ("a: { Fn::FileAsset: x }", "there is no function `Fn::FileAsset`"),
        ("a: { fn::invoke: { function: x } }", "other functions of Pulumi's YAML are not supported"),
        ("a: { fn::secret: x }", "write `${secret:NAME}`"),
        ("a: [{ fn::fileAsset: x, b: c }]", "`fn::fileAsset` stands beside other keys"),
        ("fn::fileAsset: x", "`fn::fileAsset` cannot stand here"),
        ("a: { fn::fileAsset: [x] }", "`fn::fileAsset` needs a path, found a list"),
        ("a: { fn::fileAsset: '' }", "`fn::fileAsset` needs a path"),
        ("a: { fn::stringAsset: ~ }", "`fn::stringAsset` needs a text, found nothing"),
        ("a: { fn::remoteAsset: {} }", "`fn::remoteAsset` needs a URL, found a mapping"),
        ("a: { fn::assetArchive: x }", "`fn::assetArchive` needs a mapping of names"),
        ("a: { fn::assetArchive: { b: x } }", "an asset or an archive as its member \"b\""),
        ("a: { fn::assetArchive: { b: { fn::file: x } } }", "there is no function `fn::file`"),
    ] {
        let messages = resource(config).messages();
        assert!(messages.contains(expected), "{config}: {messages}");
        assert_eq!(messages.matches("error[").count(), 1, "{config}: {messages}");
    }
    for elsewhere in [
        "outputs: { o: { fn::fileAsset: x } }\n",
        "plugins: [{ name: p, source: { type: local, path: x }, config: { a: [{ fn::fileAsset: x }] } }]\n",
    ] {
        assert!(Files::sections(elsewhere).messages().contains("cannot stand here"), "{elsewhere}");
    }
    // What other programs expand is left to them.
    assert_eq!(values("a: { 'Fn::GetAtt': x }"), ["a: {Fn::GetAtt: String(\"x\")}"]);
}

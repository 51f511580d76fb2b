//! Type for the `config` of the registrar `cloudflare`.

use std::collections::BTreeMap;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, RequiredKey, TextHandle, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

/// `config` of `cloudflare` (docs/spec/simple-container.md#7.19).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A zone on Cloudflare, with DNS records of the stack and of its resources.")]
pub struct CloudflareConfig {
    /// API token.
    #[schemars(extend("writeOnly" = true))]
    pub credentials: Option<TextHandle>,
    /// Id of the account. The provider has this name.
    pub account_id: String,
    /// Name of the zone, such as `example.org`.
    pub zone_name: String,
    /// DNS records.
    pub dns_records: Vec<DnsRecord>,
}

/// DNS record of a zone.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "type", "value"]))]
pub struct DnsRecord {
    /// Name, such as `www.example.org`, or `@` for that of the zone.
    pub name: String,
    /// Type, such as `CNAME`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Content.
    pub value: Option<TextHandle>,
    /// Pass requests through Cloudflare.
    pub proxied: bool,
}

impl CoreConfig for CloudflareConfig {
    const TYPE: &'static str = "cloudflare";
    const ORIGIN: TypeOrigin = TypeOrigin::SimpleContainer("RegistrarConfig");
    const PROVIDER: &'static str = "cloudflare";
    const REQUIRED: &'static [RequiredKey] = &[
        ("credentials", "add an API token of Cloudflare, from secrets.yaml: `\"${secret:NAME}\"`"),
        ("accountId", "add the id of the account at Cloudflare"),
        ("zoneName", "add the zone, such as `zoneName: example.org`"),
    ];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        let mut seen = BTreeMap::new();
        for (index, record) in config.dns_records.iter().enumerate() {
            let span = node.get_path(["dnsRecords", &index.to_string()]).unwrap_or(node).span;
            let value = decoded.non_empty_text(record.value).and_then(|value| value.known());
            for (is_set, key) in
                [(!record.name.is_empty(), "name"), (!record.kind.is_empty(), "type"), (value.is_some(), "value")]
            {
                if !is_set {
                    diagnostics.push(Diagnostic::error(
                        Code("missing-key"),
                        span,
                        format_args!("a DNS record has no `{key}`"),
                    ));
                }
            }
            if let (Some(value), false) = (value, record.name.is_empty())
                && let Some(first) = seen.insert((&record.name, value), span)
            {
                let summary = MessageText::new(format_args!(
                    "two DNS records have the name {:?} and the same value",
                    record.name
                ));
                let error = Diagnostic::error(Code("duplicate-record"), span, summary).label(first, "the other one");
                diagnostics.push(error.help("remove one of them"));
            }
        }
    }
}

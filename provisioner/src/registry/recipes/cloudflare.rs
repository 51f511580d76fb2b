//! Recipe of the registrar `cloudflare`, and of what resources with a domain add to its zone.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use config::types::decode;
use md5::{Digest as _, Md5};
use serde_json::json;

use crate::registry::packages::CLOUDFLARE;
use crate::registry::recipe::{Hole, Provider, Recipe, ResolvedValue, ResourceNames};
use crate::registry::types::cloudflare::CloudflareConfig;

/// Script of a worker for a [`HostRule`].
const HOST_RULE: &str = include_str!("../texts/host_rule.js");

/// `cloudflare` (docs/spec/simple-container.md#7.19): the DNS records of the `config`.
pub(super) fn registrar<'r>(config: &'r CloudflareConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let Some(zone) = Zone::of_stack(at, r) else { return };
    for record in &config.dns_records {
        let content = r.text_or(record.value, "");
        let is_shared = config.dns_records.iter().filter(|other| other.name == record.name).count() > 1;
        let suffix = match r.known_text(&content) {
            Some(content) if is_shared => Md5::digest(content).iter().map(|byte| format!("{byte:02x}")).collect(),
            _ => String::new(),
        };
        let name = format!("{}{suffix}", record.name);
        zone.record(&name, &record.name, &record.kind, content, record.proxied, r);
    }
}

/// Zone of a stack's registrar.
pub(super) struct Zone {
    provider: Provider,
    id: Hole,
    account_id: String,
}

/// Rule that answers the requests to a domain with the responses of another host.
pub(super) struct HostRule<'a> {
    /// Name of the rule, without the name of the stack.
    pub(super) name: &'a str,
    /// Domain.
    pub(super) domain: &'a str,
    /// Other host.
    pub(super) target: Hole,
    /// Beginning of the paths at the other host.
    pub(super) path_prefix: String,
    /// User and password that the domain requires, with the name of what they protect.
    pub(super) authentication: Option<([Hole; 2], String)>,
}

impl Zone {
    /// Adds the provider of the registrar, and the call that looks up its zone. Returns `None` if the stack has no registrar.
    pub(super) fn of_stack(at: &ResourceNames<'_>, r: &mut Recipe<'_>) -> Option<Self> {
        let decoded = decode::<CloudflareConfig>(at.registrar?, &mut Vec::new())?;
        // The registrar has no references, so its texts are known.
        let token = decoded.text(decoded.config.credentials?).0.known().unwrap_or_default();
        let token = r.value(ResolvedValue::known(token).secret());
        let CloudflareConfig { account_id, zone_name, .. } = decoded.config;
        let provider = r.named_provider(CLOUDFLARE, &account_id, json!({ "apiToken": token }));
        let arguments = json!({ "filter": { "name": zone_name, "match": "any" } });
        let found = r.add(provider.function("cloudflare:index/getZone:getZone", arguments));
        let id = r.try_text([found.out("zoneId")], move |[id]| match id {
            "" => Err(format!("Cloudflare does not know the zone {zone_name:?} of the registrar")),
            id => Ok(id.to_owned()),
        });
        Some(Self { provider, id, account_id })
    }

    /// Adds a DNS record. Its resource is `<name>-record`.
    pub(super) fn record(&self, name: &str, host: &str, kind: &str, content: Hole, proxied: bool, r: &mut Recipe<'_>) {
        let inputs = json!({
            "zoneId": self.id,
            "name": host,
            "type": kind,
            "content": content,
            "proxied": proxied,
            "ttl": 1,
        });
        r.add(self.provider.resource("cloudflare:index/record:Record", &format!("{name}-record"), inputs));
    }

    /// Adds a rule for a domain: a worker with its route. It stays at Cloudflare when its entry is deleted.
    pub(super) fn host_rule(&self, rule: HostRule<'_>, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
        let name = format!("{}{}-host-override", at.stack, rule.name);
        let script_name = format!("{name}-script");
        let path_prefix = rule.path_prefix;
        let content = match rule.authentication {
            None => r.text([rule.target], move |[host]| script(json!({ "host": host, "pathPrefix": path_prefix }))),
            Some(([user, password], realm)) => r.text([rule.target, user, password], move |[host, user, password]| {
                let credentials = BASE64.encode(format!("{user}:{password}"));
                script(json!({ "host": host, "pathPrefix": path_prefix, "credentials": credentials, "realm": realm }))
            }),
        };
        let inputs = json!({ "scriptName": script_name, "accountId": self.account_id, "content": content });
        let script = r.add(self.provider.resource("cloudflare:index/workerScript:WorkerScript", &script_name, inputs));
        let inputs = json!({
            "zoneId": self.id,
            "pattern": format!("{}/*", rule.domain),
            "script": script.out("scriptName"),
        });
        let node =
            self.provider.resource("cloudflare:index/workersRoute:WorkersRoute", &format!("{name}-route"), inputs);
        let route = r.add(node.retain_on_delete());
        r.export(&name, json!({ "script": script.reference(), "route": route.reference() }));
    }
}

/// Returns the script of a worker with its settings.
fn script(settings: serde_json::Value) -> String {
    HOST_RULE.replacen("SETTINGS", &settings.to_string(), 1)
}

//! Recipe of registries on Google Cloud.

use serde_json::json;

use super::cloudflare::{HostRule, Zone};
use super::gcp::{account_provider, enable_api, project};
use crate::registry::recipe::{Hole, Provider, Recipe, ResourceNames, trim_middle};
use crate::registry::types::gcp_registry::GcpArtifactRegistryConfig;

/// Policy of a public registry, byte by byte as the Go program writes it.
const PUBLIC: &str = "{\n\t\t\t\t\"bindings\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"role\": \"roles/artifactregistry.reader\",\
                      \n\t\t\t\t\t\t\"members\": [\"allUsers\"]\n\t\t\t\t\t} \n\t\t\t\t]\n\t\t\t}";

/// `gcp-artifact-registry` (docs/spec/simple-container.md#7.7): a registry, and service accounts that write and read it.
pub(super) fn artifact_registry<'r>(
    config: &'r GcpArtifactRegistryConfig,
    at: &'r ResourceNames<'r>,
    r: &mut Recipe<'r>,
) {
    let name = at.qualified(at.name);
    let gcp = account_provider(&config.account, r);
    enable_api("iam.googleapis.com", gcp, &config.account, r);
    enable_api("artifactregistry.googleapis.com", gcp, &config.account, r);
    let (project, location) = (project(&config.account, r), r.text_or(config.location, ""));
    let inputs = json!({
        "repositoryId": name,
        "location": location,
        "project": project,
        "labels": at.labels(),
        "format": "DOCKER",
        "dockerConfig": { "immutableTags": config.docker.as_ref().is_some_and(|docker| docker.immutable_tags) },
    });
    let repository = r.add(gcp.resource("gcp:artifactregistry/repository:Repository", &name, inputs));
    if config.public {
        let inputs = json!({
            "project": project,
            "location": location,
            "repository": repository.out("repositoryId"),
            "policyData": PUBLIC,
        });
        let token = "gcp:artifactregistry/repositoryIamPolicy:RepositoryIamPolicy";
        r.add(gcp.resource(token, &format!("{name}-iam"), inputs));
    }
    let host = r.text([location.clone()], |[location]| format!("{}-docker.pkg.dev", location.to_lowercase()));
    let address = [host.clone(), repository.out("project"), repository.out("repositoryId")];
    let url = r.text(address.clone(), |[host, project, id]| format!("{host}/{project}/{id}"));
    r.export(&name, json!({ "url": url }));

    let registry = Registry { name: &name, gcp, project, location };
    registry.service_account("admin", "roles/artifactregistry.repoAdmin", at, r);
    registry.service_account("reader", "roles/artifactregistry.reader", at, r);

    if config.domain.is_empty() {
        return;
    }
    let Some(zone) = Zone::of_stack(at, r) else { return };
    // As in the Go program, the values become part of the script without a dependency.
    let [_, project, id] = address;
    r.then_texts([project, id], move |[project, id], r| {
        let domain = config.domain.as_str();
        zone.record(domain, domain, "CNAME", host.clone(), true, r);
        let authentication = config.basic_auth.as_ref().map(|auth| {
            let credentials = [auth.username, auth.password].map(|text| r.text_or(text, ""));
            (credentials, format!("{} / {} / {}", at.stack, at.environment, at.name))
        });
        let path_prefix = format!("/{project}/{id}");
        let rule = HostRule { name: &domain.replace('.', "-"), domain, target: host, path_prefix, authentication };
        zone.host_rule(rule, at, r);
    });
}

/// Registry with its provider.
struct Registry<'n> {
    name: &'n str,
    gcp: Provider,
    project: Hole,
    location: Hole,
}

impl Registry<'_> {
    /// Adds a service account that has a role in the registry, and its key.
    fn service_account(&self, kind: &str, role: &str, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
        let (gcp, name) = (self.gcp, self.name);
        let id = format!("{kind}-{}-sa", name.replace(['-', '_'], ""));
        let id = trim_middle(&id, 28, "-").replace("--", "-");
        let inputs = json!({
            "accountId": id,
            "description": format!("Service account to {kind} images at in {name}"),
            "displayName": format!("{name}-{kind}-service-account"),
        });
        let account = r.add(gcp.resource("gcp:serviceaccount/account:Account", &id, inputs));
        let inputs = json!({
            "repository": name,
            "project": self.project,
            "location": self.location,
            "role": role,
            "member": r.text([account.out("email")], |[email]| format!("serviceAccount:{email}")),
        });
        let token = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember";
        r.add(gcp.resource(token, &format!("{name}-{kind}-sa-iam-binding"), inputs));
        let inputs = json!({ "serviceAccountId": account.out("accountId") });
        let key = gcp.resource("gcp:serviceaccount/key:Key", &format!("{id}-key"), inputs).parent(account);
        let key = r.add(key).out("privateKey").secret();
        r.export_as(&at.qualified(&format!("{kind}-{name}-sa-key")), json!(key));
        r.export_as(&at.qualified(&format!("{kind}-{name}-sa")), json!(account.out("email")));
    }
}

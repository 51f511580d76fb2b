//! Recipe of the core type on MongoDB Atlas.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pulumi_proto::property::PropertyValue;
use serde_json::{Value, json};

use super::aws;
use super::keys::password;
use crate::registry::packages::{ATLAS, AWS};
use crate::registry::recipe::{
    Handle, Hole, Node, Provider, Recipe, ResolvedValue, ResourceNames, go_json, secret, trim_middle,
};
use crate::registry::types::mongodb::{AtlasBackup, AtlasBackupPolicy, AtlasConfig};

/// Sizes of clusters that share machines.
const SHARED_SIZES: [&str; 3] = ["M0", "M2", "M5"];
const CLUSTER: &str = "mongodbatlas:index/cluster:Cluster";
const ACCESS_LIST: &str = "mongodbatlas:index/projectIpAccessList:ProjectIpAccessList";
/// Comment of an access list with all addresses. It is that of the Go program, to the letter: another one would change the
/// lists of all clusters that it has made.
const COMMENT_OF_OPEN_ACCESS: &str = "Allow all access to the cluster (TODO: restrict to our cluster only)";
/// Roles of users with their databases.
const ADMIN: &str = "readWriteAnyDatabase";
const DEVELOPER: &str = "readAnyDatabase";
/// Inputs of an adopted cluster that may differ from the actual ones.
const IGNORED_IF_ADOPTED: &str = "diskSizeGb numShards cloudBackup providerAutoScalingComputeEnabled \
     providerAutoScalingComputeScaleDownEnabled providerDiskIops providerEncryptEbsVolume providerVolumeType \
     mongoDbMajorVersion pitEnabled rootCertType advancedConfiguration labels tags backupEnabled mongoDbVersion paused";
/// Characters that are escaped in the name and the password of a user in a URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `mongodb-atlas` (docs/spec/simple-container.md#7.10): a cluster, created or adopted, with its project, its users, its
/// backups and the access to it.
pub(super) fn mongodb_atlas<'r>(config: &'r AtlasConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let project = at.qualified(&format!("{}--{}", at.stack, at.name));
    let region = r.text_or(config.region, "");
    let inputs = json!({ "privateKey": config.private_key, "publicKey": config.public_key, "region": region });
    let atlas =
        Atlas { config, at, provider: r.provider(ATLAS, inputs), name: cluster_name(config, at, &project), project };
    let mut accounts = BTreeMap::new();
    for (key, account) in &config.extra_providers {
        let name = format!("{}-dep-{key}", at.name);
        let (inputs, region) = aws::provider_inputs(&account.config, r);
        let provider = r.named_provider(AWS, &ResourceNames { name: &name, ..*at }.provider_name(), inputs);
        accounts.insert(key.as_str(), (provider, region));
    }
    if config.adopt {
        return atlas.adopt(r);
    }
    let project_id = atlas.project(r);
    r.export(&atlas.project, json!({ "id": project_id }));
    let cluster = atlas.cluster(&project_id, region, r);
    r.export(&atlas.name, json!({ "cluster-id": cluster.out("clusterId"), "mongo-uri": cluster.out("mongoUri") }));
    // In a preview, these values may stay unknown.
    let unknown = r.value(ResolvedValue::unknown());
    r.export(&atlas.name, json!({ "mongo-uri-options": unknown }));
    r.export(&atlas.project, json!({ "users": unknown }));
    if let Some(backup) = &config.backup {
        atlas.backup(backup, &project_id, cluster, r);
    }
    let network = config.network_config.as_ref();
    let cidrs = network.and_then(|network| network.allow_cidrs.as_deref());
    let link = network.and_then(|network| network.private_link_endpoint.as_ref());
    if network.is_none_or(|network| network.allow_all_ips) {
        atlas.allow("ip-access-list", "0.0.0.0/0", COMMENT_OF_OPEN_ACCESS, &project_id, r);
    }
    for cidr in cidrs.unwrap_or_default() {
        if link.is_none() {
            let comment = format!("Allow cidr {cidr} explicitly");
            atlas.allow(&format!("cidr-block-{cidr}"), cidr, &comment, &project_id, r);
        }
        if network.is_some_and(|network| !network.allow_all_ips) {
            let comment = format!("Allow access to the cluster from {cidr:?}");
            atlas.allow(&format!("ip-access-cidr-{cidr:?}"), cidr, &comment, &project_id, r);
        }
    }
    match link.and_then(|link| Some((link.provider_name.as_str(), accounts.remove(link.provider_name.as_str())?))) {
        Some((cloud, (account, region))) => atlas.private_link(cloud, account, region, project_id, cluster, r),
        None => atlas.users(cluster, cluster.out("mongoUriWithOptions"), r),
    }
}

fn cluster_name(config: &AtlasConfig, at: &ResourceNames<'_>, project: &str) -> String {
    match config.naming_strategy_version {
        _ if !config.cluster_name.is_empty() => trim_middle(&config.cluster_name, 21, "--"),
        Some(1) => trim_middle(project, 21, "--"),
        _ => hashed_name(&at.qualified(&format!("{}--{}", at.stack, at.name))),
    }
}

/// Returns a name of at most 23 bytes: a longer one is cut, and a hash of the whole name is added.
fn hashed_name(name: &str) -> String {
    if name.len() <= 23 {
        return name.to_owned();
    }
    let weighted = name.char_indices().map(|(index, character)| u64::from(u32::from(character)) * (index as u64 + 1));
    let hash = weighted.sum::<u64>() + name.len() as u64 * 37;
    let prefix = &name[..name.floor_char_boundary(18)];
    format!("{}-{:04x}", prefix.trim_end_matches('-'), hash & 0xffff)
}

/// Recipe of a cluster.
#[derive(Clone)]
struct Atlas<'r> {
    config: &'r AtlasConfig,
    at: &'r ResourceNames<'r>,
    provider: Provider,
    /// Name of the project, the beginning of some exports.
    project: String,
    /// Name of the cluster, the beginning of most names.
    name: String,
}

impl<'r> Atlas<'r> {
    /// Returns the node of a resource that `deletionProtection` protects.
    fn owned(&self, token: &str, name: &str, inputs: Value) -> Node {
        self.provider.resource(token, name, inputs).protect(self.config.deletion_protection)
    }

    fn part(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// Adds the project, or the call that looks the existing one up. Returns its id.
    fn project(&self, r: &mut Recipe<'r>) -> Hole {
        if let Some(id) = r.non_empty(self.config.project_id) {
            let arguments = json!({ "projectId": id });
            return r
                .add(self.provider.function("mongodbatlas:index/getProject:getProject", arguments))
                .out("projectId");
        }
        let inputs = json!({
            "name": r.text_or(self.config.project_name, &self.project),
            "orgId": self.config.org_id,
        });
        r.add(self.owned("mongodbatlas:index/project:Project", &self.project, inputs)).id()
    }

    fn cluster(&self, project_id: &Hole, region: Hole, r: &mut Recipe<'r>) -> Handle {
        let cloud = json!(self.config.cloud_provider);
        let is_shared = SHARED_SIZES.contains(&self.config.instance_size.as_str());
        let (provider, backing) = if is_shared { (json!("TENANT"), Some(cloud)) } else { (cloud, None) };
        let inputs = json!({
            "name": self.name,
            "providerRegionName": region,
            "providerInstanceSizeName": self.config.instance_size,
            "clusterType": "REPLICASET",
            "projectId": project_id,
            "backingProviderName": backing,
            "providerName": provider,
            "diskSizeGb": self.config.disk_size_gb,
            "cloudBackup": self.config.backup.is_some(),
            "numShards": self.config.num_shards,
        });
        r.add(self.owned(CLUSTER, &self.part("cluster"), inputs))
    }

    /// Adds an existing cluster. Inputs that the `config` does not set are those that the cluster has.
    fn adopt(self, r: &mut Recipe<'r>) {
        let (id, name) = (r.text_or(self.config.project_id, ""), &self.config.cluster_name);
        let arguments = json!({ "projectId": id, "name": name });
        let found = r.add(self.provider.function("mongodbatlas:index/getCluster:getCluster", arguments));
        let size = r.value(ResolvedValue::known(self.config.instance_size.as_str()));
        let configured = [size, r.text_or(self.config.region, ""), r.text_or(self.config.cloud_provider, "")];
        let [size, region, cloud] = configured;
        let holes =
            ["providerInstanceSizeName", "providerRegionName", "clusterType", "providerName", "backingProviderName"];
        let [found_size, found_region, kind, provider, backing] = holes.map(|output| found.out(output));
        let needed = [id, size, region, cloud, found_size, found_region, kind, provider, backing];
        r.then_texts(needed, move |[id, size, region, cloud, found_size, found_region, kind, provider, backing], r| {
            let size = if size.is_empty() { found_size } else { size };
            let (provider, backing) = match (cloud, SHARED_SIZES.contains(&size)) {
                ("", _) => (provider, backing),
                (cloud, true) => ("TENANT", cloud),
                (cloud, false) => (cloud, ""),
            };
            let inputs = json!({
                "projectId": id,
                "name": name,
                "providerInstanceSizeName": size,
                "providerRegionName": if region.is_empty() { found_region } else { region },
                "clusterType": kind,
                "providerName": provider,
                "backingProviderName": (!backing.is_empty()).then_some(backing),
            });
            let node = self.provider.resource(CLUSTER, &self.name, inputs).import(&format!("{id}-{name}"));
            let cluster = r.add(node.protect(true).ignore_changes(IGNORED_IF_ADOPTED.split(' ')));
            r.export(&self.project, json!({ "id": id, "users": [] }));
            let exports = json!({
                "cluster-id": cluster.out("clusterId"),
                "mongo-uri": cluster.out("mongoUri"),
                "mongo-uri-options": cluster.out("mongoUriWithOptions"),
            });
            r.export(&self.name, exports);
        });
    }

    fn backup(&self, backup: &AtlasBackup, project_id: &Hole, cluster: Handle, r: &mut Recipe<'r>) {
        let item = |every: i64, unit: &str, value: i64| json!({ "frequencyInterval": every, "retentionUnit": unit, "retentionValue": value });
        let policy = |policy: &AtlasBackupPolicy, unit: &str| {
            item(policy.every, if policy.unit.is_empty() { unit } else { &policy.unit }, policy.retain_for)
        };
        let [hourly, daily, weekly, monthly] = match (&backup.advanced, backup.durations()) {
            (Some(advanced), _) => [
                advanced.hourly.as_ref().map(|hourly| policy(hourly, "days")),
                advanced.daily.as_ref().map(|daily| policy(daily, "days")),
                advanced.weekly.as_ref().map(|weekly| policy(weekly, "weeks")),
                advanced.monthly.as_ref().map(|monthly| policy(monthly, "months")),
            ],
            (None, Some((every, retention))) => {
                let hours = |seconds: u64| i64::try_from(seconds / 3600).unwrap_or(i64::MAX);
                let (every, days) = (hours(every.as_secs()), hours(retention.as_secs()) / 24);
                match every {
                    ..24 => [Some(item(every, "days", days)), None, None, None],
                    24..168 => [None, Some(item(every / 24, "days", days)), None, None],
                    _ => [None, None, Some(item(every / 168, "days", days)), None],
                }
            }
            // It is reported when the file is read.
            (None, None) => return,
        };
        let inputs = json!({
            "projectId": project_id,
            "clusterName": cluster.out("name"),
            "updateSnapshots": true,
            "policyItemHourly": hourly,
            "policyItemDaily": daily,
            "policyItemWeeklies": weekly.map(|weekly| [weekly]),
            "policyItemMonthlies": monthly.map(|monthly| [monthly]),
        });
        let token = "mongodbatlas:index/cloudBackupSchedule:CloudBackupSchedule";
        r.add(self.owned(token, &self.part("backups-schedule"), inputs));
    }

    fn allow(&self, suffix: &str, cidr: &str, comment: &str, project_id: &Hole, r: &mut Recipe<'r>) {
        let inputs = json!({ "cidrBlock": cidr, "comment": comment, "projectId": project_id });
        r.add(self.owned(ACCESS_LIST, &self.part(suffix), inputs));
    }

    /// Adds a private link from the default network of an account on AWS, then the users.
    fn private_link(
        self,
        cloud: &'r str,
        account: Provider,
        region: Hole,
        project_id: Hole,
        cluster: Handle,
        r: &mut Recipe<'r>,
    ) {
        let inputs = json!({ "projectId": project_id, "providerName": cloud, "region": region });
        let token = "mongodbatlas:index/privateLinkEndpoint:PrivateLinkEndpoint";
        let link = r.add(self.owned(token, &self.part("private-link-endpoint"), inputs));
        let node = account.resource("aws:ec2/defaultVpc:DefaultVpc", &self.part("vpc"), json!({}));
        let vpc = r.add(node.after([cluster]));
        let allow = |direction: &str| {
            json!([{
                "description": format!("Allow ALL {direction} traffic"),
                "protocol": "tcp",
                "fromPort": 0,
                "toPort": 65535,
                "cidrBlocks": ["0.0.0.0/0"],
                "ipv6CidrBlocks": ["::/0"],
            }])
        };
        let inputs = json!({ "vpcId": vpc.id(), "ingress": allow("inbound"), "egress": allow("outbound") });
        let node = account.resource("aws:ec2/securityGroup:SecurityGroup", &self.part("aws-endpoint-sg"), inputs);
        let security_group = r.add(node.after([cluster]));
        let zones = aws::availability_zones(account, region, r);
        r.then(zones, move |zones, r| {
            let subnets: Vec<Hole> = aws::texts(zones).map(|zone| default_subnet(account, zone, r)).collect();
            let inputs = json!({
                "vpcId": vpc.id(),
                "serviceName": link.out("endpointServiceName"),
                "vpcEndpointType": "Interface",
                "subnetIds": subnets,
                "securityGroupIds": [security_group.id()],
            });
            let node = account.resource("aws:ec2/vpcEndpoint:VpcEndpoint", &self.part("vpc-endpoint"), inputs);
            let endpoint = r.add(node.after([cluster]));
            let inputs = json!({
                "endpointServiceId": endpoint.id(),
                "privateLinkId": link.out("privateLinkId"),
                "projectId": project_id,
                "providerName": cloud,
            });
            let token = "mongodbatlas:index/privateLinkEndpointService:PrivateLinkEndpointService";
            let service = r.add(self.owned(token, &self.part("private-link-endpoint-svc"), inputs));
            let arguments = json!({ "name": cluster.out("name"), "projectId": project_id });
            let node = self.provider.function("mongodbatlas:index/getCluster:getCluster", arguments);
            let found = r.add(node.after([service]));
            r.then(found.out("connectionStrings"), move |strings, r| {
                let uri = private_uri(strings, &self.name, r);
                self.users(cluster, uri, r);
            });
        });
    }

    /// Adds the users, and exports them with the URI of the cluster.
    fn users(self, cluster: Handle, uri: Hole, r: &mut Recipe<'r>) {
        r.export(&self.name, json!({ "mongo-uri-options": uri }));
        let known = ["name", "projectId", "mongoUriWithOptions"].map(|output| cluster.out(output));
        r.then_texts(known, move |[name, project_id, cluster_uri], r| {
            let mut users = BTreeMap::new();
            let admins = self.config.admins.iter().map(|user| (user, ADMIN));
            for (user, role) in admins.chain(self.config.developers.iter().map(|user| (user, DEVELOPER))) {
                let inputs = json!({ "length": 20, "special": false });
                let password = password(&format!("{project_id}-{user}-password"), inputs, r);
                let inputs = json!({
                    "authDatabaseName": "admin",
                    "password": password,
                    "projectId": project_id,
                    "roles": [
                        { "databaseName": "admin", "roleName": role },
                        { "databaseName": "local", "roleName": "read" },
                    ],
                    "username": user,
                });
                let token = "mongodbatlas:index/databaseUser:DatabaseUser";
                let node = self.provider.resource(token, &format!("{name}-{user}-user"), inputs).after([cluster]);
                let database_user = r.add(node);
                let outputs = [database_user.out("username"), database_user.out("password")];
                if users.is_empty() {
                    self.publish(user, &password, &uri, r);
                }
                let cluster_uri = cluster_uri.to_owned();
                let text = r.text(outputs, move |[user, password]| {
                    go_json(&json!({ "userName": user, "password": password, "dbUri": cluster_uri }))
                });
                users.insert(user, text);
            }
            let users = if users.is_empty() { json!({}) } else { secret(json!(users)) };
            r.export(&self.project, json!({ "users": users }));
        });
    }

    /// Publishes the access of the first user to a database that is named after stack and environment.
    fn publish(&self, user: &'r str, password: &Hole, uri: &Hole, r: &mut Recipe<'r>) {
        let database = self.at.qualified(self.at.stack);
        let mut access = |database: String| {
            r.text([uri.clone(), password.clone()], move |[uri, password]| {
                uri_with_user(uri, user, password, &database)
            })
        };
        let (uri, oplog_uri) = (access(database.clone()).secret(), access("local".to_owned()).secret());
        let password = password.clone().secret();
        r.publish(json!({
            "uri": uri,
            "dbName": database,
            "password": password,
            "user": user,
            "oplogUri": oplog_uri,
        }));
    }
}

/// Adds the call that looks up the default subnet of a zone. Returns its id.
fn default_subnet(account: Provider, zone: &str, r: &mut Recipe<'_>) -> Hole {
    let filters = json!({ "filters": [
        { "name": "availability-zone", "values": [zone] },
        { "name": "default-for-az", "values": ["true"] },
    ] });
    r.add(account.function("aws:ec2/getSubnet:getSubnet", filters)).out("id")
}

/// Returns the URI of the private link among the connection strings of a cluster. In a preview, it may not exist yet.
fn private_uri(strings: &PropertyValue, cluster: &str, r: &mut Recipe<'_>) -> Hole {
    let PropertyValue::List(strings) = strings.without_wrappers() else {
        return private_uri(&vec![].into(), cluster, r);
    };
    let found = strings.iter().find_map(|strings| match strings.as_map()?.get("privateEndpoints")? {
        PropertyValue::List(endpoints) if endpoints.len() == 1 => {
            Some(endpoints[0].as_map()?.get("srvConnectionString")?.as_str()?.to_owned())
        }
        _ => None,
    });
    let found = found.or_else(|| r.is_preview().then(String::new));
    let error = format!("the cluster {cluster:?} has no connection string for its private link");
    r.try_text([], move |[]| found.clone().ok_or_else(|| error.clone()))
}

/// Returns a connection string with a user, a password and a database in the place of those that it has.
fn uri_with_user(uri: &str, user: &str, password: &str, database: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let (hosts, options) = rest.find('?').map_or((rest, ""), |at| rest.split_at(at));
    let hosts = hosts.split('/').next().unwrap_or_default();
    let [user, password] = [user, password].map(|text| utf8_percent_encode(text, ESCAPED));
    format!("{scheme}://{user}:{password}@{hosts}/{database}{options}")
}

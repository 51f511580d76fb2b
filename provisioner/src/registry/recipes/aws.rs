//! Recipes of the core types on AWS.

use config::diagnostics::{Code, Diagnostic};
use pulumi_proto::property::PropertyValue;
use serde_json::{Value, json};

use super::cloudflare::{HostRule, Zone};
use crate::registry::packages::AWS;
use crate::registry::recipe::{Handle, Hole, Provider, Recipe, ResolvedValue, ResourceNames, decode_base64, go_json};
use crate::registry::types::aws::{
    AwsAccount, AwsAccountConfig, CorsConfig, EcrRepositoryConfig, RdsConfig, RdsMysqlConfig, RdsPostgresConfig,
    S3BucketConfig,
};

/// `s3-bucket` (docs/spec/simple-container.md#7.3): a bucket, private or a static website, and a user with an access key
/// for it.
pub(super) fn s3_bucket(config: &S3BucketConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let base = at.qualified(if config.name.is_empty() { at.name } else { &config.name });
    let part = |suffix: &str| format!("{base}-{suffix}");
    let (aws, _) = provider(&config.account, r);

    let is_site = !config.domain.is_empty();
    let website = is_site.then(|| {
        let documents = [(config.index_document, "index.html"), (config.error_document, "error.html")];
        let [index, error] = documents.map(|(document, default)| r.text_or(document, default));
        json!({ "indexDocument": index, "errorDocument": error })
    });
    let acl = (!is_site).then_some("private");
    let inputs = json!({ "bucket": base, "acl": acl, "website": website, "tags": at.tags() });
    let bucket = r.add(aws.resource("aws:s3/bucket:Bucket", &base, inputs));
    if let Some(rules) = cors_rules(&config.cors_config, r) {
        let token = "aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2";
        r.add(aws.resource(token, &part("cors"), json!({ "bucket": bucket.id(), "corsRules": rules })));
    }
    let inputs = json!({
        "bucket": bucket.id(),
        "blockPublicAcls": !is_site,
        "ignorePublicAcls": true,
        "blockPublicPolicy": !is_site,
        "restrictPublicBuckets": !is_site,
    });
    let token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock";
    r.add(aws.resource(token, &part("access-block"), inputs));
    let inputs = json!({ "bucket": bucket.id(), "rule": { "objectOwnership": "ObjectWriter" } });
    let token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls";
    let ownership = r.add(aws.resource(token, &part("ownership-controls"), inputs));

    let inputs = json!({ "forceDestroy": true, "tags": at.tags() });
    let user = r.add(aws.resource("aws:iam/user:User", &part("user"), inputs).after([ownership]));
    let inputs = json!({ "user": user.id() });
    let key = r.add(aws.resource("aws:iam/accessKey:AccessKey", &part("access-key"), inputs).after([ownership]));
    let only_https = config.allow_only_https;
    let policy = r.text([user.out("arn"), bucket.out("arn"), bucket.id()], move |[user, arn, id]| {
        bucket_policy(user, arn, id, is_site, only_https)
    });
    let inputs = json!({ "bucket": bucket.id(), "policy": policy });
    r.add(aws.resource("aws:s3/bucketPolicy:BucketPolicy", &part("policy"), inputs).after([ownership]));

    if let Some(zone) = is_site.then(|| Zone::of_stack(at, r)).flatten() {
        let (domain, target) = (config.domain.as_str(), bucket.out("bucketDomainName"));
        let rule =
            HostRule { name: &base, domain, target: target.clone(), path_prefix: String::new(), authentication: None };
        zone.host_rule(rule, at, r);
        zone.record(domain, domain, "CNAME", target, true, r);
    }

    let secret_key = key.out("secret").secret();
    r.export(
        &base,
        json!({
            "bucket-name": bucket.out("bucket"),
            "bucket-region": bucket.out("region"),
            "bucket-user": user.out("name"),
            "access-key-secret": secret_key,
            "access-key-name": key.id(),
        }),
    );
    r.publish(json!({
        "bucket": bucket.out("bucket"),
        "region": bucket.out("region"),
        "access-key": key.id(),
        "secret-key": secret_key,
    }));
}

/// `ecr-repository` (docs/spec/simple-container.md#7.4): a repository for images, with a password for it.
pub(super) fn ecr_repository(config: &EcrRepositoryConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let name = format!("{}-{}", at.stack, config.name);
    let (aws, _) = provider(&config.account, r);
    let inputs = json!({ "forceDelete": true, "name": format!("{name}-ecr").replace("--", "_"), "tags": at.tags() });
    let repository = r.add(aws.resource("aws:ecr/repository:Repository", &name, inputs));
    let policy = match &config.lifecycle_policy {
        Some(policy) => go_json(policy),
        None => go_json(&json!({ "rules": [{
            "rulePriority": 1,
            "description": "Keep only 3 last images",
            "selection": { "tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 3 },
            "action": { "type": "expire" },
        }] })),
    };
    let inputs = json!({ "repository": repository.out("name"), "policy": policy });
    r.add(aws.resource("aws:ecr/lifecyclePolicy:LifecyclePolicy", &format!("{name}-lc-policy"), inputs));
    let arguments = json!({ "registryId": repository.out("registryId") });
    let token = r.add(aws.function("aws:ecr/getAuthorizationToken:getAuthorizationToken", arguments));
    let repository_name = name.clone();
    let password = r.try_text([token.out("authorizationToken")], move |[token]| {
        let decoded = decode_base64(token);
        let text = decoded.ok_or_else(|| format!("the token for the registry of {repository_name:?} is not base64"))?;
        Ok(text.strip_prefix("AWS:").unwrap_or(&text).to_owned())
    });
    r.export(
        &name,
        json!({
            "url": repository.out("repositoryUrl"),
            "id": repository.out("registryId"),
            "password": password.secret(),
        }),
    );
}

/// `aws-rds-postgres` (docs/spec/simple-container.md#7.5).
pub(super) fn rds_postgres<'r>(config: &'r RdsPostgresConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let engine = r.value(ResolvedValue::known("postgres"));
    let kind = RdsKind { engine, version: "16", user: "postgres", port: 5432, group: "" };
    rds_instance(&config.database, kind, at, r);
}

/// `aws-rds-mysql` (docs/spec/simple-container.md#7.5).
pub(super) fn rds_mysql<'r>(config: &'r RdsMysqlConfig, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let engine = r.text_or(config.engine_name, "mysql");
    let kind = RdsKind { engine, version: "8.0", user: "root", port: 3306, group: "mysql-" };
    rds_instance(&config.database, kind, at, r);
}

/// Differences between the databases on RDS.
struct RdsKind {
    engine: Hole,
    version: &'static str,
    /// Default name and password of the administrator.
    user: &'static str,
    port: u16,
    /// Beginning of the suffixes of the groups.
    group: &'static str,
}

/// Adds a database in the default network of the account, with a default subnet per zone.
fn rds_instance<'r>(config: &'r RdsConfig, kind: RdsKind, at: &'r ResourceNames<'r>, r: &mut Recipe<'r>) {
    let (aws, region) = provider(&config.account, r);
    let zones = availability_zones(aws, region, r);
    r.then(zones, move |zones, r| {
        let subnets: Vec<Handle> = texts(zones)
            .map(|zone| {
                let name = format!("default-subnet-{}-{zone}", at.environment);
                r.add(aws.resource("aws:ec2/defaultSubnet:DefaultSubnet", &name, json!({ "availabilityZone": zone })))
            })
            .collect();
        let name = format!("{}-{}", if config.name.is_empty() { at.name } else { &config.name }, at.environment);
        let resource = |token: &str, name: &str, inputs: Value| {
            aws.resource(token, name, inputs).after(subnets.iter().copied()).ignore_changes(["storageEncrypted"])
        };
        let vpc = r.add(resource("aws:ec2/defaultVpc:DefaultVpc", &format!("{name}-vpc"), json!({})));
        let group = format!("{name}-{}sg", kind.group);
        let inputs = json!({
            "name": group,
            "vpcId": vpc.id(),
            "tags": at.tags(),
            "ingress": [{
                "protocol": "tcp",
                "fromPort": kind.port,
                "toPort": kind.port,
                "cidrBlocks": ["0.0.0.0/0"],
                "ipv6CidrBlocks": ["::/0"],
            }],
        });
        let security_group = r.add(resource("aws:ec2/securityGroup:SecurityGroup", &group, inputs));
        let group = format!("{name}-{}subnet-group", kind.group);
        let subnet_ids: Vec<Hole> = subnets.iter().map(|subnet| subnet.id()).collect();
        let inputs = json!({ "name": group, "subnetIds": subnet_ids, "tags": at.tags() });
        let subnet_group = r.add(resource("aws:rds/subnetGroup:SubnetGroup", &group, inputs));

        let username = r.text_or(config.username, kind.user);
        let password = r.text_or(config.password, kind.user).secret();
        // An explicitly empty name is sent, as by the Go program.
        let database = r.given(config.database_name);
        let inputs = json!({
            "dbName": database,
            "instanceClass": r.text_or(config.instance_class, "db.t3.micro"),
            "allocatedStorage": config.allocate_storage.unwrap_or(20),
            "engine": kind.engine,
            "engineVersion": r.text_or(config.engine_version, kind.version),
            "dbSubnetGroupName": subnet_group.out("name"),
            "vpcSecurityGroupIds": [security_group.id()],
            "username": username,
            "password": password,
            "skipFinalSnapshot": true,
            "storageEncrypted": config.storage_encrypted.unwrap_or(true),
            "tags": at.tags(),
        });
        let instance = r.add(resource("aws:rds/instance:Instance", &name, inputs));
        let endpoint = instance.out("endpoint");
        let exports = json!({
            "arn": instance.out("arn"),
            "endpoint": endpoint,
            "username": instance.out("username"),
            "password": instance.out("password").secret(),
        });
        r.export(&name, exports);
        let part =
            |index: usize| move |[endpoint]: [&str; 1]| endpoint.split(':').nth(index).unwrap_or_default().to_owned();
        let (host, port) = (r.text([endpoint.clone()], part(0)), r.text([endpoint.clone()], part(1)));
        r.publish(json!({
            "url": endpoint,
            "host": host,
            "port": port,
            "user": username,
            "database": database,
            "password": password,
        }));
    });
}

/// Returns access key, secret key and region of an account: those in `credentials`, else the separate keys.
fn account(config: &AwsAccountConfig, r: &mut Recipe<'_>) -> [Hole; 3] {
    let Some(credentials) = r.non_empty(config.credentials) else {
        return [config.access_key, config.secret_access_key, config.region].map(|key| r.text_or(key, ""));
    };
    let text = r.config_text(credentials).clone();
    let parts = match text.exposed_text().map(AwsAccount::parse) {
        Some(Some(AwsAccount { access_key, secret_access_key, region })) => {
            [access_key, secret_access_key, region].map(PropertyValue::from)
        }
        Some(None) => {
            let summary = "these are not the credentials of an AWS account";
            r.reject(credentials, |span| Diagnostic::error(Code("credentials"), span, summary));
            [(); 3].map(|()| PropertyValue::UNKNOWN)
        }
        None => [(); 3].map(|()| PropertyValue::UNKNOWN),
    };
    parts.map(|value| r.value(ResolvedValue { value, dependencies: text.dependencies.clone() }))
}

/// Adds the provider of a core resource. Returns it with the region.
pub(super) fn provider(config: &AwsAccountConfig, r: &mut Recipe<'_>) -> (Provider, Hole) {
    let (inputs, region) = provider_inputs(config, r);
    (r.provider(AWS, inputs), region)
}

/// Adds the call that looks up the zones of a region. Returns their names.
pub(super) fn availability_zones(aws: Provider, region: Hole, r: &mut Recipe<'_>) -> Hole {
    let arguments = json!({ "filters": [{ "name": "region-name", "values": [region] }] });
    r.add(aws.function("aws:index/getAvailabilityZones:getAvailabilityZones", arguments)).out("names")
}

pub(super) fn texts(list: &PropertyValue) -> impl Iterator<Item = &str> {
    let items = if let PropertyValue::List(items) = list { &items[..] } else { &[] };
    items.iter().filter_map(PropertyValue::as_str)
}

/// Returns the inputs of the provider of an account, and the region.
pub(super) fn provider_inputs(config: &AwsAccountConfig, r: &mut Recipe<'_>) -> (Value, Hole) {
    let [access_key, secret_key, region] = account(config, r);
    let inputs = match r.known_text(&access_key) {
        // Without keys, the provider finds credentials itself, for example in its environment.
        Some("") => json!({ "region": region, "skipCredentialsValidation": true }),
        _ => json!({ "region": region, "accessKey": access_key, "secretKey": secret_key }),
    };
    (inputs, region)
}

/// Returns the rules of `corsConfig`; `None` without an allowed origin.
fn cors_rules(cors: &CorsConfig, r: &Recipe<'_>) -> Option<Value> {
    let origin = r.non_empty(cors.allowed_origins)?;
    let methods = match &cors.allowed_methods[..] {
        [] => json!(["GET", "HEAD"]),
        methods => json!(methods),
    };
    Some(json!([{ "allowedOrigins": [origin], "allowedMethods": methods, "allowedHeaders": ["*"] }]))
}

/// Returns the policy of a bucket in the format of Go's JSON encoder: compact, with sorted keys.
fn bucket_policy(user: &str, bucket: &str, id: &str, is_site: bool, only_https: bool) -> String {
    let allow = json!({
        "Action": "s3:*",
        "Effect": "Allow",
        "Principal": { "AWS": user },
        "Resource": [format!("arn:aws:s3:::{id}"), format!("arn:aws:s3:::{id}/*")],
    });
    let public = json!({
        "Action": ["s3:GetObject"],
        "Effect": "Allow",
        "Principal": "*",
        "Resource": [format!("{bucket}/*")],
    });
    let deny = json!({
        "Action": "s3:*",
        "Condition": { "Bool": { "aws:SecureTransport": "false" } },
        "Effect": "Deny",
        "Principal": "*",
        "Resource": [format!("{bucket}/*")],
        "Sid": "DenyNonSecureTransport",
    });
    let statements = [allow].into_iter().chain(is_site.then_some(public)).chain(only_https.then_some(deny));
    let statements: Vec<Value> = statements.collect();
    json!({ "Statement": statements, "Version": "2012-10-17" }).to_string()
}

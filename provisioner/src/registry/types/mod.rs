//! Types for the `config` of each core type and template type of `sc`.
//!
//! Input: a resolved `config`. Output: a typed `config` or its errors. Excluded: the engine, and the registrations of a type
//! ([`super::recipes`]).

mod aws;
mod caddy;
mod cloudflare;
mod gcp;
mod gcp_data;
mod gcp_registry;
mod gke;
mod helm;
mod keys;
mod mongodb;
pub(crate) mod templates;

pub use aws::{
    AwsAccount, AwsAccountConfig, CorsConfig, EcrRepositoryConfig, LifecycleAction, LifecyclePolicy, LifecycleRule,
    LifecycleSelection, RdsConfig, RdsMysqlConfig, RdsPostgresConfig, S3BucketConfig,
};
pub use caddy::{CaddyConfig, ContainerResources, KubernetesCaddyConfig, VpaConfig, VpaContainerPolicy, VpaResources};
pub use cloudflare::{CloudflareConfig, DnsRecord};
pub use gcp::{GcpAccountConfig, GcpBucketConfig};
pub use gcp_data::{
    DeadLetterPolicy, GcpCloudSqlPostgresConfig, GcpPubSubConfig, GcpRedisConfig, Subscription, Topic,
    UsersProvisionRuntime,
};
pub use gcp_registry::{BasicAuth, DockerFormat, GcpArtifactRegistryConfig};
pub use gke::{EgressIpConfig, GkeAutopilotConfig, GkeTimeouts};
pub use helm::{
    HelmChartConfig, MongodbOperatorConfig, PostgresOperatorConfig, RabbitmqOperatorConfig, RedisOperatorConfig,
};
pub use keys::{AwsKmsConfig, GcpKmsConfig};
pub use mongodb::{
    AtlasAdvancedBackup, AtlasBackup, AtlasBackupPolicy, AtlasConfig, AtlasNetwork, ExtraProvider, PrivateLinkEndpoint,
};

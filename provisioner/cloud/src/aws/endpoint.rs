//! Hosts of the services of AWS, and endpoints that replace them.

use aws_config::SdkConfig;
use aws_types::service_config::ServiceConfigKey;

/// Prefix of the names of regions, domain of their services, and domain of their services with an IPv6 address.
const PARTITIONS: [(&str, &str, &str); 6] = [
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
];

/// Domains of the services in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Domains {
    /// Domain of most hosts.
    pub(crate) standard: &'static str,
    /// Domain of the hosts of most services that have an IPv6 address too.
    pub(crate) dualstack: &'static str,
}

impl Domains {
    pub(crate) fn of(region: &str) -> Self {
        let partition = PARTITIONS.iter().find(|(prefix, ..)| region.starts_with(prefix));
        let (standard, dualstack) =
            partition.map_or(("amazonaws.com", "api.aws"), |(_, standard, dualstack)| (*standard, *dualstack));
        Self { standard, dualstack }
    }
}

/// Returns the endpoint of the environment or the profile: for the service, else for all services.
pub(crate) fn configured_endpoint(config: &SdkConfig, service: &str) -> Option<String> {
    let of_service = || {
        let key =
            ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url").build();
        config.service_config()?.load_config(key.ok()?)
    };
    of_service().or_else(|| config.endpoint_url().map(str::to_owned))
}

//! Health checks of the variables that lead downloads through proxies and name trusted certificates.

use std::path::Path;

use url::Url;

use crate::health::HealthCheck;
use crate::process::HostEnvironment;

/// Variables with the address of a proxy.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
/// Variables with hosts that are asked without a proxy.
const WITHOUT_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Variables with a file or a folder of certificates.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Checks the variables of proxies and certificates. Opens no connection.
pub fn check_proxies(environment: &HostEnvironment) -> Vec<HealthCheck> {
    let variable = |name: &str| environment.get(name)?.to_str().filter(|value| !value.is_empty());
    let proxy = |name: &&str| {
        let value = variable(name)?;
        let address = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        // The address may have a password.
        let authority = Url::parse(&address).ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
        });
        Some(match authority {
            Some(authority) => HealthCheck::good("proxy", format_args!("{name} names {authority}")),
            None => {
                let text = format_args!("{name} has no address of a proxy");
                HealthCheck::bad("proxy", text, "its form is http://HOST:PORT")
            }
        })
    };
    let mut checks: Vec<HealthCheck> = PROXIES.iter().filter_map(proxy).collect();
    if checks.is_empty() {
        checks.push(HealthCheck::good("proxy", "none is set"));
    } else {
        let without = WITHOUT_PROXY.iter().filter_map(|name| Some((name, variable(name)?)));
        checks.extend(without.map(|(name, hosts)| HealthCheck::good("proxy", format_args!("{name} is {hosts}"))));
    }
    let certificates = CERTIFICATES.iter().filter_map(|name| Some((name, variable(name)?)));
    checks.extend(certificates.map(|(name, path)| match Path::new(path).exists() {
        true => HealthCheck::good("certificates", format_args!("{name} names {path}")),
        false => {
            let text = format_args!("{name} names {path}, which does not exist");
            HealthCheck::bad("certificates", text, format_args!("unset {name}, or repair the path"))
        }
    }));
    checks
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::health::HealthState;

    fn check(variables: &[(&str, &str)]) -> Vec<(HealthState, String)> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let found = check_proxies(&HostEnvironment::new(variables));
        found.into_iter().map(|check| (check.state, check.text.to_string())).collect()
    }

    #[test]
    fn proxies_are_shown_without_their_passwords() {
        assert_eq!(check(&[]), [(HealthState::Good, "none is set".to_owned())]);
        let good = |text: &str| (HealthState::Good, text.to_owned());
        assert_eq!(
            check(&[
                ("HTTPS_PROXY", "http://me:word@proxy.example:3128"),
                ("http_proxy", "proxy"),
                ("NO_PROXY", "a,b")
            ]),
            [good("HTTPS_PROXY names proxy.example:3128"), good("http_proxy names proxy"), good("NO_PROXY is a,b")]
        );
        let bad = check(&[("ALL_PROXY", "http://me:word@:x")]);
        assert_eq!(bad, [(HealthState::Bad, "ALL_PROXY has no address of a proxy".to_owned())]);
    }

    #[test]
    fn certificates_that_do_not_exist_are_bad() {
        let found = check(&[("SSL_CERT_FILE", "/nowhere/x.pem"), ("SSL_CERT_DIR", "/")]);
        let states: Vec<HealthState> = found.iter().map(|(state, _)| *state).collect();
        assert_eq!(states, [HealthState::Good, HealthState::Bad, HealthState::Good]);
    }
}

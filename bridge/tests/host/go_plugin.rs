//! A go-plugin server under leases. It knows the engine from its broker only.

mod handshakes;

use bridge::host::{HostEvent, LogMessage, Severity};
use bridge::plugin::{Checksum, Dialect, GoPlugin, GoPluginTls, PluginSource, Sha256Digest};
use pulumi_proto::property::PropertyMap;

use crate::TestRepository;
use crate::leases::{configuration, configured};

/// Repository with the plugin `x`, a go-plugin server in plain text with a checksum.
fn repository(faults: &[&str]) -> TestRepository {
    let mut repository = TestRepository::new();
    let config = repository.plugin("x", "", faults);
    config.dialect = Dialect::GoPlugin(GoPlugin { tls: GoPluginTls::None, ..GoPlugin::default() });
    let PluginSource::Local(source) = &mut config.source else { unreachable!() };
    source.checksum = Some(Checksum::One(Sha256Digest::of(std::fs::read(&source.path).unwrap())));
    repository
}

fn logged(repository: &TestRepository) -> Vec<LogMessage> {
    let message = |event| if let HostEvent::Log { message, .. } = event { Some(message) } else { None };
    repository.events.all().into_iter().filter_map(message).collect()
}

/// Shows: hosting.md#what-is-kept-when "the Engine service of its plugin belongs to that run"
/// Shows: hosting.md#start-protocols "The stream of the broker stays open until the plugin has ended."
#[tokio::test]
async fn engine_is_offered_behind_the_broker_to_the_run_that_has_leased_the_plugin() {
    let repository = repository(&[]);
    let first = repository.load().await.unwrap();
    first.close().await;
    let other = repository.with_other_events();
    let host = other.load().await.unwrap();
    let provider = configured(&host, configuration("p", "1", PropertyMap::new())).await;
    provider.close().await;
    host.close().await;
    let expected = LogMessage {
        severity: Severity::Warning,
        text: "hello".into(),
        urn: Some("u".into()),
        stream_id: 7,
        ephemeral: true,
    };
    assert_eq!((logged(&repository), logged(&other)), (vec![], vec![expected]));
    repository.pool.close().await;
    // The plugin would record the end of its broker.
    let initialize = r#"Initialize ["token"]"#;
    assert_eq!(repository.calls("x"), ["Configure", initialize, "Cleanup", "Cancel", "Shutdown"]);
}

/// Shows: hosting.md#start-protocols "They are announced again before each Configure"
#[tokio::test]
async fn engine_is_announced_again_before_configure() {
    let repository = repository(&["miss the first announcement"]);
    let host = repository.load().await.unwrap();
    configured(&host, configuration("p", "1", PropertyMap::new())).await;
    host.close().await;
    repository.pool.close().await;
    assert_eq!(logged(&repository).len(), 1);
}

#[tokio::test]
async fn plugin_without_a_broker_is_used() {
    let repository = repository(&["serve no broker"]);
    let host = repository.load().await.unwrap();
    host.schemas().await.unwrap();
    host.close().await;
    repository.pool.close().await;
    assert_eq!(repository.calls("x"), ["GetSchema", "Cancel", "Shutdown"]);
}

//! The examples of the library, called through the bridge with AutoMTLS and without.

use std::sync::Arc;
use std::time::Duration;

use bridge::host::BrokeredServer;
use bridge::launch::{BrokerError, CallError, HostIdentity, PluginAddress, plugin_connection};
use tonic::service::Routes;

use crate::example_plugin::{
    AddHelper, Bytes, CounterGet, CounterPut, Empty, Example, Key, KvGet, KvPut, Put, PutCount, StreamerConfig,
    StreamerConfigure, StreamerRead, StreamerWrite, launch,
};

fn key() -> Key {
    Key { key: "a".to_owned() }
}

#[tokio::test]
async fn grpc_example_keeps_a_value() {
    for has_tls in [false, true] {
        let plugin = Example::start("grpc/plugin-go-grpc", "1", has_tls).await;
        assert_eq!(plugin.fields[5].is_empty(), !has_tls, "{:?}", plugin.fields);
        plugin.connection.call::<KvPut>(&Put { key: "a".to_owned(), value: b"hello".to_vec() }).await.unwrap();
        let value = plugin.connection.call::<KvGet>(&key()).await.unwrap().value;
        assert_eq!(value, b"hello\n\nWritten from plugin-go-grpc", "{}", String::from_utf8_lossy(&value));
    }
}

#[tokio::test]
async fn negotiated_example_uses_its_version_with_grpc() {
    for has_tls in [false, true] {
        let plugin = Example::start("negotiated/plugin-go", "2,3", has_tls).await;
        assert_eq!(plugin.fields[1], "3");
        plugin.connection.call::<KvPut>(&Put { key: "a".to_owned(), value: b"hello".to_vec() }).await.unwrap();
        let value = plugin.connection.call::<KvGet>(&key()).await.unwrap().value;
        assert!(String::from_utf8_lossy(&value).ends_with("Read by plugin version 3\n"));
    }
}

#[tokio::test]
async fn bidirectional_example_calls_services_of_the_host() {
    for has_tls in [false, true] {
        let plugin = Example::start("bidirectional/plugin-go-grpc", "1", has_tls).await;
        for (count, expected) in [(4, 4), (3, 7)] {
            let routes = Routes::new(AddHelper);
            let server = BrokeredServer::offer(&plugin.broker, routes, Arc::default()).await.unwrap();
            let request = PutCount { add_server: server.id(), key: "a".to_owned(), value: count };
            plugin.connection.call::<CounterPut>(&request).await.unwrap();
            assert_eq!(plugin.connection.call::<CounterGet>(&key()).await.unwrap().value, expected, "TLS: {has_tls}");
        }
        // The plugin offers no service of its own.
        assert!(matches!(plugin.broker.dial(1).await, Err(BrokerError::NotAnnounced { id: 1 })));
    }
}

#[tokio::test]
async fn streaming_example_reads_and_sends_streams() {
    for has_tls in [false, true] {
        let plugin = Example::start("streaming/plugin", "1", has_tls).await;
        let path = plugin.folder.path().join("streamed").display().to_string();
        let config = StreamerConfig { path: path.clone(), chunk_size: 1000 };
        plugin.connection.call::<StreamerConfigure>(&config).await.unwrap();
        let content: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        let (mut requests, mut replies) = plugin.connection.call_bidirectional::<StreamerWrite>().await.unwrap();
        for chunk in content.chunks(60_000) {
            requests.send(&Bytes { value: chunk.to_vec() }).await.unwrap();
        }
        requests.finish().await.unwrap();
        // The example ends the call without a reply message.
        assert_eq!(replies.next().await.unwrap(), None);
        assert!(std::fs::read(path).unwrap() == content);
        let mut replies = plugin.connection.call_streaming::<StreamerRead>(&Empty {}).await.unwrap();
        let mut read = Vec::new();
        while let Some(chunk) = replies.next().await.unwrap() {
            read.extend(chunk.value);
        }
        assert!(read == content);
    }
}

#[tokio::test]
async fn basic_example_speaks_net_rpc() {
    let folder = tempfile::Builder::new().prefix("sc").tempdir().unwrap();
    let (_process, fields) = launch("basic/plugin", "1", None, &folder).await;
    assert_eq!(fields[4], "netrpc");
}

#[tokio::test]
async fn certificate_that_was_not_in_the_environment_is_refused() {
    let folder = tempfile::Builder::new().prefix("sc").tempdir().unwrap();
    let (expected, other) = (HostIdentity::generate().unwrap(), HostIdentity::generate().unwrap());
    let (process, fields) = launch("grpc/plugin-go-grpc", "1", Some(&expected), &folder).await;
    let address = PluginAddress::Unix(fields[3].clone().into());
    let tls = other.with_plugin_certificate(&fields[5]).unwrap();
    let connection = plugin_connection(address.clone(), &process, Some(tls));
    let error = connection.call::<KvGet>(&key()).await.unwrap_err();
    assert!(format!("{error:?}").contains("certificate refused or no ALPN"), "{error:?}");
    // Without TLS, the plugin does not reply either, and is still there for the host that has started it.
    let plain = plugin_connection(address.clone(), &process, None);
    let reply = tokio::time::timeout(Duration::from_secs(10), plain.call::<KvGet>(&key())).await.unwrap();
    assert!(matches!(reply, Err(CallError::Lost { .. } | CallError::NotSent(_))), "{reply:?}");
    let tls = expected.with_plugin_certificate(&fields[5]).unwrap();
    // The example has no value yet, and reports that as an error of the call.
    let reply = plugin_connection(address, &process, Some(tls)).call::<KvGet>(&key()).await;
    assert!(matches!(reply, Err(CallError::Status(_))), "{reply:?}");
    assert!(process.exit_status().is_none());
}

//! The host as the side that dials: order and life of the messages.

use std::path::Path;
use std::time::Duration;

use bridge::launch::{BrokerError, CallError, Connection};
use prost::Message as _;
use pulumi_proto::go_plugin::{ConnInfo, Empty};
use tokio::time::{Instant, sleep};

use super::offers::Shutdown;
use super::{Plugin, message, plugin};
use crate::recordings::recordings;

/// Outcome of a dial, and the time until then in seconds.
async fn dial(plugin: &Plugin, id: u32) -> (Result<Connection, BrokerError>, f64) {
    let start = Instant::now();
    let result = plugin.broker.dial(id).await;
    (result, start.elapsed().as_secs_f64())
}

/// Waits until the host has processed the messages that were sent.
async fn processed() {
    // Time passes only when no task can continue.
    sleep(Duration::from_millis(1)).await;
}

async fn after(seconds: f64) {
    sleep(Duration::from_secs_f64(seconds)).await;
}

/// Carries out a recorded case. Returns `None` for a case that concerns the plugin or the socket, not the messages.
async fn outcome(case: &str) -> Option<(Result<Connection, BrokerError>, f64)> {
    let mut plugin = plugin(None).await;
    let announced = message(7, "unix", "/run/host/plugin1");
    let found = match case {
        "dial without a message" => dial(&plugin, 7).await,
        "message 3 s before the dial" => {
            plugin.announce(announced).await;
            after(3.0).await;
            dial(&plugin, 7).await
        }
        "message 6 s before the dial" => {
            plugin.announce(announced).await;
            after(6.0).await;
            dial(&plugin, 7).await
        }
        "dial 2 s before the message" => {
            let announce = async {
                after(2.0).await;
                plugin.announce(announced).await;
            };
            tokio::join!(dial(&plugin, 7), announce).0
        }
        "second dial of one id, one message" => {
            plugin.announce(announced).await;
            dial(&plugin, 7).await.0.unwrap();
            dial(&plugin, 7).await
        }
        "two messages for one id" => {
            plugin.announce(announced.clone()).await;
            plugin.announce(message(7, "udp", "second")).await;
            processed().await;
            let first = dial(&plugin, 7).await;
            assert!(matches!(dial(&plugin, 7).await.0, Err(BrokerError::NotAnnounced { id: 7 })), "dropped");
            first
        }
        "socket does not exist" => {
            plugin.announce(message(7, "unix", "/no/such/socket")).await;
            dial(&plugin, 7).await
        }
        "network udp" => {
            plugin.announce(message(7, "udp", "127.0.0.1:1")).await;
            dial(&plugin, 7).await
        }
        "id 0" => {
            plugin.announce(message(0, "unix", "/run/host/plugin1")).await;
            dial(&plugin, 0).await
        }
        "host half-closes the broker stream" | "host cancels the broker stream" => {
            // The host does neither: its stream is open after each kind of use.
            plugin.announce(announced).await;
            dial(&plugin, 7).await.0.unwrap();
            plugin.broker.announce(1, Path::new("/run/host/host1")).await.unwrap();
            assert_eq!(plugin.received.recv().await, Some(message(1, "unix", "/run/host/host1")));
            processed().await;
            assert!(
                plugin.received.try_recv().is_err_and(|error| error == tokio::sync::mpsc::error::TryRecvError::Empty)
            );
            return None;
        }
        _ => return None,
    };
    Some(found)
}

#[tokio::test(start_paused = true)]
async fn recorded_cases_of_the_plain_broker_have_their_outcomes() {
    let mut checked = 0;
    for recording in recordings("broker.json") {
        for edge in recording["edges"].as_array().unwrap() {
            let [mode, case, expected] = ["mode", "case", "outcome"].map(|key| edge[key].as_str().unwrap());
            if mode != "plain" {
                continue;
            }
            let Some((found, seconds)) = outcome(case).await else { continue };
            checked += 1;
            match expected.split([' ', ':', ',']).next().unwrap() {
                "connects" | "an" => assert!(found.is_ok(), "{case}: {found:?}"),
                "first" => {
                    let error = found.unwrap().call::<Shutdown>(&Empty {}).await.unwrap_err();
                    assert!(matches!(error, CallError::NotSent(_)), "{case}: {error:?}");
                }
                "error" => {
                    let is_late = !expected.contains("at once");
                    assert!(found.is_err(), "{case}");
                    assert_eq!((4.9..5.1).contains(&seconds), is_late, "{case}: {seconds} s");
                    assert_eq!(matches!(found, Err(BrokerError::NotAnnounced { .. })), is_late, "{case}: {found:?}");
                }
                other => panic!("{case}: unknown outcome {other}"),
            }
        }
    }
    assert!(checked >= 9, "{checked} cases were recognised");
}

#[tokio::test(start_paused = true)]
async fn recorded_messages_of_the_plain_broker_are_those_of_the_host_and_the_plugin() {
    let mut checked = 0;
    for recording in recordings("broker.json") {
        for sequence in recording["sequences"].as_array().unwrap() {
            if sequence["name"].as_str().unwrap().contains("multiplexed") {
                continue;
            }
            let mut plugin = plugin(None).await;
            for recorded in sequence["messages"].as_array().unwrap() {
                let Some(hex) = recorded["hex"].as_str() else { continue };
                let bytes = hex::decode(hex).unwrap();
                let decoded = ConnInfo::decode(bytes.as_slice()).unwrap();
                if recorded["from"] == "plugin" {
                    plugin.announce(decoded.clone()).await;
                    plugin.broker.dial(decoded.service_id).await.unwrap();
                } else {
                    let id = plugin.broker.next_id();
                    plugin.broker.announce(id, Path::new(&decoded.address)).await.unwrap();
                    assert_eq!(plugin.received.recv().await.unwrap().encode_to_vec(), bytes);
                }
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "{checked} messages");
}

#[tokio::test(start_paused = true)]
async fn addresses_elsewhere_are_not_used() {
    let table = [
        ("unix", "", "which is no absolute path"),
        ("unix", "plugin1", "which is no absolute path"),
        ("tcp", "192.0.2.1:80", "which is no address of the loopback interface"),
        ("tcp", "127.0.0.1:0", "which is no address of the loopback interface"),
        ("tcp", "localhost", "which is no address of the loopback interface"),
        ("pipe", "x", "which is an unknown network"),
    ];
    let plugin = plugin(None).await;
    for (network, address, expected) in table {
        plugin.announce(message(1, network, address)).await;
        match plugin.broker.dial(1).await {
            Err(BrokerError::Address { reason, .. }) => assert_eq!(reason, expected, "{network} {address}"),
            other => panic!("{network} {address}: {other:?}"),
        }
    }
    plugin.announce(message(1, "tcp", "127.0.0.1:4000")).await;
    plugin.broker.dial(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dials_end_with_the_stream_of_the_plugin() {
    let mut plugin = plugin(None).await;
    let announcements = plugin.announcements.take();
    let end = async {
        processed().await;
        drop(announcements);
    };
    let ((found, seconds), ()) = tokio::join!(dial(&plugin, 3), end);
    assert!(matches!(found, Err(BrokerError::Closed)) && seconds < 1.0, "{found:?} after {seconds} s");
    assert!(matches!(dial(&plugin, 3).await.0, Err(BrokerError::Closed)));
    processed().await;
    assert!(matches!(plugin.broker.announce(1, Path::new("/x")).await, Err(BrokerError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn messages_without_a_dial_are_limited() {
    let plugin = plugin(None).await;
    for id in 1..=1100 {
        plugin.announce(message(id, "unix", "/run/host/plugin1")).await;
    }
    processed().await;
    plugin.broker.dial(1024).await.unwrap();
    assert!(matches!(plugin.broker.dial(1025).await, Err(BrokerError::NotAnnounced { id: 1025 })));
}

//! Rules for the requests, and the record of them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::exchange::Exchange;

/// Time after which the test is asked again whether it still waits.
const WAIT: Duration = Duration::from_millis(10);

/// Fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before the store receives the request.
    CutBefore,
    /// The connection ends after the store has processed the request, without a reply.
    CutAfter,
    /// The connection ends in the middle of the reply.
    CutReply,
    /// The store refuses the request with a status and a code. A connection to a database ends instead.
    Refused(u16, &'static str),
    /// The store refuses the request in this way if it writes an object, and carries out any other. HTTP only.
    WriteRefused(u16, &'static str),
    /// The store receives the request after the one that follows it. HTTP only; a request that nothing follows is forwarded
    /// after a while.
    Overtaken,
    /// The store does not receive the request; the connection stays open until the client ends it or the proxy
    /// [recovers](super::StoreProxy::recover), after which the request is forwarded.
    HeldBefore,
    /// The store processes the request; the reply is held in the same way.
    HeldAfter,
}

impl Fault {
    /// Reply of a store without capacity.
    pub const BUSY: Self = Self::Refused(503, "SlowDown");
}

/// Program that checks the conditions of writes to S3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditions {
    /// The store.
    #[default]
    Store,
    /// The proxy, strictly, before the store does.
    Proxy,
    /// No program: the store receives no condition, and writes.
    Ignored,
}

/// Rules for the requests.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) delay: Duration,
    pub(super) next: VecDeque<Fault>,
    pub(super) at: BTreeMap<usize, Fault>,
    /// Number from which on requests have a fault.
    pub(super) from: Option<(usize, Fault)>,
    pub(super) clock_shift: i64,
    pub(super) checks_times: bool,
    pub(super) conditions: Conditions,
}

#[derive(Debug, Default)]
struct State {
    rules: Rules,
    requests: Vec<Exchange>,
    /// Number of begins and ends so far.
    positions: usize,
    /// Number of times that the record was emptied: requests from before are not recorded in the new one.
    record: usize,
    /// Number of requests that are held.
    held: usize,
}

/// Number of a request within a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    record: usize,
    index: usize,
}

/// State of a proxy that its connections share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Address of the store.
    pub(super) store: SocketAddr,
    state: Mutex<State>,
    /// Notified when a request is held, and when that ends.
    held: Condvar,
    /// Number of requests that the store has processed.
    pub(super) processed: watch::Sender<usize>,
    /// Number of changes of the rules.
    changes: watch::Sender<usize>,
    /// Held while a condition is checked and its write is sent.
    pub(super) writing: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(super) fn new(store: SocketAddr) -> Self {
        Self {
            store,
            state: Mutex::default(),
            held: Condvar::new(),
            processed: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.state().rules);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns a value of the rules.
    pub(super) fn rule<T>(&self, rule: impl FnOnce(&Rules) -> T) -> T {
        rule(&self.state().rules)
    }

    /// Records the begin of a request, and returns its number and its fault.
    pub(super) fn begin(&self, method: &str, path: &str, conditions: Vec<(String, String)>) -> (Number, Option<Fault>) {
        let mut state = self.state();
        state.positions += 1;
        let (begun, is_write) = (state.positions, matches!(method, "PUT" | "POST"));
        let (method, path) = (method.to_owned(), path.to_owned());
        state.requests.push(Exchange { method, path, conditions, begun, ended: None, status: None });
        let index = state.requests.len() - 1;
        let number = Number { record: state.record, index };
        let rules = &mut state.rules;
        let fault = rules.at.remove(&index).or_else(|| rules.next.pop_front());
        let fault = fault.or(rules.from.filter(|(from, _)| index >= *from).map(|(_, fault)| fault));
        let fault = match fault {
            Some(Fault::WriteRefused(status, code)) => is_write.then_some(Fault::Refused(status, code)),
            fault => fault,
        };
        (number, fault)
    }

    /// Records the end of a request.
    pub(super) fn end(&self, number: Number, status: Option<u16>) {
        let mut state = self.state();
        state.positions += 1;
        let ended = state.positions;
        if state.record == number.record {
            let exchange = &mut state.requests[number.index];
            (exchange.ended, exchange.status) = (Some(ended), status);
        }
    }

    pub(super) fn requests(&self) -> Vec<Exchange> {
        self.state().requests.clone()
    }

    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.requests.clear();
        state.record += 1;
    }

    /// Holds a request until the rules change.
    pub(super) async fn hold(&self) {
        let mut changes = self.changes.subscribe();
        let _held = Held::of(self);
        // The sender lives as long as this.
        drop(changes.changed().await);
    }

    /// Waits until no request is held.
    pub(super) fn wait_until_free(&self) {
        let mut state = self.state();
        while state.held > 0 {
            state = self.held.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn wait_until_held(&self, mut is_over: impl FnMut() -> bool) -> bool {
        let mut state = self.state();
        while state.held == 0 {
            if is_over() {
                return false;
            }
            state = self.held.wait_timeout(state, WAIT).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Request that is held. It ends when it is dropped, also with the connection of its client.
struct Held<'a>(&'a Shared);

impl<'a> Held<'a> {
    fn of(shared: &'a Shared) -> Self {
        shared.state().held += 1;
        shared.held.notify_all();
        Self(shared)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.state().held -= 1;
        self.0.held.notify_all();
    }
}

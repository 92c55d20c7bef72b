//! Budgets for connections: callers without credentials cannot keep out those who have them.
//!
//! A new connection counts as unauthenticated until its first request is admitted. It has [`DEADLINE`] for that, and
//! there is a limit on how many such connections one peer may hold and on all of them together. At a limit the oldest
//! one is closed, not the newcomer refused: an honest caller authenticates within a few round trips, long before
//! its connection is the oldest. Authenticated connections are counted apart.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio_util::sync::CancellationToken;

/// From being accepted to the first admitted request: TLS handshake and all.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// How many connections may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    unauthenticated: usize,
    /// Unauthenticated ones of one peer. A thousand workers behind one address may connect at once.
    per_peer: usize,
    authenticated: usize,
}

impl Budget {
    /// Budgets for a process that may have so many files open: a quarter of them, at most 1,024, is left to the
    /// store, the live view and everything else.
    fn within(files: u64) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let connections = files - (files / 4).min(1024);
        let unauthenticated = (connections / 3).min(2048);
        let authenticated = (connections - unauthenticated).min(8192);
        Self { unauthenticated, per_peer: unauthenticated / 2, authenticated }
    }
}

/// An IPv4 address, or the network of an IPv6 address: a host commonly has a /64 to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer(IpAddr);

impl Peer {
    fn new(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// All connections of a coordinator, whatever the port.
#[derive(Clone)]
pub(super) struct Connections(Arc<Mutex<Table>>);

struct Table {
    budget: Budget,
    /// Ids in the order of acceptance.
    next: u64,
    /// By peer and id, with what closes the connection.
    unauthenticated: HashMap<Peer, BTreeMap<u64, CancellationToken>>,
    authenticated: HashSet<u64>,
}

impl Connections {
    /// Budgets below the process's limit on open files.
    pub(super) fn new() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::with(Budget::within(files))
    }

    fn with(budget: Budget) -> Self {
        Self(Arc::new(Mutex::new(Table {
            budget,
            next: 0,
            unauthenticated: HashMap::new(),
            authenticated: HashSet::new(),
        })))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection that was just accepted, and closes another where that makes too many.
    pub(super) fn accept(&self, address: IpAddr) -> Ticket {
        let (peer, closing) = (Peer::new(address), CancellationToken::new());
        let id = self.table().accept(peer, closing.clone());
        Ticket { id, peer, closing, connections: self.clone() }
    }
}

impl Table {
    fn accept(&mut self, peer: Peer, closing: CancellationToken) -> u64 {
        let held = |held: &BTreeMap<_, _>| held.len();
        if self.unauthenticated.get(&peer).map_or(0, held) >= self.budget.per_peer {
            self.close_oldest(peer);
        } else if self.unauthenticated.values().map(held).sum::<usize>()
            >= self.budget.unauthenticated
        {
            // Of the peer with most; among equals, of the one that has waited longest.
            let rank = |held: &BTreeMap<u64, _>| (held.len(), Reverse(held.keys().next().copied()));
            let most = self.unauthenticated.iter().max_by_key(|(_, held)| rank(held));
            if let Some((&peer, _)) = most {
                self.close_oldest(peer);
            }
        }
        let id = self.next;
        self.next += 1;
        self.unauthenticated.entry(peer).or_default().insert(id, closing);
        id
    }

    fn close_oldest(&mut self, peer: Peer) {
        let oldest = self.unauthenticated.get(&peer).and_then(|held| held.keys().next().copied());
        if let Some(closing) = oldest.and_then(|id| self.take_unauthenticated(peer, id)) {
            closing.cancel();
        }
    }

    fn take_unauthenticated(&mut self, peer: Peer, id: u64) -> Option<CancellationToken> {
        let held = self.unauthenticated.get_mut(&peer)?;
        let closing = held.remove(&id);
        if held.is_empty() {
            self.unauthenticated.remove(&peer);
        }
        closing
    }
}

/// A connection's entry in the table; requests carry it among their extensions.
#[derive(Clone)]
pub(super) struct Ticket {
    id: u64,
    peer: Peer,
    closing: CancellationToken,
    connections: Connections,
}

impl Ticket {
    /// Counts the connection as authenticated from now on; `false` if there are too many.
    pub(super) fn authenticate(&self) -> bool {
        let mut table = self.connections.table();
        if table.authenticated.contains(&self.id) {
            return true;
        }
        if table.authenticated.len() >= table.budget.authenticated {
            return false;
        }
        // A connection that is being closed is in neither.
        if table.take_unauthenticated(self.peer, self.id).is_some() {
            table.authenticated.insert(self.id);
        }
        true
    }

    /// Returns, with the reason, when the connection has to be closed; never once it is authenticated.
    pub(super) async fn closed(self) -> &'static str {
        if tokio::time::timeout(DEADLINE, self.closing.cancelled()).await.is_ok() {
            return "too many unauthenticated connections";
        }
        if self.connections.table().take_unauthenticated(self.peer, self.id).is_none() {
            // Authenticated, or chosen to be closed at this very moment.
            self.closing.cancelled().await;
        }
        "not authenticated in time"
    }

    /// Forgets a connection that is closed.
    pub(super) fn release(&self) {
        let mut table = self.connections.table();
        table.take_unauthenticated(self.peer, self.id);
        table.authenticated.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn connections() -> Connections {
        Connections::with(Budget { unauthenticated: 6, per_peer: 4, authenticated: 3 })
    }

    fn open(tickets: &[Ticket]) -> Vec<bool> {
        tickets.iter().map(|ticket| !ticket.closing.is_cancelled()).collect()
    }

    #[test]
    fn a_peer_at_its_limit_loses_its_own_oldest() {
        let connections = connections();
        let other = connections.accept(address(1));
        let mine: Vec<_> = (0..6).map(|_| connections.accept(address(2))).collect();
        assert_eq!(open(&mine), [false, false, true, true, true, true]);
        assert_eq!(open(&[other]), [true]);
    }

    #[test]
    fn beyond_the_budget_the_peer_with_most_gives_way() {
        let connections = connections();
        let many: Vec<_> = (0..4).map(|_| connections.accept(address(1))).collect();
        let few: Vec<_> = (2..7).map(|last| connections.accept(address(last))).collect();
        assert_eq!(open(&many), [false, false, false, true]);
        assert_eq!(open(&few), [true; 5]);
        // All peers have one: the oldest goes.
        let last = connections.accept(address(9));
        assert_eq!(open(&many), [false; 4]);
        assert_eq!(open(&[last]), [true]);
    }

    #[test]
    fn authenticated_connections_have_a_budget_of_their_own() {
        let connections = connections();
        let mut mine: Vec<_> = (0..3).map(|_| connections.accept(address(1))).collect();
        assert!(mine.iter().all(Ticket::authenticate));
        let strangers: Vec<_> = (0..20).map(|_| connections.accept(address(1))).collect();
        assert_eq!(open(&mine), [true; 3]);
        assert!(!strangers[19].authenticate(), "the budget is spent");
        assert!(mine.iter().all(Ticket::authenticate), "counted once");
        mine.remove(0).release();
        assert!(strangers[19].authenticate());
        assert!(strangers[0].authenticate() && !connections.table().authenticated.contains(&3));
        strangers.iter().chain(&mine).for_each(Ticket::release);
        let table = connections.table();
        assert!(table.unauthenticated.is_empty() && table.authenticated.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn only_authenticated_connections_outlive_the_deadline() {
        let connections = connections();
        let [silent, known] = [1, 2].map(|last| connections.accept(address(last)));
        assert!(known.authenticate());
        assert_eq!(silent.closed().await, "not authenticated in time");
        assert!(tokio::time::timeout(2 * DEADLINE, known.closed()).await.is_err());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let peer = |text: &str| Peer::new(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
    }

    #[test]
    fn budgets_stay_below_the_limit_on_files() {
        let all = |files| {
            let Budget { unauthenticated, per_peer, authenticated } = Budget::within(files);
            (unauthenticated, per_peer, authenticated)
        };
        assert_eq!(all(1024), (256, 128, 512));
        assert_eq!(all(4096), (1024, 512, 2048));
        assert_eq!(all(u64::MAX), (2048, 1024, 8192));
    }
}

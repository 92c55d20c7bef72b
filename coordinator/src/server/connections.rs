//! Budgets for connections: callers without credentials cannot keep out those who have them.
//!
//! A new connection counts as unauthenticated until its first request is admitted. It has [`DEADLINE`] for that, and
//! there is a limit on how many such connections one peer may hold and on all of them together. At a limit the oldest
//! one is closed, not the newcomer refused: an honest caller authenticates within a few round trips, long before
//! its connection is the oldest. Where new ones come so fast that the oldest has not had [`GRACE`] to say something, they
//! wait to be accepted. Authenticated connections are counted apart.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// From being accepted to the first admitted request: TLS handshake and all.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// How long a connection may be waited for before it may be closed to let others in.
const GRACE: Duration = Duration::from_millis(250);

/// How long a newcomer waits for this process to look at the connection that would have to be closed.
const LOOK: Duration = Duration::from_millis(1);

/// How many connections may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    unauthenticated: usize,
    /// Unauthenticated ones of one peer. A thousand workers behind one address may connect at once.
    per_peer: usize,
    authenticated: usize,
}

impl Budget {
    /// Of the port for calls, in a process that may have so many files open: a quarter of them, at most 1,024, is
    /// left to metrics, the live view, the store and everything else.
    fn of_calls(files: usize) -> Self {
        let connections = files - (files / 4).min(1024);
        let unauthenticated = (connections / 3).min(2048);
        let authenticated = (connections - unauthenticated).min(8192);
        Self { unauthenticated, per_peer: unauthenticated / 2, authenticated }
    }

    /// Of the port for metrics, where nobody authenticates.
    fn of_metrics(files: usize) -> Self {
        let unauthenticated = (files / 16).min(128);
        Self { unauthenticated, per_peer: unauthenticated, authenticated: 0 }
    }
}

/// The process's limit on open files.
fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|files| files.try_into().ok()).unwrap_or(usize::MAX)
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

/// All connections of a port.
#[derive(Clone)]
pub(super) struct Connections(Arc<Mutex<Table>>);

struct Table {
    budget: Budget,
    /// Ids in the order of acceptance.
    next: u64,
    /// By peer and id.
    unauthenticated: HashMap<Peer, BTreeMap<u64, Unauthenticated>>,
    authenticated: HashSet<u64>,
}

struct Unauthenticated {
    /// Since when there was something to wait for; this process may be too busy to have looked.
    waiting: Option<Instant>,
    closing: CancellationToken,
}

impl Connections {
    /// On the port for calls.
    pub(super) fn of_calls() -> Self {
        Self::with(Budget::of_calls(open_files()))
    }

    /// On the port for metrics: apart, so that no scraper takes a place from a caller.
    pub(super) fn of_metrics() -> Self {
        Self::with(Budget::of_metrics(open_files()))
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

    /// Counts a new connection, and closes another where that makes too many.
    pub(super) async fn accept(&self, address: IpAddr) -> Ticket {
        let (peer, closing) = (Peer::new(address), CancellationToken::new());
        loop {
            let counted = self.table().accept(peer, &closing);
            match counted {
                Ok(id) => {
                    return Ticket { id, address, peer, closing, connections: self.clone() };
                }
                Err(due) => tokio::time::sleep_until(due).await,
            }
        }
    }
}

impl Table {
    /// The id of a new connection, or when another one may be closed for it.
    fn accept(&mut self, peer: Peer, closing: &CancellationToken) -> Result<u64, Instant> {
        if let Some((peer, id)) = self.one_too_many(peer) {
            let (now, oldest) = (Instant::now(), &self.unauthenticated[&peer][&id]);
            let due = oldest.waiting.map_or(now + LOOK, |since| since + GRACE);
            if now < due {
                return Err(due);
            }
            oldest.closing.cancel();
            self.take_unauthenticated(peer, id);
        }
        let id = self.next;
        self.next += 1;
        let entry = Unauthenticated { waiting: None, closing: closing.clone() };
        self.unauthenticated.entry(peer).or_default().insert(id, entry);
        Ok(id)
    }

    /// What has to be closed for a newcomer: at a peer's limit its oldest; beyond the budget the oldest of the peer
    /// with most and, among equals, of the one that has waited longest.
    fn one_too_many(&self, newcomer: Peer) -> Option<(Peer, u64)> {
        let count = |held: &BTreeMap<_, _>| held.len();
        let peer = if self.unauthenticated.get(&newcomer).map_or(0, count) >= self.budget.per_peer {
            newcomer
        } else if self.unauthenticated.values().map(count).sum::<usize>()
            >= self.budget.unauthenticated
        {
            let rank = |held: &BTreeMap<u64, _>| (held.len(), Reverse(held.keys().next().copied()));
            *self.unauthenticated.iter().max_by_key(|(_, held)| rank(held))?.0
        } else {
            return None;
        };
        let oldest = *self.unauthenticated.get(&peer)?.keys().next()?;
        Some((peer, oldest))
    }

    fn take_unauthenticated(&mut self, peer: Peer, id: u64) -> Option<Unauthenticated> {
        let held = self.unauthenticated.get_mut(&peer)?;
        let entry = held.remove(&id);
        if held.is_empty() {
            self.unauthenticated.remove(&peer);
        }
        entry
    }
}

/// A connection's entry in the table; requests carry it among their extensions.
#[derive(Clone)]
pub(super) struct Ticket {
    id: u64,
    /// Of the other side.
    pub(super) address: IpAddr,
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

    /// Notes that all was read that has come so far.
    pub(super) fn wait(&self) {
        let mut table = self.connections.table();
        let held = table.unauthenticated.get_mut(&self.peer);
        if let Some(entry) = held.and_then(|held| held.get_mut(&self.id)) {
            entry.waiting.get_or_insert_with(Instant::now);
        }
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

    async fn accepted(connections: &Connections, address: IpAddr, count: usize) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for _ in 0..count {
            let ticket = connections.accept(address).await;
            ticket.wait();
            tickets.push(ticket);
        }
        tickets
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_at_its_limit_loses_its_own_oldest() {
        let connections = connections();
        let other = connections.accept(address(1)).await;
        let mine = accepted(&connections, address(2), 6).await;
        assert_eq!(open(&mine), [false, false, true, true, true, true]);
        assert_eq!(open(&[other]), [true]);
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_budget_the_peer_with_most_gives_way() {
        let connections = connections();
        let many = accepted(&connections, address(1), 4).await;
        let mut few = Vec::new();
        for last in 2..7 {
            few.extend(accepted(&connections, address(last), 1).await);
        }
        assert_eq!(open(&many), [false, false, false, true]);
        assert_eq!(open(&few), [true; 5]);
        // All peers have one: the oldest goes.
        let last = connections.accept(address(9)).await;
        assert_eq!(open(&many), [false; 4]);
        assert_eq!(open(&[last]), [true]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gives_way_at_once() {
        let (connections, began) = (connections(), Instant::now());
        accepted(&connections, address(1), 4).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        accepted(&connections, address(1), 40).await;
        assert!(began.elapsed() >= 10 * GRACE, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gives_way_who_was_not_looked_at() {
        let connections = connections();
        let first = connections.accept(address(1)).await;
        accepted(&connections, address(1), 3).await;
        let fifth = tokio::time::timeout(10 * GRACE, connections.accept(address(1))).await;
        assert!(fifth.is_err());
        first.wait();
        connections.accept(address(1)).await;
        assert_eq!(open(&[first]), [false]);
    }

    #[tokio::test(start_paused = true)]
    async fn authenticated_connections_have_a_budget_of_their_own() {
        let connections = connections();
        let mut mine = accepted(&connections, address(1), 3).await;
        assert!(mine.iter().all(Ticket::authenticate));
        let strangers = accepted(&connections, address(1), 20).await;
        assert_eq!(open(&mine), [true; 3]);
        assert!(!strangers[19].authenticate(), "the budget is spent");
        assert!(mine.iter().all(Ticket::authenticate), "counted once");
        mine.remove(0).release();
        // One that is being closed takes no place.
        assert!(strangers[0].authenticate() && strangers[19].authenticate());
        assert!(!strangers[18].authenticate());
        strangers.iter().chain(&mine).for_each(Ticket::release);
        let table = connections.table();
        assert!(table.unauthenticated.is_empty() && table.authenticated.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn only_authenticated_connections_outlive_the_deadline() {
        let connections = connections();
        let silent = connections.accept(address(1)).await;
        let known = connections.accept(address(2)).await;
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
            let Budget { unauthenticated, per_peer, authenticated } = Budget::of_calls(files);
            (unauthenticated, per_peer, authenticated, Budget::of_metrics(files).unauthenticated)
        };
        assert_eq!(all(1024), (256, 128, 512, 64));
        assert_eq!(all(4096), (1024, 512, 2048, 128));
        assert_eq!(all(usize::MAX), (2048, 1024, 8192, 128));
    }
}

//! Callers at the door: connections that say nothing, too little, or what they may not.

use std::net::SocketAddr;
use std::time::Duration;

use proto::v1;
use proto::v1::studies_client::StudiesClient;
use proto::v1::workers_client::WorkersClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tonic::Code;
use tonic::transport::Endpoint;

use crate::rogue::registration;
use crate::siege::{Attack, Siege, sockets};

/// Callers of the attack at each address of its own.
const AN_ADDRESS: usize = 512;

/// A handshake of HTTP/2 without a call.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Half of a request.
const HALF: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ";

/// Opens a connection from an address of this machine and says `words`; none where the coordinator does not take it.
async fn connect(to: SocketAddr, from: u8, words: &[u8]) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).unwrap();
    let mut stream = timeout(Duration::from_secs(5), socket.connect(to)).await.ok()?.ok()?;
    stream.write_all(words).await.ok()?;
    Some(stream)
}

/// Holds a connection for as long as the other side does.
async fn hold(mut stream: TcpStream) {
    let mut heard = [0; 512];
    while stream.read(&mut heard).await.is_ok_and(|bytes| bytes > 0) {}
}

/// A caller that says `words`, waits, and comes again when it is thrown out.
async fn besiege(attack: Attack, to: SocketAddr, from: u8, words: &'static [u8]) {
    while attack.goes_on() {
        if let Some(stream) = connect(to, from, words).await {
            attack.count(1);
            hold(stream).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Callers of each kind, or as many as this process may have, half of them from the address of the honest ones.
fn surround(siege: &Siege, to: SocketAddr, kinds: &[(usize, &'static [u8])]) {
    let callers = kinds.iter().flat_map(|&(count, words)| std::iter::repeat_n(words, count));
    let callers: Vec<&[u8]> = callers.take(sockets()).collect();
    for (caller, words) in callers.iter().enumerate() {
        let own = 2 + (caller / 2 / AN_ADDRESS) as u8;
        let from = if caller % 2 == 0 { 1 } else { own };
        siege.attackers.spawn(besiege(siege.attack.clone(), to, from, words));
    }
    siege.wait_for_blows(callers.len() as u64);
}

#[test]
fn connections_without_calls_lock_nobody_out() {
    let mut siege = Siege::guarded();
    surround(&siege, siege.service.address, &[(4096, b"P"), (512, b""), (512, PREFACE)]);
    siege.join("honest-3");
    siege.is_withstood(1000);
}

#[test]
fn half_requests_for_metrics_stop_nobody() {
    let mut siege = Siege::with_open_files(2048);
    surround(&siege, siege.service.metrics.unwrap(), &[(2048, HALF), (2048, b"G")]);
    siege.join("honest-3");
    siege.is_withstood(1000);
}

/// Every kind of call without a token, in turn; none may be answered.
async fn ask_for_everything(attack: Attack, url: String) {
    while attack.goes_on() {
        let Ok(channel) = Endpoint::from_shared(url.clone()).unwrap().connect().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut workers = WorkersClient::new(channel.clone());
        let mut studies = StudiesClient::new(channel);
        let megabyte = || v1::SubmitRequest {
            message: Some(v1::submit_request::Message::Data(vec![0; 1 << 20].into())),
        };
        let part = v1::RecordStream {
            message: Some(v1::record_stream::Message::Part(v1::Part {
                lease: 1,
                sequence: 0,
                batch: vec![0; 1 << 20].into(),
            })),
        };
        let upload = tokio_stream::iter(std::iter::repeat_with(megabyte).take(64));
        let parts = tokio_stream::iter(std::iter::repeat_n(part, 64));
        let heartbeat = v1::HeartbeatRequest { worker_id: 1, leases: Vec::new() };
        let refused = [
            workers.register(registration("stranger", 1)).await.err(),
            workers.heartbeat(heartbeat).await.err(),
            workers.stream(parts).await.err(),
            studies.submit(upload).await.err(),
            studies.list(v1::ListRequest {}).await.err(),
        ];
        for status in refused {
            let status = status.expect("a stranger was answered");
            if status.code() == Code::Unauthenticated {
                attack.count(1);
            }
        }
    }
}

#[test]
fn callers_without_a_token_cost_little() {
    let siege = Siege::guarded();
    let strangers: Vec<_> = (0..16)
        .map(|_| ask_for_everything(siege.attack.clone(), siege.service.url.clone()))
        .map(|attack| siege.attackers.spawn(attack))
        .collect();
    siege.is_withstood(100);
    for stranger in strangers {
        siege.attackers.block_on(stranger).expect("no stranger is answered");
    }
}

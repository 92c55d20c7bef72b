//! Accepting connections within the budgets of `connections`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tonic::transport::server::Connected;

use super::connections::{Connections, Ticket};

/// The pause after the system refused a connection, for instance for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// Connections that may wait to be accepted, where the system allows as many. Beyond it the system drops what comes,
/// and callers try again a second later.
const BACKLOG: u32 = 4096;

/// Listens on a port.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind` does: a coordinator that is started again takes its port at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A port whose connections are counted.
pub(super) struct Listener {
    listener: Arc<TcpListener>,
    connections: Connections,
}

impl Listener {
    pub(super) fn new(listener: Arc<TcpListener>, connections: Connections) -> Self {
        Self { listener, connections }
    }

    /// Connections as they come in.
    pub(super) fn incoming(self) -> impl Stream<Item = io::Result<Connection>> {
        unfold(self, |mut listener| async {
            let (connection, _) = axum::serve::Listener::accept(&mut listener).await;
            Some((Ok(connection), listener))
        })
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Acknowledgements are small and should not wait for more.
                    _ = stream.set_nodelay(true);
                    let ticket = self.connections.accept(address.ip()).await;
                    return (Connection::new(stream, ticket), address);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection on which everything fails once it has to be closed.
pub(super) struct Connection {
    stream: TcpStream,
    ticket: Ticket,
    closing: Pin<Box<dyn Future<Output = &'static str> + Send>>,
    /// Why it has to be closed.
    closed: Option<&'static str>,
    /// Whether there was nothing to read at some time.
    waited: bool,
}

impl Connection {
    fn new(stream: TcpStream, ticket: Ticket) -> Self {
        let closing = Box::pin(ticket.clone().closed());
        Self { stream, ticket, closing, closed: None, waited: false }
    }

    /// The stream, unless the connection has to be closed. Asked before every read and write, so that a caller that
    /// never pauses is closed too.
    fn open(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        if self.closed.is_none()
            && let Poll::Ready(why) = self.closing.as_mut().poll(context)
        {
            self.closed = Some(why);
        }
        match self.closed {
            Some(why) => Err(io::Error::new(io::ErrorKind::TimedOut, why)),
            None => Ok(Pin::new(&mut self.stream)),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.ticket.release();
    }
}

impl Connected for Connection {
    type ConnectInfo = Ticket;

    fn connect_info(&self) -> Ticket {
        self.ticket.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.open(context)?.poll_read(context, buffer);
        if read.is_pending() && !self.waited {
            self.waited = true;
            self.ticket.wait();
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.open(context)?.poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(context)?.poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.open(context)?.poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

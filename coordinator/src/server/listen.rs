//! Accepting connections, with limits: how many at once, and how long one may stay silent at first.
//!
//! A connection that never says anything holds a place and a file descriptor; after
//! [`FIRST_BYTE`] it is closed. Beyond [`MAX_CONNECTIONS`] new ones wait in the system's queue.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Connections at once.
pub(super) const MAX_CONNECTIONS: usize = 4096;

/// How long a new connection may stay silent.
pub(super) const FIRST_BYTE: Duration = Duration::from_secs(10);

/// How long the TLS handshake of a new connection may take.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// The pause after the system refused a connection, for instance for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// Connections as they come in.
pub(super) fn incoming(listener: Arc<TcpListener>) -> impl Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    unfold((listener, places), |(listener, places)| async {
        loop {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Acknowledgements are small and should not wait for more.
                    _ = stream.set_nodelay(true);
                    return Some((Ok(Connection::new(stream, place)), (listener, places)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(AFTER_REFUSAL).await;
                }
            }
        }
    })
}

/// A connection that is closed where its first byte does not come in time.
pub(super) struct Connection {
    stream: TcpStream,
    silent: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit) -> Self {
        let silent = Some(Box::pin(tokio::time::sleep(FIRST_BYTE)));
        Self { stream, silent, _place: place }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => {
                let Some(silent) = &mut self.silent else { return Poll::Pending };
                ready!(silent.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was said")))
            }
            done @ Poll::Ready(_) => {
                if buffer.filled().len() > before {
                    self.silent = None;
                }
                done
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

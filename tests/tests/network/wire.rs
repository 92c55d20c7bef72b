//! gRPC over the simulated network.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::unfold;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Error};
use turmoil::net::{TcpListener, TcpStream};
use worker::client::Connector;

/// Where the coordinator listens.
pub(crate) const HOST: &str = "coordinator";
pub(crate) const PORT: u16 = 7070;

/// A connection that the server takes.
pub(crate) struct Connection(TcpStream);

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Connections to the coordinator's port.
pub(crate) async fn incoming()
-> io::Result<impl Stream<Item = io::Result<Connection>> + Send + 'static> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    Ok(unfold(listener, async |listener| {
        let connection = listener.accept().await.map(|(stream, _)| Connection(stream));
        Some((connection, listener))
    }))
}

/// Connects a worker.
pub(crate) fn connector() -> Connector {
    Connector::new(|endpoint| Box::pin(connect(endpoint)))
}

/// Connects whoever is none.
pub(crate) async fn channel() -> Result<Channel, Error> {
    connect(Endpoint::from_static("http://coordinator")).await
}

async fn connect(endpoint: Endpoint) -> Result<Channel, Error> {
    let connect =
        tower::service_fn(|_| async { TcpStream::connect((HOST, PORT)).await.map(TokioIo::new) });
    endpoint.connect_with_connector(connect).await
}

//! Whether a connection leads to a process of the server's own, or to a pooler that may give every transaction another one.
//!
//! At the start of a connection a server names the process that serves it, so that a statement can be cancelled. A pooler gives a
//! number of its own there. That number is read from a request to cancel, which is sent nowhere.

use std::future::{Ready, ready};
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Where the number is in a request to cancel, which is the last that is written: after its length and its code.
const NUMBER: usize = 8;
const REQUEST: usize = 16;

/// Asks the server which process answers, and compares that with the one that was named.
///
/// # Errors
/// If the server does not answer.
pub(super) async fn is_direct(client: &Client) -> Result<bool, Error> {
    let mut written = Vec::new();
    client.cancel_token().cancel_query_raw(Sink { written: &mut written, is_asked: true }, AsItIs).await?;
    let request = written.split_off(written.len().saturating_sub(REQUEST));
    let named =
        request.get(NUMBER..NUMBER + 4).and_then(|bytes| Some(i32::from_be_bytes(bytes.try_into().ok()?)));
    let said = client.simple_query("SELECT pg_backend_pid()").await?;
    let answers = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    Ok(named.is_some() && named == answers)
}

/// Keeps what is written, and says once that it can be encrypted.
struct Sink<'a> {
    written: &'a mut Vec<u8>,
    is_asked: bool,
}

impl AsyncRead for Sink<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if mem::take(&mut self.is_asked) {
            into.put_slice(b"S");
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Sink<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for Sink<'_> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Encrypts nothing.
struct AsItIs;

impl<'a> TlsConnect<Sink<'a>> for AsItIs {
    type Stream = Sink<'a>;
    type Error = io::Error;
    type Future = Ready<io::Result<Sink<'a>>>;

    fn connect(self, sink: Sink<'a>) -> Self::Future {
        ready(Ok(sink))
    }
}

//! Pipes: a message is a line.

use std::io;

use agentsvc_systems::mcp::limits::MCP_MESSAGE_BYTES_MAX;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::mcp::client::connection::{Connection, Outgoing};

/// Why a connection ends when its server does.
const CLOSED: &str = "it closed its output";

/// A connection over one stream, and what carries it on: until it ends, and then says why.
pub(in crate::mcp::client) fn lines<S: AsyncRead + AsyncWrite + Send + 'static>(
    name: &str,
    stream: S,
) -> (Connection, impl Future<Output = String> + Send + use<S>) {
    let (connection, messages) = Connection::new(name);
    let carried = connection.clone();
    let carry = async move {
        let (from, to) = tokio::io::split(stream);
        let ended = tokio::select! {
            why = read(&carried, BufReader::new(from)) => why,
            why = write(to, messages) => why,
        };
        carried.close();
        ended
    };
    (connection, carry)
}

async fn read(connection: &Connection, mut from: impl AsyncBufRead + Unpin) -> String {
    loop {
        let mut line = Vec::new();
        let most = MCP_MESSAGE_BYTES_MAX as u64 + 1;
        match (&mut from).take(most).read_until(b'\n', &mut line).await {
            Ok(0) => return CLOSED.to_owned(),
            Ok(_) if line.len() > MCP_MESSAGE_BYTES_MAX && !line.ends_with(b"\n") => {
                return format!("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes");
            }
            Ok(_) => {}
            Err(error) => return lost(&error),
        }
        if !connection.take_text(&line) {
            // Some write what they have to say to people there.
            tracing::debug!(bytes = line.len(), "an MCP server wrote a line that is no message");
        }
    }
}

/// Why a connection is lost. A server that ends with something unread resets it.
fn lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => CLOSED.to_owned(),
        _ => error.to_string(),
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Outgoing>) -> String {
    while let Some(outgoing) = messages.recv().await {
        if let Err(error) = to.write_all(format!("{}\n", outgoing.message).as_bytes()).await {
            return lost(&error);
        }
    }
    "nobody needs it".to_owned()
}

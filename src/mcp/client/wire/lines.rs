//! Pipes: a message is a line.

use std::io;

use agentsvc_systems::mcp::limits::MCP_MESSAGE_BYTES_MAX;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::message::{Parsed, parsed};
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
    let closing = connection.closing();
    let carry = async move {
        let _closing = closing;
        let (from, to) = tokio::io::split(stream);
        tokio::select! {
            why = read(&carried, BufReader::new(from)) => why,
            why = write(to, messages) => why,
        }
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
        let bytes = line.len();
        match parsed(line).await {
            Parsed::Messages(messages, memory) => connection.take_all(messages, &memory, None),
            // Some write what they have to say to people there.
            Parsed::Noise => {
                tracing::debug!(server = connection.name(), bytes, "an MCP server wrote a line that is no message");
            }
            Parsed::Refused(why) => return why,
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
    "the connection is no longer used".to_owned()
}

//! `mcp`: the daemon as an MCP server over standard input and output, one JSON message a line, for clients that start
//! their servers. Each message goes to `/api/mcp`. Its subcommands manage the servers of others.

mod login;
pub(crate) mod servers;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use clap::Args;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};

/// Messages that are with the daemon at once; the next ones wait in the pipe.
const CALLS_MAX: usize = 64;
/// Where messages go.
const PATH: &str = "/api/mcp";
/// The code of JSON-RPC for text that is not JSON.
const PARSE: i32 = -32_700;
/// The code of JSON-RPC for what a server defines itself: the daemon refused the message or was not there.
const FAILED: i32 = -32_000;

/// Options of `mcp`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    /// Call tools for this agent (name or id), with its workspace and grants
    #[arg(long)]
    agent: Option<String>,
    #[command(subcommand)]
    command: Option<servers::Servers>,
}

impl Run for Mcp {
    fn run(self, context: &Context) -> Result<(), Error> {
        if let Some(command) = self.command {
            return command.run(context);
        }
        let client = Arc::new(context.client()?);
        context.block_on(async {
            let agent = match &self.agent {
                Some(agent) => Some(client.agent_id(agent).await?),
                None => None,
            };
            serve(&client, agent.as_deref(), lines()).await
        })
    }
}

/// A line of the client, without its end; `None` is one that is too long.
type Line = Option<Vec<u8>>;

/// The lines of standard input. A thread reads them, because a read cannot be called off; it ends with the process.
fn lines() -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = read_line(&mut input, limit::BODY_BYTES_MAX) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// The next line of at most `most` bytes; the rest of a longer one is skipped. `None` at the end.
fn read_line(input: &mut impl BufRead, most: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if read <= most || line.ends_with(b"\n") {
        return Ok(Some(Some(line)));
    }
    loop {
        let piece = input.fill_buf()?;
        let (skipped, is_over) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        input.consume(skipped);
        if is_over {
            return Ok(Some(None));
        }
    }
}

/// Takes messages until there are no more, and waits for the last answers.
async fn serve(client: &Arc<Client>, agent: Option<&str>, mut lines: mpsc::Receiver<Line>) -> Result<(), Error> {
    let mut calls: JoinSet<(String, Option<String>)> = JoinSet::new();
    let mut running: HashMap<String, AbortHandle> = HashMap::new();
    let mut is_open = true;
    while is_open || !calls.is_empty() {
        tokio::select! {
            line = lines.recv(), if is_open && calls.len() < CALLS_MAX => match line {
                None => is_open = false,
                Some(line) => {
                    let Some(message) = parse(line)? else { continue };
                    if let Some(id) = cancelled(&message) {
                        if let Some(call) = running.remove(&id) {
                            call.abort();
                        }
                        continue;
                    }
                    let id = message["id"].to_string();
                    let headers = headers(agent, &message);
                    let call = calls.spawn(forward(Arc::clone(client), headers, id.clone(), message));
                    running.insert(id, call);
                }
            },
            Some(ended) = calls.join_next(), if !calls.is_empty() => {
                // Err: it was cancelled, and its client expects no answer.
                if let Ok((id, answer)) = ended {
                    running.remove(&id);
                    answer.map_or(Ok(()), |answer| output::line(&answer))?;
                }
            }
        }
    }
    Ok(())
}

/// The message of a line; what is none is answered here.
fn parse(line: Line) -> Result<Option<Value>, Error> {
    let refused = |text: &str| output::line(&failure(&Value::Null, PARSE, text)).map(|()| None);
    let Some(line) = line else { return refused("the line is too long") };
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(&line) {
        Ok(message) => Ok(Some(message)),
        Err(error) => refused(&format!("not JSON: {error}")),
    }
}

/// The request that a client wants no more.
fn cancelled(message: &Value) -> Option<String> {
    (message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].to_string())
}

fn headers(agent: Option<&str>, message: &Value) -> Vec<(&'static str, String)> {
    let version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let version = version.map(|version| ("mcp-protocol-version", version.to_owned()));
    agent.map(|agent| ("x-agentsvc-agent-id", agent.to_owned())).into_iter().chain(version).collect()
}

/// Sends one message on and gives the line that answers it.
async fn forward(
    client: Arc<Client>,
    headers: Vec<(&'static str, String)>,
    id: String,
    message: Value,
) -> (String, Option<String>) {
    let answer = match client.post_text(PATH, &headers, message.to_string()).await {
        Ok(text) => Some(text).filter(|text| !text.is_empty()),
        Err(error) if message["id"].is_null() => {
            output::note(&error.to_string());
            None
        }
        Err(error) => Some(failure(&message["id"], FAILED, &error.to_string())),
    };
    (id, answer)
}

fn failure(id: &Value, code: i32, text: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_skipped_and_the_next_one_is_read() {
        let mut input = &b"12345\n123456\n\n1234567890\nlast"[..];
        let mut next = || read_line(&mut input, 6).unwrap();
        assert_eq!(next(), Some(Some(b"12345\n".to_vec())));
        assert_eq!(next(), Some(Some(b"123456\n".to_vec())));
        assert_eq!(next(), Some(Some(b"\n".to_vec())));
        assert_eq!(next(), Some(None));
        assert_eq!(next(), Some(Some(b"last".to_vec())));
        assert_eq!(next(), None);
        assert_eq!(read_line(&mut &b"1234567"[..], 6).unwrap(), Some(None));
    }
}

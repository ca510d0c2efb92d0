//! How servers are reached: as programs over pipes, or over HTTP in one of three ways.

mod client;
mod compat;
mod http;
mod lines;
mod message;
mod sse;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::connection::Connection;
use crate::kernel::config::Secret;
use crate::kernel::egress::Web;
use crate::kernel::sandbox::{Commands, Process, ServerProgram};
use client::Client;

pub(super) use lines::lines;
pub(super) use message::Memory;
#[cfg(test)]
pub(super) use message::memory_for;

/// How a server is reached.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// A program: a message is a line of its standard input or output.
    Stdio(ServerProgram),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP with server-sent events, as versions up to 2024-11-05 have it.
    Sse(Endpoint),
    /// Plain HTTP that knows nothing of MCP: the configuration describes its tools.
    HttpCompat(Compat),
}

/// A server that is reached over HTTP.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Where it is.
    pub(crate) url: String,
    /// Headers of each request: name and value.
    pub(crate) headers: Vec<(Box<str>, Secret)>,
    /// It is from the configuration file, so that it may be a private host.
    pub(crate) trusted: bool,
    /// Signs requests, where the server asks for it.
    pub(crate) authorization: Option<Arc<dyn Authorize>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, headers, trusted, .. } = self;
        f.debug_struct("Endpoint").field("url", url).field("headers", headers).field("trusted", trusted).finish()
    }
}

/// Signs requests to one server.
pub(crate) trait Authorize: Send + Sync + 'static {
    /// The access token to send, refreshed when it is about to expire; `None` when there is none.
    fn token(&self) -> BoxFuture<'_, Option<Secret>>;

    /// The server took a request with this token.
    fn accepted(&self, token: &Secret);

    /// The server answered 401 or 403 to a request with this token. `challenge` is its `WWW-Authenticate`. True when there
    /// is another token now, so that the request is worth sending again: it was not carried out.
    fn refused(&self, token: Option<Secret>, challenge: Option<String>) -> BoxFuture<'_, bool>;
}

/// Plain HTTP, and how tools are made of it.
#[derive(Clone, Debug)]
pub(crate) struct Compat {
    /// What paths are below.
    pub(crate) base_url: String,
    /// Headers of each request: name and value.
    pub(crate) headers: Vec<(Box<str>, Secret)>,
    /// It is from the configuration file, so that it may be a private host.
    pub(crate) trusted: bool,
    /// The tools.
    pub(crate) tools: Vec<CompatTool>,
}

/// A tool that is one request of plain HTTP.
#[derive(Clone, Debug)]
pub(crate) struct CompatTool {
    /// Its name.
    pub(crate) name: String,
    /// For the model.
    pub(crate) description: String,
    /// Below the base URL; `{name}` stands for the argument of this name.
    pub(crate) path: String,
    /// The method of the request.
    pub(crate) method: CompatMethod,
    /// Where arguments go that are not in the path.
    pub(crate) request_mode: RequestMode,
    /// What becomes of the answer.
    pub(crate) response_mode: ResponseMode,
    /// The JSON schema of its input.
    pub(crate) input_schema: Value,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CompatMethod {
    /// `GET`
    Get,
    /// `POST`
    #[default]
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

/// Where arguments go that are not in the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestMode {
    /// Into a JSON body.
    #[default]
    JsonBody,
    /// Into the query.
    Query,
    /// Nowhere.
    None,
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    /// JSON, written anew with line breaks.
    #[default]
    Json,
    /// Text as it is.
    Text,
}

/// What transports need of the daemon.
#[derive(Clone)]
pub(crate) struct Means {
    /// Starts programs.
    pub(crate) commands: Commands,
    /// The way to hosts.
    pub(crate) web: Web,
}

/// An open transport.
pub(crate) struct Opened {
    /// The way to the server.
    pub(crate) connection: Connection,
    /// What carries it on: until it ends, and then says why.
    pub(crate) carry: BoxFuture<'static, String>,
    /// The program, where the server is one.
    pub(crate) program: Option<Running>,
}

/// A program that runs.
pub(crate) struct Running {
    /// Its stderr.
    pub(crate) stderr: tokio::process::ChildStderr,
    /// Dropped, it is killed.
    pub(crate) process: Process,
}

/// Opens the transport of the server of this name. Nothing is agreed with the server yet.
///
/// # Errors
/// A sentence, without secrets: the program or the client cannot be started, or the URL may not be used.
pub(crate) async fn open(name: &str, transport: Transport, means: &Means) -> Result<Opened, String> {
    match transport {
        Transport::Stdio(program) => {
            let roots = program.writable.clone();
            let server = means.commands.serve(program).await?;
            let (connection, carry) = lines(name, server.stream);
            connection.offer_roots(roots);
            let program = Some(Running { stderr: server.stderr, process: server.process });
            Ok(Opened { connection, carry: Box::pin(carry), program })
        }
        // Servers of other machines are told of no directories of this one.
        Transport::Http(endpoint) => {
            let client = endpoint.client(&means.web).await?;
            let (connection, messages) = Connection::new(name);
            let carry = Box::pin(http::Http::new(connection.clone(), client).carry(messages));
            Ok(Opened { connection, carry, program: None })
        }
        Transport::Sse(endpoint) => {
            let client = endpoint.client(&means.web).await?;
            let (connection, messages) = Connection::new(name);
            let carry = Box::pin(sse::carry(connection.clone(), client, messages));
            Ok(Opened { connection, carry, program: None })
        }
        Transport::HttpCompat(compat) => {
            let place = (&*compat.base_url, compat.trusted);
            let client = Client::new(&means.web, place, &compat.headers, None).await?;
            let (connection, messages) = Connection::new(name);
            let carry = Box::pin(compat::carry(connection.clone(), client, compat.tools, messages));
            Ok(Opened { connection, carry, program: None })
        }
    }
}

impl Endpoint {
    async fn client(&self, web: &Web) -> Result<Client, String> {
        Client::new(web, (&self.url, self.trusted), &self.headers, self.authorization.clone()).await
    }
}

#[cfg(test)]
mod tests;

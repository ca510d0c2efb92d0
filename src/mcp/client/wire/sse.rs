//! HTTP with server-sent events, as versions up to 2024-11-05 have it: one stream brings all messages of the server, whose
//! first event says where ours are posted.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use tokio::sync::mpsc;

use super::client::{Client, Events, Trouble, content_type, refusal};
use super::message::{Parsed, parsed};
use crate::mcp::client::connection::{Connection, Failure, Outgoing};

/// Time that the first event may take.
const ENDPOINT_TIME_MAX: Duration = Duration::from_secs(30);
/// Time that a server may take to accept a message.
const POST_TIME_MAX: Duration = Duration::from_secs(30);
/// Messages on their way. More wait.
const POSTS_MAX: usize = 128;

/// Carries messages until the stream ends, and says why.
pub(super) async fn carry(connection: Connection, client: Client, messages: mpsc::Receiver<Outgoing>) -> String {
    let _closing = connection.closing();
    match converse(&connection, &client, messages).await {
        Ok(()) => "its stream ended".to_owned(),
        Err(Trouble::Request(why) | Trouble::Wire(why)) => why,
    }
}

async fn converse(
    connection: &Connection,
    client: &Client,
    mut messages: mpsc::Receiver<Outgoing>,
) -> Result<(), Trouble> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let opened = tokio::time::timeout(ENDPOINT_TIME_MAX, async {
        let response = client.send(&Method::GET, client.url(), &headers, None).await?;
        if !response.status().is_success() {
            return Err(Trouble::Wire(refusal(response.status())));
        }
        if content_type(&response) != "text/event-stream" {
            return Err(Trouble::Wire("its answer is no stream of events".to_owned()));
        }
        let mut events = client.events(response);
        let endpoint = endpoint(client, &mut events).await?;
        Ok((events, endpoint))
    });
    let late = || Trouble::Wire(format!("it named no endpoint within {} seconds", ENDPOINT_TIME_MAX.as_secs()));
    let (mut events, endpoint) = opened.await.unwrap_or_else(|_| Err(late()))?;
    let mut posts = FuturesUnordered::new();
    loop {
        tokio::select! {
            event = events.next() => match event? {
                Some(event) if event.name == "endpoint" => {}
                Some(event) => match parsed(event.data.into_bytes()).await {
                    Parsed::Messages(messages, memory) => connection.take_all(messages, &memory, None),
                    Parsed::Noise => {
                        tracing::debug!(server = connection.name(), "an MCP server sent an event that is no message");
                    }
                    Parsed::Refused(why) => return Err(Trouble::Wire(why)),
                },
                None => return Ok(()),
            },
            outgoing = messages.recv(), if posts.len() < POSTS_MAX => match outgoing {
                Some(outgoing) => posts.push(post(connection, client, &endpoint, outgoing)),
                None => return Ok(()),
            },
            Some(posted) = posts.next() => posted?,
        }
    }
}

/// Where messages are posted: at the server itself, whatever it says.
async fn endpoint(client: &Client, events: &mut Events<'_>) -> Result<Url, Trouble> {
    while let Some(event) = events.next().await? {
        if event.name != "endpoint" {
            continue;
        }
        let url = client.url().join(event.data.trim()).ok().filter(|url| url.origin() == client.url().origin());
        return url.ok_or_else(|| Trouble::Wire("its endpoint is at another host".to_owned()));
    }
    Err(Trouble::Wire("its stream ended".to_owned()))
}

/// Posts one message, once. Its answer comes over the stream.
async fn post(connection: &Connection, client: &Client, url: &Url, outgoing: Outgoing) -> Result<(), Trouble> {
    let id = outgoing.id();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = outgoing.message.to_string();
    let post = tokio::time::timeout(POST_TIME_MAX, client.send(&Method::POST, url, &headers, Some(&body)));
    let accepted = tokio::select! {
        Some(()) = gone(outgoing.gone) => return Ok(()),
        accepted = post => accepted,
    };
    let late = || Trouble::Request(format!("it did not accept the message within {} seconds", POST_TIME_MAX.as_secs()));
    let accepted = accepted.unwrap_or_else(|_| Err(late())).and_then(|response| {
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(Trouble::Request(refusal(status))) }
    });
    let (Err(Trouble::Request(why) | Trouble::Wire(why)), Some(id)) = (&accepted, id) else { return Ok(()) };
    connection.settle(id, Err(Failure::Unanswered(why.clone())));
    if matches!(accepted, Err(Trouble::Wire(_))) { accepted } else { Ok(()) }
}

/// Waits until nothing waits for the answer; `None` at once for what has none.
async fn gone(gone: Option<tokio::sync::oneshot::Receiver<()>>) -> Option<()> {
    let _dropped = gone?.await;
    Some(())
}

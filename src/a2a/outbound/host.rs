//! What the API asks of external agents: their cards.

use std::sync::Arc;

use agentsvc_api::a2a::outbound::host::{A2aOutbound, DiscoverFailure, Discovered, GivenHeader};
use agentsvc_components::a2a::outbound::{A2aCard, A2aSecret};
use agentsvc_systems::a2a::limits::{A2A_AGENT_URL_BYTES_MAX, A2A_DISCOVERIES_MAX};
use futures_util::future::BoxFuture;
use reqwest::{Method, StatusCode, Url};
use tokio::sync::Semaphore;

use super::card;
use super::client::{Client, Request, Trouble, origin, same_host, sendable};
use crate::kernel::egress::target::Target;

/// The daemon's part of external agents.
pub(in crate::a2a) struct Outbound(pub(in crate::a2a) Client);

impl A2aOutbound for Outbound {
    fn spelled(&self, url: &str) -> Result<String, String> {
        spelled(url)
    }

    fn discover(
        self: Arc<Self>,
        url: String,
        given: Option<GivenHeader>,
        known: Option<A2aSecret>,
    ) -> BoxFuture<'static, Result<Discovered, DiscoverFailure>> {
        Box::pin(async move {
            let sealed = match given {
                Some(header) => Some(self.sealed(&url, header).await?),
                None => None,
            };
            let card = fetch(&self.0, &url, sealed.as_ref().or(known.as_ref())).await?;
            Ok(Discovered { card, secret: sealed })
        })
    }

    fn per_minute(&self) -> u32 {
        self.0.config().external_rate_per_minute
    }
}

impl Outbound {
    async fn sealed(&self, url: &str, header: GivenHeader) -> Result<A2aSecret, DiscoverFailure> {
        sendable(&header.name, header.value.as_bytes()).map_err(DiscoverFailure::Header)?;
        let origin =
            Url::parse(url).map(|url| origin(&url)).map_err(|error| DiscoverFailure::Url(error.to_string()))?;
        let (client, of) = (self.0.clone(), origin.clone());
        let sealed = tokio::task::spawn_blocking(move || client.seal(&of, &header.value).map(|it| (header.name, it)));
        let (header, sealed) =
            sealed.await.map_err(|error| DiscoverFailure::Vault(error.to_string()))?.map_err(DiscoverFailure::Vault)?;
        Ok(A2aSecret { origin: origin.into(), header: header.into(), sealed: sealed.into() })
    }
}

/// The URL of an external agent in its one spelling, whether that or the one of its card is given.
pub(super) fn spelled(url: &str) -> Result<String, String> {
    let mut url = Target::parse(url).map_err(|error| error.to_string())?.url;
    if url.query().is_some() {
        return Err("must be without a query; keys belong in `headers`".to_owned());
    }
    let path = url.path().to_owned();
    let path = card::PATHS.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
    url.set_path(path.trim_end_matches('/'));
    let text = url.as_str().trim_end_matches('/').to_owned();
    if text.len() > A2A_AGENT_URL_BYTES_MAX {
        return Err(format!("is longer than {A2A_AGENT_URL_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// Cards that are fetched at once, for clients and for agents.
static DISCOVERIES: Semaphore = Semaphore::const_new(A2A_DISCOVERIES_MAX);

/// Fetches the card of the agent at `url`. What its card names is checked as well.
pub(super) async fn fetch(client: &Client, url: &str, secret: Option<&A2aSecret>) -> Result<A2aCard, DiscoverFailure> {
    // Never closed, so that there always is one.
    let _turn = DISCOVERIES.acquire().await;
    let mut last = DiscoverFailure::Card(format!("{url} has no agent card"));
    for path in card::PATHS {
        let at = format!("{url}{path}");
        let headers = reqwest::header::HeaderMap::new();
        let request = Request { method: Method::GET, url: &at, of: url, headers, body: None };
        let answer = match client.ask(request, secret).await {
            Ok(answer) => answer,
            Err(Trouble::Refused(why)) => return Err(DiscoverFailure::Url(why)),
            Err(trouble) => {
                return Err(DiscoverFailure::Unreachable(format!("{at} did not respond: {}", trouble.why())));
            }
        };
        let status = answer.status;
        last = match status {
            StatusCode::OK => match card::read(url, &answer.body) {
                Ok(card) => return checked(client, url, card).await,
                Err(why) => DiscoverFailure::Card(format!("the agent card at {at} cannot be used: {why}")),
            },
            _ if status.is_redirection() => DiscoverFailure::Card(format!(
                "{at} redirects, which is not followed; discover the URL that it redirects to"
            )),
            _ => DiscoverFailure::Card(format!("{at} responded with status {status}")),
        };
    }
    Err(last)
}

/// The URL for requests must be one that requests may be sent to.
async fn checked(client: &Client, url: &str, card: A2aCard) -> Result<A2aCard, DiscoverFailure> {
    match client.vet(&card.endpoint, url).await {
        Ok(()) => Ok(card),
        Err(why) => {
            let hint = if same_host(&card.endpoint, url) { "" } else { "; it is on another host than the card" };
            Err(DiscoverFailure::Card(format!("the agent card names a URL that may not be used: {why}{hint}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn a_url_has_one_spelling() {
        for (given, url) in [
            ("https://A.example", "https://a.example"),
            ("https://a.example/", "https://a.example"),
            ("https://a.example:443/.well-known/agent.json", "https://a.example"),
            ("https://a.example/x/.well-known/agent-card.json", "https://a.example/x"),
            ("http://a.example/x//", "http://a.example/x"),
        ] {
            assert_eq!(spelled(given).as_deref(), Ok(url), "{given}");
        }
        for wrong in ["", "a.example", "ftp://a.example", "https://u:p@a.example", "https://a.example/?key=1"] {
            assert!(spelled(wrong).is_err(), "{wrong}");
        }
    }
}

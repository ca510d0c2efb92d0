//! What a fuzz target does with what servers say of a sign-in: the challenge and the metadata.

use reqwest::Url;
use serde_json::Value;

use super::challenge::Challenge;
use super::metadata::{Issuer, Resource, is_same_issuer, is_scope, issuer_urls, resource_urls};
use crate::kernel::oauth::secure;

/// Reads metadata of a server at `url` and of authorization servers, and a challenge; gives how much of it can be used.
pub(crate) fn read(url: &str, challenge: &str, metadata: &[u8]) -> usize {
    let challenge = Challenge::read(challenge);
    let Ok(body) = serde_json::from_slice::<Value>(metadata) else { return usize::from(challenge.is_some()) };
    // Servers are reached over HTTP only.
    let server = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let resource = server.as_ref().and_then(|server| {
        let found = Resource::read(&body, server).ok()?;
        let named = Url::parse(&found.resource).ok();
        assert!(named.is_some_and(|named| named.origin() == server.origin()), "tokens for another host");
        assert!(found.scopes.iter().all(|scope| is_scope(scope)), "{found:?}");
        Some(found)
    });
    let named = body["issuer"].as_str().unwrap_or_default();
    let asked = resource.as_ref().map_or(named, |resource| &resource.issuer);
    for place in server.iter().flat_map(resource_urls).chain(secure(asked).iter().flat_map(issuer_urls)) {
        let of = [server.clone(), Url::parse(asked).ok()];
        assert!(of.iter().flatten().any(|of| of.origin() == place.origin()), "{place} is looked at");
    }
    let issuer = Issuer::read(&body, asked).ok();
    if let Some(found) = &issuer {
        assert!(is_same_issuer(&found.issuer, asked), "{found:?}");
        let ends = [Some(&found.authorization_endpoint), Some(&found.token_endpoint)];
        let more = [found.registration_endpoint.as_ref(), found.revocation_endpoint.as_ref()];
        let ends = ends.into_iter().chain(more).flatten();
        assert!(ends.into_iter().all(|url| secure(url.as_str()).is_ok()), "{found:?}");
        assert!(found.scopes.iter().all(|scope| is_scope(scope)), "{found:?}");
    }
    [challenge.is_some(), resource.is_some(), issuer.is_some()].into_iter().filter(|is| *is).count()
}

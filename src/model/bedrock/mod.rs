//! The protocol of AWS Bedrock's Converse, streamed or whole, signed or with a Bedrock API key.
//!
//! The key is a text of three kinds: `id:secret` or `id:secret:token`, which sign each request (Signature Version 4),
//! or a Bedrock API key, which goes along as it is. The region is the one in the host's name; `AWS_REGION` (or
//! `AWS_DEFAULT_REGION`) moves the default endpoint and says it for hosts without one.

mod answer;
pub(crate) mod keys;
mod request;
mod sign;

use agentsvc_components::turn::outcome::FailureCode;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use sign::{Credentials, Signing, stamp};

use super::Request;
use super::error::CallError;
use super::failure;
use super::frames::Framing;
use super::provider::{Environment, Target, process_environment};
use super::wire::{Post, Wire};
use crate::kernel::host::is_loopback;
use crate::kernel::percent::encoded;

/// The region of the endpoint that is built in, and of emulators on this machine, which take any.
const REGION_DEFAULT: &str = "us-east-1";
/// The host of the endpoint that is built in.
const HOST_DEFAULT: &str = "bedrock-runtime.us-east-1.amazonaws.com";
/// How the label begins that stands before the region in a host's name.
const LABEL: &str = "bedrock-runtime";
/// What signatures call Bedrock.
const SCOPE: &str = "bedrock";
/// The headers that are signed beside the host.
const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";

/// The protocol.
#[derive(Debug)]
pub(crate) struct Bedrock {
    now: fn() -> SystemTime,
    environment: Environment,
}

impl Default for Bedrock {
    fn default() -> Self {
        Self { now: SystemTime::now, environment: process_environment }
    }
}

impl Wire for Bedrock {
    type Answer = answer::Blocks;

    const FRAMING: Framing = Framing::AwsMessages;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let tail = if request.streaming { "converse-stream" } else { "converse" };
        self.to(target, tail, request::body(request))
    }
}

impl Bedrock {
    /// A request to a model, for what `tail` names, with the key.
    ///
    /// # Errors
    /// The target cannot be asked.
    pub(crate) fn to(&self, target: &Target, tail: &str, body: Vec<u8>) -> Result<Post, CallError> {
        let (url, region) = self.place(target, tail)?;
        let post = Post::new(url, body);
        let Some(key) = &target.key else { return Ok(post) };
        match Credentials::parse(key.expose()) {
            Some(who) => signed(post, target, &who, &region, (self.now)().into()),
            None => post.key(target, AUTHORIZATION, "Bearer "),
        }
    }

    /// Where the call goes, and the region of that place.
    fn place(&self, target: &Target, tail: &str) -> Result<(Url, String), CallError> {
        let bad = || failure::bad_url(target);
        let mut url = Url::parse(target.base_url.trim()).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad());
        }
        let read = |name| (self.environment)(name).map(|region| region.trim().to_owned());
        let set = read("AWS_REGION").or_else(|| read("AWS_DEFAULT_REGION")).filter(|region| is_region(region));
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let region = match (region_of(&host), set) {
            (Some(_), Some(set)) if host == HOST_DEFAULT => {
                url.set_host(Some(&host.replace(REGION_DEFAULT, &set))).map_err(|_| bad())?;
                set
            }
            (Some(region), _) => region.to_owned(),
            (None, Some(set)) => set,
            (None, None) if is_loopback(&host) => REGION_DEFAULT.to_owned(),
            (None, None) => {
                let message = format!(
                    "The region of provider {} is not known: set AWS_REGION, or name it in the base_url, as in \
                     https://{HOST_DEFAULT}.",
                    target.provider
                );
                return Err(CallError::last(FailureCode::ProviderRefused, message));
            }
        };
        // Colons and slashes of an id or ARN are encoded, and then again in what is signed.
        let path = format!("{}/model/{}/{tail}", url.path().trim_end_matches('/'), encoded(&target.model));
        url.set_path(&path);
        Ok((url, region))
    }
}

/// The region in a host's name: the label behind `bedrock-runtime` or `bedrock-runtime-fips`.
fn region_of(host: &str) -> Option<&str> {
    let mut labels = host.split('.').skip_while(|label| !label.starts_with(LABEL));
    labels.nth(1).filter(|label| is_region(label))
}

/// Could it be a region? `us-east-1`, `us-gov-west-1`.
fn is_region(text: &str) -> bool {
    text.contains('-') && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// `post` with its signature.
fn signed(
    mut post: Post,
    target: &Target,
    who: &Credentials<'_>,
    region: &str,
    now: DateTime<Utc>,
) -> Result<Post, CallError> {
    let host = post.url.host_str().unwrap_or_default();
    let host = post.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut headers = vec![("content-type", "application/json".to_owned()), ("host", host), (DATE, stamp(now))];
    headers.extend(who.token.map(|token| (TOKEN, token.to_owned())));
    let signing = Signing { method: "POST", url: &post.url, headers, body: &post.body, region, scope: SCOPE, now };
    let authorization = signing.authorization(who);
    let token = who.token.map(|token| (HeaderName::from_static(TOKEN), token.to_owned()));
    let values = [(AUTHORIZATION, authorization), (HeaderName::from_static(DATE), stamp(now))];
    for (name, value) in values.into_iter().chain(token) {
        let mut value = HeaderValue::from_str(&value).map_err(|_| failure::bad_key(target))?;
        value.set_sensitive(name != DATE);
        post.headers.insert(name, value);
    }
    Ok(post)
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;

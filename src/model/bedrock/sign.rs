//! Signature Version 4: how requests to AWS are signed.

use std::fmt::Write as _;

use agentsvc_systems::kernel::record::hex;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::kernel::percent::{NOT_UNRESERVED, encoded};

/// The one way of signing.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// What is encoded of a path, whose slashes stay.
const PATH: &AsciiSet = &NOT_UNRESERVED.remove(b'/');
/// What ends every scope.
const TERMINATOR: &str = "aws4_request";

/// Who signs.
#[derive(Clone, Copy)]
pub(super) struct Credentials<'a> {
    /// The id of the access key.
    pub(super) id: &'a str,
    /// Its secret.
    pub(super) secret: &'a str,
    /// The token of a session, where it is one.
    pub(super) token: Option<&'a str>,
}

impl<'a> Credentials<'a> {
    /// From `id:secret` or `id:secret:token`; `None` for a text without a colon, which is a key of another kind.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (id, rest) = text.split_once(':')?;
        let (secret, token) = rest.split_once(':').map_or((rest, None), |(secret, token)| (secret, Some(token)));
        Some(Self { id, secret, token: token.filter(|token| !token.is_empty()) })
    }
}

/// What is signed.
pub(super) struct Signing<'a> {
    /// `GET` or `POST`.
    pub(super) method: &'a str,
    /// Where it goes.
    pub(super) url: &'a Url,
    /// The headers that are signed, by lower-case name: `host` and `x-amz-date` among them.
    pub(super) headers: Vec<(&'a str, String)>,
    /// The body.
    pub(super) body: &'a [u8],
    /// Such as `us-east-1`.
    pub(super) region: &'a str,
    /// Such as `bedrock`.
    pub(super) scope: &'a str,
    /// When.
    pub(super) now: DateTime<Utc>,
}

/// The time as signatures write it.
pub(super) fn stamp(now: DateTime<Utc>) -> String {
    now.format("%Y%m%dT%H%M%SZ").to_string()
}

impl Signing<'_> {
    /// The value of the `Authorization` header.
    pub(super) fn authorization(mut self, who: &Credentials<'_>) -> String {
        self.headers.sort_unstable();
        let scope = format!("{}/{}/{}/{TERMINATOR}", self.date(), self.region, self.scope);
        let signed = self.signed_names();
        let to_sign = format!("{ALGORITHM}\n{}\n{scope}\n{}", stamp(self.now), sha256(self.canonical().as_bytes()));
        let signature = hex(&hmac(&self.key(who.secret), to_sign.as_bytes()));
        format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}", who.id)
    }

    fn date(&self) -> String {
        self.now.format("%Y%m%d").to_string()
    }

    /// The request in the one form that both sides derive.
    fn canonical(&self) -> String {
        let path = match self.url.path() {
            "" => "/".to_owned(),
            path => utf8_percent_encode(path, PATH).to_string(),
        };
        let mut query: Vec<(String, String)> =
            self.url.query_pairs().map(|(name, value)| (encoded(&name), encoded(&value))).collect();
        query.sort_unstable();
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut text = format!("{}\n{path}\n{}\n", self.method, query.join("&"));
        for (name, value) in &self.headers {
            let value: Vec<&str> = value.split_ascii_whitespace().collect();
            let _ = writeln!(text, "{name}:{}", value.join(" "));
        }
        let _ = write!(text, "\n{}\n{}", self.signed_names(), sha256(self.body));
        text
    }

    fn signed_names(&self) -> String {
        self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
    }

    /// The key of a day, a region and an API, which the secret cannot be told from.
    fn key(&self, secret: &str) -> [u8; 32] {
        let first = hmac(format!("AWS4{secret}").as_bytes(), self.date().as_bytes());
        [self.region, self.scope, TERMINATOR].into_iter().fold(first, |with, part| hmac(&with, part.as_bytes()))
    }
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.chain_update(text).finalize().into_bytes().into()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    const WHO: Credentials<'_> =
        Credentials { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token: None };

    fn signature(method: &str, url: &str, more: &[(&'static str, &str)], body: &str) -> String {
        let url = Url::parse(url).unwrap();
        let now = Utc.with_ymd_and_hms(2015, 8, 30, 12, 36, 0).unwrap();
        let mut headers = vec![("host", "example.amazonaws.com".to_owned()), ("x-amz-date", stamp(now))];
        headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let (region, scope) = ("us-east-1", "service");
        let signing = Signing { method, url: &url, headers, body: body.as_bytes(), region, scope, now };
        let line = signing.authorization(&WHO);
        assert!(line.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "));
        line.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// Of the test suite that AWS publishes.
    #[test]
    fn the_published_vectors() {
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(signature("GET", "https://example.amazonaws.com/", &[], ""), vanilla);
        let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert_eq!(signature("POST", "https://example.amazonaws.com/", &[], ""), post);
        let query = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        let ordered = "https://example.amazonaws.com/?Param2=value2&Param1=value1";
        assert_eq!(signature("GET", ordered, &[], ""), query);
        let form = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(signature("POST", "https://example.amazonaws.com/", &kind, "Param1=value1"), form);
    }

    #[test]
    fn what_is_encoded_is_encoded_again() {
        assert_eq!(encoded("a b:c/d~é"), "a%20b%3Ac%2Fd~%C3%A9");
        let url = Url::parse("https://h/model/anthropic.claude-v2%3A1/converse").unwrap();
        let now = Utc.with_ymd_and_hms(2015, 8, 30, 12, 36, 0).unwrap();
        let headers = vec![("host", "h".to_owned())];
        let signing = Signing { method: "POST", url: &url, headers, body: b"", region: "r", scope: "bedrock", now };
        assert_eq!(signing.canonical().lines().nth(1), Some("/model/anthropic.claude-v2%253A1/converse"));
    }

    #[test]
    fn credentials_in_one_text() {
        let of = |text| Credentials::parse(text).map(|who| (who.id, who.secret, who.token));
        assert_eq!(of("A:s/+="), Some(("A", "s/+=", None)));
        assert_eq!((of("A:s:"), of("A:s:t/=")), (Some(("A", "s", None)), Some(("A", "s", Some("t/=")))));
        assert_eq!(of("bedrock-api-key-x"), None);
    }
}

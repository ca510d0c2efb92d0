//! What an identity token must say (OpenID Connect Core, 3.1.3.7), and what it says of a person.

use serde_json::Value;

use super::jws::Claims;

/// Seconds by which the clock of a provider may differ.
pub(super) const SKEW_SECS: i64 = 60;
/// Seconds since when a token may have been issued.
const AGE_SECS_MAX: i64 = 600;
/// Bytes of a subject (OpenID Connect Core, 2).
const SUBJECT_BYTES_MAX: usize = 255;

/// What a token must be for.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    /// That of the sign-in.
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now: i64,
}

fn text<'c>(claims: &'c Claims, name: &str) -> Option<&'c str> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A moment: seconds since 1970, also with a fraction.
fn moment(claims: &Claims, name: &str) -> Option<i64> {
    let value = claims.get(name)?;
    value.as_i64().or_else(|| value.as_f64().filter(|secs| secs.is_finite()).map(|secs| secs as i64))
}

/// Whom a token is for.
pub(super) fn audience(claims: &Claims) -> Vec<&str> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Is it a token of this issuer, and has its time come and not passed?
///
/// # Errors
/// What is not so, in words that continue a sentence about the token.
pub(super) fn check_times(claims: &Claims, issuer: &str, now: i64) -> Result<(), &'static str> {
    if text(claims, "iss") != Some(issuer) {
        return Err("is of another issuer");
    }
    let end = moment(claims, "exp").ok_or("does not say when it expires")?;
    if end.saturating_add(SKEW_SECS) <= now {
        return Err("has expired; compare the clocks of the provider and of this machine");
    }
    let is_ahead = |at: i64| at.saturating_sub(SKEW_SECS) > now;
    if moment(claims, "nbf").is_some_and(is_ahead) || moment(claims, "iat").is_some_and(is_ahead) {
        return Err("is not valid yet; compare the clocks of the provider and of this machine");
    }
    Ok(())
}

/// Is it the identity token of this sign-in?
///
/// # Errors
/// As [`check_times`].
pub(super) fn check(claims: &Claims, expected: &Expected<'_>) -> Result<(), &'static str> {
    check_times(claims, expected.issuer, expected.now)?;
    let audience = audience(claims);
    if !audience.contains(&expected.client_id) {
        return Err("is for another client");
    }
    let party = text(claims, "azp");
    if party.is_some_and(|party| party != expected.client_id) || (audience.len() > 1 && party.is_none()) {
        return Err("was issued to another client");
    }
    let issued = moment(claims, "iat").ok_or("does not say when it was issued")?;
    if expected.now.saturating_sub(issued) > AGE_SECS_MAX + SKEW_SECS {
        return Err("was issued too long ago");
    }
    if text(claims, "nonce") != Some(expected.nonce) {
        return Err("is of another sign-in");
    }
    subject(claims).map(drop).ok_or("names no person")
}

/// The person at the provider.
pub(super) fn subject(claims: &Claims) -> Option<&str> {
    text(claims, "sub").filter(|sub| sub.len() <= SUBJECT_BYTES_MAX && !sub.chars().any(char::is_control))
}

/// The mail address in lower case, and whether the provider has verified it. What is no address is none.
pub(super) fn email(claims: &Claims) -> Option<(String, bool)> {
    let address = text(claims, "email")?.to_lowercase();
    let (user, domain) = address.rsplit_once('@')?;
    let is_clean = !address.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_verified = match claims.get("email_verified") {
        Some(Value::Bool(is)) => *is,
        // Some write it as a text.
        Some(Value::String(word)) => word == "true",
        _ => false,
    };
    (!user.is_empty() && !domain.is_empty() && is_clean).then_some((address, is_verified))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn token(changes: &Value) -> Claims {
        let mut claims = json!({ "iss": "https://id.example", "aud": "me", "sub": "1", "nonce": "n", "iat": NOW - 5, "exp": NOW + 60 });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object().unwrap().clone()
    }

    fn checked(changes: &Value) -> Result<(), &'static str> {
        let expected = Expected { issuer: "https://id.example", client_id: "me", nonce: "n", now: NOW };
        check(&token(changes), &expected)
    }

    #[test]
    fn a_token_is_for_this_client_this_sign_in_and_this_moment() {
        for good in [
            json!({}),
            json!({ "aud": ["me"] }),
            json!({ "aud": ["me", "other"], "azp": "me" }),
            json!({ "exp": NOW - 59 }),
            json!({ "iat": NOW + 59, "nbf": NOW + 59 }),
            json!({ "iat": NOW as f64 + 0.5 }),
        ] {
            assert_eq!(checked(&good), Ok(()), "{good}");
        }
        for (bad, why) in [
            (json!({ "iss": "https://id.example/" }), "another issuer"),
            (json!({ "iss": null }), "another issuer"),
            (json!({ "aud": "you" }), "another client"),
            (json!({ "aud": [] }), "another client"),
            (json!({ "aud": { "me": 1 } }), "another client"),
            (json!({ "aud": ["me", "other"] }), "another client"),
            (json!({ "azp": "other" }), "another client"),
            (json!({ "nonce": "m" }), "another sign-in"),
            (json!({ "nonce": null }), "another sign-in"),
            (json!({ "exp": NOW - 60 }), "expired"),
            (json!({ "exp": null }), "expires"),
            (json!({ "exp": "never" }), "expires"),
            (json!({ "iat": NOW + 61 }), "not valid yet"),
            (json!({ "nbf": NOW + 61 }), "not valid yet"),
            (json!({ "iat": NOW - 661 }), "too long ago"),
            (json!({ "iat": null }), "was issued"),
            (json!({ "sub": "" }), "no person"),
            (json!({ "sub": "a\nb" }), "no person"),
            (json!({ "sub": "x".repeat(256) }), "no person"),
        ] {
            assert!(checked(&bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn addresses_are_verified_where_the_provider_says_so() {
        for (claims, expected) in [
            (json!({ "email": "Ann@Example.COM", "email_verified": true }), Some(("ann@example.com", true))),
            (json!({ "email": "a@b", "email_verified": "true" }), Some(("a@b", true))),
            (json!({ "email": "a@b", "email_verified": "yes" }), Some(("a@b", false))),
            (json!({ "email": "a@b", "email_verified": 1 }), Some(("a@b", false))),
            (json!({ "email": "a@b" }), Some(("a@b", false))),
            (json!({ "email": "a b@c", "email_verified": true }), None),
            (json!({ "email": "@b", "email_verified": true }), None),
            (json!({ "email": "a", "email_verified": true }), None),
            (json!({}), None),
        ] {
            let expected = expected.map(|(address, is): (&str, bool)| (address.to_owned(), is));
            assert_eq!(email(claims.as_object().unwrap()), expected, "{claims}");
        }
    }
}

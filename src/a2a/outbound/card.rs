//! What an agent card says, in any version of the protocol, as far as it is used. Its texts are those of others: they are cut,
//! and control characters are left out.

use agentsvc_components::a2a::outbound::{A2aCard, A2aDialect, A2aSkill};
use agentsvc_systems::a2a::limits::{
    A2A_AGENT_NAME_BYTES_MAX, A2A_AGENT_URL_BYTES_MAX, A2A_CARD_BYTES_MAX, A2A_CARD_SKILLS_MAX,
    A2A_CARD_TEXT_BYTES_MAX, A2A_REMOTE_ID_BYTES_MAX,
};
use agentsvc_systems::kernel::record::hex;
use reqwest::Url;
use serde_json::Value;

/// Where cards are, below the URL of an agent.
pub(super) const PATHS: [&str; 2] = ["/.well-known/agent.json", "/.well-known/agent-card.json"];

/// Reads the card of the agent at `url`.
///
/// # Errors
/// What it lacks, in a part of a sentence.
pub(super) fn read(url: &str, body: &[u8]) -> Result<A2aCard, String> {
    let card: Value = serde_json::from_slice(body).map_err(|_| "it is not JSON".to_owned())?;
    if !card.is_object() {
        return Err("it is not a JSON object".to_owned());
    }
    let name = line(&card["name"], A2A_AGENT_NAME_BYTES_MAX);
    if name.is_empty() {
        return Err("it has no `name`".to_owned());
    }
    let Interface { url: endpoint, dialect, protocol, tenant } = interface(url, &card)?;
    let mut read = A2aCard {
        name,
        description: line(&card["description"], A2A_CARD_TEXT_BYTES_MAX),
        version: line(&card["version"], A2A_AGENT_NAME_BYTES_MAX),
        protocol: protocol.into(),
        endpoint: endpoint.into(),
        dialect,
        tenant,
        streaming: card["capabilities"]["streaming"] == true,
        push_notifications: card["capabilities"]["pushNotifications"] == true,
        skills: Vec::new(),
        digest: hex(ring::digest::digest(&ring::digest::SHA256, body).as_ref()).into(),
    };
    for skill in card["skills"].as_array().into_iter().flatten().take(A2A_CARD_SKILLS_MAX) {
        let skill = A2aSkill {
            id: line(&skill["id"], A2A_AGENT_NAME_BYTES_MAX),
            name: line(&skill["name"], A2A_AGENT_NAME_BYTES_MAX),
            description: line(&skill["description"], A2A_CARD_TEXT_BYTES_MAX),
        };
        read.skills.push(skill);
        if read.bytes() > A2A_CARD_BYTES_MAX {
            read.skills.pop();
            break;
        }
    }
    Ok(read)
}

/// Where requests go, and how they are written.
struct Interface {
    url: String,
    dialect: A2aDialect,
    protocol: String,
    tenant: Option<Box<str>>,
}

/// The newest interface with JSON-RPC.
fn interface(of: &str, card: &Value) -> Result<Interface, String> {
    let is_json_rpc = |value: &Value| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("JSONRPC"));
    let named = card["supportedInterfaces"].as_array().into_iter().flatten();
    let mut found: Vec<&Value> = named.filter(|one| is_json_rpc(&one["protocolBinding"])).collect();
    found.sort_by_key(|one| dialect_of(one["protocolVersion"].as_str().unwrap_or("1.0")) != A2aDialect::V1);
    if let Some(one) = found.first() {
        let protocol = one["protocolVersion"].as_str().unwrap_or("1.0");
        let tenant = one["tenant"].as_str().filter(|it| !it.is_empty() && it.len() <= A2A_REMOTE_ID_BYTES_MAX);
        return Ok(Interface {
            url: endpoint(of, one["url"].as_str())?,
            dialect: dialect_of(protocol),
            protocol: short(protocol),
            tenant: tenant.map(Into::into),
        });
    }
    if card["supportedInterfaces"].as_array().is_some_and(|all| !all.is_empty()) && card["url"].is_null() {
        return Err("it offers no interface with JSON-RPC".to_owned());
    }
    let protocol = card["protocolVersion"].as_str().unwrap_or_default();
    let preferred = &card["preferredTransport"];
    let url = if preferred.is_null() || is_json_rpc(preferred) {
        card["url"].as_str()
    } else {
        let more = card["additionalInterfaces"].as_array().into_iter().flatten();
        let one = more.into_iter().find(|one| is_json_rpc(&one["transport"]));
        Some(one.and_then(|one| one["url"].as_str()).ok_or("it offers no interface with JSON-RPC")?)
    };
    let url = endpoint(of, url)?;
    Ok(Interface { url, dialect: dialect_of(protocol), protocol: short(protocol), tenant: None })
}

fn dialect_of(version: &str) -> A2aDialect {
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= 1) { A2aDialect::V1 } else { A2aDialect::V0 }
}

/// The URL that a card names; the agent's own, where it names none.
fn endpoint(of: &str, named: Option<&str>) -> Result<String, String> {
    let Some(named) = named.filter(|url| !url.is_empty()) else { return Ok(of.to_owned()) };
    let wrong = || "its `url` is not an http or https URL".to_owned();
    let url = Url::parse(named).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || named.len() > A2A_AGENT_URL_BYTES_MAX {
        return Err(wrong());
    }
    if url.scheme() == "http" && of.starts_with("https:") {
        return Err("its `url` is not encrypted, and the card is".to_owned());
    }
    Ok(url.into())
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(16).collect()
}

/// A text on one line.
fn line(value: &Value, most: usize) -> Box<str> {
    let text = value.as_str().unwrap_or_default().trim();
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect();
    text.truncate(text.floor_char_boundary(most));
    text.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(card: &Value) -> Result<A2aCard, String> {
        read("https://a.example", card.to_string().as_bytes())
    }

    #[test]
    fn the_version_is_that_of_the_card() {
        let both = json!({ "name": "n", "url": "https://a.example/old", "protocolVersion": "0.3.0",
            "supportedInterfaces": [
                { "url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
                { "url": "https://a.example/v0", "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
                { "url": "https://a.example/v1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t" }] });
        let card = of(&both).unwrap();
        assert_eq!(
            (&*card.endpoint, card.dialect, card.tenant.as_deref()),
            ("https://a.example/v1", A2aDialect::V1, Some("t"))
        );
        for (card, endpoint, dialect) in [
            (
                json!({ "name": "n", "url": "https://b.example/a2a", "protocolVersion": "0.3.0" }),
                "https://b.example/a2a",
                A2aDialect::V0,
            ),
            (
                json!({ "name": "n", "url": "https://b.example/", "protocolVersion": "1.0" }),
                "https://b.example/",
                A2aDialect::V1,
            ),
            (json!({ "name": "n" }), "https://a.example", A2aDialect::V0),
            (
                json!({ "name": "n", "url": "https://g.example", "preferredTransport": "GRPC",
                "additionalInterfaces": [{ "url": "https://j.example/x", "transport": "JSONRPC" }] }),
                "https://j.example/x",
                A2aDialect::V0,
            ),
        ] {
            let read = of(&card).unwrap();
            assert_eq!((&*read.endpoint, read.dialect), (endpoint, dialect), "{card}");
        }
    }

    #[test]
    fn a_card_that_cannot_be_used_says_why() {
        for (card, why) in [
            (json!([]), "object"),
            (json!({ "url": "https://a.example" }), "name"),
            (json!({ "name": "n", "url": "file:///etc/passwd" }), "http or https"),
            (json!({ "name": "n", "url": "http://a.example" }), "not encrypted"),
            (json!({ "name": "n", "url": "https://a.example", "preferredTransport": "GRPC" }), "JSON-RPC"),
            (
                json!({ "name": "n", "supportedInterfaces": [{ "url": "https://a.example", "protocolBinding": "GRPC" }] }),
                "JSON-RPC",
            ),
        ] {
            let error = of(&card).unwrap_err();
            assert!(error.contains(why), "{card}: {error}");
        }
        assert!(read("https://a.example", b"<html>").unwrap_err().contains("JSON"));
    }

    #[test]
    fn what_is_kept_of_a_card_is_bounded() {
        let skill = json!({ "id": "i".repeat(999), "name": "a\nb", "description": "d".repeat(9_999) });
        let card = json!({ "name": "ä".repeat(999), "description": "x\u{1b}[31my", "skills": vec![skill; 999] });
        let card = of(&card).unwrap();
        assert!(card.name.len() <= A2A_AGENT_NAME_BYTES_MAX && card.bytes() <= A2A_CARD_BYTES_MAX);
        assert!(card.skills.len() <= A2A_CARD_SKILLS_MAX && !card.skills.is_empty());
        assert_eq!((&*card.description, &*card.skills[0].name), ("x [31my", "a b"));
    }
}

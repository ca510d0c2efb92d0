//! A message of a client, in any of the dialects, becomes a command for the world.

use std::sync::Arc;

use agentsvc_components::a2a::{A2aTaskId, PushTarget};
use agentsvc_components::kernel::id::DurableId;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::a2a::{FindA2aTask, SendA2aTask, limits};
use agentsvc_systems::injection::{InjectionPolicy, Shielded};
use agentsvc_systems::kernel::record::{self, hex};
use serde_json::{Map, Value};

use super::error_codes::A2A_CONTENT_TYPE;
use super::gate::Sender;
use super::host::{A2aHost, Policy};
use super::offer::{self, Offered};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::injection::shielded;

/// A message whose form is right.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Incoming {
    /// The agent that it names.
    pub(crate) agent: Option<String>,
    /// Its text.
    pub(crate) text: String,
    /// The id of the message; empty when it has none.
    pub(crate) message_id: String,
    /// The conversation that it belongs to.
    pub(crate) context: Option<String>,
    /// The task that it is about, or that it begins.
    pub(crate) task: Option<String>,
    /// The client waits for the end of the task.
    pub(crate) blocking: bool,
}

/// Reads `params` of any dialect: `message`, and beside it or in it what it belongs to.
///
/// # Errors
/// 400 naming the field.
pub(crate) fn read(params: &Map<String, Value>) -> Result<Incoming, Error> {
    let missing = || Error::bad_field("message", "`message` must be an object with `parts`");
    let message = params.get("message").and_then(Value::as_object).ok_or_else(missing)?;
    let configuration = params.get("configuration").and_then(Value::as_object);
    let flag =
        |key: &str| configuration.and_then(|of| of.get(key)).or_else(|| params.get(key)).and_then(Value::as_bool);
    let found = |keys: &[&str]| first(&[params, message], keys);
    Ok(Incoming {
        agent: agent_of(params, message)?,
        text: text(message.get("parts"))?,
        message_id: first(&[message], &["messageId", "message_id"])?.unwrap_or_default(),
        context: found(&["contextId", "context_id", "sessionId", "session_id"])?,
        task: match first(&[params], &["id", "task_id"])? {
            Some(id) => Some(id),
            None => found(&["taskId", "task_id"])?,
        },
        blocking: flag("blocking") != Some(false) && flag("returnImmediately") != Some(true),
    })
}

/// The agent that a request names: by a key of its own, else in the metadata, else as the tenant.
fn agent_of(params: &Map<String, Value>, message: &Map<String, Value>) -> Result<Option<String>, Error> {
    let keys = ["agent_id", "agentId", "agent", "skill_id", "skillId", "skill"];
    let metadata = [message, params].into_iter().filter_map(|of| of.get("metadata")).filter_map(Value::as_object);
    let holders: Vec<_> = std::iter::once(params).chain(metadata).collect();
    match first(&holders, &keys)? {
        Some(name) => Ok(Some(name)),
        None => first(&[params], &["tenant"]),
    }
}

/// The first of these keys that has a value; an empty text is none.
fn first(holders: &[&Map<String, Value>], keys: &[&str]) -> Result<Option<String>, Error> {
    let mut given = holders.iter().flat_map(|of| keys.iter().filter_map(|key| Some((*key, of.get(*key)?))));
    let Some((key, value)) = given.find(|(_, value)| !value.is_null() && **value != "") else { return Ok(None) };
    let most = limits::A2A_ID_BYTES_MAX;
    let bad = |text: String| Err(Error::bad_field(key, text));
    match value.as_str() {
        None => bad(format!("`{key}` must be a string")),
        Some(text) if text.len() > most => bad(format!("`{key}` is longer than {most} bytes")),
        Some(text) if text.chars().any(char::is_control) => bad(format!("`{key}` must not contain control characters")),
        Some(text) => Ok(Some(text.to_owned())),
    }
}

/// The text of parts. Data is given to the agent as JSON.
fn text(parts: Option<&Value>) -> Result<String, Error> {
    let bad = |text: String| Error::bad_field("message.parts", text);
    let parts = parts.and_then(Value::as_array).ok_or_else(|| bad("`message.parts` must be an array".to_owned()))?;
    if parts.len() > limits::A2A_PARTS_MAX {
        return Err(bad(format!("`message.parts` has more than {} parts", limits::A2A_PARTS_MAX)));
    }
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        match (part.get("text"), part.get("data")) {
            (Some(Value::String(piece)), _) => text.push_str(piece),
            (_, Some(data)) if !data.is_null() => text.push_str(&data.to_string()),
            _ => {
                let error = format!("part {at} of the message is neither text nor data");
                return Err(Error::of(A2A_CONTENT_TYPE, error).with("field", format!("message.parts[{at}]")));
            }
        }
    }
    if text.trim().is_empty() {
        return Err(bad("the message has no text".to_owned()));
    }
    if text.len() > limits::A2A_MESSAGE_BYTES_MAX {
        return Err(bad(format!("the message is longer than {} bytes", limits::A2A_MESSAGE_BYTES_MAX)));
    }
    Ok(text)
}

/// What the world knows an id by that a client chose. One of a client with a key counts for that client, and a short one, which
/// could be anyone's, for its address.
fn key_of(kind: char, id: &str, client: &Sender) -> String {
    match client {
        Sender::Stranger(_) if id.len() >= limits::A2A_ID_BYTES_SHARED => format!("{kind}:{id}"),
        Sender::Stranger(address) => format!("{kind}:{id}@{address:?}"),
        Sender::Known(name) => format!("{kind}/{name}:{id}"),
    }
}

/// What finds the task that a client knows by this id.
pub(crate) fn finds(id: &str, client: &Sender) -> FindA2aTask {
    FindA2aTask { id: id.parse::<A2aTaskId>().ok(), key: key_of('t', id, client) }
}

fn digest(parts: &[&str]) -> [u8; 32] {
    record::digest(parts)
}

/// The session of a conversation. No client reaches another one of the agent: it is a digest of what the client sent.
fn session_of(agent: AgentId, context_key: &str) -> SessionId {
    let digest = digest(&["a2a session", &agent.to_string(), context_key]);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(Slot::beside(agent.to_uuid(), bytes))
}

/// Makes the command of a message for the agent that it means.
///
/// # Errors
/// As [`offer::choose`]; 500 without randomness.
pub(crate) async fn command(
    call: &Call,
    (host, policy): (&Arc<dyn A2aHost>, &Policy),
    incoming: Incoming,
    push: Option<PushTarget>,
) -> Result<SendA2aTask, Error> {
    let Offered { id: agent, name } = offer::choose(call, policy, incoming.agent.as_deref()).await?;
    let random = || host.random().map_err(|why| Error::internal(format!("no random id: {why}")));
    let given = incoming.context.clone().unwrap_or_default();
    let context = match incoming.context {
        Some(context) => context,
        None => random()?.to_string(),
    };
    let sender = Sender::of(call);
    let session = session_of(agent, &key_of('c', &context, &sender));
    let (agent_text, client) = (agent.to_string(), sender.to_string());
    let key = match (&incoming.task, &*incoming.message_id) {
        (Some(task), _) => key_of('t', task, &sender),
        (None, "") => String::new(),
        (None, message) => format!("m:{}", hex(&digest(&[&client, &agent_text, &given, message]))),
    };
    let policy_of_scanner = *call.api.state::<InjectionPolicy>();
    let text = incoming.text;
    let scanned = text.clone();
    let shielded = shielded(call.asker(), policy_of_scanner, "an A2A client", scanned).await?;
    let Shielded { text: seen, found } = shielded;
    let message_id = match incoming.message_id {
        id if id.is_empty() => random()?.to_string(),
        id => id,
    };
    Ok(SendA2aTask {
        id: A2aTaskId(Slot::beside(agent.to_uuid(), random()?.into_bytes())),
        agent,
        agent_name: name.into(),
        client,
        digest: hex(&digest(&[&agent_text, &given, &text])),
        context,
        session,
        client_id: incoming.task,
        key,
        message_id,
        shielded: (seen != text).then_some(seen),
        message: text,
        found: found.map(|found| *found).into_iter().collect(),
        push,
        daily_limit: policy.daily_limit,
        trace: call.trace.map(|trace| trace.to_string().into()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use serde_json::json;

    use super::*;
    use crate::http::rate::ClientKey;

    fn read_of(params: Value) -> Result<Incoming, Error> {
        read(params.as_object().unwrap())
    }

    #[test]
    fn all_dialects_say_the_same() {
        let parts = json!([{ "text": "hi" }]);
        for (params, agent, context, task) in [
            (json!({ "agent_id": "a", "message": { "role": "user", "parts": parts } }), Some("a"), None, None),
            (
                json!({ "id": "t", "sessionId": "s", "message": { "parts": [{ "type": "text", "text": "hi" }] }, "agentId": "a" }),
                Some("a"),
                Some("s"),
                Some("t"),
            ),
            (
                json!({ "message": { "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t",
                    "parts": [{ "kind": "text", "text": "hi" }], "metadata": { "skillId": "a" } } }),
                Some("a"),
                Some("c"),
                Some("t"),
            ),
            (
                json!({ "tenant": "a", "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts } }),
                Some("a"),
                None,
                None,
            ),
            (json!({ "agent_id": "", "message": { "parts": parts, "contextId": null } }), None, None, None),
        ] {
            let read = read_of(params.clone()).unwrap();
            let found = (read.agent.as_deref(), read.context.as_deref(), read.task.as_deref(), &*read.text);
            assert_eq!(found, (agent, context, task, "hi"), "{params}");
        }
    }

    #[test]
    fn several_parts_are_one_text_and_files_are_refused() {
        let of = |parts: Value| read_of(json!({ "message": { "parts": parts } }));
        assert_eq!(of(json!([{ "text": "a" }, { "kind": "data", "data": { "n": 1 } }])).unwrap().text, "a\n{\"n\":1}");
        let refused = of(json!([{ "text": "a" }, { "kind": "file", "file": { "uri": "http://x/" } }])).unwrap_err();
        assert_eq!(refused.beside("code"), Some(&json!("a2a_content_type")));
        assert_eq!(refused.beside("field"), Some(&json!("message.parts[1]")));
        for wrong in
            [json!([]), json!([{ "text": " " }]), json!("x"), Value::Null, json!(vec![json!({ "text": "a" }); 65])]
        {
            assert_eq!(of(wrong.clone()).unwrap_err().beside("field"), Some(&json!("message.parts")), "{wrong}");
        }
        let long = "x".repeat(limits::A2A_MESSAGE_BYTES_MAX + 1);
        assert!(of(json!([{ "text": long }])).is_err());
    }

    #[test]
    fn wrong_ids_name_their_key() {
        for (key, value) in [("agent_id", json!(7)), ("sessionId", json!("x".repeat(129))), ("id", json!("a\nb"))] {
            let mut params = json!({ "message": { "parts": [{ "text": "a" }] } });
            params[key] = value;
            assert_eq!(read_of(params).unwrap_err().beside("field"), Some(&json!(key)));
        }
        assert!(read_of(json!({})).is_err() && read_of(json!({ "message": "x" })).is_err());
    }

    #[test]
    fn clients_wait_unless_they_say_otherwise() {
        let waits = |more: Value| {
            let mut params = json!({ "message": { "parts": [{ "text": "a" }] } });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read_of(params).unwrap().blocking
        };
        assert!(waits(json!({})) && waits(json!({ "configuration": { "blocking": true } })));
        assert!(!waits(json!({ "configuration": { "blocking": false } })));
        assert!(
            !waits(json!({ "configuration": { "returnImmediately": true } })) && !waits(json!({ "blocking": false }))
        );
    }

    #[test]
    fn a_short_id_counts_for_its_address_and_a_session_is_of_one_agent_and_conversation() {
        let at = |n| Sender::Stranger(ClientKey::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, n))));
        let (one, other, known) = (at(1), at(2), Sender::Known("key:1".into()));
        assert_ne!(key_of('t', "1", &one), key_of('t', "1", &other));
        let long = "3f2c1b0a-0000-4000-8000-000000000001";
        assert_eq!(key_of('t', long, &one), key_of('t', long, &other));
        assert_ne!(key_of('t', long, &one), key_of('t', long, &known));
        assert_ne!(key_of('t', long, &known), key_of('t', long, &Sender::Known("key:2".into())));
        let agent = |n: u128| AgentId(uuid::Uuid::from_u128(n));
        let session = session_of(agent(1), "c:x");
        assert_eq!(session, session_of(agent(1), "c:x"));
        assert!(session != session_of(agent(2), "c:x") && session != session_of(agent(1), "c:y"));
        assert_eq!((session.0.get_version_num(), session.0.as_u128() & 0xfff), (8, 1));
    }
}

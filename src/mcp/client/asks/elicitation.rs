//! Elicitation: a server asks a person for input, in a form or at a URL.

use agentsvc_systems::approval::limits::ANSWER_SCHEMA_BYTES_MAX;
use agentsvc_systems::mcp::limits::MCP_ELICITATION_TEXT_BYTES_MAX;
use reqwest::Url;
use serde_json::{Value, json};

use super::RpcError;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mcp::client) struct Elicitation {
    /// What the server says.
    pub(super) message: String,
    /// What it wants.
    pub(super) mode: Mode,
}

/// What a server wants of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A form to be filled in, as a JSON schema.
    Form(String),
    /// A page to be opened.
    Url(String),
}

impl Elicitation {
    pub(super) fn read(params: &Value, urls: bool) -> Result<Self, RpcError> {
        let text = |key: &str| {
            let text = params[key].as_str().ok_or_else(|| RpcError::invalid(format!("{key} must be a text")))?;
            if text.len() > MCP_ELICITATION_TEXT_BYTES_MAX {
                let why = format!("{key} is longer than {MCP_ELICITATION_TEXT_BYTES_MAX} bytes");
                return Err(RpcError::invalid(why));
            }
            Ok(text.to_owned())
        };
        let mode = match params.get("mode").map(Value::as_str) {
            None | Some(Some("form")) => {
                let schema = params["requestedSchema"].to_string();
                if !params["requestedSchema"].is_object() || schema.len() > ANSWER_SCHEMA_BYTES_MAX {
                    let why = format!("requestedSchema must be an object of at most {ANSWER_SCHEMA_BYTES_MAX} bytes");
                    return Err(RpcError::invalid(why));
                }
                Mode::Form(schema)
            }
            Some(Some("url")) if urls => {
                let url = text("url")?;
                let is_page = Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
                if !is_page {
                    return Err(RpcError::invalid("url must be an http or https URL"));
                }
                Mode::Url(url)
            }
            _ => return Err(RpcError::invalid("this mode of elicitation is not supported")),
        };
        Ok(Self { message: text("message")?, mode })
    }
}

/// A person decided nothing.
pub(super) fn cancelled() -> Value {
    json!({ "action": "cancel" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_and_bounded() {
        let form = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
        assert!(matches!(Elicitation::read(&form, false).unwrap().mode, Mode::Form(_)));
        let url = json!({ "mode": "url", "message": "m", "url": "https://h/a", "elicitationId": "1" });
        assert_eq!(Elicitation::read(&url, true).unwrap().mode, Mode::Url("https://h/a".to_owned()));
        assert!(Elicitation::read(&url, false).is_err(), "older versions have no URLs");
        let long = "x".repeat(MCP_ELICITATION_TEXT_BYTES_MAX + 1);
        let large = json!({ "x": "x".repeat(ANSWER_SCHEMA_BYTES_MAX) });
        for wrong in [
            json!({ "requestedSchema": {} }),
            json!({ "message": 7, "requestedSchema": {} }),
            json!({ "message": long, "requestedSchema": {} }),
            json!({ "message": "m" }),
            json!({ "message": "m", "requestedSchema": [] }),
            json!({ "message": "m", "requestedSchema": large }),
            json!({ "mode": 7, "message": "m", "requestedSchema": {} }),
            json!({ "mode": "other", "message": "m", "requestedSchema": {} }),
            json!({ "mode": "url", "message": "m" }),
            json!({ "mode": "url", "message": "m", "url": "javascript:alert(1)" }),
            json!({ "mode": "url", "message": "m", "url": "file:///etc/passwd" }),
            json!(null),
        ] {
            assert!(Elicitation::read(&wrong, true).is_err(), "{wrong}");
        }
    }
}

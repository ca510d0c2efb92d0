//! Push notification configurations: who is told of a task's end.

use std::sync::Arc;

use agentsvc_components::a2a::PushTarget;
use agentsvc_components::kernel::error_codes as kernel_codes;
use agentsvc_systems::a2a::{A2aTaskView, limits};
use serde_json::{Map, Value, json};

use super::host::{A2aHost, NotVetted};
use super::render::Dialect;
use crate::http::blocking::spawn_blocking;
use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;

/// Reads a configuration, as it stands in a request of either dialect; its URL may be reached and its secrets are sealed.
///
/// # Errors
/// 400 naming the field; 503 when too many URLs are being looked up.
pub(crate) async fn read(host: &Arc<dyn A2aHost>, dialect: Dialect, given: &Value) -> Result<PushTarget, Error> {
    let bad = |field: &str, text: String| Err(Error::bad_field(field, text));
    let Some(given) = given.as_object() else { return bad("url", "the configuration must be an object".to_owned()) };
    let Some(url) = text(given, "url", limits::A2A_PUSH_URL_BYTES_MAX)? else {
        return bad("url", "`url` is missing".to_owned());
    };
    let secret = limits::A2A_PUSH_SECRET_BYTES_MAX;
    let token = text(given, "token", secret)?;
    let authentication = given.get("authentication").and_then(Value::as_object);
    let (scheme, credentials) = match authentication {
        None => (None, None),
        Some(of) => {
            let schemes =
                of.get("schemes").and_then(Value::as_array).and_then(|all| all.first()).and_then(Value::as_str);
            let most = limits::A2A_ID_BYTES_MAX;
            if schemes.is_some_and(|scheme| scheme.len() > most) {
                return bad("schemes", format!("`schemes` has a name of more than {most} bytes"));
            }
            let scheme = text(of, "scheme", most)?.or_else(|| schemes.map(str::to_owned));
            (scheme, text(of, "credentials", secret)?)
        }
    };
    let id = match text(given, "id", limits::A2A_ID_BYTES_MAX)? {
        Some(id) => id,
        None => host.random().map_err(|why| Error::internal(format!("no random id: {why}")))?.to_string(),
    };
    let scheme = credentials.as_ref().map(|_| scheme.unwrap_or_else(|| "Bearer".to_owned()));
    let authorization = credentials.map(|of| format!("{} {of}", scheme.as_deref().unwrap_or_default()));
    if let Some(wrong) = [&token, &authorization].into_iter().flatten().find(|secret| !is_header(secret)) {
        let field = if Some(wrong) == token.as_ref() { "token" } else { "authentication" };
        return bad(field, format!("`{field}` must be printable ASCII"));
    }
    let vetted = Arc::clone(host).vet(url).await;
    let url = vetted.map_err(|why| match why {
        NotVetted::Busy => {
            Error::unavailable("too many URLs of push notifications are being looked up; try again later", 5)
                .code(kernel_codes::BUSY)
        }
        NotVetted::Refused(why) => Error::bad_field("url", format!("url: {why}")),
    })?;
    let (token, authorization) = (seal(host, token).await?, seal(host, authorization).await?);
    let is_v1 = dialect == Dialect::V1;
    Ok(PushTarget { id: id.into(), url: url.into(), token, authorization, scheme: scheme.map(Into::into), is_v1 })
}

fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

fn text(of: &Map<String, Value>, key: &str, most: usize) -> Result<Option<String>, Error> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= most => Ok(Some(text.clone())),
        Some(Value::String(_)) => Err(Error::bad_field(key, format!("`{key}` is longer than {most} bytes"))),
        Some(_) => Err(Error::bad_field(key, format!("`{key}` must be a string"))),
    }
}

async fn seal(host: &Arc<dyn A2aHost>, secret: Option<String>) -> Result<Option<Box<str>>, Error> {
    let Some(secret) = secret else { return Ok(None) };
    let host = Arc::clone(host);
    let sealed = spawn_blocking(move || host.seal(&secret)).await;
    let sealed = sealed.map_err(|_| Error::internal("the secret could not be encrypted"))?;
    Ok(Some(sealed.map_err(|why| Error::of(VAULT_UNAVAILABLE, why))?.into()))
}

/// A configuration as clients read it: without its secrets.
pub(crate) fn shown(dialect: Dialect, view: &A2aTaskView, target: &PushTarget) -> Value {
    let mut shown = json!({ "id": target.id, "url": target.url });
    if let Some(scheme) = &target.scheme {
        shown["authentication"] = match dialect {
            Dialect::V0 => json!({ "schemes": [scheme] }),
            Dialect::V1 => json!({ "scheme": scheme }),
        };
    }
    match dialect {
        Dialect::V0 => json!({ "taskId": view.shown_id(), "pushNotificationConfig": shown }),
        Dialect::V1 => {
            shown["taskId"] = json!(view.shown_id());
            shown
        }
    }
}

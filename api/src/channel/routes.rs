//! The routes of channels (spec 3, Channels).

use std::sync::Arc;

use agentsvc_systems::audit::NoteAction;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use serde_json::json;

use super::audit_kinds::{CHANNEL_CONFIGURED, CHANNEL_REMOVED, CHANNEL_TESTED};
use super::body::{
    ChannelDetail, ChannelList, ConfigureBody, ListedChannel, LogList, QrItem, RegistryDetail, RegistryList, Removed,
    RuleList, TestBody, Tested,
};
use super::error_codes::{CHANNEL_REFUSED, CHANNEL_TIMEOUT};
use super::service::{ChannelError, Channels, TestEnd, is_channel_name};
use super::shape::{ChannelRow, Configured, RegistryEntry, Reloaded};
use crate::http::blocking::{self, spawn_blocking};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What starting a process costs the client's rate budget.
const COST: u32 = 10;

const SAVED: &[Reply] = &[
    Reply::json::<Configured>(200, "the values are stored"),
    Reply::error(404, "there is no such channel, and no adapter of this name"),
    Reply::error(409, "the channel is defined in a file that the daemon does not write"),
    Reply::error(429, "the limit of channels is reached"),
    Reply::error(503, "the adapter does not describe its values, or is not installed"),
];

const REMOVED: &[Reply] = &[
    Reply::json::<Removed>(200, "removed, with its own secrets"),
    Reply::error(409, "the channel is defined in a file that the daemon does not write"),
];

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/channels", "List channels", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<ChannelList>(200, "the channels")]),
    Route::get("/api/channels/registry", "List the platforms for which channels can be set up", |call| {
        Box::pin(registry(call))
    })
    .replies(&[Reply::json::<RegistryList>(200, "the platforms")]),
    Route::get("/api/channels/registry/{name}", "Get a platform and the values of a new channel", |call| {
        Box::pin(registered(call))
    })
    .cost(COST)
    .replies(&[Reply::json::<RegistryDetail>(200, "the platform"), Reply::error(404, "no such platform")]),
    Route::get("/api/channels/bindings", "List the rules that choose the agents of messages", |call| {
        Box::pin(bindings(call))
    })
    .replies(&[Reply::json::<RuleList>(200, "the rules")]),
    Route::post("/api/channels/reload", "Read the configuration of channels again", |call| {
        Box::pin(detached(Box::pin(reload(call))))
    })
    .cost(COST)
    .replies(&[Reply::json::<Reloaded>(200, "the channels run as configured")]),
    Route::post("/api/channels/sidecar/{name}/configure", "Set up a channel or change its values", |call| {
        Box::pin(detached(Box::pin(configure(call))))
    })
    .cost(COST)
    .body::<ConfigureBody>()
    .replies(SAVED),
    Route::delete("/api/channels/sidecar/{name}", "Remove a channel", |call| {
        Box::pin(detached(Box::pin(remove(call))))
    })
    .replies(REMOVED),
    Route::get("/api/channels/{name}", "Get a channel with its values and its state", |call| Box::pin(get(call)))
        .replies(&[Reply::json::<ChannelDetail>(200, "the channel")]),
    Route::post("/api/channels/{name}/configure", "Set up a channel or change its values", |call| {
        Box::pin(detached(Box::pin(configure(call))))
    })
    .cost(COST)
    .body::<ConfigureBody>()
    .replies(SAVED),
    Route::delete("/api/channels/{name}/configure", "Remove a channel", |call| {
        Box::pin(detached(Box::pin(remove(call))))
    })
    .replies(REMOVED),
    Route::post("/api/channels/{name}/test", "Send a test message", |call| Box::pin(detached(Box::pin(test(call)))))
        .cost(COST)
        .body::<TestBody>()
        .replies(&[
            Reply::json::<Tested>(200, "the adapter has handled it"),
            Reply::json::<Tested>(202, "it waits for the adapter"),
            Reply::error(409, "the adapter is not running"),
            Reply::error(502, "the platform or the adapter refused it; `send_id` names the send"),
            Reply::error(504, "the adapter gave no answer; `send_id` names the send"),
        ]),
    Route::post("/api/channels/{name}/qr/start", "Get a QR code that signs a channel in", |call| {
        Box::pin(detached(Box::pin(start_qr(call))))
    })
    .cost(COST)
    .replies(&[
        Reply::json::<QrItem>(200, "the code"),
        Reply::error(409, "the adapter is not running, or shows no codes"),
        Reply::error(504, "the adapter showed no code in time"),
    ]),
    Route::get("/api/channels/{name}/qr/status", "Get the state of a QR code", |call| Box::pin(qr_status(call)))
        .replies(&[Reply::json::<QrItem>(200, "the state"), Reply::error(404, "no such channel, or it has no code")]),
    Route::get("/api/channels/{name}/qr", "Get a QR code, with its state in the words of adapters", |call| {
        Box::pin(qr(call))
    })
    .replies(&[
        Reply::json::<QrItem>(200, "the code"),
        Reply::empty(204, "the channel has no code"),
        Reply::error(404, "there is no such channel, or its adapter is not running"),
    ]),
    Route::get("/api/channels/{name}/logs", "Get the last lines of an adapter's error output", |call| {
        Box::pin(logs(call))
    })
    .replies(&[Reply::json::<LogList>(200, "the lines")]),
];

/// Does the work to its end, also when the client goes away.
async fn detached<T: Send + 'static>(work: BoxFuture<'static, Result<T, Error>>) -> Result<T, Error> {
    blocking::spawn(work).await.unwrap_or_else(|_| Err(Error::internal("internal error")))
}

fn channels(call: &Call) -> Result<Arc<dyn Channels>, Error> {
    call.api.service::<dyn Channels>()
}

fn unknown(name: &str) -> Error {
    ChannelError::NotFound(name.to_owned()).into()
}

/// The name of a channel that exists.
pub(crate) fn known(call: &Call) -> Result<String, Error> {
    let name = call.param("name")?.into_owned();
    match channels(call)?.get(&name) {
        Some(_) => Ok(name),
        None => Err(unknown(&name)),
    }
}

/// The name of a channel that exists, or of a site of web chats, which has conversations and sends too.
pub(crate) fn known_with_sites(call: &Call) -> Result<String, Error> {
    let name = call.param("name")?.into_owned();
    let has_rules = channels(call)?.policies().iter().any(|policy| policy.channel == name);
    if has_rules { Ok(name) } else { known(call) }
}

async fn list(call: Call) -> Result<Response, Error> {
    let known = channels(&call)?;
    let listed = |channel: ChannelRow| ListedChannel { fields: known.known_fields(&channel.name), channel };
    let channels: Vec<ListedChannel> = known.list().into_iter().map(listed).collect();
    reply::ok(&ChannelList { total: channels.len(), channels })
}

async fn get(call: Call) -> Result<Response, Error> {
    let (channels, name) = (channels(&call)?, call.param("name")?.into_owned());
    let channel = channels.get(&name).ok_or_else(|| unknown(&name))?;
    let policy = channels.policies().into_iter().find(|policy| policy.channel == name);
    let (fields, fields_error) = match channels.describe(name).await {
        Ok(schema) => (Some(schema.fields), None),
        Err(error) => (None, Some(Error::from(error).message().to_owned())),
    };
    reply::ok(&ChannelDetail { channel, policy, fields, fields_error })
}

async fn entries(channels: &Arc<dyn Channels>) -> Result<Vec<RegistryEntry>, Error> {
    let reading = Arc::clone(channels);
    let read = spawn_blocking(move || reading.registry()).await;
    read.map_err(|_| Error::internal("internal error"))?.map_err(Error::internal)
}

async fn registry(call: Call) -> Result<Response, Error> {
    let channels = entries(&channels(&call)?).await?;
    reply::ok(&RegistryList { total: channels.len(), channels })
}

async fn registered(call: Call) -> Result<Response, Error> {
    let (channels, name) = (channels(&call)?, call.param("name")?);
    let entry = entries(&channels).await?.into_iter().find(|entry| entry.id == *name);
    let entry = entry.ok_or_else(|| Error::not_found(format!("platform not found: {name}")))?;
    let described = match entry.adapter.clone() {
        Some(adapter) => {
            channels.describe_adapter(adapter).await.map_err(|error| Error::from(error).message().to_owned())
        }
        None => Err("no adapter of the SDK is known for this platform; set its command in config.toml".to_owned()),
    };
    let (schema, schema_error) = match described {
        Ok(schema) => (Some(schema), None),
        Err(why) => (None, Some(why)),
    };
    reply::ok(&RegistryDetail { entry, schema, schema_error })
}

async fn bindings(call: Call) -> Result<Response, Error> {
    let bindings = channels(&call)?.rules();
    reply::ok(&RuleList { total: bindings.len(), bindings })
}

async fn reload(call: Call) -> Result<Response, Error> {
    reply::ok(&channels(&call)?.reload().await?)
}

async fn configure(call: Call) -> Result<Response, Error> {
    let (channels, name) = (channels(&call)?, call.param("name")?.into_owned());
    let mut change = call.json::<ConfigureBody>()?.change(name.clone())?;
    if channels.get(&name).is_none() {
        if change.adapter.is_none() {
            let entries = entries(&channels).await?;
            let like = entries.into_iter().find(|entry| entry.id == name).and_then(|entry| entry.adapter);
            change.adapter = Some(like.ok_or_else(|| unknown(&name))?);
        }
        if !is_channel_name(&name) {
            let rule = "name: 1 to 64 letters, digits, `-`, `_` or `.`, and no word of the routes of channels";
            return Err(Error::bad_field("name", rule));
        }
    }
    let keys: Vec<&String> = change.values.keys().take(32).collect();
    let details = json!({ "channel": name, "adapter": change.adapter, "keys": keys, "token": change.token.is_some(),
        "agent": change.agent });
    call.ask(NoteAction { kind: CHANNEL_CONFIGURED, agent: None, details }).await?;
    reply::ok(&channels.configure(change).await?)
}

async fn remove(call: Call) -> Result<Response, Error> {
    let (channels, name) = (channels(&call)?, known(&call)?);
    call.ask(NoteAction { kind: CHANNEL_REMOVED, agent: None, details: json!({ "channel": name }) }).await?;
    channels.remove(name.clone()).await?;
    reply::ok(&Removed { status: "removed", name })
}

async fn test(call: Call) -> Result<Response, Error> {
    let test = call.json_or_default::<TestBody>()?.test(call.param("name")?.into_owned())?;
    let (channels, name) = (channels(&call)?, known(&call)?);
    let details = json!({ "channel": name, "recipient": test.recipient });
    call.ask(NoteAction { kind: CHANNEL_TESTED, agent: None, details }).await?;
    let TestEnd { send, recipient, status, reason } = channels.test(test).await?;
    let failed = |code, usual: &str| {
        let why = reason.clone().unwrap_or_else(|| usual.to_owned());
        Err(Error::of(code, format!("channel {name}: {why}")).with("status", status).with("send_id", send.to_string()))
    };
    let tested = Tested { status, send_id: send, recipient };
    match status {
        "sent" | "acknowledged" => reply::ok(&tested),
        "queued" => reply::json(StatusCode::ACCEPTED, &tested),
        "refused" => failed(CHANNEL_REFUSED, "the message was refused"),
        _ => failed(CHANNEL_TIMEOUT, "the adapter did not say what became of the message"),
    }
}

async fn start_qr(call: Call) -> Result<Response, Error> {
    let (channels, name) = (channels(&call)?, known(&call)?);
    reply::ok(&QrItem::from(channels.start_qr(name).await?))
}

async fn qr_status(call: Call) -> Result<Response, Error> {
    let name = known(&call)?;
    let found = match channels(&call)?.qr(&name) {
        Err(ChannelError::NotRunning(why)) => return Err(Error::not_found(why)),
        found => found?,
    };
    let qr = found.ok_or_else(|| Error::not_found(format!("channel {name} has no QR code; start one first")))?;
    reply::ok(&QrItem::from(qr))
}

async fn qr(call: Call) -> Result<Response, Error> {
    let name = known(&call)?;
    match channels(&call)?.qr(&name) {
        Err(ChannelError::NotRunning(why)) => Err(Error::not_found(why)),
        found => match found? {
            Some(qr) => reply::ok(&QrItem::of_adapter(qr)),
            None => Ok(reply::no_content()),
        },
    }
}

async fn logs(call: Call) -> Result<Response, Error> {
    let name = known(&call)?;
    let lines = channels(&call)?.logs(&name)?;
    reply::ok(&LogList { name, total: lines.len(), lines })
}

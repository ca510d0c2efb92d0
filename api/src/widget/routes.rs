//! The routes of web chats.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use agentsvc_components::channel::message::{ChatEvent, Sender};
use agentsvc_components::widget::WebMessageId;
use agentsvc_systems::injection::{InjectionPolicy, Shielded};
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::widget::limits::{VISITOR_TEXT_CHARS_MAX, WEB_MESSAGE_NAME_BYTES_MAX};
use agentsvc_systems::widget::{ListWebMessages, PostWebMessage, WebPost};
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error_codes::{VISITOR_UNKNOWN, WEB_CHAT_RATE, WEB_CHAT_UNANSWERED};
use super::hub::{Sign, WebHub};
use super::rate::{Rates, Who};
use super::service::{Site, WebChats};
use super::shape::{
    LookItem, SessionBody, SessionItem, SiteItem, SiteList, WebMessageBody, WebMessageItem, WebMessageList,
    WebMessageStored,
};
use super::stream;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::rate::ClientKey;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::sse;
use crate::injection::shielded;

const SCRIPT: &[u8] = include_bytes!("assets/widget.js");
/// The address of the script never changes: a page asks again after some minutes.
const SOME_MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");
/// A page that is left and opened again asks once; `Vary: Origin` keeps the origins apart.
const A_MINUTE: HeaderValue = HeaderValue::from_static("private, max-age=60");
const JAVASCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OF_ALL: HeaderValue = HeaderValue::from_static("cross-origin");
/// Not even the visitor's own browser keeps what was said.
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");
/// Bytes of a body: 4000 characters, each escaped.
const BODY_MAX: usize = 64 << 10;
/// Bytes of a conversation as JSON, of those that are not made of characters to be escaped.
const HISTORY_BYTES: usize = 1 << 20;
/// Seconds until a message may be sent again that got no answer.
const RETRY_SECS: u32 = 10;

const STRANGE: Reply = Reply::error(401, "the token in `X-Visitor` is missing, or none of this site");
const NO_SITE: Reply = Reply::error(404, "no site has this token");
const OFTEN: Reply = Reply::error(429, "the visitor, the address or the site does this too often");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/widget.js", "Get the script of web chats", |call| Box::pin(script(call)))
        .page()
        .here()
        .replies(&[Reply::plain(200, "the script", "text/javascript"), Reply::empty(304, "not modified")]),
    Route::get("/api/web-chats", "List the sites with a web chat", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<SiteList>(200, "the sites")]),
    Route::get("/api/web-chat/{token}/look", "Get the look of a web chat", |call| Box::pin(look(call)))
        .page()
        .replies(&[Reply::json::<LookItem>(200, "the look"), NO_SITE]),
    Route::post("/api/web-chat/{token}/session", "Begin or resume the session of a visitor", |call| {
        Box::pin(session(call))
    })
    .page()
    .body_max(BODY_MAX)
    .body::<SessionBody>()
    .replies(&[Reply::json::<SessionItem>(200, "the session"), STRANGE, NO_SITE, OFTEN]),
    Route::get("/api/web-chat/{token}/messages", "List the messages of a visitor", |call| Box::pin(history(call)))
        .page()
        .answer_max(HISTORY_BYTES)
        .replies(&[Reply::json::<WebMessageList>(200, "the messages"), STRANGE, NO_SITE]),
    Route::post("/api/web-chat/{token}/messages", "Send a message of a visitor", |call| Box::pin(post(call)))
        .page()
        .body_max(BODY_MAX)
        .body::<WebMessageBody>()
        .replies(&[
            Reply::json::<WebMessageStored>(202, "the message is stored; the answer comes as an event"),
            STRANGE,
            NO_SITE,
            OFTEN,
            Reply::error(503, "no agent answers on this site"),
        ]),
    Route::get("/api/web-chat/{token}/events", "Stream the conversation of a visitor", |call| Box::pin(events(call)))
        .page()
        .replies(&[
            Reply::plain(200, "`message`, `delta` and `typing` events", "text/event-stream"),
            STRANGE,
            NO_SITE,
            OFTEN,
        ]),
];

async fn script(call: Call) -> Result<Response, Error> {
    static TAG: LazyLock<Option<HeaderValue>> =
        LazyLock::new(|| HeaderValue::try_from(format!("\"{}\"", hex(&Sha256::digest(SCRIPT)[..8]))).ok());
    let is_known = TAG.is_some() && call.headers().get(IF_NONE_MATCH) == TAG.as_ref();
    let mut response = reply::bytes(StatusCode::OK, JAVASCRIPT, SCRIPT);
    if is_known {
        response = reply::no_content();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, SOME_MINUTES);
    headers.insert(RESOURCE_POLICY, OF_ALL);
    if let Some(tag) = &*TAG {
        headers.insert(ETAG, tag.clone());
    }
    Ok(response)
}

async fn list(call: Call) -> Result<Response, Error> {
    let sites = call.api.service::<dyn WebChats>()?.list();
    reply::ok(&SiteList { total: sites.len(), web_chats: sites.iter().map(|site| SiteItem::from(&**site)).collect() })
}

/// The site of the token in the path.
fn site(call: &Call) -> Result<(Arc<dyn WebChats>, Arc<Site>), Error> {
    let chats = call.api.service::<dyn WebChats>()?;
    let site = chats.site(&call.param("token")?).ok_or_else(|| Error::not_found("no site has this token"))?;
    Ok((chats, site))
}

fn shown_token(call: &Call) -> Option<&str> {
    call.headers().get("x-visitor").map(|token| token.to_str().unwrap_or_default())
}

/// The site, and the visitor whose token the request shows.
fn enter(call: &Call) -> Result<(Arc<Site>, Box<str>), Error> {
    let (chats, site) = site(call)?;
    let visitor = shown_token(call).and_then(|token| chats.visitor(&site, token)).ok_or_else(unknown)?;
    Ok((site, visitor))
}

fn unknown() -> Error {
    Error::of(VISITOR_UNKNOWN, "X-Visitor has no token of this site")
}

/// The response, which no cache keeps.
fn unkept(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, NOT_KEPT);
    response
}

async fn look(call: Call) -> Result<Response, Error> {
    let (_, site) = site(&call)?;
    let mut response = reply::ok(&LookItem::from(&*site))?;
    response.headers_mut().insert(CACHE_CONTROL, A_MINUTE);
    Ok(response)
}

async fn session(call: Call) -> Result<Response, Error> {
    let (chats, site) = site(&call)?;
    let SessionBody {} = call.json_or_default()?;
    let of_address = (Who::Sessions(site.name.clone(), ClientKey::of(call.peer)), site.per_address);
    let visitor = match shown_token(&call) {
        Some(token) => {
            chats.visitor(&site, token).ok_or_else(unknown)?;
            token.to_owned()
        }
        None => {
            call.api.state::<Rates>().take([of_address], Instant::now())?;
            chats.new_visitor(&site).ok_or_else(|| Error::internal("there is no randomness"))?
        }
    };
    Ok(unkept(reply::ok(&SessionItem { visitor, look: LookItem::from(&*site) })?))
}

async fn history(call: Call) -> Result<Response, Error> {
    let (site, visitor) = enter(&call)?;
    let all = call.ask(ListWebMessages { site: site.name.clone(), visitor, after: None }).await?;
    let messages = all.into_iter().map(|it| WebMessageItem::from(it.message)).collect();
    Ok(unkept(reply::ok(&WebMessageList { messages })?))
}

/// A visitor's message as a channel takes it.
async fn event(call: &Call, visitor: &str, body: &WebMessageBody) -> Result<ChatEvent, Error> {
    let policy = *call.api.state::<InjectionPolicy>();
    let shielded = shielded(call.asker(), policy, "a message of a chat", body.text.clone()).await?;
    let Shielded { text, found } = shielded;
    Ok(ChatEvent {
        chat: visitor.into(),
        title: Some(format!("visitor {}", visitor.get(..8).unwrap_or(visitor)).into()),
        sender: Sender { id: visitor.into(), ..Sender::default() },
        text: body.text.as_str().into(),
        shielded: (text != body.text).then(|| text.into()),
        found: found.into_iter().map(|found| *found).collect(),
        message_id: Some(body.id.as_str().into()),
        ..ChatEvent::default()
    })
}

async fn post(call: Call) -> Result<Response, Error> {
    let (site, visitor) = enter(&call)?;
    let body: WebMessageBody = call.json()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if body.id.is_empty() || body.id.len() > WEB_MESSAGE_NAME_BYTES_MAX || !body.id.chars().all(fits) {
        return Err(Error::bad_field("id", "id: 1 to 64 letters, digits, `-` or `_`"));
    }
    if body.text.trim().is_empty() || body.text.chars().count() > VISITOR_TEXT_CHARS_MAX {
        let text = format!("text: 1 to {VISITOR_TEXT_CHARS_MAX} characters that are not all blank");
        return Err(Error::bad_field("text", text));
    }
    let name = &site.name;
    let counted = [
        (Who::Visitor(name.clone(), visitor.clone()), site.per_visitor),
        (Who::Address(name.clone(), ClientKey::of(call.peer)), site.per_address),
        (Who::Site(name.clone()), site.per_minute),
    ];
    call.api.state::<Rates>().take(counted, Instant::now())?;
    let event = event(&call, &visitor, &body).await?;
    match call.ask(PostWebMessage { site: name.clone(), event }).await? {
        WebPost::Kept => call.api.state::<WebHub>().tell(name, &visitor, Sign::Stored),
        WebPost::Repeated => {}
        WebPost::TooMany => return Err(Error::of(WEB_CHAT_RATE, "too many messages").retry_after(RETRY_SECS)),
        WebPost::Unanswered => {
            return Err(Error::of(WEB_CHAT_UNANSWERED, "no agent answers on this site").retry_after(RETRY_SECS));
        }
    }
    Ok(unkept(reply::json(StatusCode::ACCEPTED, &WebMessageStored { id: body.id })?))
}

async fn events(call: Call) -> Result<Response, Error> {
    let (site, visitor) = enter(&call)?;
    let seen = call.headers().get("last-event-id").filter(|id| !id.is_empty());
    let seen = seen.map(|id| Uuid::try_parse_ascii(id.as_bytes()).map(WebMessageId)).transpose();
    let seen = seen.map_err(|_| Error::bad_field("Last-Event-ID", "Last-Event-ID must be the id of an event"))?;
    // Before the messages are read, so that none is missed between.
    let page = call.api.state::<WebHub>().open(&site.name, (&*visitor, ClientKey::of(call.peer)), site.streams_max)?;
    let events = stream::events(call.api.bridge.clone(), page, (site, visitor), seen);
    Ok(sse::response(&call.api.shutdown, events, None))
}

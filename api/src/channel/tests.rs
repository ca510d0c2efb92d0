//! The routes over a service that the tests script.

use std::sync::Arc;

use agentsvc_components::Timestamp;
use futures_util::future::{BoxFuture, ready};
use hyper::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

use super::service::{ChannelChange, ChannelError, ChannelTest, Channels, TestEnd};
use super::shape::{
    ChannelField, ChannelRow, ChannelSchema, Configured, LogLine, PairingPolicy, QrState, QrStatus, RegistryEntry,
    Reloaded, RouteRule,
};
use crate::http::api::Api;
use crate::http::reply;
use crate::http::settings::ApiSettings;
use crate::http::timestamp::Moment;
use crate::testing::{front, send};

/// One channel `bot` of the adapter `ntfy`, and a platform `line` without an adapter.
#[derive(Default)]
struct Scripted {
    changes: Mutex<Vec<ChannelChange>>,
    tests: Mutex<Vec<ChannelTest>>,
    removed: Mutex<Vec<String>>,
    test_end: Mutex<&'static str>,
    qr: Mutex<Option<QrStatus>>,
    is_down: Mutex<bool>,
}

fn schema() -> ChannelSchema {
    let field = |key: &str, kind: &str, value: Option<&str>| ChannelField {
        key: key.to_owned(),
        kind: kind.to_owned(),
        is_set: true,
        value: value.map(str::to_owned),
        ..ChannelField::default()
    };
    let fields = vec![field("NTFY_TOPIC", "text", Some("t")), field("NTFY_TOKEN", "secret", None)];
    ChannelSchema { name: "ntfy".to_owned(), fields, ..ChannelSchema::default() }
}

impl Scripted {
    fn checked(&self, name: &str) -> Result<(), ChannelError> {
        match name {
            _ if *self.is_down.lock() => Err(ChannelError::NotRunning("the adapter of bot ended: exit 2".to_owned())),
            "bot" => Ok(()),
            other => Err(ChannelError::NotFound(other.to_owned())),
        }
    }

    fn state(&self) -> Option<QrState> {
        let status = (*self.qr.lock())?;
        let qr_code = Some("2@abc".to_owned());
        let updated_at = Moment(Timestamp(0));
        Some(QrState { status, qr_code, qr_url: None, message: None, expires_at: None, updated_at })
    }
}

impl Channels for Scripted {
    fn list(&self) -> Vec<ChannelRow> {
        self.get("bot").into_iter().collect()
    }

    fn get(&self, name: &str) -> Option<ChannelRow> {
        let row = ChannelRow { name: name.to_owned(), has_token: true, state: "started", ..ChannelRow::default() };
        (name == "bot").then_some(row)
    }

    fn known_fields(&self, _: &str) -> Option<Vec<ChannelField>> {
        (!*self.is_down.lock()).then(|| schema().fields)
    }

    fn describe(self: Arc<Self>, _: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>> {
        let is_down = *self.is_down.lock();
        let why = || Err(ChannelError::Schema("No module named 'librefang'; pip install librefang-sdk".to_owned()));
        Box::pin(ready(if is_down { why() } else { Ok(schema()) }))
    }

    fn describe_adapter(self: Arc<Self>, adapter: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>> {
        self.describe(adapter)
    }

    fn registry(&self) -> Result<Vec<RegistryEntry>, String> {
        let entry = |id: &str, adapter: Option<&str>| RegistryEntry {
            id: id.to_owned(),
            adapter: adapter.map(str::to_owned),
            ..RegistryEntry::default()
        };
        Ok(vec![entry("line", None), entry("ntfy", Some("ntfy"))])
    }

    fn configure(self: Arc<Self>, change: ChannelChange) -> BoxFuture<'static, Result<Configured, ChannelError>> {
        let name = change.name.clone();
        self.changes.lock().push(change);
        Box::pin(ready(Ok(Configured { status: "saved", name, ..Configured::default() })))
    }

    fn remove(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<(), ChannelError>> {
        self.removed.lock().push(name);
        let is_down = *self.is_down.lock();
        let why = || Err(ChannelError::Included("bot is defined in extra.toml".to_owned()));
        Box::pin(ready(if is_down { why() } else { Ok(()) }))
    }

    fn reload(self: Arc<Self>) -> BoxFuture<'static, Result<Reloaded, ChannelError>> {
        let is_down = *self.is_down.lock();
        let why = || Err(ChannelError::Configuration("config.toml line 3: unknown key".to_owned()));
        let done = Reloaded { status: "reloaded", total: 1, ..Reloaded::default() };
        Box::pin(ready(if is_down { why() } else { Ok(done) }))
    }

    fn test(self: Arc<Self>, test: ChannelTest) -> BoxFuture<'static, Result<TestEnd, ChannelError>> {
        let checked = self.checked(&test.name);
        self.tests.lock().push(test);
        let (status, reason) = (*self.test_end.lock(), Some("HTTP 403".to_owned()));
        let end = TestEnd { send: Uuid::nil(), recipient: "c1".to_owned(), status, reason };
        Box::pin(ready(checked.map(|()| end)))
    }

    fn qr(&self, name: &str) -> Result<Option<QrState>, ChannelError> {
        self.checked(name)?;
        Ok(self.state())
    }

    fn start_qr(self: Arc<Self>, _: String) -> BoxFuture<'static, Result<QrState, ChannelError>> {
        let shown = self.state().ok_or_else(|| ChannelError::WithoutQr("ntfy shows no QR code".to_owned()));
        Box::pin(ready(shown))
    }

    fn logs(&self, _: &str) -> Result<Vec<LogLine>, ChannelError> {
        let line = LogLine { level: Some("error".to_owned()), message: "no".to_owned(), ..LogLine::default() };
        Ok(vec![line])
    }

    fn rules(&self) -> Vec<RouteRule> {
        vec![RouteRule { kind: "binding", agent: "a".to_owned(), weight: 8, ..RouteRule::default() }]
    }

    fn policies(&self) -> Vec<PairingPolicy> {
        let channel = "bot".to_owned();
        vec![PairingPolicy { channel, dm_policy: "allowed_only", group_policy: "all" }]
    }
}

fn scripted() -> (Arc<Api>, Arc<Scripted>) {
    let api = front(ApiSettings { rate_limit_per_second: 0, ..ApiSettings::default() });
    let service = Arc::new(Scripted::default());
    api.services.provide::<dyn Channels>(Arc::clone(&service) as _);
    (api, service)
}

/// Status and body of a request.
async fn ask(api: &Arc<Api>, verb: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = send(api, Request::builder().method(verb).uri(path), body).await;
    let status = response.status().as_u16();
    let body = if status == 204 { Value::Null } else { reply::collect(response).await };
    (status, body)
}

async fn get(api: &Arc<Api>, path: &str) -> (u16, Value) {
    ask(api, "GET", path, Value::Null).await
}

#[tokio::test]
async fn a_channel_is_shown_with_its_values_and_without_secrets() {
    let (api, service) = scripted();
    let (status, list) = get(&api, "/api/channels").await;
    assert_eq!((status, &list["total"], &list["channels"][0]["name"]), (200, &json!(1), &json!("bot")));
    assert_eq!(list["channels"][0]["connected"], false, "a started adapter is not connected");
    let fields = &list["channels"][0]["fields"];
    assert_eq!(
        (&fields[0]["value"], &fields[1]["is_set"], &fields[1]["value"]),
        (&json!("t"), &json!(true), &Value::Null)
    );
    let (_, bot) = get(&api, "/api/channels/bot").await;
    assert_eq!((&bot["name"], &bot["policy"]["dm_policy"]), (&json!("bot"), &json!("allowed_only")));
    assert_eq!(bot["fields"][1]["value"], Value::Null);
    assert_eq!(bot["fields"][0]["type"], "text");
    *service.is_down.lock() = true;
    let (status, bot) = get(&api, "/api/channels/bot").await;
    assert_eq!((status, &bot["fields"]), (200, &Value::Null), "a channel without a schema is shown, too");
    assert!(bot["fields_error"].as_str().unwrap().contains("pip install"));
    let (status, error) = get(&api, "/api/channels/other").await;
    assert_eq!((status, &error["error"]), (404, &json!("channel not found: other")));
    let (status, logs) = get(&api, "/api/channels/bot/logs").await;
    assert_eq!((status, &logs["lines"][0]["message"]), (200, &json!("no")));
    assert_eq!(get(&api, "/api/channels/other/logs").await.0, 404);
    assert_eq!(get(&api, "/api/channels/bindings").await.1["bindings"][0]["weight"], 8);
}

#[tokio::test]
async fn platforms_are_listed_and_described() {
    let (api, service) = scripted();
    assert_eq!(get(&api, "/api/channels/registry").await.1["total"], 2);
    let (status, ntfy) = get(&api, "/api/channels/registry/ntfy").await;
    assert_eq!((status, &ntfy["schema"]["fields"][0]["key"]), (200, &json!("NTFY_TOPIC")));
    let (_, line) = get(&api, "/api/channels/registry/line").await;
    assert!(line["schema"].is_null() && line["schema_error"].as_str().unwrap().contains("config.toml"));
    assert_eq!(get(&api, "/api/channels/registry/other").await.0, 404);
    *service.is_down.lock() = true;
    let (status, ntfy) = get(&api, "/api/channels/registry/ntfy").await;
    assert!(status == 200 && ntfy["schema_error"].as_str().unwrap().contains("pip install"), "{ntfy}");
}

#[tokio::test]
async fn a_channel_is_changed_or_created_from_the_adapter_of_its_name() {
    let (api, service) = scripted();
    let body = json!({ "values": { "NTFY_TOPIC": "x", "NTFY_TOKEN": null }, "agent": "a" });
    let (status, saved) = ask(&api, "POST", "/api/channels/sidecar/bot/configure", body).await;
    assert_eq!((status, &saved["status"]), (200, &json!("saved")), "{saved}");
    let spec = json!({ "token": "t", "agent_name": "a" });
    assert_eq!(ask(&api, "POST", "/api/channels/ntfy/configure", spec).await.0, 200);
    let other = json!({ "adapter": "ntfy" });
    assert_eq!(ask(&api, "POST", "/api/channels/second/configure", other.clone()).await.0, 200);
    let changes = std::mem::take(&mut *service.changes.lock());
    assert_eq!((changes[0].adapter.as_deref(), changes[0].values.len()), (None, 2));
    assert_eq!((changes[1].adapter.as_deref(), changes[1].token.as_deref()), (Some("ntfy"), Some("t")));
    assert_eq!((&*changes[2].name, changes[2].adapter.as_deref()), ("second", Some("ntfy")));
    for (path, body, expected) in [
        ("/api/channels/nothing/configure", json!({}), 404),
        ("/api/channels/line/configure", json!({}), 404),
        ("/api/channels/reload/configure", other.clone(), 400),
        ("/api/channels/a%2Fb/configure", other, 400),
        ("/api/channels/bot/configure", json!({ "values": { "A B": "x" } }), 400),
        ("/api/channels/bot/configure", json!({ "values": "x" }), 400),
        ("/api/channels/bot/configure", json!({ "token": 7 }), 400),
    ] {
        let (status, error) = ask(&api, "POST", path, body).await;
        assert_eq!(status, expected, "{path}: {error}");
        assert!(status == 404 || error["field"].is_string(), "{path}: {error}");
    }
    assert!(service.changes.lock().is_empty(), "nothing that is wrong reaches the service");
}

#[tokio::test]
async fn removal_and_reload_say_what_they_did() {
    let (api, service) = scripted();
    for path in ["/api/channels/bot/configure", "/api/channels/sidecar/bot"] {
        let (status, removed) = ask(&api, "DELETE", path, Value::Null).await;
        assert_eq!((status, removed), (200, json!({ "status": "removed", "name": "bot" })));
    }
    assert_eq!(ask(&api, "DELETE", "/api/channels/sidecar/other", Value::Null).await.0, 404);
    assert_eq!(*service.removed.lock(), ["bot", "bot"]);
    assert_eq!(ask(&api, "POST", "/api/channels/reload", Value::Null).await.1["status"], "reloaded");
    *service.is_down.lock() = true;
    let (status, error) = ask(&api, "DELETE", "/api/channels/sidecar/bot", Value::Null).await;
    assert_eq!((status, &error["code"]), (409, &json!("channel_included")));
    let (status, error) = ask(&api, "POST", "/api/channels/reload", Value::Null).await;
    assert_eq!((status, &error["error"]), (400, &json!("config.toml line 3: unknown key")));
}

#[tokio::test]
async fn a_test_message_is_a_success_only_if_it_was_sent() {
    let (api, service) = scripted();
    for (end, expected) in [("sent", 200), ("acknowledged", 200), ("queued", 202), ("refused", 502), ("unknown", 504)] {
        *service.test_end.lock() = end;
        let (status, body) = ask(&api, "POST", "/api/channels/bot/test", Value::Null).await;
        assert_eq!((status, &body["status"]), (expected, &json!(end)), "{body}");
        assert_eq!(body["send_id"], json!(Uuid::nil()));
        assert!(status < 500 || body["error"] == "channel bot: HTTP 403", "{body}");
    }
    service.tests.lock().clear();
    let body = json!({ "channel_id": "c9", "message": "hi" });
    assert_eq!(ask(&api, "POST", "/api/channels/bot/test", body).await.0, 504);
    let sent = service.tests.lock().pop().unwrap();
    assert_eq!((sent.recipient.as_deref(), sent.text.as_deref()), (Some("c9"), Some("hi")));
    for (body, field) in [
        (json!({ "message": " " }), "message"),
        (json!({ "message": "x".repeat(5_000) }), "message"),
        (json!({ "recipient": "" }), "recipient"),
        (json!({ "recipient": ["x"] }), "recipient"),
    ] {
        let (status, error) = ask(&api, "POST", "/api/channels/bot/test", body).await;
        assert_eq!((status, &error["field"]), (400, &json!(field)));
    }
    assert_eq!(ask(&api, "POST", "/api/channels/other/test", Value::Null).await.0, 404);
    *service.is_down.lock() = true;
    let (status, error) = ask(&api, "POST", "/api/channels/bot/test", Value::Null).await;
    assert_eq!((status, &error["code"]), (409, &json!("channel_not_running")));
}

#[tokio::test]
async fn a_qr_code_has_the_words_of_both_kinds_of_clients() {
    let (api, service) = scripted();
    assert_eq!(get(&api, "/api/channels/bot/qr").await.0, 204);
    assert_eq!(get(&api, "/api/channels/bot/qr/status").await.0, 404);
    let (status, error) = ask(&api, "POST", "/api/channels/bot/qr/start", Value::Null).await;
    assert_eq!((status, &error["code"]), (409, &json!("channel_without_qr")));
    for (state, ours, theirs) in [
        (QrStatus::Pending, "pending", "pending"),
        (QrStatus::Scanned, "scanned", "scanning"),
        (QrStatus::Authenticated, "authenticated", "confirmed"),
        (QrStatus::Expired, "expired", "expired"),
        (QrStatus::Failed, "failed", "failed"),
    ] {
        *service.qr.lock() = Some(state);
        let (status, shown) = get(&api, "/api/channels/bot/qr/status").await;
        assert_eq!((status, &shown["status"], &shown["qr_code"]), (200, &json!(ours), &json!("2@abc")));
        assert_eq!(get(&api, "/api/channels/bot/qr").await.1["status"], theirs);
        assert_eq!(ask(&api, "POST", "/api/channels/bot/qr/start", Value::Null).await.1["status"], ours);
    }
    *service.is_down.lock() = true;
    for path in ["/api/channels/bot/qr", "/api/channels/bot/qr/status"] {
        let (status, error) = get(&api, path).await;
        assert!(status == 404 && error["error"].as_str().unwrap().contains("exit 2"), "{error}");
    }
}

#[tokio::test]
async fn a_daemon_without_channels_says_so() {
    let api = front(ApiSettings::default());
    assert_eq!(get(&api, "/api/channels").await.0, 503);
}

#[tokio::test]
async fn conversations_sends_and_pairings_are_lists_and_wrong_pairings_are_refused_by_field() {
    let (api, _) = scripted();
    for (path, plural) in [("bot/conversations", "conversations"), ("bot/sends", "sends"), ("pairings", "pairings")] {
        let (status, list) = get(&api, &format!("/api/channels/{path}?limit=5")).await;
        assert_eq!((status, &list[plural]), (200, &json!([])), "{list}");
    }
    for path in ["other/conversations", "other/sends"] {
        let (status, error) = get(&api, &format!("/api/channels/{path}")).await;
        assert_eq!((status, &error["code"]), (404, &json!("channel_not_found")));
    }
    for (body, field) in [
        (json!({}), "channel"),
        (json!({ "channel": "bot", "conversation": "" }), "conversation"),
        (json!({ "channel": "bot", "conversation": "a\nb" }), "conversation"),
        (json!({ "channel": "bot", "conversation": "c", "name": "x".repeat(1_025) }), "name"),
        (json!({ "channel": "bot", "valid_secs": 0 }), "valid_secs"),
        (json!({ "channel": "bot", "valid_secs": 86_401 }), "valid_secs"),
        (json!({ "channel": 7 }), "channel"),
    ] {
        let (status, error) = ask(&api, "POST", "/api/channels/pairings", body.clone()).await;
        assert_eq!((status, &error["field"]), (400, &json!(field)), "{body}");
    }
    assert_eq!(ask(&api, "POST", "/api/channels/pairings", json!({ "channel": "other" })).await.0, 404);
}

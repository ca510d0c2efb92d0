//! Web chats over HTTP as pages of sites use them: tokens, origins, preflights, rates, streams that resume, visitors apart, and one
//! answer over a kill.

use std::io::Read;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::model::Model;
use crate::support::stream::{Event, Events};
use crate::support::until;

const ORIGIN: &str = "https://shop.example";
const OTHER: &str = "https://other.example";
/// A daemon that others can reach has a key, and visitors do not.
const KEY: &str = "api_key = \"0123456789abcdef0123456789abcdef\"\nrate_limit_per_second = 100000\n";

pub(crate) fn site(name: &str, more: &str) -> String {
    format!(
        "[[web_chats]]\nname = \"{name}\"\nagent = \"scout\"\nallowed_origins = [\"{ORIGIN}\"]\ntitle = \"Support\"\n{more}\n"
    )
}

/// A daemon with its sites, and their tokens as the operator sees them.
pub(crate) fn daemon_with(model: &Model, sites: &str) -> (Daemon, Client) {
    let mut daemon = Daemon::with(&format!("{KEY}{}{sites}", model.config()));
    let visitor = daemon.client();
    daemon.use_key("0123456789abcdef0123456789abcdef");
    daemon.agent_with("scout", "[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n");
    (daemon, visitor)
}

#[track_caller]
pub(crate) fn token(daemon: &Daemon, name: &str) -> String {
    until("the site is in force", || {
        let list = daemon.get("/api/web-chats").expect(200);
        let sites = list["web_chats"].as_array()?;
        Some(text(&sites.iter().find(|site| site["name"] == name)?["token"]))
    })
}

/// A page of the site with a visitor.
pub(crate) struct Page {
    pub(crate) client: Client,
    pub(crate) token: String,
    pub(crate) visitor: String,
}

impl Page {
    #[track_caller]
    pub(crate) fn begin(client: &Client, token: &str) -> Self {
        let page = Self { client: client.clone(), token: token.to_owned(), visitor: String::new() };
        let path = format!("/api/web-chat/{token}/session");
        let session = client.send("POST", &path, &[("origin", ORIGIN)], Some(b"{}")).expect(200);
        Self { visitor: text(&session["visitor"]), ..page }
    }

    pub(crate) fn headers<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [&[("origin", ORIGIN), ("x-visitor", self.visitor.as_str())], more].concat()
    }

    #[track_caller]
    pub(crate) fn post(&self, id: &str, text: &str) -> Reply {
        let body = json!({ "id": id, "text": text }).to_string();
        let (client, token) = (&self.client, &self.token);
        client.send("POST", &format!("/api/web-chat/{token}/messages"), &self.headers(&[]), Some(body.as_bytes()))
    }

    /// Role and text of each message.
    #[track_caller]
    pub(crate) fn history(&self) -> Vec<(String, String)> {
        let path = format!("/api/web-chat/{}/messages", self.token);
        let list = self.client.send("GET", &path, &self.headers(&[]), None).expect(200);
        let all = list["messages"].as_array().cloned().unwrap_or_default();
        all.iter().map(|it| (text(&it["role"]), text(&it["text"]))).collect()
    }

    #[track_caller]
    pub(crate) fn events(&self, seen: Option<&str>) -> Events {
        let more: Vec<_> = seen.map(|seen| ("last-event-id", seen)).into_iter().collect();
        let path = format!("/api/web-chat/{}/events", self.token);
        Events::open_with(&self.client, "GET", &path, &self.headers(&more), None)
    }

    /// Waits for so many messages.
    #[track_caller]
    pub(crate) fn messages(&self, count: usize) -> Vec<(String, String)> {
        until("the messages are there", || Some(self.history()).filter(|all| all.len() >= count))
    }

    /// The ids of the first `count` stored messages of a stream.
    fn ids(&self, count: usize) -> Vec<String> {
        let path = format!("/api/web-chat/{}/events", self.token);
        let (_, mut body) = self.client.open("GET", &path, &self.headers(&[]), None).expect("a stream");
        let (mut wire, mut piece) = (String::new(), [0; 512]);
        while wire.matches("\nevent: message").count() < count || !wire.ends_with("\n\n") {
            let read = body.read(&mut piece).expect("the stream goes on");
            wire.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        wire.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    }
}

pub(crate) fn pair(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

/// The next event of this name.
fn next_of(events: &mut Events, name: &str) -> Value {
    events.find(|event: &Event| event.name == name).expect("the stream goes on").data
}

#[test]
fn a_visitor_writes_and_reads_the_answer_as_it_comes() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", "greeting = \"Hello!\"\ncolour = \"#112233\""));
    let token = token(&daemon, "shop");
    let session =
        client.send("POST", &format!("/api/web-chat/{token}/session"), &[("origin", ORIGIN)], Some(b"{}")).expect(200);
    let shown = ["title", "greeting", "colour", "theme", "position"].map(|key| text(&session[key]));
    assert_eq!(shown, ["Support", "Hello!", "#112233", "auto", "right"]);
    let page = Page::begin(&client, &token);
    let mut events = page.events(None);
    model.hold_after_first_word();
    assert_eq!(page.post("m1", "hello there").expect(202), json!({ "id": "m1" }));
    // The turn may be heard of before the message.
    let mut heard = Vec::new();
    let delta = loop {
        let event = events.next().expect("the stream goes on");
        if event.name == "delta" {
            break event.data;
        }
        heard.push((event.name, event.data));
    };
    let own = ("message".to_owned(), json!({ "id": "m1", "role": "user", "text": "hello there" }));
    assert!(heard.contains(&own) && heard.contains(&("typing".to_owned(), json!({ "on": true }))), "{heard:?}");
    assert!(text(&delta["text"]).starts_with("echo:"), "{delta}");
    model.release();
    let whole = next_of(&mut events, "message");
    assert_eq!((&whole["id"], &whole["role"]), (&delta["id"], &json!("assistant")));
    assert_eq!(whole["text"], "echo: hello there");
    let asked = model.requests().len();
    // The same id is the same message.
    page.post("m1", "hello there").expect(202);
    assert_eq!(page.history(), [pair("user", "hello there"), pair("assistant", "echo: hello there")]);
    assert_eq!(model.requests().len(), asked);
}

#[test]
fn only_the_sites_own_pages_may_call() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", ""));
    let token = token(&daemon, "shop");
    let page = Page::begin(&client, &token);
    let path = format!("/api/web-chat/{token}/session");
    let allowed = client.send("POST", &path, &[("origin", ORIGIN)], Some(b"{}"));
    assert_eq!(allowed.header("access-control-allow-origin"), Some(ORIGIN));
    assert_eq!(allowed.header("cache-control"), Some("no-store"));
    let shouted = ORIGIN.to_uppercase();
    let longer = format!("{ORIGIN}.evil.example");
    for origin in [OTHER, "null", "*", "", "http://shop.example", &format!("{ORIGIN}:8443"), &shouted, &longer] {
        let refused = client.send("POST", &path, &[("origin", origin)], Some(b"{}"));
        refused.refused(403);
        assert_eq!(refused.header("access-control-allow-origin"), None, "{origin}");
    }
    client.send("POST", &path, &[], Some(b"{}")).refused(403);
    // The key opens nothing here, and an unknown token has no origins.
    daemon.send("POST", &path, &[("origin", OTHER)], Some(b"{}")).refused(403);
    daemon.send("POST", &path, &[], Some(b"{}")).refused(403);
    client.send("POST", "/api/web-chat/nonsense/session", &[("origin", ORIGIN)], Some(b"{}")).refused(403);
    for what in ["messages", "events"] {
        let path = format!("/api/web-chat/{token}/{what}");
        client.send("GET", &path, &[("origin", OTHER), ("x-visitor", &page.visitor)], None).refused(403);
        client.send("GET", &path, &[("x-visitor", &page.visitor)], None).refused(403);
    }
    // What is no web chat stays closed to the site.
    let closed = client.send("GET", "/api/agents", &[("origin", ORIGIN)], None);
    closed.refused(401);
    assert_eq!(closed.header("access-control-allow-origin"), None);
    client.get("/api/web-chats").refused(401);
}

#[test]
fn a_preflight_is_answered_for_the_sites_origin_alone() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", ""));
    let path = format!("/api/web-chat/{}/messages", token(&daemon, "shop"));
    let ask = |origin: &str, method: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", method),
            ("access-control-request-headers", "content-type,x-visitor"),
        ];
        client.send("OPTIONS", &path, &headers, None)
    };
    let allowed = ask(ORIGIN, "POST");
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (204, Some(ORIGIN)));
    let headers = allowed.header("access-control-allow-headers").unwrap_or_default();
    for name in ["content-type", "x-visitor", "last-event-id"] {
        assert!(headers.split(", ").any(|header| header == name), "{name}: {headers}");
    }
    let methods = allowed.header("access-control-allow-methods").unwrap_or_default();
    assert_eq!(methods, "GET, HEAD, POST, OPTIONS");
    assert!(allowed.header("vary").unwrap_or_default().contains("Origin"));
    assert_eq!(allowed.header("access-control-allow-credentials"), None);
    let refused = ask(OTHER, "POST");
    refused.refused(403);
    assert_eq!(refused.header("access-control-allow-origin"), None);
    assert_eq!(ask(ORIGIN, "DELETE").header("access-control-allow-origin"), None);
}

#[test]
fn the_script_may_be_loaded_by_any_page() {
    let daemon = Daemon::start();
    let fetched = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")];
    let script = daemon.send("GET", "/widget.js", &fetched, None);
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert_eq!(script.header("cross-origin-resource-policy"), Some("cross-origin"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=300"));
    let tag = script.header("etag").expect("a tag").to_owned();
    let again = daemon.send("GET", "/widget.js", &[("if-none-match", &tag)], None);
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(&*tag)));
    let asked = daemon.send("GET", "/widget.js", &[("origin", OTHER)], None);
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (200, Some(OTHER)));
    assert_eq!(daemon.get("/api/web-chats").expect(200), json!({ "web_chats": [], "total": 0 }));
}

#[test]
fn visitors_see_their_own_conversation_only() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &(site("shop", "") + &site("help", "")));
    let (shop, help) = (token(&daemon, "shop"), token(&daemon, "help"));
    assert_ne!(shop, help);
    let (ann, bob) = (Page::begin(&client, &shop), Page::begin(&client, &shop));
    assert_ne!(ann.visitor, bob.visitor);
    ann.post("m1", "the code is 4711").expect(202);
    ann.messages(2);
    assert!(bob.history().is_empty());
    // The same id of another visitor is another message, and another session.
    bob.post("m1", "hello").expect(202);
    assert_eq!(bob.messages(2), [pair("user", "hello"), pair("assistant", "echo: hello")]);
    assert!(
        !model.requests().last().unwrap().to_string().contains("4711"),
        "one visitor's words reached another's turn"
    );
    assert_eq!(ann.history().len(), 2);
    // A token is of one site, and cannot be changed.
    let (id, tag) = ann.visitor.split_once('.').expect("a token of two parts");
    let (other, _) = bob.visitor.split_once('.').expect("a token of two parts");
    let forged = format!("{other}.{tag}");
    let strange = Page { client: client.clone(), token: help, visitor: ann.visitor.clone() };
    for (page, visitor) in
        [(&strange, ann.visitor.as_str()), (&ann, &forged), (&ann, id), (&ann, ""), (&ann, "nonsense")]
    {
        for what in ["messages", "events"] {
            let headers = [("origin", ORIGIN), ("x-visitor", visitor)];
            let path = format!("/api/web-chat/{}/{what}", page.token);
            client.send("GET", &path, &headers, None).refused(401);
        }
        let headers = [("origin", ORIGIN), ("x-visitor", visitor)];
        let path = format!("/api/web-chat/{}/session", page.token);
        client.send("POST", &path, &headers, Some(b"{}")).refused(401);
    }
    client.send("GET", &format!("/api/web-chat/{shop}/messages"), &[("origin", ORIGIN)], None).refused(401);
    // A visitor who comes back is the same one.
    let headers = [("origin", ORIGIN), ("x-visitor", ann.visitor.as_str())];
    let back = client.send("POST", &format!("/api/web-chat/{shop}/session"), &headers, Some(b"{}")).expect(200);
    assert_eq!(back["visitor"], ann.visitor);
}

#[test]
fn a_stream_resumes_behind_what_its_page_has() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", ""));
    let page = Page::begin(&client, &token(&daemon, "shop"));
    page.post("m1", "one").expect(202);
    page.messages(2);
    let ids = page.ids(2);
    // What came while no stream was open, and a restart in between.
    page.post("m2", "two").expect(202);
    page.messages(4);
    let mut daemon = daemon;
    daemon.restart();
    let client = Client { key: None, ..daemon.client() };
    token(&daemon, "shop");
    let page = Page { client, ..page };
    let mut events = page.events(Some(&ids[1]));
    assert_eq!(next_of(&mut events, "message")["text"], "two");
    assert_eq!(next_of(&mut events, "message")["text"], "echo: two");
    let mut events = page.events(None);
    assert_eq!(next_of(&mut events, "message")["text"], "one");
    let path = format!("/api/web-chat/{}/events", page.token);
    let refused = page.client.send("GET", &path, &page.headers(&[("last-event-id", "x")]), None);
    refused.refused_field(400, "Last-Event-ID");
}

#[test]
fn a_reload_brings_changes_and_takes_sites_away() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", ""));
    let page = Page::begin(&client, &token(&daemon, "shop"));
    let mut events = page.events(None);
    let file = daemon.home().join("config.toml");
    let before = std::fs::read_to_string(&file).expect("the file is there");
    std::fs::write(&file, before.replace(ORIGIN, OTHER)).expect("the file can be written");
    daemon.poke("/api/config/reload").expect(200);
    // The stream ends by itself; then another origin counts.
    until("the stream ends", || events.next().is_none().then_some(()));
    let path = format!("/api/web-chat/{}/session", page.token);
    let status = |origin: &str| client.send("POST", &path, &[("origin", origin)], Some(b"{}")).status;
    until("the other origin is in force", || ((status(ORIGIN), status(OTHER)) == (403, 200)).then_some(()));
    let cut = before.find("[[web_chats]]").expect("the site");
    std::fs::write(&file, &before[..cut]).expect("the file can be written");
    daemon.poke("/api/config/reload").expect(200);
    until("the site is gone", || (status(OTHER) == 403).then_some(()));
    assert_eq!(daemon.get("/api/web-chats").expect(200)["total"], 0);
}

#[test]
fn a_message_is_answered_once_over_a_kill() {
    let model = Model::start();
    let (mut daemon, client) = daemon_with(&model, &site("shop", ""));
    let mut page = Page::begin(&client, &token(&daemon, "shop"));
    let mut expected = Vec::new();
    for round in 0..3 {
        let (id, said) = (format!("m{round}"), format!("round {round}"));
        model.hold();
        page.post(&id, &said).expect(202);
        until("the model is asked", || (model.waiting() > 0).then_some(()));
        if round == 1 {
            // The answer may be stored or not when the daemon is killed.
            model.release();
        }
        daemon.kill();
        model.release();
        daemon.restart();
        token(&daemon, "shop");
        page.client = Client { key: None, ..daemon.client() };
        // The page did not hear of its message, and sends it again.
        page.post(&id, &said).expect(202);
        expected.extend([pair("user", &said), pair("assistant", &format!("echo: {said}"))]);
        assert_eq!(page.messages(expected.len()), expected);
        daemon.settle();
        assert_eq!(page.history(), expected);
    }
}

#[test]
fn a_page_that_is_opened_in_mid_answer_shows_the_text_so_far() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", ""));
    let page = Page::begin(&client, &token(&daemon, "shop"));
    let mut events = page.events(None);
    model.hold_after_first_word();
    page.post("m1", "hello there").expect(202);
    let delta = next_of(&mut events, "delta");
    drop(events);
    let mut events = page.events(None);
    let heard: Vec<Event> = (0..3).map_while(|_| events.next()).collect();
    let names: Vec<&str> = heard.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["message", "typing", "delta"], "its own message comes first");
    assert_eq!(heard[2].data, delta);
    model.release();
    let whole = next_of(&mut events, "message");
    assert_eq!((&whole["id"], &whole["text"]), (&delta["id"], &json!("echo: hello there")));
    // An answer that is over is no one's to wait for.
    daemon.settle();
    let mut events = page.events(None);
    next_of(&mut events, "message");
    next_of(&mut events, "message");
    page.post("m2", "again").expect(202);
    assert_eq!(events.next().map(|event| event.name), Some("message".to_owned()));
}

#[test]
fn the_look_is_for_the_sites_pages_and_costs_no_visitor() {
    let model = Model::start();
    let (daemon, client) = daemon_with(&model, &site("shop", "theme = \"dark\"\nposition = \"left\""));
    let token = token(&daemon, "shop");
    let path = format!("/api/web-chat/{token}/look");
    let look = client.send("GET", &format!("/api/web-chat/{token}/look"), &[("origin", ORIGIN)], None);
    let shown = json!({ "title": "Support", "greeting": "", "colour": "", "theme": "dark", "position": "left" });
    assert_eq!((look.header("cache-control"), look.header("vary")), (Some("private, max-age=60"), Some("Origin")));
    assert_eq!(look.expect(200), shown);
    client.send("GET", &path, &[("origin", OTHER)], None).refused(403);
    client.send("GET", &path, &[], None).refused(403);
    // A browser names no origin when a page reads from its own one; it always does when it sends.
    let own = ("sec-fetch-site", "same-origin");
    client.send("GET", &path, &[own], None).expect(200);
    client.send("GET", &path, &[("sec-fetch-site", "cross-site")], None).refused(403);
    client.send("GET", &path, &[own, ("origin", OTHER)], None).refused(403);
    client.send("POST", &format!("/api/web-chat/{token}/session"), &[own], Some(b"{}")).refused(403);
    let page = Page::begin(&client, &token);
    let history = format!("/api/web-chat/{token}/messages");
    client.send("GET", &history, &[own], None).refused(401);
    client.send("GET", &history, &[own, ("x-visitor", &page.visitor)], None).expect(200);
}

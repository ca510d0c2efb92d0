//! Pages in browsers that a script speaks for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::browser::limits::BROWSER_PAGE_HELD_SECS_MAX;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use uuid::Uuid;

use super::cdp::Connection;
use super::chromium::Chromium;
use super::config::Browser;
use super::manager::{BrowserManager, Key};
use super::page::{Grant, Page};
use crate::kernel::egress::Web;
use crate::kernel::sandbox::Commands;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;

/// What a browser was asked.
type Asked = Arc<Mutex<Vec<Value>>>;

/// A browser that makes whatever is wanted, finds nothing, and notes what it is asked.
fn browser() -> (Chromium, Asked) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    drop(tokio::spawn(async move {
        let (from, mut to) = tokio::io::split(theirs);
        let (mut from, mut message) = (BufReader::new(from), Vec::new());
        while from.read_until(0, &mut message).await.is_ok_and(|read| read > 0) {
            message.pop();
            let Ok(command) = serde_json::from_slice::<Value>(&message) else { return };
            message.clear();
            let result = match command["method"].as_str().unwrap_or_default() {
                "Page.createIsolatedWorld" => json!({ "executionContextId": 7 }),
                "Runtime.evaluate" => json!({ "result": { "value": false } }),
                _ => json!({ "targetId": "t", "sessionId": "s", "browserContextId": "c" }),
            };
            let answer = format!("{}\0", json!({ "id": command["id"], "result": result }));
            noted.lock().push(command);
            if to.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }));
    (Chromium::spoken_for(Connection::start(ours, |_| {})), asked)
}

fn family(number: u128) -> Holder {
    Holder::Family(AgentId(Uuid::from_u128(number)))
}

fn grant(holder: Holder) -> Grant {
    Grant { holder, network: Arc::from([]) }
}

fn key(number: u128) -> Key {
    (AgentId(Uuid::from_u128(number)), SessionId(Uuid::from_u128(number)))
}

fn manager() -> Arc<BrowserManager> {
    let settings = Settings::default();
    settings.set(Browser { executable: Some("/no/such/chromium".into()), ..Browser::default() });
    let commands = Commands::new(ExecPolicy::default(), Vec::new(), Vec::new());
    BrowserManager::new(settings, Web::default(), commands, "/no/such/directory".into())
}

#[tokio::test]
async fn what_the_daemon_looks_for_runs_in_a_world_apart_and_a_script_of_the_model_does_not() {
    let (chromium, asked) = browser();
    let page = Page::open(&chromium, &Browser::default(), Web::default(), grant(family(1))).await.unwrap();
    let evaluated = || {
        let asked = std::mem::take(&mut *asked.lock());
        let of = |method: &str| asked.iter().filter(|command| command["method"] == method).cloned().collect::<Vec<_>>();
        let worlds = of("Page.createIsolatedWorld");
        assert!(worlds.iter().all(|world| world["params"]["frameId"] == "t"), "{worlds:?}");
        of("Runtime.evaluate").into_iter().map(|command| command["params"]["contextId"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(page.wait("#secret", Duration::ZERO).await, Ok(false));
    assert_eq!(evaluated(), [7]);
    let _found = page.click("#secret").await;
    let _found = page.enter("#secret", "text").await;
    page.scroll(0, 5).await.unwrap();
    page.shown(0, 100).await.map(drop).unwrap();
    let worlds = evaluated();
    assert!(worlds.len() >= 4 && worlds.iter().all(|world| *world == 7), "{worlds:?}");
    page.evaluate("1").await.unwrap();
    assert_eq!(evaluated(), [Value::Null]);
}

#[tokio::test]
async fn who_has_a_share_of_the_pages_leaves_the_others_to_others() {
    let manager = manager();
    let mut pages = Vec::new();
    let (one, other, third) = (family(1), family(2), family(3));
    let open = async |number: u128, holder: Holder| {
        let page = Page::open(&browser().0, &Browser::default(), Web::default(), grant(holder)).await.unwrap();
        manager.inner.lock().pages.insert(key(number), Arc::clone(&page));
        page
    };
    let make_space = |holder: Holder, now: Instant| manager.inner.lock().make_space(4, holder, now);
    let has = |number: u128| manager.inner.lock().pages.contains_key(&key(number));
    for (number, holder) in [(1, one), (2, one)] {
        pages.push(open(number, holder).await);
    }
    // Of its own pages the one that nobody uses is closed, and none where all are in use.
    make_space(one, Instant::now()).unwrap();
    assert!(!has(1) && has(2));
    pages[0] = open(1, one).await;
    let begun = Instant::now();
    let uses: Vec<_> = pages.iter().rev().map(|page| page.begin_use(begun)).collect();
    assert!(make_space(one, Instant::now()).unwrap_err().contains("those it shares them with"));
    make_space(other, Instant::now()).unwrap();
    let more = [open(3, other).await, open(4, other).await];
    let more_uses = more.each_ref().map(|page| page.begin_use(begun));
    assert!(make_space(third, Instant::now()).unwrap_err().starts_with("All browser pages are in use"));
    // Nobody uses a page for ever while others wait: of who has most of them, the one that has been in use for longest goes.
    let later = begun + Duration::from_secs(BROWSER_PAGE_HELD_SECS_MAX + 1);
    assert!(make_space(one, later).is_err(), "its own are for its other sessions to leave");
    drop(uses);
    drop(more_uses);
    // How long a page has been open says nothing: calls that follow each other after a pause begin anew.
    let uses = [&pages[0], &pages[1], &more[0], &more[1]].map(|page| page.begin_use(later));
    assert!(make_space(third, later).unwrap_err().starts_with("All browser pages are in use"));
    drop(uses);
    // A call that waits for its turn leaves no pause.
    let first = pages[1].begin_use(begun);
    let next = pages[1].begin_use(later);
    drop(first);
    assert_eq!(pages[1].in_use_since(), Some(begun));
    let uses = [&pages[0], &more[0], &more[1]].map(|page| page.begin_use(later));
    make_space(third, later).unwrap();
    assert!(!has(2) && has(1) && has(3) && has(4));
    pages[1].ended().await;
    drop((next, uses));
}

#[tokio::test]
async fn a_browser_that_fails_rests_for_those_alone_whose_it_is() {
    let manager = manager();
    let open = async |holder: Holder| manager.page_of(key(1), grant(holder), true).await.map(drop).unwrap_err();
    assert!(open(family(1)).await.starts_with("There is no browser"));
    for _ in 0..5 {
        manager.own(family(1)).lock().await.failed();
    }
    for _ in 0..3 {
        assert!(open(family(1)).await.contains("can be started again in"));
        assert!(open(family(2)).await.starts_with("There is no browser"));
    }
}

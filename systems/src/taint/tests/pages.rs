//! What a tainted turn may hand to a page, whose scripts see it.

use serde_json::{Value, json};

use super::*;

const SECRET: &str = "sk-proj-abcdefghijklmnopqrstuvwx";

/// Has the model ask for a call, and says whether it runs.
fn is_run(world: &mut TestWorld, tool: &str, input: &Value) -> bool {
    model_asks(world, tool, &input.to_string());
    let run = runs(world).pop();
    run.inspect(|run| gives_text(world, run, Taint::WEB, "nothing")).is_some()
}

#[test]
fn what_hands_words_or_numbers_to_a_page_is_sensitive() {
    let (mut world, agent) = world(TaintPolicy::Deny);
    tainted(&mut world, agent);
    for (tool, input, ran) in [
        ("browser_wait", json!({ "selector": "the merger closes on Friday" }), false),
        ("browser_click", json!({ "selector": "the merger closes on Friday" }), false),
        ("browser_scroll", json!({ "amount": 123_456 }), false),
        ("browser_scroll", json!({ "direction": "up", "amount": 41 }), false),
        ("browser_scroll", json!({ "direction": "up" }), true),
        ("browser_scroll", json!({ "amount": null }), true),
        ("browser_read_page", json!({}), true),
        ("browser_back", json!({}), true),
    ] {
        assert_eq!(is_run(&mut world, tool, &input), ran, "{tool} {input}");
    }
}

#[test]
fn what_is_too_long_to_be_searched_is_refused_whatever_the_policy_and_goes_on_record() {
    for (tool, field, text) in [
        ("browser_type", "text", "a@a.".repeat(100_000)),
        ("web_search", "query", "ab-cd ".repeat(2_000)),
        ("web_fetch", "url", format!("https://x.example/{}", "%2541".repeat(100_000))),
    ] {
        let (mut world, agent) = world(TaintPolicy::Audit);
        tainted(&mut world, agent);
        assert!(!is_run(&mut world, tool, &json!({ field: text })), "{tool}");
        let told = results(&mut world, agent).pop().unwrap();
        assert!(told.contains("KiB that are searched for secrets"), "{told}");
        let refused = audited(&world, crate::turn::audit_kinds::TOOL_REFUSED);
        assert!(refused.len() == 1 && refused[0].contains("exfiltration"), "{refused:?}");
        assert!(is_run(&mut world, tool, &json!({ field: "https://x.example/b" })), "{tool}");
    }
}

#[test]
fn no_text_for_a_page_holds_a_secret_whatever_the_policy() {
    for (tool, field) in [
        ("browser_wait", "selector"),
        ("browser_click", "selector"),
        ("browser_type", "selector"),
        ("browser_type", "text"),
        ("browser_run_js", "expression"),
        ("browser_navigate", "url"),
    ] {
        let (mut world, agent) = world(TaintPolicy::Audit);
        tainted(&mut world, agent);
        assert!(!is_run(&mut world, tool, &json!({ field: format!("key {SECRET}") })), "{tool} {field}");
        let told = results(&mut world, agent).pop().unwrap();
        assert!(told.contains("looks like a secret"), "{told}");
        assert!(is_run(&mut world, tool, &json!({ field: "https://x.example/" })), "{tool} {field}");
    }
}

#[test]
fn the_fragment_is_a_part_of_an_address_whose_scripts_see_it() {
    let open = |url: &str| json!({ "url": url });
    let (mut world, agent) = world(TaintPolicy::Deny);
    let message = NewMessage::text("read https://x.example/a and https://x.example/b#part");
    world.ask(PostMessage { agent, session: None, message }).unwrap();
    assert!(is_run(&mut world, "browser_navigate", &open("https://x.example/a")));
    for (tool, url, ran) in [
        ("browser_navigate", "https://x.example/a#the-merger-closes-on-Friday", false),
        ("browser_navigate", "https://x.example/a#", false),
        ("browser_navigate", "https://x.example/b#part", true),
        ("browser_navigate", "https://x.example/b", true),
        ("browser_navigate", "https://x.example/b#other", false),
        // What it fetches runs no scripts, and the fragment is not sent.
        ("web_fetch", "https://x.example/a#any", true),
    ] {
        assert_eq!(is_run(&mut world, tool, &open(url)), ran, "{tool} {url}");
    }
}

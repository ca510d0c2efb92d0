//! Servers that lie about their tools, send too much or change in the middle of a turn: what a turn makes of them.

use serde_json::json;

use super::mcp_others::{Harness, program};
use crate::support::clients::{python, skipped};
use crate::support::{routes, until};

fn hostile() -> Harness {
    let directory = routes::root().join("tests/clients").display().to_string();
    let script = format!("{directory}/mcp_hostile_server.py");
    let config = program(&python("json"), &[&script], &[directory]);
    Harness::new("bad", &config, "[security]\ntaint = \"audit\"\n", "good")
}

#[test]
fn schemas_that_lie_cost_their_tools_and_no_turn() {
    if skipped() {
        return;
    }
    let harness = hostile();
    for name in ["text", "list", "nothing"] {
        harness.daemon.get(&format!("/api/tools/mcp_bad_{name}")).refused(404);
    }
    // What cannot be checked, or is not what was promised, is answered like all else, and the next call is made.
    for name in ["wrong", "endless", "promise"] {
        let told = harness.turn(&[(&format!("mcp_bad_{name}"), json!({ "a": 7 })), ("mcp_bad_good", json!({}))]);
        assert_eq!((told.len(), &*told[1]), (2, "it is good"), "{name}: {told:?}");
        assert!(!told[0].is_empty(), "{name}: {told:?}");
    }
}

#[test]
fn an_answer_of_100_megabytes_ends_the_server_and_no_turn() {
    if skipped() {
        return;
    }
    let harness = hostile();
    let said = harness.call("large", json!({}));
    assert!(said.contains("gave no result") && said.len() < 1_000, "{said}");
    until("it is down, and why is shown", || {
        let server = harness.daemon.get("/api/mcp/servers/bad").expect(200);
        server["error"].as_str().is_some_and(|why| why.contains("message of more than")).then_some(())
    });
    harness.daemon.post("/api/mcp/servers/bad/reconnect", &json!({})).expect(200);
    assert_eq!(harness.call("good", json!({})), "it is good");
}

#[test]
fn tools_that_change_in_a_turn_are_called_as_they_are_then() {
    if skipped() {
        return;
    }
    let harness = hostile();
    let told = harness.turn(&[("mcp_bad_change", json!({})), ("mcp_bad_promise", json!({}))]);
    assert_eq!(told[0], "it is change");
    // Still known or not: it is gone, and the turn ends.
    assert!(told[1].contains("it is gone") || told[1].contains("mcp_bad_promise"), "{told:?}");
    harness.wait_for("late");
    assert_eq!(harness.call("late", json!({})), "it is late");
    harness.daemon.get("/api/tools/mcp_bad_promise").refused(404);
}

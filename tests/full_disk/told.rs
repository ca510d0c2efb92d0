//! What was acknowledged while a disk became full.

use serde_json::{Value, json};

use super::Harness;
use super::support::daemon::text;
use super::support::http::Client;

/// What one who asks all along was told.
#[derive(Default)]
pub(crate) struct Told {
    agents: Vec<String>,
    /// Session and message.
    answered: Vec<(String, String)>,
    /// Status and code of refusals.
    pub(crate) refused: Vec<(u16, Value)>,
}

impl Told {
    /// Asks so many times, or until something is refused.
    pub(crate) fn ask(&mut self, harness: &Harness<'_>, agent: &str, times: usize) {
        for n in 0..times {
            let name = format!("made-{}-{n}", self.agents.len());
            let manifest = format!("name = \"{name}\"\nsystem_prompt = \"{}\"\n", "p".repeat(4_000));
            let reply = harness.client.post("/api/agents", &json!({ "manifest_toml": manifest }));
            if reply.status != 201 {
                return self.refused.push((reply.status, reply.expect(reply.status)));
            }
            self.agents.push(text(&reply.expect(201)["agent_id"]));
            let message = format!("{name} {}", "m".repeat(4_000));
            let reply = harness.client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": message }));
            if reply.status != 200 {
                return self.refused.push((reply.status, reply.expect(reply.status)));
            }
            self.answered.push((text(&reply.expect(200)["session_id"]), message));
        }
    }

    /// Everything that was acknowledged is there, what was compacted since included.
    pub(crate) fn is_kept(&self, client: &Client, agent: &str) {
        for agent in &self.agents {
            client.get(&format!("/api/agents/{agent}")).expect(200);
        }
        let Some((session, _)) = self.answered.first() else { return };
        let trail = client.get(&format!("/api/agents/{agent}/sessions/{session}/trajectory")).expect(200);
        let said: Vec<&str> = trail["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "User")
            .filter_map(|message| message["content"].as_str())
            .collect();
        for (_, message) in &self.answered {
            let name = &message[..=message.find(' ').unwrap()];
            assert_eq!(said.iter().filter(|said| said.starts_with(name)).count(), 1, "{name}of {}", said.len());
        }
    }
}

//! The agents of one client: made, talked to, reset, killed and replaced, so that nothing of them grows without end.

use serde_json::json;

use super::tally::Tally;
use crate::support::daemon::text;
use crate::support::http::Client;

/// Agents of one client.
pub(crate) const EACH: usize = 8;
/// Messages after which a session is reset: more than a compaction waits for (80 rows are 40 messages), so that there
/// are some.
pub(crate) const MESSAGES_MAX: usize = 60;
/// Resets of an agent, after which another one takes its place.
pub(crate) const RESETS_MAX: usize = 4;

/// What the agents may do.
const GRANTS: &str =
    "[capabilities]\ntools = [\"system_time\", \"memory_store\"]\nmemory_read = [\"*\"]\nmemory_write = [\"*\"]\n";

/// One agent.
pub(crate) struct Kept {
    pub(crate) id: String,
    messages: usize,
    resets: usize,
}

/// A client's agents.
pub(crate) struct Agents {
    worker: usize,
    made: usize,
    pub(crate) kept: Vec<Kept>,
}

impl Agents {
    /// As many as there shall be.
    pub(crate) fn new(client: &Client, tally: &Tally, worker: usize) -> Self {
        let mut agents = Self { worker, made: 0, kept: Vec::with_capacity(EACH) };
        for _ in 0..EACH {
            let id = agents.make(client, tally).expect("the first agents can be made");
            agents.kept.push(Kept { id, messages: 0, resets: 0 });
        }
        agents
    }

    /// Makes an agent with a trigger in its manifest; gives its id.
    pub(crate) fn make(&mut self, client: &Client, tally: &Tally) -> Option<String> {
        self.made += 1;
        let (worker, n) = (self.worker, self.made);
        // Two manifests that others share, and one of its own for each third agent.
        let description =
            if n.is_multiple_of(3) { format!("number {n} of {worker}") } else { "one of many".to_owned() };
        let wants = format!("pattern = {{ custom = {{ event_type = \"soak-{worker}\" }} }}");
        let trigger = format!("[[triggers]]\n{wants}\nprompt_template = \"Seen: {{{{event}}}}\"\ncooldown_secs = 0\n");
        let manifest = format!("name = \"soak-{worker}-{n}\"\ndescription = \"{description}\"\n{GRANTS}{trigger}");
        let made = client.post("/api/agents", &json!({ "manifest_toml": manifest }));
        tally.count("create", &made, &[201]);
        (made.status == 201).then(|| text(&made.expect(201)["agent_id"]))
    }

    /// Notes that an agent was told something; resets its session, or replaces it, when it is time.
    pub(crate) fn told(&mut self, client: &Client, tally: &Tally, at: usize) {
        let agent = &mut self.kept[at];
        agent.messages += 1;
        if agent.messages < MESSAGES_MAX {
            return;
        }
        (agent.messages, agent.resets) = (0, agent.resets + 1);
        if agent.resets < RESETS_MAX {
            let reset = client.poke(&format!("/api/agents/{}/session/reset", agent.id));
            tally.count("reset", &reset, &[200]);
            return;
        }
        let old = std::mem::take(&mut agent.id);
        tally.count("kill", &client.delete(&format!("/api/agents/{old}")), &[200]);
        // One that could not be made has failed the run; what follows fails too, and says so.
        let id = self.make(client, tally).unwrap_or_default();
        self.kept[at] = Kept { id, messages: 0, resets: 0 };
    }
}

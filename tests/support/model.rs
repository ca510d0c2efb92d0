//! A model that says back what it heard (`echo: ...`) and can be held while it does so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::daemon::{Daemon, text};
use super::model_server::{Gate, ModelServer, Received, Reply};

/// The scripted server with an echo for whatever is not scripted.
pub(crate) struct Model {
    pub(crate) server: ModelServer,
    mood: Arc<Mutex<Mood>>,
}

/// How the echo answers.
#[derive(Default)]
struct Mood {
    gate: Option<Gate>,
    /// Requests that came before the gate was closed.
    asked_before: usize,
    fail: Option<u16>,
    delay: Duration,
}

impl Model {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let (server, mood) = (ModelServer::start(), Arc::<Mutex<Mood>>::default());
        let shared = mood.clone();
        server.respond(move |request| lock(&shared).answer(request));
        server.spare(Received::wants_summary);
        Self { server, mood }
    }

    /// Configuration lines that make it the daemon's default model.
    pub(crate) fn config(&self) -> String {
        let base_url = self.server.base_url();
        format!("[default_model]\nprovider = \"openai\"\nmodel = \"echo-1\"\nbase_url = \"{base_url}\"\n")
            + "api_key_env = \"TEST_MODEL_KEY\"\n"
    }

    /// Has an agent call a tool; gives what the tool gave back.
    #[track_caller]
    pub(crate) fn calls(&self, daemon: &Daemon, agent: &str, tool: &str, input: &Value) -> String {
        self.script([Reply::calls(&[("c1", tool, &input.to_string())]), Reply::text("done")]);
        daemon.say(agent, "go");
        let request = self.requests().pop().expect("the model was asked");
        let last = request["messages"].as_array().and_then(|messages| messages.last()).expect("there are messages");
        assert_eq!(last["role"], "tool", "{last}");
        text(&last["content"])
    }

    /// Holds every answer until [`release`](Self::release).
    pub(crate) fn hold(&self) {
        let asked_before = self.requests().len();
        let mut mood = lock(&self.mood);
        (mood.gate, mood.asked_before) = (Some(Gate::default()), asked_before);
    }

    /// Lets the first word of the next stream through and holds the rest.
    pub(crate) fn hold_after_first_word(&self) {
        self.hold();
        if let Some(gate) = &lock(&self.mood).gate {
            // The piece that names the role, and the word.
            gate.pass(2);
        }
    }

    /// Lets everything go on.
    pub(crate) fn release(&self) {
        if let Some(gate) = lock(&self.mood).gate.take() {
            gate.open();
        }
    }

    /// Requests that came since [`hold`](Self::hold).
    pub(crate) fn waiting(&self) -> usize {
        self.requests().len() - lock(&self.mood).asked_before
    }

    /// Answers everything with this status.
    pub(crate) fn fail(&self, status: u16) {
        lock(&self.mood).fail = Some(status);
    }

    /// Thinks this long before each answer, longer over some messages than over others.
    pub(crate) fn slow(&self, delay: Duration) {
        lock(&self.mood).delay = delay;
    }

    /// Answers the next requests so.
    pub(crate) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        replies.into_iter().for_each(|reply| self.server.push(reply));
    }

    /// The bodies of every request so far, but for those for a summary of older turns: they come of themselves.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let turns = self.server.requests().into_iter().filter(|request| !request.wants_summary());
        turns.map(|request| request.body).collect()
    }
}

impl Mood {
    fn answer(&self, request: &Received) -> Reply {
        if let Some(status) = self.fail {
            return Reply::error(status, "scripted");
        }
        let heard = request.last_user();
        let reply = Reply::text(format!("echo: {heard}"));
        if let Some(gate) = &self.gate {
            return reply.gated(gate);
        }
        if self.delay.is_zero() {
            return reply;
        }
        let gate = Gate::default();
        let (opened, delay) = (gate.clone(), self.delay.mul_f64(0.5 + (heard.len() % 8) as f64 / 8.0));
        thread::spawn(move || {
            thread::sleep(delay);
            opened.open();
        });
        reply.gated(&gate)
    }
}

fn lock(mood: &Mutex<Mood>) -> MutexGuard<'_, Mood> {
    mood.lock().unwrap_or_else(PoisonError::into_inner)
}

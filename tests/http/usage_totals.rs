//! Usage against what the scripted model server counted, over thousands of calls with faults: whole, streamed, refused,
//! broken off before and behind the usage, and stopped. `AGENTSVC_USAGE_CALLS=10000` makes it the full run.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use uuid::Uuid;

use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::{Gate, Reply};
use crate::support::until;

/// Clients at once.
const CLIENTS: u64 = 8;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Whole,
    Streamed,
    Refused,
    /// The stream breaks behind the usage.
    BrokenLate,
    /// The stream breaks behind the first word: nobody says what it took.
    BrokenEarly,
    /// It is stopped while the model thinks.
    Stopped,
}

impl Fate {
    const fn of(number: u64) -> Self {
        match number % 40 {
            7 => Self::Stopped,
            at => match at % 6 {
                0 | 1 => Self::Whole,
                2 => Self::Streamed,
                3 => Self::Refused,
                4 => Self::BrokenLate,
                _ => Self::BrokenEarly,
            },
        }
    }

    /// Does the server say what it took?
    const fn is_told(self) -> bool {
        matches!(self, Self::Whole | Self::Streamed | Self::Refused | Self::BrokenLate)
    }
}

/// What the server counted.
#[derive(Default)]
struct Counted {
    requests: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
    /// Calls that will be stopped and have come.
    held: Mutex<HashSet<u64>>,
}

impl Counted {
    fn has_asked(&self, number: u64) -> bool {
        self.held.lock().expect("no panic").contains(&number)
    }

    fn reply(&self, number: u64, held: &Gate) -> Reply {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (fate, usage) = (Fate::of(number), (100 + number % 997, 1 + number % 13));
        if fate.is_told() && fate != Fate::Refused {
            self.input.fetch_add(usage.0, Ordering::Relaxed);
            self.output.fetch_add(usage.1, Ordering::Relaxed);
        }
        let answer = || Reply::text("so be it").usage(Some(usage));
        match fate {
            Fate::Whole | Fate::Streamed => answer(),
            Fate::Refused => Reply::error(400, "no"),
            // The role, three words, the end, the usage; then it breaks instead of saying that it is done.
            Fate::BrokenLate => answer().break_after(6),
            Fate::BrokenEarly => answer().break_after(2),
            Fate::Stopped => {
                self.held.lock().expect("no panic").insert(number);
                answer().gated(held)
            }
        }
    }
}

fn session(number: u64) -> String {
    Uuid::from_u128(u128::from(number) + 1).to_string()
}

/// Sends one message in a session of its own.
fn call(client: &Client, agent: &str, counted: &Counted, number: u64) {
    let body = json!({ "message": format!("m{number:06}"), "session_id": session(number) });
    let message = format!("/api/agents/{agent}/message");
    match Fate::of(number) {
        Fate::Whole => drop(client.post(&message, &body).expect(200)),
        Fate::Refused => drop(client.post(&message, &body).refused(500)),
        Fate::Streamed | Fate::BrokenLate | Fate::BrokenEarly => {
            assert_eq!(client.post(&format!("{message}/stream"), &body).status, 200);
        }
        Fate::Stopped => std::thread::scope(|scope| {
            let asked = scope.spawn(|| client.post(&message, &body));
            // Before its request has left nobody but the daemon would know of it.
            until("the model is asked", || counted.has_asked(number).then_some(()));
            client.post(&format!("/api/agents/{agent}/stop"), &json!({ "session_id": session(number) })).expect(200);
            assert_eq!(asked.join().expect("no panic").expect(200)["stopped"], true);
        }),
    }
}

#[test]
fn totals_equal_what_the_server_counted_whatever_became_of_the_calls() {
    let calls: u64 = std::env::var("AGENTSVC_USAGE_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1_200);
    let (model, counted, held) = (Model::start(), Arc::<Counted>::default(), Gate::default());
    let counts = Arc::clone(&counted);
    let gate = held.clone();
    model.server.respond(move |request| {
        let number = request.last_user().trim_start_matches('m').parse().expect("a number");
        counts.reply(number, &gate)
    });
    // A provider for each client: the failures of all of them in a row would have one left alone.
    let base_url = model.server.base_url();
    let provider = |n| {
        format!(
            "[providers.p{n}]\nbase_url = \"{base_url}\"\n[prices.\"p{n}/*\"]\ninput_per_m = 1.0\noutput_per_m = 2.0\n"
        )
    };
    let providers: String = (0..CLIENTS).map(provider).collect();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{providers}"));
    std::thread::scope(|scope| {
        for worker in 0..CLIENTS {
            let manifest = format!("[model]\nprovider = \"p{worker}\"\nmodel = \"echo-1\"\n");
            let (client, agent) = (daemon.client(), daemon.agent_with(&format!("a{worker}"), &manifest));
            let counted = &counted;
            scope.spawn(move || {
                (worker..calls).step_by(CLIENTS as usize).for_each(|number| call(&client, &agent, counted, number))
            });
        }
    });
    let rows = rows(&daemon);
    assert_eq!(rows.len() as u64, calls, "one event for each call");
    assert_eq!(counted.requests.load(Ordering::Relaxed), calls, "each was asked once");
    let (mut told, mut all, mut untold) = ((0, 0), (0, 0), HashMap::<Fate, (u64, u64)>::new());
    for number in 0..calls {
        let (input, output) = rows[&session(number)];
        all = (all.0 + input, all.1 + output);
        let fate = Fate::of(number);
        if fate.is_told() {
            told = (told.0 + input, told.1 + output);
        } else {
            // An estimate from the prompt, which is as long for each, and from what had come.
            let first = *untold.entry(fate).or_insert((input, output));
            assert_eq!((input, output), first, "{fate:?} {number}");
        }
    }
    let (input, output) = (counted.input.load(Ordering::Relaxed), counted.output.load(Ordering::Relaxed));
    assert_eq!(told, (input, output), "to the token");
    let total = daemon.get("/api/usage").expect(200);
    assert_eq!(total["request_count"], calls);
    assert_eq!((&total["total_input_tokens"], &total["total_output_tokens"]), (&json!(all.0), &json!(all.1)));
    let cost = total["total_cost_usd"].as_f64().expect("a number");
    assert!((cost - (all.0 + 2 * all.1) as f64 / 1e6).abs() < 1e-6, "{cost}");
    eprintln!(
        "{calls} calls: the server counted {input} tokens in and {output} out, as the usage; estimated: {untold:?}"
    );
}

/// Tokens of each event by its session, from the export.
fn rows(daemon: &Daemon) -> HashMap<String, (u64, u64)> {
    let export = daemon.get("/api/usage/export").text();
    let mut rows = HashMap::new();
    for line in export.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let tokens = |at: usize| fields[at].parse().expect("a number");
        let before = rows.insert(fields[13].trim_matches('"').to_owned(), (tokens(6), tokens(7)));
        assert!(before.is_none(), "two events of one call: {line}");
    }
    rows
}

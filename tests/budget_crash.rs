//! Parallel turns against a small budget while the daemon is killed at random moments, streamed and not. The budget is
//! never exceeded, every call has one event, and when nothing is out nothing is reserved.
//!
//! `AGENTSVC_BUDGET_TURNS` says how many turns are run (300 unless set; 1,000 are all run at once),
//! `AGENTSVC_BUDGET_USD` the budget (4 unless set), `AGENTSVC_CRASH_SEED` repeats a run.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::http::Client;
use support::model::Model;
use support::model_server::{Gate, Received, Reply};
use support::{Rng, clear_of_the_hour, number, seed_of_run, until};
use uuid::Uuid;

/// Agents, each with as many loaders. Every turn has a session of its own.
const AGENTS: usize = 4;
/// Kills at least.
const KILLS_MIN: usize = 6;

/// A context of 512 tokens at 20 dollars for a million and an answer of 20 at 1,000: three cents a call at most, and about
/// one as a rule.
const CONFIG: &str = "rate_limit_per_second = 1000000\n[providers.openai]\ncontext_tokens = 512\n\
                      [prices.\"openai/echo-1\"]\ninput_per_m = 20.0\noutput_per_m = 1000.0\n";

/// Answers take a few milliseconds; some fail, some break off.
fn model_says(request: &Received) -> Reply {
    let number: u64 = request.last_user().trim_start_matches('t').parse().unwrap_or(0);
    let gate = Gate::default();
    let opened = gate.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(5 + number % 20));
        opened.open();
    });
    let reply = Reply::text("one two three four").usage(Some((40 + number % 30, 5 + number % 10))).gated(&gate);
    match number % 11 {
        3 => Reply::error(400, "no"),
        7 => reply.break_after(3),
        _ => reply,
    }
}

/// What the loaders share.
#[derive(Default)]
struct Load {
    asked: AtomicU64,
    stop: AtomicBool,
    answered: AtomicU64,
    refused: AtomicU64,
}

impl Load {
    fn run(&self, client: &Client, agent: &str, turns: u64) {
        while !self.stop.load(Ordering::Relaxed) {
            let serial = self.asked.fetch_add(1, Ordering::Relaxed);
            if serial >= turns {
                return;
            }
            let session = Uuid::from_u128(0xb000_0000 + u128::from(serial)).to_string();
            let body = json!({ "message": format!("t{serial}"), "session_id": session }).to_string();
            let form = if serial.is_multiple_of(2) { "message" } else { "message/stream" };
            let path = format!("/api/agents/{agent}/{form}");
            let Ok(reply) = client.try_send("POST", &path, &[], Some(body.as_bytes())) else { return };
            match reply.status {
                200 => drop(self.answered.fetch_add(1, Ordering::Relaxed)),
                429 => {
                    assert_eq!(reply.expect(429)["code"], "budget_exceeded");
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                // Scripted failures, and a store that is behind.
                500 | 503 => {}
                other => panic!("t{serial}: {other} {}", reply.text()),
            }
        }
    }
}

/// Micro-dollars of a field.
fn micros(body: &Value, field: &str) -> u64 {
    (body[field].as_f64().expect("a number") * 1e6).round() as u64
}

fn gauge(daemon: &Daemon, name: &str) -> Option<u64> {
    let page = daemon.get("/api/metrics").text();
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// What is spent and reserved is within the limit; gives what is spent.
fn check(daemon: &Daemon, limit: u64) -> u64 {
    let budget = daemon.get("/api/budget").expect(200);
    let (spent, reserved) = (micros(&budget, "today_spent_usd"), micros(&budget, "reserved_usd"));
    assert!(spent + reserved <= limit, "{budget}");
    spent
}

/// Waits until no turn is open.
fn at_rest(daemon: &Daemon) {
    until("every turn has ended", || {
        gauge(daemon, "agentsvc_agents").filter(|agents| *agents > 0)?;
        gauge(daemon, "agentsvc_turns_open").filter(|open| *open == 0)
    });
    daemon.settle();
}

/// Tokens and cost of the export's rows.
fn exported(daemon: &Daemon) -> (u64, u64, u64) {
    let text = daemon.get("/api/usage/export").text();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.fold((0, 0, 0), |(count, tokens, cost), row| {
        let number = |at: usize| row[at].parse::<f64>().expect("a number");
        (count + 1, tokens + number(6) as u64 + number(7) as u64, cost + (number(8) * 1e6).round() as u64)
    })
}

#[test]
fn a_budget_is_never_exceeded_whatever_is_killed_when() {
    // The budget is one of a day.
    clear_of_the_hour(Duration::from_secs(150));
    let turns = number("AGENTSVC_BUDGET_TURNS").unwrap_or(300);
    let limit_usd = number("AGENTSVC_BUDGET_USD").unwrap_or(4);
    let loaders_each = if turns < 1_000 { 8 } else { 1_000 / AGENTS };
    let seed = seed_of_run(&format!("{turns} turns, {limit_usd} USD"));
    let limit = limit_usd * 1_000_000;
    let mut rng = Rng(seed);
    let model = Model::start();
    model.server.respond(model_says);
    let budget = format!("[budget]\ndaily_limit_usd = {limit_usd}\nanswer_tokens_max = 20\n");
    let mut daemon = Daemon::with(&format!("{}{budget}", with(&model)));
    let load = Arc::new(Load::default());
    let agents: Vec<String> = (0..AGENTS).map(|n| daemon.agent_with(&format!("spender-{n}"), "")).collect();
    let mut kills = 0_usize;
    // Turns that were taken go on after a kill, so that it goes on when all are asked for, too.
    while load.asked.load(Ordering::Relaxed) < turns || kills < KILLS_MIN {
        let loaders: Vec<_> = (0..AGENTS * loaders_each)
            .map(|n| {
                let (load, client, agent) = (load.clone(), daemon.client(), agents[n % AGENTS].clone());
                thread::spawn(move || load.run(&client, &agent, turns))
            })
            .collect();
        // The moment itself is the subject: a random time under load, not a wait for anything.
        thread::sleep(Duration::from_micros(5_000 + rng.below(80_000) as u64));
        check(&daemon, limit);
        daemon.kill();
        kills += 1;
        load.stop.store(true, Ordering::Relaxed);
        for loader in loaders {
            loader.join().unwrap_or_else(|_| panic!("a loader failed (seed {seed}, kill {kills})"));
        }
        load.stop.store(false, Ordering::Relaxed);
        daemon.restart();
        check(&daemon, limit);
    }
    at_rest(&daemon);
    let spent = check(&daemon, limit);
    let budget = daemon.get("/api/budget").expect(200);
    assert_eq!(micros(&budget, "reserved_usd"), 0, "reservations balance");
    let (calls, tokens, cost) = exported(&daemon);
    let total = daemon.get("/api/usage").expect(200);
    assert_eq!((total["request_count"].as_u64(), cost), (Some(calls), spent), "every sum is that of the events");
    let counted = total["total_input_tokens"].as_u64().zip(total["total_output_tokens"].as_u64());
    assert_eq!(counted.map(|(input, output)| input + output), Some(tokens));
    let each = daemon.get("/api/budget/agents").expect(200);
    let sum: u64 = each.as_array().expect("a list").iter().map(|row| micros(row, "total_cost_usd")).sum();
    assert_eq!(sum, spent);
    let (answered, refused) = (load.answered.load(Ordering::Relaxed), load.refused.load(Ordering::Relaxed));
    println!("{calls} calls, {answered} answered, {refused} refused, {spent} micro-dollars, after {kills} kills");
    runs_dry(&daemon, &agents[0], spent);
}

/// With room for one more call and a bit, turns run and then none does: it is the limit that stops them, also where the
/// load did not reach it.
fn runs_dry(daemon: &Daemon, agent: &str, spent: u64) {
    let limit = spent + 40_000;
    daemon.put("/api/budget", &json!({ "daily_limit_usd": limit as f64 / 1e6 })).expect(200);
    let mut serial = 0xc000_0000_u128;
    let mut ended = |status: u16| {
        until(&format!("a turn ends with {status}"), || {
            serial += 1;
            // No message of the script fails that has this number.
            let body = json!({ "message": "t0", "session_id": Uuid::from_u128(serial).to_string() });
            (daemon.post(&format!("/api/agents/{agent}/message"), &body).status == status).then_some(())
        });
    };
    ended(200);
    ended(429);
    assert!(check(daemon, limit) > spent, "what ran was paid for");
}

/// The configuration with the model in it; scalars stand before tables.
fn with(model: &Model) -> String {
    let (scalars, tables) = CONFIG.split_once('\n').expect("a line of scalars");
    format!("{scalars}\n{}{tables}", model.config())
}

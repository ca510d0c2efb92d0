//! Budgets and calls that are stopped before the provider has counted them (spec 3, Budget).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::{clear_of_the_hour, until};

/// A context of 1,000 tokens at a dollar for a million, answers of 100 at a dollar: 1,100 micro-dollars a call at most.
const CONFIG: &str = "[providers.openai]\ncontext_tokens = 1000\n[prices.\"openai/echo-1\"]\ninput_per_m = 1.0\n\
                      output_per_m = 1.0\n";
/// The same in dollars.
const WORST_USD: f64 = 0.0011;

fn daemon(model: &Model, budget: &str) -> Daemon {
    clear_of_the_hour(Duration::from_secs(60));
    Daemon::with(&format!("{}{CONFIG}[budget]\nanswer_tokens_max = 100\n{budget}", model.config()))
}

fn budget(client: &Client) -> Value {
    client.get("/api/budget").expect(200)
}

fn send(client: &Client, agent: &str) -> crate::support::http::Reply {
    client.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "x" }))
}

#[test]
fn a_call_that_is_stopped_before_its_answer_costs_all_that_it_can() {
    let model = Model::start();
    let daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 2.0 * WORST_USD));
    let agent = daemon.agent_with("a", "");
    model.hold();
    let spent = || budget(&daemon)["today_spent_usd"].as_f64().unwrap();
    std::thread::scope(|scope| {
        let (client, name) = (daemon.client(), agent.clone());
        let asked = scope.spawn(move || send(&client, &name).status);
        until("the call is out", || (model.waiting() == 1).then_some(()));
        daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200);
        asked.join().unwrap();
    });
    until("it is settled", || (budget(&daemon)["reserved_usd"] == 0.0).then_some(()));
    assert!(spent() >= 0.0001, "the bound of the answer at least, and the prompt: {}", spent());
    model.release();
}

#[test]
fn agents_that_are_stopped_again_and_again_pass_no_limit() {
    let model = Model::start();
    let daemon = daemon(&model, &format!("daily_limit_usd = {}\n", 3.0 * WORST_USD));
    let agent = daemon.agent_with("a", "");
    model.hold();
    let mut sent = 0;
    let refused = until("the limit is reached", || {
        let (client, name) = (daemon.client(), agent.clone());
        let asked = std::thread::spawn(move || send(&client, &name).status);
        until("the call is out, or refused", || (model.waiting() > sent || asked.is_finished()).then_some(()));
        if !asked.is_finished() {
            sent = model.waiting();
            daemon.poke(&format!("/api/agents/{agent}/stop")).expect(200);
        }
        let status = asked.join().unwrap();
        (status == 429).then_some(status)
    });
    assert_eq!(refused, 429);
    assert!(sent <= 30, "each costs a hundred micro-dollars and more of 3,300: {sent}");
    model.release();
}

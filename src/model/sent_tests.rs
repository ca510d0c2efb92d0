//! What is kept of model calls as they were sent.

use agentsvc_components::kernel::id::JobId;
use agentsvc_components::{AgentId, LogId, SessionId};
use agentsvc_systems::prompt::Prompt;
use uuid::Uuid;

use super::*;

fn attempt(turn: u128, number: u32) -> Attempt {
    Attempt { job: JobId(Uuid::from_u128(turn)), number }
}

fn call(turn: u128, number: u32, text: &str) -> SentCall {
    let prompt = Prompt { system: text.to_owned(), ..Prompt::default() };
    SentCall {
        id: 0,
        attempt: attempt(turn, number),
        agent: AgentId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        log: LogId(1),
        sent_at: Timestamp(0),
        provider: "openai".into(),
        model: "gpt".into(),
        context_tokens: 8_000,
        temperature: None,
        max_tokens: None,
        content: Some(Arc::new(SentContent { prompt, tools: Vec::new() })),
        tries: Vec::new(),
    }
}

fn log() -> SentLog {
    SentLog::new(Arc::default())
}

#[test]
fn a_call_that_pauses_says_why_and_until_when() {
    let log = log();
    log.kept.lock().push(call(1, 1, "one"));
    let turn = TurnId(Uuid::from_u128(1));
    assert!(log.waiting(turn).is_none(), "nothing is known against the provider");
    log.tries(attempt(1, 1));
    let error = CallError::passing(FailureCode::ProviderRateLimited, "Too many calls.");
    log.tried(attempt(1, 1), Duration::from_millis(30), Some(&error));
    log.pauses(attempt(1, 1), Duration::from_secs(9), &error);
    let waiting = log.waiting(turn).unwrap();
    assert_eq!((waiting.code, &*waiting.message, waiting.tries), (error.code, "Too many calls.", 1));
    assert!(waiting.until.unwrap().ms_since(now()) > 5_000);
    log.tries(attempt(1, 1));
    assert!(log.waiting(turn).is_none(), "the next try is out");
    log.tried(attempt(1, 1), Duration::from_millis(5), None);
    log.over(attempt(1, 1));
    let [kept] = &log.of_turn(turn)[..] else { panic!("one call") };
    assert_eq!(kept.tries.iter().map(|one| one.fault.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn notes_of_other_attempts_change_nothing() {
    let log = log();
    log.kept.lock().push(call(1, 2, "two"));
    log.tried(attempt(1, 1), Duration::ZERO, None);
    log.tried(attempt(9, 1), Duration::ZERO, None);
    assert!(log.of_turn(TurnId(Uuid::from_u128(1)))[0].tries.is_empty());
}

#[test]
fn the_oldest_go_when_the_prompts_take_too_much() {
    let log = log();
    let text = "x".repeat(SENT_CALLS_BYTES_MAX / 8 - 1_000);
    for turn in 1..=20 {
        log.kept.lock().push(call(turn, 1, &text));
        assert!(log.kept.lock().bytes <= SENT_CALLS_BYTES_MAX);
    }
    let kept = |turn| log.of_turn(TurnId(Uuid::from_u128(turn))).len();
    assert_eq!((kept(1), kept(12), kept(20)), (0, 0, 1));
    log.tried(attempt(20, 1), Duration::ZERO, None);
    assert_eq!(log.of_turn(TurnId(Uuid::from_u128(20)))[0].tries.len(), 1, "ids still find their calls");
    assert!(log.kept.lock().open.len() <= 8, "open calls that went are forgotten");
}

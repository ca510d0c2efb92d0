//! The loop guard (spec 1, Limits, loop guard): a model that repeats itself is warned, then refused, then stopped.
//!
//! | what the model asks for, within one turn            | what happens                          |
//! |-----------------------------------------------------|---------------------------------------|
//! | a call, the first or second time                    | it runs                               |
//! | the same call, the third or fourth time             | it runs; its result carries a warning |
//! | the same call after 3 identical results in a row    | refused                               |
//! | the same call, the fifth time or later              | refused                               |
//! | a 31st call, whatever it is                         | refused; the turn ends                |
//!
//! The same call is the same tool with the same arguments, however the JSON is written. Refused calls count, so that
//! a model that insists ends at the breaker. Everything is forgotten when the turn ends.

use agentsvc_components::kernel::limit::TOOL_CALLS_PER_TURN_MAX;
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::turn::{GuardEntry, Journal};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The same call is warned about from here on.
const WARN_AT_CALLS: u32 = 3;
/// The same call is refused from here on.
const BLOCK_AT_CALLS: u32 = 5;
/// After so many identical results in a row the same call is refused.
const BLOCK_AFTER_RESULTS: u32 = 3;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs.
    Run,
    /// Refused: it was asked for so often.
    TooManyCalls(u32),
    /// Refused: it gave the same result so often in a row.
    SameResults(u32),
    /// Refused, and the turn ends: too many calls in all.
    Breaker,
}

impl Verdict {
    /// What the model reads in place of a result; `None` for a call that runs.
    pub(super) fn refusal(self) -> Option<String> {
        Some(match self {
            Self::Run => return None,
            Self::TooManyCalls(calls) => format!(
                "Refused by the loop guard: this is call {calls} of the same tool with the same arguments in this \
                 turn. It did not run. Do something else, or reply with what you have."
            ),
            Self::SameResults(results) => format!(
                "Refused by the loop guard: this call gave the same result {results} times in a row. It did not run. \
                 Do something else, or answer with what you have."
            ),
            Self::Breaker => breaker_text(),
        })
    }
}

/// Why a turn ended at the breaker.
pub(super) fn breaker_text() -> String {
    format!("stopped by the circuit breaker: more than {TOOL_CALLS_PER_TURN_MAX} tool calls in one turn")
}

/// Does the guard hold? It is given a model that repeats itself and one that does not stop, and must refuse both.
pub fn loop_guard_holds() -> bool {
    let call = |input: String| ToolCall { id: String::new(), name: "probe".to_owned(), input };
    let mut journal = Journal::default();
    let refuses_repeats =
        (0..BLOCK_AT_CALLS).any(|made| judge(&mut journal, made, &call(String::new())) != Verdict::Run);
    let mut journal = Journal::default();
    let stops = (0..=TOOL_CALLS_PER_TURN_MAX)
        .any(|made| judge(&mut journal, made, &call(format!("{{\"n\":{made}}}"))) == Verdict::Breaker);
    refuses_repeats && stops
}

/// Judges the next call of a turn that asked for `made` calls before, and remembers it.
pub(super) fn judge(journal: &mut Journal, made: u32, call: &ToolCall) -> Verdict {
    if made >= TOOL_CALLS_PER_TURN_MAX {
        return Verdict::Breaker;
    }
    let entry = entry(journal, call);
    entry.calls += 1;
    if entry.results >= BLOCK_AFTER_RESULTS {
        Verdict::SameResults(entry.results)
    } else if entry.calls >= BLOCK_AT_CALLS {
        Verdict::TooManyCalls(entry.calls)
    } else {
        Verdict::Run
    }
}

/// Remembers the result of a call that ran. Gives the warning that the model reads behind it, when one is due.
pub(super) fn remember(journal: &mut Journal, call: &ToolCall, result: &str) -> Option<String> {
    let hash = hash_of(&[result.as_bytes()]);
    let entry = entry(journal, call);
    entry.results = if entry.result == hash { entry.results + 1 } else { 1 };
    entry.result = hash;
    (entry.calls >= WARN_AT_CALLS).then(|| {
        format!(
            "\n\n[Loop guard: the same tool was called with the same arguments {} times in this turn. Another \
             repetition may be refused; change the arguments or use what you have.]",
            entry.calls
        )
    })
}

fn entry<'a>(journal: &'a mut Journal, call: &ToolCall) -> &'a mut GuardEntry {
    let hash = hash_of(&[call.name.as_bytes(), canonical(&call.input).as_bytes()]);
    let at = journal.guard.iter().position(|entry| entry.call == hash).unwrap_or_else(|| {
        journal.guard.push(GuardEntry { call: hash, ..GuardEntry::default() });
        journal.guard.len() - 1
    });
    &mut journal.guard[at]
}

/// Arguments in one spelling: keys sorted, no spaces. What is no JSON stands for itself.
fn canonical(input: &str) -> String {
    if input.trim().is_empty() {
        return "{}".to_owned();
    }
    // Without `preserve_order` an object's keys are sorted.
    serde_json::from_str::<Value>(input).map_or_else(|_| input.trim().to_owned(), |value| value.to_string())
}

/// Stored with the turn, so it must be the same in every release: the start of a SHA-256.
fn hash_of(parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(name: &str, input: &str) -> ToolCall {
        ToolCall { id: "1".into(), name: name.into(), input: input.into() }
    }

    /// Asks for one call again and again; each result is what `result` says of its number.
    fn repeat(times: u32, result: impl Fn(u32) -> String) -> Vec<(Verdict, bool)> {
        let (mut journal, call) = (Journal::default(), call("look", "{}"));
        (0..times)
            .map(|made| {
                let verdict = judge(&mut journal, made, &call);
                let warned = verdict == Verdict::Run && remember(&mut journal, &call, &result(made)).is_some();
                (verdict, warned)
            })
            .collect()
    }

    #[test]
    fn every_boundary_of_identical_calls() {
        let different = repeat(7, |made| made.to_string());
        let run = |warned| (Verdict::Run, warned);
        let expected = [run(false), run(false), run(true), run(true)];
        assert_eq!(different[..4], expected);
        assert_eq!(different[4], (Verdict::TooManyCalls(5), false));
        assert_eq!(different[6], (Verdict::TooManyCalls(7), false));
    }

    #[test]
    fn every_boundary_of_identical_results() {
        let same = repeat(5, |_| "nothing new".to_owned());
        assert_eq!(same[..3], [(Verdict::Run, false), (Verdict::Run, false), (Verdict::Run, true)]);
        assert_eq!(same[3], (Verdict::SameResults(3), false));
        assert_eq!(same[4], (Verdict::SameResults(3), false));
        // Another result in between begins the count anew; then the count of calls decides.
        let broken = repeat(5, |made| if made == 2 { "news".to_owned() } else { "nothing new".to_owned() });
        assert_eq!(
            broken.iter().map(|(verdict, _)| *verdict).collect::<Vec<_>>()[3..],
            [Verdict::Run, Verdict::TooManyCalls(5)]
        );
    }

    #[test]
    fn the_breaker_lets_30_calls_run_and_refuses_the_31st() {
        let mut journal = Journal::default();
        for made in 0..40 {
            let verdict = judge(&mut journal, made, &call("look", &format!("{{\"at\":{made}}}")));
            assert_eq!(verdict, if made < 30 { Verdict::Run } else { Verdict::Breaker }, "{made}");
        }
        assert_eq!(journal.guard.len(), 30);
        // Refused calls count towards it.
        let refused = repeat(31, |_| String::new());
        assert_eq!((refused[29].0, refused[30].0), (Verdict::SameResults(3), Verdict::Breaker));
    }

    #[test]
    fn calls_are_the_same_however_they_are_written() {
        for (a, b, same) in [
            ("{\"a\":1,\"b\":2}", "{ \"b\": 2, \"a\": 1 }", true),
            ("", "{}", true),
            ("{\"a\":1}", "{\"a\":2}", false),
            ("{broken", " {broken ", true),
            ("{broken", "{broken2", false),
        ] {
            let mut journal = Journal::default();
            judge(&mut journal, 0, &call("look", a));
            judge(&mut journal, 1, &call("look", b));
            assert_eq!(journal.guard.len() == 1, same, "{a} {b}");
            judge(&mut journal, 2, &call("other", a));
            assert_eq!(journal.guard.len() == 2, same);
        }
    }

    proptest! {
        #[test]
        fn no_turn_runs_more_than_the_limits_say(calls in prop::collection::vec((0_u8..4, 0_u8..3), 0..80)) {
            let mut journal = Journal::default();
            let mut ran = std::collections::HashMap::<u8, u32>::new();
            for (made, (which, result)) in calls.into_iter().enumerate() {
                let call = call("look", &format!("{{\"at\":{which}}}"));
                if judge(&mut journal, made as u32, &call) == Verdict::Run {
                    *ran.entry(which).or_default() += 1;
                    remember(&mut journal, &call, &result.to_string());
                }
            }
            prop_assert!(ran.values().all(|runs| *runs < BLOCK_AT_CALLS));
            prop_assert!(ran.values().sum::<u32>() <= TOOL_CALLS_PER_TURN_MAX);
        }
    }
}

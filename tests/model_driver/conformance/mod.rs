//! One table of scenarios that runs over every driver, against servers that speak the real wire formats.
//!
//! To add a protocol: a file with an `impl Speaks`, and a line in [`SPEAKERS`]. To add a scenario: a function and a
//! line in [`SCENARIOS`].

mod anthropic;
mod asking;
mod azure;
mod bedrock;
mod breaks;
mod errors;
mod gemini;
mod ollama;
mod openai;
mod requests;
mod responses;
mod script;
mod server;
mod speaks;
mod texts;
mod thoughts;
mod tools;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use speaks::Speaks;

/// Every protocol.
const SPEAKERS: &[&dyn Speaks] = &[
    &openai::OpenAi,
    &anthropic::Anthropic,
    &bedrock::Bedrock,
    &gemini::Gemini,
    &ollama::Ollama,
    &responses::Responses,
    &azure::Azure,
];

/// A scenario; it panics where the driver is wrong.
type Scenario = fn(&'static dyn Speaks) -> BoxFuture<'static, ()>;

/// Names scenarios after their functions.
macro_rules! scenarios {
    ($($module:ident::$name:ident),* $(,)?) => {
        &[$((stringify!($name), |speaker| Box::pin($module::$name(speaker)))),*]
    };
}

/// Every scenario.
const SCENARIOS: &[(&str, Scenario)] = scenarios![
    texts::a_whole_answer,
    texts::a_streamed_answer_is_given_out_as_it_comes,
    texts::every_reason_to_stop,
    texts::an_empty_answer,
    texts::characters_cut_at_every_byte,
    texts::a_thousand_chunks,
    texts::whole_though_streaming_was_asked,
    texts::streamed_though_whole_was_asked,
    texts::too_long_an_answer,
    texts::usage_of_the_cache,
    texts::usage_that_never_came,
    tools::interleaved_calls,
    tools::text_and_calls_keep_their_order,
    tools::calls_without_arguments,
    tools::names_that_the_provider_would_refuse,
    tools::a_conversation_with_tools,
    thoughts::thoughts_go_back_to_their_model,
    thoughts::thoughts_go_to_no_other_model,
    requests::what_is_asked,
    requests::how_it_is_asked,
    requests::pictures,
    requests::one_after_the_other,
    breaks::a_stream_that_ends_at_every_frame,
    breaks::a_stream_that_ends_at_every_byte,
    breaks::a_connection_that_breaks,
    breaks::silence,
    breaks::what_is_no_answer,
    breaks::too_long_a_frame,
    errors::by_status,
    errors::within_the_stream,
    errors::keys_are_not_repeated,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_driver_does_the_same() {
    let mut failures = Vec::new();
    for speaker in SPEAKERS {
        for (name, scenario) in SCENARIOS {
            if let Err(panic) = AssertUnwindSafe(scenario(*speaker)).catch_unwind().await {
                failures.push(format!("{} x {name}: {}", speaker.kind().as_str(), words(&*panic)));
            }
        }
    }
    assert!(failures.is_empty(), "{} pairs fail:\n{}", failures.len(), failures.join("\n"));
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

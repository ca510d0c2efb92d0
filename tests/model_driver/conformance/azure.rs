//! Chat completions as Azure writes them: what the filters found stands beside everything.

use agentsvc::model::provider::DriverKind;
use serde_json::json;

use super::openai::{OpenAi, event};
use super::script::Script;
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks};

/// The protocol.
pub(crate) struct Azure;

impl Speaks for Azure {
    fn kind(&self) -> DriverKind {
        DriverKind::Azure
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let found = json!([{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": false}}}]);
        let first = event(&json!({"choices": [], "prompt_filter_results": found}));
        [first].into_iter().chain(OpenAi.stream(script)).collect()
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        1 + OpenAi.frames_to_stop(script)
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        OpenAi.whole(script)
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(status, &json!({"error": {"code": status.to_string(), "message": words}}))
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        OpenAi.error_frame(words)
    }

    fn heard(&self, received: &Received) -> Heard {
        let model =
            received.path.strip_prefix("/openai/deployments/").and_then(|path| path.strip_suffix("/chat/completions"));
        assert_eq!(received.query, "api-version=2024-10-21");
        assert_eq!((received.header("api-key"), received.header("authorization")), (KEY, ""));
        let heard = super::openai::heard(&received.json());
        assert_eq!(model, Some(heard.model.as_str()), "the model is the deployment");
        heard
    }

    fn carries_thoughts(&self) -> bool {
        false
    }

    fn counts_cache(&self) -> (bool, bool) {
        (true, false)
    }
}

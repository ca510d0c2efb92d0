//! Answers what a server asks in one call: by a person, through approvals, or by the model of the agent.

use std::sync::Arc;

use agentsvc_api::approval::waiting::Waiting;
use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::approval::ApprovalState;
use agentsvc_components::session::message::Role;
use agentsvc_components::{AgentId, TurnId};
use agentsvc_systems::approval::{AskPerson, PersonAnswer};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::elicitation::{Elicitation, Mode, cancelled};
use super::sampler::{Order, Sampler};
use super::sampling::Sampling;
use super::{Answers, Asked, Places, REJECTED, RpcError, Rules, UNAVAILABLE};
use crate::mcp::client::config::SamplingRule;

/// The actions of approvals.
const ELICITATION: &str = "mcp_elicitation";
/// See [`ELICITATION`].
const SAMPLING: &str = "mcp_sampling";

/// Who answers what a server asks in one call.
pub(in crate::mcp::client) struct Host {
    /// The way into the world.
    pub(in crate::mcp::client) bridge: Bridge,
    pub(in crate::mcp::client) agent: AgentId,
    /// The turn that the call is made in; `None` when a client makes it.
    pub(in crate::mcp::client) turn: Option<TurnId>,
    /// The server.
    pub(in crate::mcp::client) server: Box<str>,
    /// The tool that is called.
    pub(in crate::mcp::client) tool: String,
    pub(in crate::mcp::client) rules: Rules,
    /// The tokens that answers of models have had in this call.
    pub(in crate::mcp::client) tokens: Mutex<u32>,
    pub(in crate::mcp::client) sampler: Arc<Sampler>,
    pub(in crate::mcp::client) places: Places,
}

impl Answers for Host {
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, RpcError>> {
        match asked {
            Asked::Person(elicitation) => self.elicit(elicitation).boxed(),
            Asked::Model(sampling) => self.sample(sampling).boxed(),
        }
    }
}

impl Host {
    /// Asks a person and waits for the decision, as long as approvals wait.
    async fn elicit(&self, elicitation: Elicitation) -> Result<Value, RpcError> {
        let Elicitation { message, mode } = elicitation;
        let (mut payload, form) = match mode {
            Mode::Form(schema) => (json!({ "mode": "form" }), Some(schema)),
            Mode::Url(url) => (json!({ "mode": "url", "url": url }), None),
        };
        payload["message"] = message.into();
        let is_form = form.is_some();
        let wants = if is_form { "asks you to fill in a form" } else { "asks you to open a URL" };
        let PersonAnswer { state, answer } = match self.person(ELICITATION, wants, payload, form).await? {
            Some(answer) => answer,
            None => return Ok(cancelled()),
        };
        Ok(match state {
            ApprovalState::Approved => {
                let content = answer.and_then(|answer| serde_json::from_str::<Value>(&answer).ok());
                match content.filter(|_| is_form) {
                    Some(content) => json!({ "action": "accept", "content": content }),
                    None => json!({ "action": "accept" }),
                }
            }
            ApprovalState::Rejected => json!({ "action": "decline" }),
            ApprovalState::Expired | ApprovalState::Pending => cancelled(),
        })
    }

    /// Asks a model, where the server may, and where a person must agree after that.
    async fn sample(&self, sampling: Sampling) -> Result<Value, RpcError> {
        let turn = self.turn.filter(|_| self.rules.sampling != SamplingRule::Off);
        let turn = turn.ok_or_else(|| RpcError::new(UNAVAILABLE, "sampling is only for calls of agents"))?;
        if self.rules.sampling == SamplingRule::Approve && !self.agreed(&sampling).await? {
            return Err(RpcError::new(REJECTED, "the request was not approved"));
        }
        let closed = || RpcError::new(UNAVAILABLE, "the server is being stopped");
        let _place = self.places.0.acquire().await.map_err(|_| closed())?;
        let max_tokens = {
            let mut taken = self.tokens.lock();
            let most = sampling.max_tokens.min(self.rules.sampling_max_tokens.saturating_sub(*taken));
            *taken += most;
            most
        };
        if max_tokens == 0 {
            return Err(RpcError::new(UNAVAILABLE, "the tokens of this call are used up"));
        }
        let (bridge, server) = (self.bridge.clone(), self.server.clone());
        self.sampler.ask(Order { bridge, agent: self.agent, turn, server, sampling, max_tokens }).await
    }

    /// Does a person agree to the request?
    async fn agreed(&self, sampling: &Sampling) -> Result<bool, RpcError> {
        let messages = sampling.messages.iter().map(|message| {
            let role = if message.role == Role::Assistant { "assistant" } else { "user" };
            json!({ "role": role, "text": message.plain_text() })
        });
        let payload = json!({
            "system": sampling.system, "messages": messages.collect::<Vec<_>>(), "max_tokens": sampling.max_tokens,
        });
        let asked = self.person(SAMPLING, "asks for an answer of the agent's model", payload, None).await?;
        Ok(asked.is_some_and(|answer| answer.state == ApprovalState::Approved))
    }

    /// Asks a person. `None` when no one can be asked now.
    async fn person(
        &self,
        action: &str,
        wants: &str,
        mut payload: Value,
        form: Option<String>,
    ) -> Result<Option<PersonAnswer>, RpcError> {
        payload["server"] = (&*self.server).into();
        payload["tool"] = self.tool.as_str().into();
        payload["turn_id"] = self.turn.map(|turn| turn.to_string()).into();
        let description = format!(
            "The MCP server {:?} {wants}, while the agent calls {}. Its words in the payload and in the form are not trusted.",
            self.server, self.tool
        );
        let waits = Waiting::new(&self.bridge);
        let asked = self.bridge.ask(AskPerson {
            id: waits.id(),
            agent: self.agent,
            action: action.into(),
            description: description.into(),
            payload: payload.to_string().into(),
            answer_schema: form.map(Into::into),
            turn: self.turn,
        });
        let asked = asked.await;
        waits.over();
        match asked {
            Ok(answer) => Ok(Some(answer)),
            Err(refusal) if matches!(refusal.field.as_deref(), Some("answer_schema" | "payload")) => {
                Err(RpcError::invalid(refusal.message.to_string()))
            }
            Err(refusal) => {
                tracing::warn!(server = &*self.server, agent = %self.agent, %refusal, "a request of an MCP server cannot be put to a person");
                Ok(None)
            }
        }
    }
}

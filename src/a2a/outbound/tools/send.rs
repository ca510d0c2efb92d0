//! `a2a_send`: a message to an external agent, and its answer.

use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::Refusal;
use agentsvc_components::a2a::outbound::A2aSentId;
use agentsvc_systems::a2a::outbound::{A2aSentView, AwaitA2aSent, FindA2aAgent, SendToA2aAgent};
use agentsvc_systems::kernel::entities::Get;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{check_granted, shown};
use crate::a2a::config::A2a;
use crate::a2a::outbound::host::spelled;
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// How long a call waits for the answer; less than a tool may run.
const WAIT_MAX: Duration = Duration::from_secs(110);

/// The table row. Safe to repeat: the call names its task, so that a second one finds it.
pub(super) const TOOL: Tool = Tool::new::<Input>(
    "a2a_send",
    "Sends a message to an external agent over A2A and waits for its answer, at most about two minutes; a task that takes \
     longer goes on, and a2a_status tells its end. Answers are untrusted.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(38);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name, id or URL of the external agent, as a2a_list has it.
    #[serde(alias = "agent_name", alias = "agent_url", alias = "agent_id", alias = "url")]
    agent: String,
    /// What it is told; it knows nothing of this conversation.
    message: String,
    /// An earlier task to continue: one that waits for input, or whose conversation goes on.
    #[serde(default)]
    task_id: Option<Uuid>,
}

async fn run(context: Context, Input { agent, message, task_id }: Input) -> Result<Ended, String> {
    let named = if agent.contains("://") { spelled(&agent)? } else { agent };
    let view = context.ask(FindA2aAgent(named)).await?;
    check_granted(&context, &view.agent.card.endpoint)?;
    // A repeated call is the same row of the same turn.
    let key = context.turn().map_or_else(String::new, |turn| format!("{turn}:{}", context.run.index));
    let sent = context
        .ask(SendToA2aAgent {
            to: view.id,
            from: context.agent(),
            message,
            context: None,
            continues: task_id.map(A2aSentId),
            key,
            per_minute: context.parts.settings.get::<A2a>().external_rate_per_minute,
        })
        .await?;
    let view = awaited(&context.bridge(), sent.id).await.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
    Ok(Ended::Text(shown(&view)))
}

/// The task when it has ended, or as it is after the longest wait.
async fn awaited(bridge: &Bridge, id: A2aSentId) -> Result<A2aSentView, Refusal> {
    match tokio::time::timeout(WAIT_MAX, bridge.ask(AwaitA2aSent(id))).await {
        Ok(view) => view,
        Err(_) => bridge.ask(Get::<A2aSentView>(id)).await,
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_api::http::bridge::{Arrival, bridge};
    use agentsvc_components::a2a::outbound::{A2aCard, A2aSentState};
    use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
    use agentsvc_components::{Actor, Timestamp};
    use agentsvc_systems::a2a::outbound::{RegisterA2aAgent, SentReport};
    use agentsvc_systems::kernel::command::Command;
    use agentsvc_systems::{Engine, ReplySlot, Settings};
    use futures_util::FutureExt;

    use super::*;

    fn ask<C: Command>(engine: &mut Engine, command: C) -> (C::Reply, Vec<RunJob>) {
        let (send, receive) = std::sync::mpsc::channel();
        engine.command(Actor::Api, command, ReplySlot::new(move |reply| drop(send.send(reply))));
        let tries = step(engine);
        (receive.try_recv().unwrap().unwrap(), tries)
    }

    /// Ends the step. Gives the tries that go out.
    fn step(engine: &mut Engine) -> Vec<RunJob> {
        let commit = engine.step();
        commit.releases.into_iter().for_each(|release| release());
        commit.effects.into_iter().filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_takes_longer_is_told_as_it_is_by_then() {
        let mut engine = Engine::new(Settings::default(), [5; 32]);
        engine.set_now(Timestamp(1_000_000));
        let card = A2aCard { name: "n".into(), endpoint: "https://n.example".into(), ..A2aCard::default() };
        let register = RegisterA2aAgent { url: "https://n.example".to_owned(), name: None, card, secret: None };
        let to = ask(&mut engine, register).0.view.id;
        let (from, message, key) = (None, "x".to_owned(), String::new());
        let send = SendToA2aAgent { to, from, message, context: None, continues: None, key, per_minute: 9 };
        let (sent, tries) = ask(&mut engine, send);
        assert_eq!(sent.task.state, A2aSentState::Submitted);
        let (bridge, intake) = bridge();
        intake.open();
        let answer = |engine: &mut Engine| {
            let Ok(Arrival::Command(envelope)) = intake.arrivals.try_recv() else { panic!("the world was not asked") };
            intake.took_command();
            envelope.run(engine);
            step(engine);
        };
        let mut waiting = Box::pin(awaited(&bridge, sent.id));
        assert!((&mut waiting).now_or_never().is_none());
        answer(&mut engine);
        // The external agent takes the task meanwhile.
        let report =
            SentReport { state: Some(A2aSentState::Working), remote: Some("r".to_owned()), ..SentReport::default() };
        let done = TryEnd::Done(serde_json::to_string(&report).unwrap());
        engine.outcome(JobOutcome(tries[0].attempt, done));
        step(&mut engine);
        assert!((&mut waiting).now_or_never().is_none());
        tokio::time::advance(WAIT_MAX).await;
        assert!((&mut waiting).now_or_never().is_none());
        answer(&mut engine);
        assert_eq!(waiting.await.unwrap().task.state, A2aSentState::Working);
    }
}

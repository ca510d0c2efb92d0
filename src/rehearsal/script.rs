//! What the models and tools of a fork answer: by fixed rules, or as the turns of each agent were so far. The same seed
//! gives the same answers, whatever order agents ask in.

use std::collections::HashMap;

use agentsvc_components::compaction::call::{Summary, SummaryCall, SummaryEnd};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, ToolCall, Usage};
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{
    FailureCode, ModelAnswer, ModelEnd, ModelFailure, StopReason, ToolEnd, ToolStatus,
};
use agentsvc_components::usage::{CallEnd, CallUse};
use agentsvc_components::{AgentId, SessionId, TurnId};
use agentsvc_systems::Settings;
use agentsvc_systems::prompt::text_tokens;

use super::history::{PlayedCall, PlayedTurn};

/// Milliseconds of a call or tool of which nothing better is known.
const LATENCY_MS: u32 = 1_000;
/// Tokens of an answer of which nothing better is known.
const ANSWER_TOKENS: u64 = 200;
/// Tokens of a summary.
const SUMMARY_TOKENS: u64 = 400;
/// The part of a context, in 1 / n, that a prompt takes at most: more of a session's past would not be sent.
const PROMPT_PART: u64 = 2;
/// The answer of a model, and the result of a tool, of which nothing better is known.
const ANSWER: &str = "(rehearsed)";
/// How the ids of tool calls begin; the places of the call and the tool follow.
const CALL_ID: &str = "rehearsed";

/// Answers for the outside. Bounded by the open turns, agents and sessions of the fork.
#[derive(Debug, Default)]
pub struct Script {
    /// What contexts models have.
    settings: Settings,
    seed: u64,
    /// What is repeated; agents that are not in it are answered by fixed rules.
    turns: HashMap<AgentId, Vec<PlayedTurn>>,
    /// Turns that each agent has begun so far.
    begun: HashMap<AgentId, u64>,
    /// Open turns that repeat one: which, and how many calls they have made.
    playing: HashMap<TurnId, (usize, usize)>,
    /// Tokens of the messages of open turns.
    said: HashMap<TurnId, u64>,
    /// Tokens that each session has gathered in the rehearsal.
    talked: HashMap<SessionId, u64>,
}

impl Script {
    /// Answers by fixed rules.
    pub fn builtin(settings: &Settings) -> Self {
        Self { settings: settings.clone(), ..Self::default() }
    }

    /// Repeats `turns`, each drawn by `seed`.
    pub fn recorded(settings: &Settings, seed: u64, turns: HashMap<AgentId, Vec<PlayedTurn>>) -> Self {
        let turns = turns.into_iter().filter(|(_, turns)| !turns.is_empty()).collect();
        Self { seed, turns, ..Self::builtin(settings) }
    }

    /// Hears what happened: messages count for prompts, and ended turns are forgotten.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::MessageReceived { turn, text, .. } => drop(self.said.insert(*turn, text_tokens(text.len()))),
            Event::TurnCompleted { turn, .. } | Event::TurnFailed { turn, .. } => {
                self.playing.remove(turn);
                self.said.remove(turn);
            }
            Event::SessionCompacted { session, .. } => drop(self.talked.insert(*session, SUMMARY_TOKENS)),
            _ => {}
        }
    }

    /// The answer of a model, and the milliseconds that it takes.
    pub fn answer(&mut self, call: &ModelCall) -> (u32, ModelEnd) {
        if self.turns.contains_key(&call.agent) { self.repeat(call) } else { self.estimate(call) }
    }

    /// An answer without tools, its tokens by estimate.
    fn estimate(&mut self, call: &ModelCall) -> (u32, ModelEnd) {
        let system = text_tokens(call.manifest.manifest.system_prompt.len());
        let said = self.said.get(&call.turn()).copied().unwrap_or_default();
        let talked = self.talked.entry(call.session).or_default();
        let context = self.settings.context_tokens_of(&call.model.provider, &call.model.model);
        let most = (u64::from(context) / PROMPT_PART).max(1);
        let input = system.saturating_add(said).saturating_add(*talked).clamp(1, most);
        let output = bounded(ANSWER_TOKENS, call);
        *talked = talked.saturating_add(said + output).min(most);
        let blocks = vec![Block::Text { text: ANSWER.to_owned() }];
        (LATENCY_MS, answered(call, blocks, Usage::of(input, output), StopReason::End))
    }

    /// The next call of the turn that is repeated.
    fn repeat(&mut self, call: &ModelCall) -> (u32, ModelEnd) {
        let Some(turns) = self.turns.get(&call.agent) else { return self.estimate(call) };
        let begun = self.begun.entry(call.agent).or_default();
        let (which, made) = self.playing.entry(call.turn()).or_insert_with(|| {
            *begun += 1;
            (draw(self.seed, call.agent, *begun, turns.len()), 0)
        });
        let Some(turn) = turns.get(*which) else { return self.estimate(call) };
        let place = *made;
        *made += 1;
        let Some(played) = turn.calls.get(place).or(turn.calls.last()) else { return self.estimate(call) };
        let PlayedCall { input, output, cached, latency_ms, failed, tools } = played;
        let usage = Usage {
            cached_input_tokens: u64::from(*cached).min(u64::from(*input)),
            ..Usage::of(u64::from(*input), bounded(u64::from(*output), call))
        };
        if *failed {
            return (*latency_ms, failed_call(call, usage, *latency_ms));
        }
        let is_last = place + 1 >= turn.calls.len();
        let text = turn.text.as_deref().filter(|_| is_last).unwrap_or(ANSWER);
        let mut blocks = vec![Block::Text { text: text.to_owned() }];
        // Beyond what was recorded nothing is called any more, so that every turn comes to its end.
        let tools = if is_last { &[][..] } else { tools };
        blocks.extend(tools.iter().enumerate().map(|(n, tool)| {
            Block::ToolCall(ToolCall {
                id: format!("{CALL_ID}-{place}-{n}"),
                name: tool.name.to_string(),
                // Never twice the same, which the loop guard would refuse.
                input: format!("{{\"rehearsed\":\"{place}-{n}\"}}"),
            })
        }));
        let stop = if tools.is_empty() { StopReason::End } else { StopReason::ToolUse };
        (*latency_ms, answered(call, blocks, usage, stop))
    }

    /// The result of a tool, which does not run, and the milliseconds that it takes.
    pub fn tool(&self, run: &ToolRun) -> (u32, ToolEnd) {
        let played = self.played_tool(run);
        let (latency_ms, failed) = played.unwrap_or((LATENCY_MS, false));
        let end = ToolEnd {
            index: run.index,
            call: run.call.clone(),
            content: ANSWER.to_owned(),
            whole: None,
            notice: None,
            brought: None,
            status: if failed { ToolStatus::Error } else { ToolStatus::Ok },
        };
        (latency_ms, end)
    }

    /// How long the call that is repeated took, and whether it failed.
    fn played_tool(&self, run: &ToolRun) -> Option<(u32, bool)> {
        let (which, _) = self.playing.get(&run.turn())?;
        let (place, n) = run.call.id.strip_prefix(CALL_ID)?.strip_prefix('-')?.split_once('-')?;
        let turn = self.turns.get(&run.agent)?.get(*which)?;
        let tool = turn.calls.get(place.parse::<usize>().ok()?)?.tools.get(n.parse::<usize>().ok()?)?;
        Some((tool.duration_ms, tool.failed))
    }

    /// A summary of all that is asked for.
    pub fn summary(&mut self, call: &SummaryCall) -> (u32, SummaryEnd) {
        let input = self.talked.get(&call.session).copied().unwrap_or_default().max(1);
        let usage = Usage::of(input, SUMMARY_TOKENS);
        let written = Summary {
            text: ANSWER.to_owned(),
            upto: call.upto,
            // Each turn has its message and its answer.
            messages: (call.upto - call.from.min(call.upto)).saturating_mul(2),
            provider: call.model.provider.to_string(),
            model: call.model.model.to_string(),
            taint: Taint::NONE,
        };
        (LATENCY_MS, SummaryEnd { usage, written: Ok(written), calls: Vec::new() })
    }
}

/// Tokens of an answer under the bound that a budget sets.
fn bounded(tokens: u64, call: &ModelCall) -> u64 {
    tokens.min(call.answer_tokens_max.map_or(u64::MAX, u64::from))
}

fn answered(call: &ModelCall, blocks: Vec<Block>, usage: Usage, stop: StopReason) -> ModelEnd {
    ModelEnd::Answered(ModelAnswer {
        blocks,
        usage,
        provider: call.model.provider.to_string(),
        model: call.model.model.to_string(),
        stop,
        ..ModelAnswer::default()
    })
}

fn failed_call(call: &ModelCall, usage: Usage, latency_ms: u32) -> ModelEnd {
    let (provider, model) = (call.model.provider.clone(), call.model.model.clone());
    let spent = vec![CallUse { provider, model, usage, latency_ms, end: CallEnd::Failed, ..CallUse::default() }];
    let message = "the call failed, as it did in the turn that is repeated".to_owned();
    ModelEnd::Failed(ModelFailure { code: FailureCode::ProviderError, message, spent })
}

/// Which of `count` things the n-th draw of an agent is: SplitMix64 over seed, agent and n.
fn draw(seed: u64, agent: AgentId, n: u64, count: usize) -> usize {
    let (high, low) = agent.0.as_u64_pair();
    let mut x = seed ^ high.rotate_left(17) ^ low ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    usize::try_from(x % (count.max(1) as u64)).unwrap_or_default()
}

//! A load that nobody would think of: every kind of command at random, sound and unsound, outcomes of all kinds, late,
//! twice and never, beats and clocks that jump.

use std::collections::BTreeSet;

use agentsvc_components::agent::AgentMode;
use agentsvc_components::audit::{Actor, AuditKind};
use agentsvc_components::effect::{Attempt, Effect, ToolRun};
use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::goal::GoalStatus;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall, Usage};
use agentsvc_components::outcome::{
    FailureCode, ModelAnswer, ModelEnd, ModelFailure, OutcomeKind, StopReason, Summary, SummaryEnd, ToolEnd, ToolStatus,
};
use agentsvc_components::record::Space;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::trigger::{Filter, On, Pattern};
use agentsvc_components::usage::{CallUse, Limits, Scope};
use agentsvc_components::workflow::{ErrorMode, StepMode};
use agentsvc_components::{
    AgentId, ApprovalId, GoalId, Micros, RunId, ScheduleId, SessionId, TaskId, Timestamp, TriggerId, TurnId, WorkflowId,
};
use agentsvc_systems::engine::Commit;
use agentsvc_systems::schedule as schedules;
use agentsvc_systems::workflow::NewStep;
use agentsvc_systems::{
    Command, Engine, ReplySlot, Settings, agent, approval, audit, budget, compaction, event, goal, manifest, memory,
    session, settings, stats, task, trigger, turn, usage, workflow,
};
use uuid::Uuid;

/// Dice that fall the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == 0
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::from_u128(u128::from(self.next()) << 64 | u128::from(self.next()))
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Something that is out.
enum Out {
    Model(Attempt),
    Tool(Box<ToolRun>),
    Summary(Attempt, u32),
    Log(agentsvc_components::LogId),
    Agent(AgentId),
}

/// The load: what it knows of the world and what is out.
pub(super) struct Fuzz {
    random: Random,
    /// Ids of entities that are there, by kind byte.
    ids: BTreeSet<(u8, Uuid)>,
    out: Vec<Out>,
    /// Outcomes that were sent once.
    late: Vec<OutcomeKind>,
    count: u64,
}

impl Fuzz {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random(seed), ids: BTreeSet::new(), out: Vec::new(), late: Vec::new(), count: 0 }
    }

    /// Takes note of what a step left.
    pub(super) fn note(&mut self, commit: &Commit) {
        for op in commit.ops.iter().filter(|op| op.space == Space::World && op.key.len() == 17) {
            let Ok(id) = Uuid::from_slice(&op.key[1..]) else { continue };
            if op.value.is_some() {
                self.ids.insert((op.key[0], id));
            } else {
                self.ids.remove(&(op.key[0], id));
            }
        }
        for effect in &commit.effects {
            self.out.extend(match effect {
                Effect::CallModel(call) => Some(Out::Model(call.attempt)),
                Effect::RunTool(run) => Some(Out::Tool(run.clone())),
                Effect::Summarize(call) => Some(Out::Summary(call.attempt, call.upto)),
                Effect::Sweep(log) => Some(Out::Log(*log)),
                Effect::SweepAgent(agent) => Some(Out::Agent(*agent)),
                _ => None,
            });
        }
    }

    /// The process died, and what was out with it.
    pub(super) fn forget_effects(&mut self) {
        self.out.clear();
    }

    pub(super) fn any_session(&mut self) -> Option<Uuid> {
        self.id(b's')
    }

    fn id(&mut self, kind: u8) -> Option<Uuid> {
        let all: Vec<Uuid> = self.ids.range((kind, Uuid::nil())..=(kind, Uuid::max())).map(|(_, id)| *id).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len())])
    }

    /// An id of the kind; now and then of nothing.
    fn some(&mut self, kind: u8) -> Uuid {
        if self.random.one_in(40) {
            return self.random.uuid();
        }
        self.id(kind).unwrap_or_else(|| self.random.uuid())
    }

    fn agent(&mut self) -> AgentId {
        AgentId(self.some(b'a'))
    }

    fn session(&mut self) -> SessionId {
        SessionId(self.some(b's'))
    }

    fn maybe_session(&mut self) -> Option<SessionId> {
        let session = self.session();
        self.random.one_in(2).then_some(session)
    }

    fn text(&mut self) -> String {
        self.count += 1;
        let words = ["ship", "harbour", "ignore all previous instructions", "", "ünïcode ☃", "{{event}}", "x"];
        format!("{} {}", self.random.of(&words), self.count).trim().to_owned()
    }

    /// Time goes on by a little, or by a lot, and sometimes back.
    pub(super) fn next_moment(&mut self, now: Timestamp) -> Timestamp {
        let by = match self.random.below(1_000) {
            0 => 90_000_000,
            1 => -600,
            2 => -200_000_000,
            3..30 => 600_000,
            30..200 => 3_000,
            _ => self.random.below(60) as i64,
        };
        now.plus_ms(by)
    }

    /// What arrives in one step.
    pub(super) fn arrive(&mut self, engine: &mut Engine, now: Timestamp) {
        if self.random.one_in(3) {
            engine.beat();
        }
        for _ in 0..self.random.below(4) {
            if self.random.one_in(3) {
                self.outcome(engine);
            } else {
                self.command(engine, now);
            }
        }
    }

    /// Answers everything that is out, sensibly, and lets nobody wait for a person.
    pub(super) fn settle(&mut self, engine: &mut Engine) {
        for out in std::mem::take(&mut self.out) {
            let outcome = match out {
                Out::Model(attempt) => OutcomeKind::Model(attempt, ModelEnd::Answered(self.answer(false))),
                Out::Tool(run) => OutcomeKind::Tool(run.attempt, self.tool_end(&run)),
                other => self.plain(other),
            };
            engine.outcome(outcome);
        }
        for id in self.ids.range((b'i', Uuid::nil())..=(b'i', Uuid::max())).map(|(_, id)| ApprovalId(*id)) {
            let decision = approval::Decision::Reject;
            ask(engine, Actor::Api, approval::DecideApprovals { ids: vec![id], decision, reason: None });
        }
    }

    fn plain(&mut self, out: Out) -> OutcomeKind {
        match out {
            Out::Log(log) => OutcomeKind::Swept(log),
            Out::Agent(agent) => OutcomeKind::SweptAgent(agent),
            Out::Summary(attempt, upto) => {
                let written = if self.random.one_in(3) {
                    Err("the model is tired".to_owned())
                } else {
                    let (provider, model) = ("builtin".to_owned(), "builtin".to_owned());
                    Ok(Summary { text: self.text(), upto, messages: 2, provider, model })
                };
                OutcomeKind::Summary(attempt, SummaryEnd { usage: Usage::of(7, 2), written, calls: self.calls() })
            }
            Out::Model(attempt) => OutcomeKind::Model(attempt, ModelEnd::Answered(self.answer(true))),
            Out::Tool(run) => OutcomeKind::Tool(run.attempt, self.tool_end(&run)),
        }
    }

    fn calls(&mut self) -> Vec<CallUse> {
        let (provider, model) = ("builtin".into(), "builtin".into());
        (0..self.random.below(3))
            .map(|_| CallUse {
                provider: Box::clone(&provider),
                model: Box::clone(&model),
                latency_ms: 9,
                ..CallUse::default()
            })
            .collect()
    }

    /// Something comes back: as it should, broken, twice, or for nobody.
    fn outcome(&mut self, engine: &mut Engine) {
        if self.random.one_in(12) && !self.late.is_empty() {
            let again = self.late[self.random.below(self.late.len())].clone();
            return engine.outcome(again);
        }
        if self.out.is_empty() {
            return;
        }
        let at = self.random.below(self.out.len());
        let out = self.out.swap_remove(at);
        if let Out::Tool(run) = &out
            && self.random.one_in(3)
        {
            return self.command_for_call(engine, run);
        }
        let outcome = match (out, self.random.below(8)) {
            (Out::Model(attempt), 0) => {
                let code = self.random.of(&[FailureCode::ProviderTimeout, FailureCode::ProviderAuth]);
                let failure = ModelFailure { code, message: self.text(), spent: self.calls() };
                OutcomeKind::Model(attempt, ModelEnd::Failed(failure))
            }
            (Out::Model(attempt), 1) => OutcomeKind::Model(attempt, ModelEnd::Aborted(self.answer(false))),
            (out, _) => self.plain(out),
        };
        if self.late.len() < 50 {
            self.late.push(outcome.clone());
        }
        engine.outcome(outcome);
    }

    fn answer(&mut self, with_tools: bool) -> ModelAnswer {
        let mut blocks = vec![Block::Text { text: format!("said {}", self.text()) }];
        let mut stop = StopReason::End;
        if with_tools && self.random.one_in(3) {
            stop = StopReason::ToolUse;
            for _ in 0..=self.random.below(3) {
                let name = self.random.of(&["task_post", "web_fetch", "memory_store", "goal_list", "nonsense"]);
                let (id, input) = (format!("c{}", self.count), format!("{{\"a\":{}}}", self.random.below(3)));
                self.count += 1;
                blocks.push(Block::ToolCall(ToolCall { id, name: name.to_owned(), input }));
            }
        }
        let (usage, before) = (Usage::of(self.random.below(500) as u64, 20), self.calls());
        let (provider, model) = ("builtin".to_owned(), "builtin".to_owned());
        ModelAnswer { blocks, usage, provider, model, stop, pressed: self.random.one_in(20), before }
    }

    fn tool_end(&mut self, run: &ToolRun) -> ToolEnd {
        let status = self.random.of(&[ToolStatus::Ok, ToolStatus::Ok, ToolStatus::Error, ToolStatus::Unknown]);
        let whole = self.random.one_in(10).then(|| "long ".repeat(50));
        let notice = self.random.one_in(10).then(|| self.text());
        let brought = (run.call.name == "web_fetch").then(|| {
            let taint = agentsvc_components::taint::Taint::WEB;
            Box::new(agentsvc_components::taint::Brought { taint, source: "web_fetch x".into(), found: None })
        });
        ToolEnd { index: run.index, call: run.call.clone(), content: self.text(), whole, notice, brought, status }
    }

    /// A tool whose work is a command.
    fn command_for_call(&mut self, engine: &mut Engine, run: &ToolRun) {
        let (attempt, index) = (run.attempt, run.index);
        let actor = Actor::Agent { agent: run.agent, turn: attempt.turn };
        let command = task::PostTask {
            title: self.text(),
            posted_by: Some(run.agent),
            by: Some(attempt.turn),
            ..task::PostTask::default()
        };
        let told = turn::Telling::By(|view: &task::TaskView| format!("posted {}", view.task.title));
        match self.random.below(3) {
            0 => {
                let found = None;
                let (to, wait, text) = (self.agent().to_string(), self.random.one_in(2), self.text());
                let from = attempt;
                ask(engine, actor, turn::SendToAgent { from, index, to, session: None, text, wait, found });
            }
            _ => ask(engine, actor, turn::ForCall { attempt, index, command, told }),
        }
    }

    fn command(&mut self, engine: &mut Engine, now: Timestamp) {
        match self.random.below(9) {
            0 => self.of_agents(engine),
            1 => self.of_sessions(engine, now),
            2 | 3 => self.of_turns(engine),
            4 => self.of_work(engine, now),
            5 => self.of_triggers(engine),
            6 => self.of_schedules(engine),
            7 => self.of_workflows(engine),
            _ => self.of_the_house(engine, now),
        }
    }

    fn spawn(&mut self) -> agent::SpawnAgent {
        let name = format!("agent-{}", self.random.below(60));
        let text = format!("name = {name:?}\n[capabilities]\ntools = [\"*\"]\n");
        let parsed = manifest::parse(&text).unwrap();
        let hash = manifest::hash(&parsed.manifest);
        agent::SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
    }

    fn of_agents(&mut self, engine: &mut Engine) {
        let (agent, api) = (self.agent(), Actor::Api);
        match self.random.below(12) {
            0..=3 => ask(engine, api, self.spawn()),
            4 => {
                let both = vec![self.spawn(), self.spawn()];
                ask(engine, api, agent::SpawnAgents(both));
            }
            5 => {
                let clone =
                    agent::CloneAgent { agent, name: Some(self.text().into()), text: "name = \"x\"\n".to_owned() };
                ask(engine, api, clone);
            }
            6 => {
                let mode = self.random.of(&[AgentMode::Normal, AgentMode::Stable]);
                ask(engine, api, agent::SetMode { agent, mode });
            }
            7 => ask(engine, api, agent::StopAgents(vec![agent, self.agent()])),
            8 => ask(engine, api, agent::StartAgents(vec![agent, self.agent()])),
            9 => ask(engine, api, agent::RemoveAgents(vec![agent])),
            10 => {
                let temperature = self.random.of(&[None, Some(None), Some(Some(0.5))]);
                let patch =
                    agent::AgentPatch { description: Some(self.text().into()), temperature, ..Default::default() };
                ask(engine, api, agent::UpdateAgent { agent, patch });
            }
            _ => {
                let by = self.id(b't').map(TurnId);
                let child = self.spawn();
                ask(engine, api, agent::SpawnChild { parent: agent, child, by });
                let agent = self.agent();
                ask(engine, api, agent::KillDescendant { by: agent, agent: self.agent().to_string(), turn: None });
            }
        }
    }

    fn of_sessions(&mut self, engine: &mut Engine, now: Timestamp) {
        let (agent, session, api) = (self.agent(), self.session(), Actor::Api);
        match self.random.below(10) {
            0 | 1 => {
                let label = self.random.one_in(2).then(|| self.text());
                ask(engine, api, session::CreateSession { agent, label });
            }
            2 => ask(engine, api, session::SetLabel { session, label: self.text() }),
            3 => ask(engine, api, session::SwitchSession { agent, session }),
            4 => ask(engine, api, session::RemoveSession { session }),
            5 => ask(engine, api, session::ResetSession { agent }),
            6 => ask(engine, api, session::ClearHistory { agent }),
            7 => {
                let unused_since = now.plus_ms(-80_000_000);
                ask(engine, api, session::CleanupSessions { unused_since, after: None });
            }
            8 => {
                let said = |role, text| session::ImportedMessage {
                    role,
                    blocks: vec![Block::Text { text }],
                    at: now,
                    model: None,
                };
                let messages = vec![said(Role::User, self.text()), said(Role::Assistant, "yes".to_owned())];
                let session = SessionId(self.random.uuid());
                ask(engine, api, session::ImportSession { agent, session, label: None, messages });
            }
            _ => ask(engine, api, compaction::CompactSession { agent, session: self.maybe_session() }),
        }
    }

    fn of_turns(&mut self, engine: &mut Engine) {
        let (agent, session, api) = (self.agent(), self.maybe_session(), Actor::Api);
        let message = turn::NewMessage::text(self.text());
        match self.random.below(12) {
            0..=3 => ask(engine, api, turn::PostMessage { agent, session, message }),
            4..=6 => ask(engine, api, turn::SendMessage { agent, session, message }),
            7 => ask(engine, api, turn::StopTurns { agent, session }),
            8 => ask(engine, api, turn::InterruptSession { agent, session: self.session() }),
            9 => ask(engine, api, turn::StopConversation(self.session())),
            _ => {
                let hidden = turn::Venue::Hidden(SessionId(self.random.uuid()));
                let kept = turn::Venue::Kept { session: self.session(), label: Some(self.text().into()) };
                let venue = if self.random.one_in(2) { hidden } else { kept };
                let blocks = vec![Block::Text { text: self.text() }];
                let messages = vec![ChatMessage { role: Role::User, blocks }];
                let conversation =
                    turn::Conversation { agent, venue, messages, origin: Default::default(), request: None };
                if self.random.one_in(2) {
                    ask(engine, api, turn::SendConversation(conversation));
                } else {
                    ask(engine, api, turn::PostConversation(conversation));
                }
            }
        }
    }

    /// Goals, tasks and memory.
    fn of_work(&mut self, engine: &mut Engine, now: Timestamp) {
        let (agent, api) = (self.agent(), Actor::Api);
        let (goal, task) = (GoalId(self.some(b'o')), TaskId(self.some(b'j')));
        match self.random.below(14) {
            0 | 1 => {
                let parent = self.random.one_in(3).then_some(goal);
                let due_at = self.random.one_in(3).then_some(now);
                let new =
                    goal::CreateGoal { title: self.text(), agent: Some(agent), parent, due_at, ..Default::default() };
                ask(engine, api, new);
            }
            2 | 3 => {
                let due_at = self.random.of(&[None, Some(None), Some(Some(now))]);
                let status = Some(self.random.of(&GoalStatus::ALL));
                let patch = goal::GoalPatch { due_at, status, ..Default::default() };
                ask(engine, api, goal::UpdateGoal { goal, patch, only_of: None });
            }
            4 => ask(engine, api, goal::RemoveGoal(goal)),
            5..=7 => {
                let assignee = self.random.one_in(2).then(|| agent.to_string());
                ask(engine, api, task::PostTask { title: self.text(), assignee, ..Default::default() });
            }
            8 => ask(engine, api, task::ClaimTask { task, agent, by: None }),
            9 => ask(engine, api, task::ClaimNextTask { agent, by: None }),
            10 => {
                let (failed, result) = (self.random.one_in(2), Some(self.text()));
                ask(engine, api, task::EndTask { task, failed, result, only_of: None, by: None });
            }
            11 => ask(engine, api, task::RetryTask(task)),
            12 => ask(engine, api, task::RemoveTask(task)),
            _ => {
                let (key, value) = (Box::from(self.random.of(&["one", "two"])), self.text().into());
                let (created_at, updated_at, replaces) = (None, None, self.random.one_in(2).then_some(3));
                let revision = self.random.below(3) as u64;
                if self.random.one_in(3) {
                    let entries = vec![memory::Doomed { key, bytes: 3 }];
                    ask(engine, api, memory::DeleteMemory { agent, revision, entries, by: None });
                } else {
                    let entries = vec![memory::PutEntry { key, value, created_at, updated_at, replaces }];
                    ask(engine, api, memory::PutMemory { agent, revision, entries, by: None });
                }
            }
        }
    }

    fn of_triggers(&mut self, engine: &mut Engine) {
        let (agent, id, api) = (self.agent(), TriggerId(self.some(b'g')), Actor::Api);
        match self.random.below(8) {
            0 | 1 => {
                let kinds = [On::All, On::Lifecycle, On::System, On::Kind(EventKind::TaskPosted)];
                let content = Pattern { on: On::Content, filter: Filter::Content("harbour".into()) };
                let pattern = match self.random.below(4) {
                    0 => content,
                    1 => Pattern { on: On::Kind(EventKind::Custom), filter: Filter::CustomType("x.*".into()) },
                    _ => Pattern { on: self.random.of(&kinds), filter: Filter::None },
                };
                let trigger = trigger::NewTrigger {
                    pattern,
                    prompt_template: "{{event}}".into(),
                    enabled: true,
                    max_fires: self.random.below(20) as u64,
                    cooldown_secs: self.random.of(&[None, Some(0), Some(2)]),
                    session_mode: self.random.of(&[None, Some(SessionMode::New)]),
                    target: self.random.one_in(4).then(|| self.agent()),
                };
                ask(engine, api, trigger::CreateTrigger { agent, trigger });
            }
            2 => {
                let cooldown_secs = self.random.of(&[None, Some(None), Some(Some(1))]);
                let patch = trigger::TriggerPatch { cooldown_secs, enabled: Some(true), ..Default::default() };
                ask(engine, api, trigger::UpdateTrigger { trigger: id, patch });
            }
            3 => ask(engine, api, trigger::DeleteTrigger(id)),
            4 => ask(
                engine,
                api,
                trigger::TellEvents(vec![Event::AgentStarted { agent }, Event::AgentStopped { agent }]),
            ),
            _ => {
                let (event_type, payload) = (format!("x.{}", self.random.below(3)), "{\"a\":1}".into());
                ask(engine, api, event::PublishEvent { event_type, payload, agent: None, by: None });
            }
        }
    }

    fn of_schedules(&mut self, engine: &mut Engine) {
        let kind = self.random.of(&[ScheduleKind::Schedule, ScheduleKind::Cron]);
        let (agent, id, api) = (self.agent(), ScheduleId(self.some(b'd')), Actor::Api);
        match self.random.below(6) {
            0 | 1 => {
                let new = schedules::NewSchedule {
                    kind,
                    agent,
                    name: Some(self.text().into()),
                    rule: self.random.of(&["every 20s", "*/2 * * * *", "in 30s", "nonsense", "every 1h"]).into(),
                    timezone: self.random.of(&[None, Some("Europe/Berlin")]).map(Into::into),
                    prompt: self.text().into(),
                    enabled: true,
                    missed: self.random.of(&[MissedPolicy::Skip, MissedPolicy::One, MissedPolicy::All]),
                    overlap: self.random.of(&[OverlapPolicy::Skip, OverlapPolicy::Queue, OverlapPolicy::Parallel]),
                    session_mode: None,
                };
                ask(engine, api, schedules::CreateSchedule { new, by_tool: self.random.one_in(3) });
            }
            2 => {
                let session_mode = self.random.of(&[None, Some(None), Some(Some(SessionMode::New))]);
                let patch = schedules::SchedulePatch { session_mode, enabled: Some(true), ..Default::default() };
                ask(engine, api, schedules::UpdateSchedule { kind, id, patch });
            }
            3 | 4 => ask(engine, api, schedules::RunSchedule { kind, id }),
            _ => ask(engine, api, schedules::RemoveSchedule { kind, id, owner: None }),
        }
    }

    fn of_workflows(&mut self, engine: &mut Engine) {
        let (id, api) = (WorkflowId(self.some(b'f')), Actor::Api);
        match self.random.below(9) {
            0..=2 => {
                let mut steps = Vec::new();
                for _ in 0..=self.random.below(3) {
                    steps.push(NewStep {
                        agent_id: Some(self.agent()),
                        mode: self.random.of(&[StepMode::Sequential, StepMode::FanOut, StepMode::Collect]),
                        error_mode: self.random.of(&[ErrorMode::Fail, ErrorMode::Skip, ErrorMode::Retry]),
                        timeout_secs: Some(30),
                        max_retries: Some(1),
                        ..NewStep::default()
                    });
                }
                let new = workflow::NewWorkflow { name: self.text(), description: self.text(), steps };
                ask(engine, api, workflow::CreateWorkflow(new));
            }
            3..=5 => ask(engine, api, workflow::StartRun { workflow: id, input: self.text() }),
            6 => {
                let patch = workflow::WorkflowPatch { description: Some(self.text()), ..Default::default() };
                ask(engine, api, workflow::UpdateWorkflow { workflow: id, patch });
            }
            7 => ask(engine, api, workflow::CancelRun(RunId(self.some(b'n')))),
            _ if self.random.one_in(4) => ask(engine, api, workflow::RemoveWorkflow(id)),
            _ => {
                let workflow = workflow::WorkflowChoice::Id(id);
                ask(engine, api, workflow::RunWorkflow { workflow, input: self.text(), caller: None });
            }
        }
    }

    /// Budgets, approvals, settings, the trail, and reads.
    fn of_the_house(&mut self, engine: &mut Engine, now: Timestamp) {
        let (agent, api) = (self.agent(), Actor::Api);
        match self.random.below(10) {
            0 => {
                let daily = self.random.of(&[None, Some(Micros(50)), Some(Micros(1_000_000))]);
                let scope = self.random.of(&[Scope::Global, Scope::Agent(agent)]);
                ask(engine, api, budget::SetBudget { scope, limits: Limits { daily, ..Limits::default() } });
            }
            1 => {
                let (action, description) = ("deploy".into(), self.text().into());
                ask(engine, api, approval::RequestApproval { agent, action, description, payload: "{}".into() });
            }
            2 | 3 => {
                let ids = vec![ApprovalId(self.some(b'i'))];
                let decision = self.random.of(&[approval::Decision::Approve, approval::Decision::Reject]);
                ask(engine, api, approval::DecideApprovals { ids, decision, reason: Some("so".into()) });
            }
            4 => {
                let (id, tool) = (self.random.uuid(), self.random.of(&["web_fetch", "goal_list"]).into());
                ask(engine, api, approval::InvokeTool { id, agent: Some(agent), tool, input: "{}".into() });
                ask(engine, api, approval::WithdrawInvocation { id });
            }
            5 => {
                let details = serde_json::json!({ "n": self.count, "deep": [1, null, { "x": 0.5 }] });
                ask(
                    engine,
                    Actor::System,
                    audit::NoteAction { kind: AuditKind::FileUploaded, agent: Some(agent), details },
                );
            }
            6 => {
                let used = CallUse { provider: "builtin".into(), usage: Usage::of(3, 4), ..CallUse::default() };
                ask(engine, api, usage::NoteModelCall { channel: "x".into(), used });
            }
            7 => {
                let require_approval = self.random.of(&[None, Some("web_fetch"), Some("task_*")]);
                let next = Settings {
                    provider_calls: 1 + self.random.below(6) as u32,
                    require_approval: require_approval.map(Into::into).into_iter().collect(),
                    claim_timeout_secs: 60,
                    approval_timeout_ms: 120_000,
                    ..Settings::default()
                };
                ask(engine, Actor::System, settings::Reconfigure(Box::new(next)));
            }
            8 => {
                ask(engine, api, stats::GetStats);
                ask(engine, api, agent::GetAgent(agent));
            }
            _ => {
                engine.set_now(now.plus_ms(1));
                let read = engine.read(stats::GetStats);
                assert!(read.is_none() || read.is_some_and(|read| read.is_ok()));
            }
        }
    }
}

/// Sends a command that nobody waits for.
fn ask<C: Command>(engine: &mut Engine, actor: Actor, command: C) {
    engine.command(actor, command, ReplySlot::new(drop));
}

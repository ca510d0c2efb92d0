//! Every kind of command at random, sound and unsound.

use agentsvc_api::upload::audit_kinds;
use agentsvc_components::agent::{AgentMode, ImportedFrom};
use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::session::message::{Block, ChatMessage, Role, Usage};
use agentsvc_components::task::Task;
use agentsvc_components::trigger::{Filter, On, Pattern};
use agentsvc_components::usage::{CallUse, Limits, Scope};
use agentsvc_components::workflow::{ErrorMode, StepMode, Workflow};
use agentsvc_components::{
    Actor, AgentId, ApprovalId, GoalId, Micros, RunId, ScheduleId, SessionId, TaskId, Timestamp, TriggerId, TurnId,
    WorkflowId,
};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::schedule as schedules;
use agentsvc_systems::workflow::NewStep;
use agentsvc_systems::world as stats;
use agentsvc_systems::{
    Engine, Settings, agent, approval, audit, auto_dream, budget, compaction, config as settings, event, goal,
    knowledge, manifest, memory, proactive_memory, session, task, trigger, turn, usage, workflow,
};

use super::{Fuzz, ask, log_of};

impl Fuzz {
    pub(super) fn command(&mut self, engine: &mut Engine, now: Timestamp) {
        match self.random.below(14) {
            0 => self.of_agents(engine),
            1 => self.of_sessions(engine, now),
            2 | 3 => self.of_turns(engine),
            4 => self.of_work(engine, now),
            5 => self.of_triggers(engine),
            6 => self.of_schedules(engine),
            7 => self.of_workflows(engine),
            8 => self.of_hands(engine),
            9 => self.of_chats(engine),
            10 => self.of_media(engine),
            11 => self.of_people(engine, now),
            12 => self.of_prompts(engine),
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
            0..=2 => ask(engine, api, self.spawn()),
            3 => {
                let from = ImportedFrom { place: [1; 32], text: [2; 32] };
                ask(engine, api, agent::ImportAgent { agent: self.spawn(), from });
            }
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
                ask(engine, api, agent::SetMode { agent, mode, skills: None });
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
        match self.random.below(11) {
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
                ask(engine, api, session::ImportSession { agent, session, label: None, messages: messages.clone() });
                let label = self.random.one_in(2).then(|| self.text());
                let session = self.session();
                if let Some((log, _)) = log_of(engine, session) {
                    ask(engine, api, session::BranchSession { session, log, label, messages });
                }
            }
            _ => {
                ask(engine, api, compaction::CompactSession { agent, session: self.maybe_session() });
                ask(engine, api, auto_dream::SetAutoDream { agent, enabled: true });
                ask(engine, api, auto_dream::TriggerDream(agent));
                ask(engine, api, auto_dream::AbortDream(agent));
            }
        }
    }

    fn of_turns(&mut self, engine: &mut Engine) {
        let (agent, session, api) = (self.agent(), self.maybe_session(), Actor::Api);
        let end = session.filter(|_| self.random.one_in(2)).and_then(|session| log_of(engine, session));
        let repeats = end.map(|(log, turns)| turn::Repeated {
            first: TurnId(self.random.uuid()),
            last: turns.saturating_sub(1),
            log,
        });
        let message = turn::NewMessage { repeats, ..turn::NewMessage::text(self.text()) };
        match self.random.below(12) {
            0..=3 => ask(engine, api, turn::PostMessage { agent, session, message }),
            4..=6 => ask(engine, api, turn::SendMessage { agent, session, message }),
            7 => ask(engine, api, turn::StopTurns { agent, session }),
            8 => ask(engine, api, turn::InterruptSession { agent, session: self.session() }),
            9 => ask(engine, api, turn::StopConversation(self.session())),
            _ => {
                let hidden = turn::ConversationTarget::Hidden(SessionId(self.random.uuid()));
                let kept = turn::ConversationTarget::Kept { session: self.session(), label: Some(self.text().into()) };
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
        match self.random.below(18) {
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
            4 => ask(engine, api, Remove::<Goal>(goal)),
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
            12 => ask(engine, api, Remove::<Task>(task)),
            13 | 14 => self.of_entries(engine),
            15 | 16 => self.of_knowledge(engine),
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

    /// Entries of memory, also as if others had changed them.
    fn of_entries(&mut self, engine: &mut Engine) {
        let (agent, revision, cause) = (self.agent(), self.random.below(4) as u64, proactive_memory::Cause::Asked);
        let user = self.random.of(&[None, Some("ana")]).map(Into::into);
        let record = MemoryEntryRecord { content: self.text().into(), user, confidence: 1.0, ..Default::default() };
        let id = MemoryEntryId(uuid::Uuid::from_u128(self.random.below(5) as u128 + 1));
        let old = proactive_memory::Counted::from(&record);
        let put = |id, old| proactive_memory::EntryPut { id, record: record.clone(), old, is_now: true };
        let (puts, removes) = match self.random.below(4) {
            0 => (vec![put(None, None)], Vec::new()),
            1 => (vec![put(Some(id), None)], Vec::new()),
            2 => (vec![put(Some(id), Some(old))], Vec::new()),
            _ => (Vec::new(), vec![proactive_memory::EntryRemove { id, old }]),
        };
        let (due, by) = (None, None);
        ask(engine, Actor::Api, proactive_memory::WriteEntries { agent, revision, puts, removes, cause, due, by });
    }

    /// The knowledge graph.
    fn of_knowledge(&mut self, engine: &mut Engine) {
        let (agent, revision, by) = (self.agent(), self.random.below(4) as u64, None);
        let kind: Box<str> = "person".into();
        let [source, target] =
            [(); 2].map(|()| EntityKey { name: self.random.of(&["ana", "bo", "cy"]).into(), kind: kind.clone() });
        let (properties, confidence, taint) = (Box::<str>::default(), 0.5, Default::default());
        let (created_at, updated_at) = (knowledge::NOW, knowledge::NOW);
        let name = source.name.clone();
        let entity = EntityRecord { name, properties, confidence, created_at, updated_at, taint };
        let replaces = self.random.one_in(3).then_some(10);
        let relation = RelationRecord { confidence, properties: Box::default(), created_at, updated_at, taint };
        let key = RelationKey { source: source.clone(), relation: "knows".into(), target };
        let gone = self.random.one_in(3);
        let entities = vec![knowledge::PutEntity { key: source.clone(), record: entity, replaces }];
        let relations = vec![knowledge::PutRelation { key: key.clone(), record: relation, replaces }];
        let change = knowledge::ChangeKnowledge {
            agent,
            revision,
            entities: if gone { Vec::new() } else { entities },
            relations: if gone { Vec::new() } else { relations },
            gone_entities: if gone { vec![(source, 10)] } else { Vec::new() },
            gone_relations: if gone { vec![(key, 10)] } else { Vec::new() },
            by,
        };
        ask(engine, Actor::Api, change);
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
            _ if self.random.one_in(4) => ask(engine, api, Remove::<Workflow>(id)),
            _ => {
                let workflow = workflow::WorkflowChoice::Id(id);
                ask(engine, api, workflow::RunWorkflow { workflow, input: self.text(), caller: None });
            }
        }
    }

    /// What an MCP server asks for.
    fn of_a_server(&mut self, engine: &mut Engine, agent: AgentId) {
        let (id, api) = (self.random.uuid(), Actor::Api);
        let (action, payload, answer_schema) = ("ask".into(), "{}".into(), None);
        let description = self.text().into();
        ask(engine, api, approval::AskPerson { id, agent, action, description, payload, answer_schema, turn: None });
        if self.random.one_in(2) {
            ask(engine, api, approval::WithdrawInvocation { id });
        }
        let turn = TurnId(self.random.uuid());
        ask(engine, api, budget::ReserveSampling { agent, turn, answer_tokens_max: 1 });
    }

    /// Budgets, approvals, settings, the trail, and reads.
    fn of_the_house(&mut self, engine: &mut Engine, now: Timestamp) {
        let (agent, api) = (self.agent(), Actor::Api);
        match self.random.below(11) {
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
                ask(engine, api, approval::DecideApprovals { ids, decision, reason: Some("so".into()), answer: None });
            }
            4 => {
                let (id, tool) = (self.random.uuid(), self.random.of(&["web_fetch", "goal_list"]).into());
                ask(engine, api, approval::InvokeTool { id, agent: Some(agent), tool, input: "{}".into() });
                ask(engine, api, approval::WithdrawInvocation { id });
                self.of_a_server(engine, agent);
            }
            5 => {
                let details = serde_json::json!({ "n": self.count, "deep": [1, null, { "x": 0.5 }] });
                ask(
                    engine,
                    Actor::System,
                    audit::NoteAction { kind: audit_kinds::FILE_WRITTEN, agent: Some(agent), details },
                );
            }
            6 => {
                let used = CallUse { provider: "builtin".into(), usage: Usage::of(3, 4), ..CallUse::default() };
                ask(engine, api, usage::NoteModelCall { channel: "x".into(), grant: None, used });
                if self.probes.is_empty() {
                    let (provider, model) = ("builtin".into(), "builtin".into());
                    let channel = "x".into();
                    ask(
                        engine,
                        api,
                        budget::ReserveProbe { agent: None, channel, provider, model, answer_tokens_max: 1 },
                    );
                } else {
                    self.end_probes(engine);
                }
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
                let read = engine.read(Actor::System, stats::GetStats);
                assert!(read.is_none() || read.is_some_and(|read| read.is_ok()));
            }
        }
    }
}

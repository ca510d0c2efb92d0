//! Commands of chats that show or change what belongs to the whole daemon: only its administrators give them.

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::peer::network::PeerNetwork;
use agentsvc_api::skill::library::Skills;
use agentsvc_components::channel::rules::ChatRole;
use agentsvc_components::kernel::money::Micros;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::trigger::{Filter, On, Pattern};
use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Refusal};
use agentsvc_systems::a2a::outbound::A2aAgentView;
use agentsvc_systems::agent::{FindSharedAgent, GetAgent};
use agentsvc_systems::budget::GetBudget;
use agentsvc_systems::channel::PendingCommand;
use agentsvc_systems::hand::HandView;
use agentsvc_systems::kernel::entities::List;
use agentsvc_systems::schedule::{
    CreateSchedule, ListSchedules, NewSchedule, RemoveSchedule, RunSchedule, ScheduleView,
};
use agentsvc_systems::trigger::{CreateTrigger, DeleteTrigger, ListTriggers, NewTrigger, TriggerView};
use agentsvc_systems::workflow::{StartRun, WorkflowSummary};
use uuid::Uuid;

/// Each command with what `/help` says of it.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("status", "/status - what runs in this chat"),
    ("skills", "/skills - list the skills"),
    ("hands", "/hands - list the hands"),
    ("workflows", "/workflows - list the workflows"),
    ("workflow", "/workflow run <name> [input] - start a workflow"),
    ("triggers", "/triggers - list the triggers"),
    (
        "trigger",
        "/trigger add <agent> <words> <prompt>, /trigger del <id> - add or delete a trigger; _ in <words> is a blank",
    ),
    ("schedules", "/schedules - list the schedules"),
    (
        "schedule",
        "/schedule add <agent> <5 fields> <prompt>, /schedule del <id>, /schedule run <id> - change or run schedules",
    ),
    ("budget", "/budget - show what was spent, and the limits"),
    ("peers", "/peers - list the other nodes"),
    ("a2a", "/a2a - list the external agents"),
];
/// Rows that are shown.
const SHOWN_MAX: usize = 20;
/// Rows that are looked through for one that an id names.
const LOOKED_AT_MAX: usize = 1_000;
/// Characters of an id that are enough.
const ID_CHARS_MIN: usize = 8;
/// Characters of a prompt that are shown.
const PROMPT_CHARS: usize = 60;
/// Fields of a cron expression.
const CRON_FIELDS: usize = 5;

/// Is there such a command?
pub(super) fn is_known(name: &str) -> bool {
    COMMANDS.iter().any(|(known, _)| *known == name)
}

/// Is the sender one who may give these commands?
pub(super) fn may(command: &PendingCommand) -> bool {
    command.role >= Some(ChatRole::Admin)
}

/// Carries a command out; `None` where it is none of these.
///
/// # Errors
/// Why it was not carried out, for the chat.
pub(super) async fn answer(api: &Arc<Api>, command: &PendingCommand) -> Result<Option<String>, String> {
    if !is_known(&command.name) {
        return Ok(None);
    }
    if &*command.name == "status" {
        return status(api, command).await.map(Some);
    }
    if !may(command) {
        return Err("only an administrator may give this command".to_owned());
    }
    let (verb, rest) = first(&command.args);
    let told = match (&*command.name, verb) {
        ("skills", "") => skills(api),
        ("hands", "") => hands(api).await,
        ("workflows", "") => workflows(api).await,
        ("workflow", "run") => run_workflow(api, rest).await,
        ("triggers", "") => triggers(api).await,
        ("trigger", "add") => add_trigger(api, rest).await,
        ("trigger", "del") => delete_trigger(api, rest).await,
        ("schedules", "") => schedules(api).await,
        ("schedule", "add") => add_schedule(api, rest).await,
        ("schedule", "del" | "run") => with_schedule(api, verb, rest).await,
        ("budget", "") => budget(api).await,
        ("peers", "") => peers(api),
        ("a2a", "") => external(api).await,
        (name, _) => Err(usage(name)),
    };
    told.map(Some)
}

fn usage(name: &str) -> String {
    COMMANDS.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, line)| format!("write {line}"))
}

fn why(refusal: Refusal) -> String {
    refusal.message.to_string()
}

/// The first word, and what follows it.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Lines below a title, or what is said of none.
fn listed(title: &str, none: &str, lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(SHOWN_MAX);
    let shown = lines.iter().take(SHOWN_MAX).map(|line| format!("\n- {line}")).collect::<String>();
    match (lines.is_empty(), more) {
        (true, _) => none.to_owned(),
        (false, 0) => format!("{title}:{shown}"),
        (false, more) => format!("{title}:{shown}\nand {more} more"),
    }
}

fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(PROMPT_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The one row whose id begins so.
fn the_one<T>(given: &str, rows: Vec<T>, id: impl Fn(&T) -> Uuid) -> Result<T, String> {
    let start: String = given.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect();
    if start.chars().count() < ID_CHARS_MIN {
        return Err(format!("give at least the first {ID_CHARS_MIN} characters of the id"));
    }
    let mut found = rows.into_iter().filter(|row| id(row).simple().to_string().starts_with(&start));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("there is none with this id".to_owned()),
        (Some(_), Some(_)) => Err("several begin like this; give more of the id".to_owned()),
    }
}

async fn agent(api: &Api, name: &str) -> Result<AgentId, String> {
    if name.is_empty() {
        return Err("the name of an agent is missing".to_owned());
    }
    Ok(api.bridge.ask(FindSharedAgent(name.into())).await.map_err(why)?.id)
}

async fn status(api: &Api, command: &PendingCommand) -> Result<String, String> {
    let Some(agent) = command.agent else { return Ok("No agent answers in this chat yet.".to_owned()) };
    let view = api.bridge.ask(GetAgent(agent)).await.map_err(why)?;
    let session = if command.session.is_some() { "there is a session" } else { "no session yet" };
    Ok(format!("{} answers here ({}); {session}.", view.name, view.state.as_str()))
}

fn skills(api: &Api) -> Result<String, String> {
    let skills = api.services.get::<dyn Skills>().ok_or("skills cannot be listed")?;
    let line = |row: &agentsvc_api::skill::library::SkillRow| {
        format!("{} {}: {}", row.name, row.version, cut(&row.description))
    };
    Ok(listed("Skills", "There are no skills.", skills.list().skills.iter().map(line).collect()))
}

async fn hands(api: &Api) -> Result<String, String> {
    let list = List::<HandView> { limit: LOOKED_AT_MAX, ..List::default() };
    let page = api.bridge.ask(list).await.map_err(why)?;
    let line = |view: &HandView| format!("{} #{}: {}", view.instance.hand, view.instance.number, view.status());
    Ok(listed("Hands", "No hand is active.", page.items.iter().map(line).collect()))
}

async fn all_workflows(api: &Api) -> Result<Vec<WorkflowSummary>, String> {
    let list = List::<WorkflowSummary> { limit: LOOKED_AT_MAX, ..List::default() };
    Ok(api.bridge.ask(list).await.map_err(why)?.items)
}

async fn workflows(api: &Api) -> Result<String, String> {
    let line = |view: &WorkflowSummary| format!("{}: {} steps. {}", view.name, view.steps, cut(&view.description));
    Ok(listed("Workflows", "There are no workflows.", all_workflows(api).await?.iter().map(line).collect()))
}

async fn run_workflow(api: &Api, rest: &str) -> Result<String, String> {
    let (name, input) = first(rest);
    let all = all_workflows(api).await?;
    let found = all.into_iter().find(|view| view.name.eq_ignore_ascii_case(name));
    let workflow = found.ok_or("there is no workflow of this name; /workflows lists them")?;
    let run = api.bridge.ask(StartRun { workflow: workflow.id, input: input.to_owned() }).await.map_err(why)?;
    Ok(format!("{} has started: run {run}.", workflow.name))
}

async fn all_triggers(api: &Api) -> Result<Vec<TriggerView>, String> {
    let list = ListTriggers { limit: LOOKED_AT_MAX, ..ListTriggers::default() };
    Ok(api.bridge.ask(list).await.map_err(why)?.items)
}

async fn triggers(api: &Api) -> Result<String, String> {
    let state = |is_enabled| if is_enabled { "" } else { " (disabled)" };
    let line = |view: &TriggerView| {
        format!(
            "{}{}: {}, fired {} times",
            view.id.0.simple(),
            state(view.enabled),
            cut(&view.prompt_template),
            view.fire_count
        )
    };
    Ok(listed("Triggers", "There are no triggers.", all_triggers(api).await?.iter().map(line).collect()))
}

/// Adds a trigger that waits for words in what happens.
async fn add_trigger(api: &Api, rest: &str) -> Result<String, String> {
    let (name, rest) = first(rest);
    let (words, prompt) = first(rest);
    if words.is_empty() || prompt.is_empty() {
        return Err(usage("trigger"));
    }
    let agent = agent(api, name).await?;
    let filter = Filter::Content(words.replace('_', " ").into());
    let trigger = NewTrigger {
        pattern: Pattern { on: On::Content, filter },
        prompt_template: prompt.into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: None,
        session_mode: None,
        target: None,
    };
    let made = api.bridge.ask(CreateTrigger { agent, trigger }).await.map_err(why)?;
    Ok(format!("Added trigger {}.", made.id.0.simple()))
}

async fn delete_trigger(api: &Api, id: &str) -> Result<String, String> {
    let found = the_one(id, all_triggers(api).await?, |view| view.id.0)?;
    api.bridge.ask(DeleteTrigger(found.id)).await.map_err(why)?;
    Ok(format!("Deleted trigger {}.", found.id.0.simple()))
}

async fn all_schedules(api: &Api) -> Result<Vec<ScheduleView>, String> {
    let mut all = Vec::new();
    for kind in [ScheduleKind::Schedule, ScheduleKind::Cron] {
        let list = ListSchedules { kind, agent: None, after: None, limit: LOOKED_AT_MAX };
        all.extend(api.bridge.ask(list).await.map_err(why)?.items);
    }
    Ok(all)
}

async fn schedules(api: &Api) -> Result<String, String> {
    let line = |view: &ScheduleView| {
        let next = view.next_run.map_or_else(|| "never".to_owned(), |slot| slot.to_string());
        format!("{} `{}`, next {next}: {}", view.id.0.simple(), view.rule, cut(&view.prompt))
    };
    Ok(listed("Schedules", "There are no schedules.", all_schedules(api).await?.iter().map(line).collect()))
}

async fn add_schedule(api: &Api, rest: &str) -> Result<String, String> {
    let (name, mut rest) = first(rest);
    let mut fields = Vec::with_capacity(CRON_FIELDS);
    for _ in 0..CRON_FIELDS {
        let (field, behind) = first(rest);
        fields.push(field);
        rest = behind;
    }
    if rest.is_empty() {
        return Err(usage("schedule"));
    }
    let new = NewSchedule {
        kind: ScheduleKind::Schedule,
        agent: agent(api, name).await?,
        name: None,
        rule: fields.join(" ").into(),
        timezone: None,
        prompt: rest.into(),
        enabled: true,
        missed: MissedPolicy::default(),
        overlap: OverlapPolicy::default(),
        session_mode: None,
    };
    let made = api.bridge.ask(CreateSchedule { new, by_tool: false }).await.map_err(why)?;
    Ok(format!("Added schedule {}.", made.id.0.simple()))
}

/// Deletes or runs a schedule.
async fn with_schedule(api: &Api, verb: &str, id: &str) -> Result<String, String> {
    let ScheduleView { id, kind, .. } = the_one(id, all_schedules(api).await?, |view| view.id.0)?;
    if verb == "del" {
        api.bridge.ask(RemoveSchedule { kind, id, owner: None }).await.map_err(why)?;
        return Ok(format!("Deleted schedule {}.", id.0.simple()));
    }
    api.bridge.ask(RunSchedule { kind, id }).await.map_err(why)?;
    Ok(format!("Schedule {} runs.", id.0.simple()))
}

async fn budget(api: &Api) -> Result<String, String> {
    let view = api.bridge.ask(GetBudget(Scope::Global)).await.map_err(why)?;
    let of = |limit: Option<Micros>| limit.map_or_else(String::new, |limit| format!(" of ${limit}"));
    Ok(format!(
        "Today ${}{}, this month ${}{}, {} tokens this hour. Status: {}.",
        view.today,
        of(view.limits.daily),
        view.month,
        of(view.limits.monthly),
        view.hour_tokens,
        view.status
    ))
}

fn peers(api: &Api) -> Result<String, String> {
    let network = api.services.get::<dyn PeerNetwork>().ok_or("nodes cannot be listed")?;
    let state = |is_connected| if is_connected { "connected" } else { "not connected" };
    let line = |row: &agentsvc_api::peer::network::PeerRow| {
        format!("{} ({}): {}", cut(&row.node_name), cut(&row.node_id), state(row.is_connected))
    };
    Ok(listed("Nodes", "No other node is known.", network.peers().iter().map(line).collect()))
}

async fn external(api: &Api) -> Result<String, String> {
    let list = List::<A2aAgentView> { limit: LOOKED_AT_MAX, ..List::default() };
    let page = api.bridge.ask(list).await.map_err(why)?;
    let line = |view: &A2aAgentView| format!("{}: {}", cut(&view.agent.name), cut(&view.agent.url));
    Ok(listed("External agents", "No external agent is known.", page.items.iter().map(line).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_exactly_one() {
        let rows = || vec![Uuid::from_u128(0x1234_5678 << 96), Uuid::from_u128(0x1234_5678 << 96 | 1)];
        assert!(the_one("1234567", rows(), |id| *id).unwrap_err().contains("at least"));
        assert!(the_one("12345678", rows(), |id| *id).unwrap_err().contains("several"));
        assert!(the_one("87654321", rows(), |id| *id).unwrap_err().contains("none"));
        assert_eq!(the_one(&rows()[1].to_string(), rows(), |id| *id), Ok(rows()[1]));
    }

    #[test]
    fn lists_are_short_and_lines_are_one() {
        let lines = (0..SHOWN_MAX + 2).map(|n| n.to_string()).collect();
        assert!(listed("T", "none", lines).ends_with("and 2 more"));
        assert_eq!(listed("T", "none", Vec::new()), "none");
        assert_eq!(cut("a\nb"), "a b");
        assert!(usage("schedule").starts_with("write /schedule add"));
    }
}

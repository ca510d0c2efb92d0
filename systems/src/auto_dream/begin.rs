//! A run begins.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::Agent;
use agentsvc_components::auto_dream::{Dream, DreamId, DreamRead, DreamRun};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::Capabilities;
use agentsvc_components::turn::Origin;
use agentsvc_components::turn::profile::TurnProfile;
use agentsvc_components::{AgentId, Refusal, RefusalKind};

use super::index::Dreams;
use super::list::DreamView;
use super::metrics::DreamTotals;
use super::{audit_kinds, error_codes, prompt};
use crate::audit::Audit;
use crate::config::Settings;
use crate::config::auto_dream::AutoDreamSettings;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, state};
use crate::kernel::index;
use crate::turn::{Fired, Place, Said, begin_fired};

/// Begins a run now, whatever time has passed and however many sessions have started.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TriggerDream(pub AgentId);

command! {
    write "trigger_dream" TriggerDream => DreamView, Id(|it| it.0.0), |TriggerDream(agent), world|
        Answer::stored(trigger(world, agent))
}

fn trigger(world: &mut World, agent: AgentId) -> Result<DreamView, Refusal> {
    index::agent(world, agent)?;
    let id = DreamId::from(agent);
    let refused = |text: &str| Err(Refusal::of(error_codes::AUTO_DREAM_DISABLED, text.to_owned()));
    if !world.resource::<Settings>().auto_dream.enabled {
        return refused("auto-dream is disabled; set [auto_dream] enabled");
    }
    match state::<Dream>(world, id) {
        Some(dream) if dream.run.is_some() => {
            let text = "the agent consolidates its memory already";
            return Err(Refusal::of(error_codes::DREAM_RUNNING, text.to_owned()));
        }
        Some(dream) if dream.enabled => {}
        _ => return refused("auto-dream is not switched on for the agent"),
    }
    if !has_place(world) {
        let text = format!("{} consolidation runs are under way", world.resource::<Dreams>().running());
        let full = Refusal::new(RefusalKind::TooMany, text).with_code(error_codes::DREAMS_FULL);
        return Err(Refusal { retry_after_secs: Some(60), ..full });
    }
    begin(world, id, true)?;
    DreamView::seen(world, id)
}

/// Is there a place for another run?
pub(super) fn has_place(world: &World) -> bool {
    let most = world.resource::<Settings>().auto_dream.max_concurrent;
    world.resource::<Dreams>().running() < most as usize
}

/// Begins a run of an agent that does not run.
pub(super) fn begin(world: &mut World, id: DreamId, is_manual: bool) -> Result<(), Refusal> {
    let agent = AgentId(id.0);
    let owner = index::agent(world, agent)?;
    let settings = world.resource::<Settings>().auto_dream;
    let own = world.get::<Agent>(owner).map(|agent| agent.manifest.manifest.capabilities.clone()).unwrap_or_default();
    let (now, said) = (world.resource::<Now>().0, Said::new(world, prompt::MESSAGE.to_owned()));
    let fired = Fired {
        agent: owner,
        place: Place::Hidden,
        said,
        origin: Origin::Dream { agent },
        depth: 0,
        taint: Taint::NONE,
        began_in: None,
        user: None,
        profile: Some(Box::new(profile(&settings, &own))),
    };
    let (_, taken) = begin_fired(world, fired)?;
    let deadline = now.plus_ms(i64::from(settings.timeout_secs) * 1_000);
    change_dream(world, id, |dream| {
        let (turn, session, sessions) = (taken.turn, taken.session, dream.sessions);
        let (from, read) = (dream.cursor, DreamRead::default());
        let (started_at, ending) = (now, None);
        dream.run = Some(DreamRun { turn, session, started_at, deadline, is_manual, sessions, from, read, ending });
    });
    world.resource_mut::<DreamTotals>().started += 1;
    world.audit(audit_kinds::DREAM_STARTED, agent, json!({ "turn": taken.turn, "manual": is_manual }));
    Ok(())
}

/// What a run of an agent with these grants is and may do.
fn profile(settings: &AutoDreamSettings, own: &Capabilities) -> TurnProfile {
    let words = |words: &[&str]| -> Vec<Box<str>> { words.iter().map(|word| Box::from(*word)).collect() };
    let has_more = !own.memory_read.is_empty() || !own.memory_write.is_empty();
    let more = if has_more { words(prompt::MORE_TOOLS) } else { Vec::new() };
    TurnProfile {
        system_prompt: prompt::INSTRUCTIONS.into(),
        tools: words(prompt::TOOLS).into_iter().chain(more).collect(),
        memory: words(prompt::MEMORY),
        calls_max: settings.max_calls_per_run,
        tokens_max: settings.max_tokens_per_run,
        cost_max: settings.max_cost_per_run,
    }
}

/// Changes what is known of an agent's dreaming.
pub(super) fn change_dream(world: &mut World, id: DreamId, how: impl FnOnce(&mut Dream)) {
    let found: Option<Entity> = world.resource::<Dreams>().get(id);
    if let Some(entity) = found {
        change(world, entity, how);
    }
}

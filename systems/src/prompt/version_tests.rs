//! Versions and experiments: what commands change, and what turns count.

use agentsvc_components::prompt::{
    ExperimentStatus, Feedback, PromptExperiment, PromptExperimentId, PromptVariant, PromptVariantId, PromptVersionId,
    SuccessCriteria, VariantTotals,
};
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::{AgentId, ErrorCode, Refusal, RefusalKind, SessionId, Timestamp, TurnId};
use proptest::prelude::*;
use uuid::Uuid;

use super::index::Impressions;
use super::{
    ActivatePromptVersion, CompletePromptExperiment, CreatePromptExperiment, DeletePromptExperiment,
    DeletePromptVersion, GivePromptFeedback, NewVariant, PausePromptExperiment, PromptExperimentView,
    PromptVersionView, SavePromptVersion, StartPromptExperiment, error_codes, limits,
};
use crate::Settings;
use crate::agent::{AgentPatch, GetAgent, RemoveAgents, UpdateAgent};
use crate::kernel::entities::{Get, List};
use crate::session::CreateSession;
use crate::testing::TestWorld;
use crate::turn::{NewMessage, SendMessage, TurnReply};

pub(super) fn enabled() -> TestWorld {
    TestWorld::with(Settings { prompt_intelligence: true, ..Settings::default() })
}

pub(super) fn version(agent: AgentId, text: &str) -> SavePromptVersion {
    let system_prompt = Some(text.to_owned());
    SavePromptVersion { agent, system_prompt, description: String::new(), tools: Vec::new(), variables: Vec::new() }
}

fn save(world: &mut TestWorld, agent: AgentId, text: &str) -> PromptVersionId {
    world.ask(version(agent, text)).unwrap().id
}

pub(super) fn experiment(agent: AgentId, versions: &[PromptVersionId]) -> CreatePromptExperiment {
    let variant = |version: &PromptVersionId| NewVariant { version: Some(*version), ..NewVariant::default() };
    CreatePromptExperiment {
        agent,
        name: "tone".to_owned(),
        variants: versions.iter().map(variant).collect(),
        shares: Vec::new(),
        criteria: SuccessCriteria::default(),
    }
}

/// An agent with two versions and an experiment that runs.
fn running(world: &mut TestWorld, criteria: SuccessCriteria) -> (AgentId, PromptExperimentView) {
    let agent = world.spawn("tested");
    let versions = [save(world, agent, "Be kind."), save(world, agent, "Be brief.")];
    let made = world.ask(CreatePromptExperiment { criteria, ..experiment(agent, &versions) }).unwrap();
    (agent, world.ask(StartPromptExperiment(made.id)).unwrap())
}

fn begin(world: &mut TestWorld, agent: AgentId, session: SessionId) -> crate::testing::Asked<TurnReply> {
    let asked = world.begin(SendMessage { agent, session: Some(session), message: NewMessage::text("go") });
    world.step();
    asked
}

/// Sends a message, answers it, and says which prompt the call had and which turn that was.
fn talk(world: &mut TestWorld, agent: AgentId, session: SessionId, answer: &str) -> (String, TurnId) {
    let _asked = begin(world, agent, session);
    let call = world.next_call();
    world.answer(call.attempt, answer);
    (call.manifest.manifest.system_prompt.to_string(), call.turn())
}

fn session(world: &mut TestWorld, agent: AgentId) -> SessionId {
    world.ask(CreateSession { agent, label: None }).unwrap()
}

fn code(result: Result<impl Sized, Refusal>) -> Option<ErrorCode> {
    result.err().and_then(|refusal| refusal.code)
}

/// The figures of all variants, summed.
fn totals(world: &mut TestWorld, id: PromptExperimentId) -> VariantTotals {
    let view = world.ask(Get::<PromptExperimentView>(id)).unwrap();
    view.experiment.variants.iter().map(|variant| variant.totals).fold(VariantTotals::default(), |sum, it| {
        VariantTotals {
            impressions: sum.impressions + it.impressions,
            wins: sum.wins + it.wins,
            succeeded: sum.succeeded + it.succeeded,
            failed: sum.failed + it.failed,
            rated: sum.rated + it.rated,
            cost: sum.cost.plus(it.cost),
            latency_ms: sum.latency_ms + it.latency_ms,
        }
    })
}

#[test]
fn everything_is_refused_while_it_is_disabled() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (version_id, of) = (PromptVersionId(Uuid::max()), PromptExperimentId(Uuid::max()));
    let disabled = Some(error_codes::PROMPT_INTELLIGENCE_DISABLED);
    assert_eq!(code(world.ask(version(agent, "x"))), disabled);
    assert_eq!(code(world.ask(Get::<PromptVersionView>(version_id))), disabled);
    assert_eq!(code(world.ask(List::<PromptExperimentView> { filter: agent, after: None, limit: 1 })), disabled);
    assert_eq!(code(world.ask(ActivatePromptVersion { version: version_id, agent: None })), disabled);
    assert_eq!(code(world.ask(DeletePromptVersion(version_id))), disabled);
    assert_eq!(code(world.ask(experiment(agent, &[]))), disabled);
    assert_eq!(code(world.ask(StartPromptExperiment(of))), disabled);
}

#[test]
fn an_active_version_is_the_prompt_of_its_agent_until_that_changes() {
    let mut world = enabled();
    let agent = world.spawn("a");
    let (one, two) = (save(&mut world, agent, "One."), save(&mut world, agent, "Two."));
    let is_active = |world: &mut TestWorld, id| world.ask(Get::<PromptVersionView>(id)).unwrap().is_active;
    for id in [one, two] {
        world.ask(ActivatePromptVersion { version: id, agent: Some(agent) }).unwrap();
    }
    assert_eq!((is_active(&mut world, one), is_active(&mut world, two)), (false, true));
    world.restart();
    assert_eq!(&*world.ask(GetAgent(agent)).unwrap().manifest.manifest.system_prompt, "Two.");
    assert_eq!(code(world.ask(DeletePromptVersion(two))), Some(error_codes::PROMPT_VERSION_IN_USE));
    world.ask(DeletePromptVersion(one)).unwrap();
    let patch = AgentPatch { system_prompt: Some("Mine.".into()), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent, patch }).unwrap();
    assert!(!is_active(&mut world, two));
    let own = world.ask(SavePromptVersion { system_prompt: None, ..version(agent, "") }).unwrap();
    assert_eq!((&*own.version.system_prompt, own.version.version), ("Mine.", 3));
    let other = world.spawn("b");
    let wrong = world.ask(ActivatePromptVersion { version: two, agent: Some(other) }).unwrap_err();
    assert_eq!(wrong.field.as_deref(), Some("agent_id"));
}

#[test]
fn bad_versions_and_experiments_change_nothing() {
    let mut world = enabled();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let (one, two) = (save(&mut world, agent, "One."), save(&mut world, agent, "Two."));
    let foreign = save(&mut world, other, "Foreign.");
    let long = "x".repeat(limits::PROMPT_BYTES_MAX + 1);
    for (command, field) in [
        (version(agent, " "), "system_prompt"),
        (version(agent, &long), "system_prompt"),
        (version(agent, "a\0"), "system_prompt"),
        (SavePromptVersion { description: "d".repeat(2_000), ..version(agent, "x") }, "description"),
        (SavePromptVersion { tools: vec![String::new()], ..version(agent, "x") }, "tools"),
        (SavePromptVersion { variables: vec!["v".to_owned(); 101], ..version(agent, "x") }, "variables"),
    ] {
        assert_eq!(world.ask(command).unwrap_err().field.as_deref(), Some(field));
    }
    let sound = experiment(agent, &[one, two]);
    let named = |name: &str| NewVariant { name: Some(name.to_owned()), version: Some(one), ..NewVariant::default() };
    let score = SuccessCriteria { custom_min_score: Some(1.5), ..SuccessCriteria::default() };
    for (command, field) in [
        (CreatePromptExperiment { name: " ".to_owned(), ..sound.clone() }, "name"),
        (experiment(agent, &[one]), "variants"),
        (experiment(agent, &[one; 11]), "variants"),
        (experiment(agent, &[one, foreign]), "prompt_version_id"),
        (CreatePromptExperiment { variants: vec![named("x"), named("x")], ..sound.clone() }, "variants"),
        (CreatePromptExperiment { shares: vec![50, 51], ..sound.clone() }, "traffic_split"),
        (CreatePromptExperiment { shares: vec![100, 0], ..sound.clone() }, "traffic_split"),
        (CreatePromptExperiment { shares: vec![100], ..sound.clone() }, "traffic_split"),
        (CreatePromptExperiment { criteria: score, ..sound.clone() }, "custom_min_score"),
    ] {
        assert_eq!(world.ask(command).unwrap_err().field.as_deref(), Some(field));
    }
    let list = world.ask(List::<PromptVersionView> { filter: agent, after: None, limit: 10 }).unwrap();
    assert_eq!(list.items.iter().map(|view| view.version.version).collect::<Vec<_>>(), [1, 2]);
    let list = world.ask(List::<PromptExperimentView> { filter: agent, after: None, limit: 10 }).unwrap();
    assert!(list.items.is_empty());
}

#[test]
fn an_agent_has_only_so_many_versions_and_experiments() {
    let mut world = enabled();
    let agent = world.spawn("a");
    let large = "x".repeat(limits::PROMPT_BYTES_MAX);
    let mut saved = 0;
    let refused = loop {
        match world.ask(version(agent, &large)) {
            Ok(_) => saved += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((refused.code, saved), (Some(error_codes::PROMPT_VERSIONS_FULL), 15), "by their bytes");
    let other = world.spawn("b");
    let ids: Vec<_> = (0..limits::AGENT_PROMPT_VERSIONS_MAX).map(|_| save(&mut world, other, "x")).collect();
    assert_eq!(code(world.ask(version(other, "x"))), Some(error_codes::PROMPT_VERSIONS_FULL));
    for _ in 0..limits::AGENT_PROMPT_EXPERIMENTS_MAX {
        world.ask(experiment(other, &ids[..2])).unwrap();
    }
    assert_eq!(code(world.ask(experiment(other, &ids[..2]))), Some(error_codes::PROMPT_EXPERIMENTS_FULL));
    world.ask(RemoveAgents(vec![agent, other])).unwrap();
    assert!(!world.store.keys().any(|(_, key)| [b'V', b'Z', b'I'].contains(&key[0])), "all of it goes with the agents");
}

#[test]
fn the_status_of_an_experiment_says_what_can_be_done() {
    let mut world = enabled();
    let (agent, view) = running(&mut world, SuccessCriteria::default());
    let (id, status) = (view.id, Some(error_codes::PROMPT_EXPERIMENT_STATUS));
    let versions: Vec<_> = view.experiment.variants.iter().map(|variant| variant.version).collect();
    let other = world.ask(experiment(agent, &versions)).unwrap().id;
    assert_eq!(code(world.ask(StartPromptExperiment(id))), status);
    assert_eq!(code(world.ask(StartPromptExperiment(other))), Some(error_codes::PROMPT_EXPERIMENT_RUNNING));
    assert_eq!(code(world.ask(DeletePromptExperiment(id))), status);
    assert_eq!(code(world.ask(DeletePromptVersion(versions[0]))), Some(error_codes::PROMPT_VERSION_IN_USE));
    let began = view.experiment.started_at;
    assert_eq!(world.ask(PausePromptExperiment(id)).unwrap().experiment.status, ExperimentStatus::Paused);
    assert_eq!(code(world.ask(PausePromptExperiment(id))), status);
    world.ask(StartPromptExperiment(other)).unwrap();
    world.ask(PausePromptExperiment(other)).unwrap();
    let again = world.ask(StartPromptExperiment(id)).unwrap();
    assert_eq!(again.experiment.started_at, began, "when it was first started");
    let complete = CompletePromptExperiment { experiment: id, winner: None, activate: true };
    assert_eq!(code(world.ask(complete)), status, "nothing won");
    let unknown = Some(PromptVariantId(Uuid::max()));
    let refusal = world.ask(CompletePromptExperiment { winner: unknown, ..complete }).unwrap_err();
    assert_eq!(refusal.field.as_deref(), Some("winner_variant_id"));
    let winner = Some(again.experiment.variants[1].id);
    let done = world.ask(CompletePromptExperiment { winner, ..complete }).unwrap().experiment;
    assert_eq!((done.winner, done.status, done.ended_at.is_some()), (winner, ExperimentStatus::Completed, true));
    assert!(world.ask(Get::<PromptVersionView>(versions[1])).unwrap().is_active);
    assert_eq!(code(world.ask(complete)), status);
    world.ask(DeletePromptExperiment(other)).unwrap();
    world.ask(DeletePromptVersion(versions[0])).unwrap();
    world.restart();
    assert_eq!(world.ask(Get::<PromptExperimentView>(id)).unwrap().experiment, done);
}

#[test]
fn a_session_keeps_its_variant_and_pausing_gives_it_the_agents_own_prompt() {
    let mut world = enabled();
    let (agent, view) = running(&mut world, SuccessCriteria::default());
    let sessions: Vec<_> = (0..12).map(|_| session(&mut world, agent)).collect();
    let prompts = |world: &mut TestWorld| -> Vec<String> {
        sessions.iter().map(|session| talk(world, agent, *session, "ok").0).collect()
    };
    let first = prompts(&mut world);
    assert!(first.iter().any(|text| text == "Be kind.") && first.iter().any(|text| text == "Be brief."), "{first:?}");
    world.restart();
    assert_eq!(prompts(&mut world), first);
    world.ask(PausePromptExperiment(view.id)).unwrap();
    assert!(prompts(&mut world).iter().all(String::is_empty));
    world.ask(StartPromptExperiment(view.id)).unwrap();
    assert_eq!(prompts(&mut world), first);
    assert_eq!(totals(&mut world, view.id).impressions, 36);
}

#[test]
fn a_turn_counts_once_with_what_it_cost_however_it_ends_and_over_a_kill() {
    let mut world = enabled();
    let (agent, view) = running(&mut world, SuccessCriteria::default());
    let of = session(&mut world, agent);
    let _asked = begin(&mut world, agent, of);
    let lost = world.next_call();
    // Killed while the call is out: the turn goes on with its variant, though the experiment is paused meanwhile.
    world.restart();
    world.ask(PausePromptExperiment(view.id)).unwrap();
    let call = world.next_call();
    assert_eq!(call.manifest.manifest.system_prompt, lost.manifest.manifest.system_prompt);
    assert_eq!(totals(&mut world, view.id).impressions, 0);
    world.now = world.now.plus_ms(2_000);
    world.answer(call.attempt, "done");
    world.answer(call.attempt, "again");
    let after = totals(&mut world, view.id);
    assert_eq!((after.impressions, after.wins, after.succeeded), (1, 1, 1));
    assert!(after.latency_ms >= 2_000, "{after:?}");
    world.restart();
    assert_eq!(totals(&mut world, view.id), after);
    world.ask(StartPromptExperiment(view.id)).unwrap();
    talk(&mut world, agent, of, "  ");
    let _asked = begin(&mut world, agent, of);
    let call = world.next_call();
    let failure = ModelFailure { code: FailureCode::ProviderTimeout, message: "late".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    let after = totals(&mut world, view.id);
    assert_eq!((after.impressions, after.wins, after.succeeded, after.failed), (3, 1, 2, 1), "no text is no win");
}

#[test]
fn feedback_counts_once_and_its_last_word_counts() {
    let mut world = enabled();
    let criteria =
        SuccessCriteria { require_user_helpful: true, custom_min_score: Some(0.5), ..SuccessCriteria::default() };
    let (agent, view) = running(&mut world, criteria);
    let of = session(&mut world, agent);
    let (_, turn) = talk(&mut world, agent, of, "ok");
    let give = |turn, session, helpful, score| GivePromptFeedback {
        experiment: view.id,
        turn,
        session,
        feedback: Feedback { helpful, score },
    };
    let count = |world: &mut TestWorld| {
        let totals = totals(world, view.id);
        (totals.wins, totals.rated)
    };
    assert_eq!(count(&mut world), (0, 0));
    for (helpful, score, expected) in [
        (true, Some(0.9), (1, 1)),
        (true, Some(0.9), (1, 1)),
        (true, Some(0.4), (0, 1)),
        (true, None, (0, 1)),
        (true, Some(0.5), (1, 1)),
        (false, Some(1.0), (0, 1)),
    ] {
        world.ask(give(Some(turn), None, helpful, score)).unwrap();
        assert_eq!(count(&mut world), expected, "{helpful} {score:?}");
    }
    world.restart();
    let (_, newest) = talk(&mut world, agent, of, "ok");
    let said = world.ask(give(None, Some(of), true, Some(1.0))).unwrap();
    assert_eq!((said.turn, said.impression.won, count(&mut world)), (newest, true, (1, 2)));
    let bad = world.ask(give(Some(turn), None, true, Some(1.5))).unwrap_err();
    assert_eq!(bad.field.as_deref(), Some("score"));
    assert_eq!(world.ask(give(None, None, true, None)).unwrap_err().field.as_deref(), Some("turn_id"));
    let unknown = world.ask(give(Some(TurnId(Uuid::max())), None, true, None)).unwrap_err();
    assert_eq!(unknown.kind, RefusalKind::NotFound);
    world.ask(CompletePromptExperiment { experiment: view.id, winner: None, activate: false }).unwrap();
    let late = code(world.ask(give(Some(turn), None, true, Some(1.0))));
    assert_eq!(late, Some(error_codes::PROMPT_EXPERIMENT_STATUS));
    assert_eq!(world.engine.world().resource::<Impressions>().len(), 0);
}

#[test]
fn only_the_newest_turns_of_an_experiment_are_kept() {
    let mut world = enabled();
    let (agent, view) = running(&mut world, SuccessCriteria::default());
    let of = session(&mut world, agent);
    let most = limits::EXPERIMENT_IMPRESSIONS_KEPT_MAX;
    let turns: Vec<_> = (0..most + 2).map(|_| talk(&mut world, agent, of, "ok").1).collect();
    assert_eq!(world.engine.world().resource::<Impressions>().len(), most);
    let helpful = Feedback { helpful: false, score: None };
    let give = |turn| GivePromptFeedback { experiment: view.id, turn: Some(turn), session: None, feedback: helpful };
    assert_eq!(world.ask(give(turns[1])).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(give(turns[2])).unwrap();
    assert_eq!(totals(&mut world, view.id).wins, most as u64 + 1);
}

#[test]
fn figures_that_differ_enough_name_their_winner() {
    let mut world = enabled();
    let (_, view) = running(&mut world, SuccessCriteria::default());
    let mut of = view.experiment;
    let compared = |of: &PromptExperiment| super::significance::compare(of);
    assert!(compared(&of).of[0].outcome.is_err() && compared(&of).winner.is_none());
    let totals = |wins| VariantTotals { impressions: 200, wins, ..VariantTotals::default() };
    for (control, other, winner) in [(60, 100, Some(1)), (100, 60, Some(0)), (60, 65, None)] {
        (of.variants[0].totals, of.variants[1].totals) = (totals(control), totals(other));
        assert_eq!(compared(&of).winner, winner.map(|at: usize| of.variants[at].id), "{control} {other}");
    }
}

fn variants(shares: &[u8]) -> PromptExperiment {
    let variant = |(at, share): (usize, &u8)| PromptVariant {
        id: PromptVariantId(Uuid::from_u128(at as u128)),
        name: "v".into(),
        description: "".into(),
        version: PromptVersionId(Uuid::nil()),
        share: *share,
        totals: VariantTotals::default(),
    };
    PromptExperiment {
        agent: AgentId(Uuid::nil()),
        name: "e".into(),
        status: ExperimentStatus::Running,
        criteria: SuccessCriteria::default(),
        variants: shares.iter().enumerate().map(variant).collect(),
        created_at: Timestamp(0),
        started_at: None,
        ended_at: None,
        winner: None,
        holder: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn each_session_has_one_variant_and_the_shares_are_met(
        id in any::<u128>(),
        first in any::<u64>(),
        cut in prop::collection::btree_set(1..100_u8, 1..6),
    ) {
        let ends: Vec<u8> = cut.into_iter().chain([100]).collect();
        let shares: Vec<u8> = ends.iter().scan(0, |before, end| {
            let share = *end - *before;
            *before = *end;
            Some(share)
        }).collect();
        let (id, of) = (PromptExperimentId(Uuid::from_u128(id)), variants(&shares));
        let mut counts = vec![0_u32; shares.len()];
        let sessions = 4_000;
        for at in 0..sessions {
            // Ids that differ little, as those of one moment do.
            let session = SessionId(Uuid::from_u128(u128::from(first) << 64 | at));
            let chosen = super::assign::assigned(id, &of, session).expect("the shares sum to 100");
            prop_assert_eq!(super::assign::assigned(id, &of, session), Some(chosen));
            counts[chosen.id.0.as_u128() as usize] += 1;
        }
        for (share, count) in shares.iter().zip(counts) {
            let p = f64::from(*share) / 100.0;
            let deviation = (p * (1.0 - p) * sessions as f64).sqrt();
            prop_assert!((f64::from(count) - p * sessions as f64).abs() < 6.0 * deviation, "{share} %: {count}");
        }
    }
}

//! Conditions of workflows: one that is taken does not bring a run down, whatever its steps give.

use agentsvc_components::workflow::StepMode;
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::workflow::{CreateWorkflow, NewStep, NewWorkflow, StartRun};
use agentsvc_systems::{Engine, Records, ReplySlot, Settings};

use super::feed::parts;

/// `input` is a condition and, behind a line `---`, what the run is given.
pub fn run(input: &[u8]) {
    let parts = parts(input, "---");
    let Ok(condition) = std::str::from_utf8(parts[0]) else { return };
    let given = parts.get(1).map_or_else(String::new, |part| String::from_utf8_lossy(part).into_owned());
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    engine.restore(Records::default(), Timestamp(1_700_000_000_000)).expect("an empty world");
    let step = NewStep {
        agent_name: Some("nobody".into()),
        mode: StepMode::Conditional,
        condition: Some(condition.to_owned()),
        ..NewStep::default()
    };
    let new = NewWorkflow { name: "w".into(), description: String::new(), steps: vec![step] };
    let (to, made) = std::sync::mpsc::channel();
    engine.command(Actor::Api, CreateWorkflow(new), ReplySlot::new(move |reply| drop(to.send(reply))));
    engine.step().releases.into_iter().for_each(|release| release());
    if let Ok(Ok(view)) = made.try_recv() {
        engine.command(Actor::Api, StartRun { workflow: view.id, input: given }, ReplySlot::new(drop));
        engine.step();
        assert_eq!(engine.stats().workflow_runs_open, 0, "a run with nobody to ask comes to its end");
        assert_eq!(engine.check(), Vec::<String>::new());
    }
}

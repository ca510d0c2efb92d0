//! What a definition must be.

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::StepAgent;

use super::*;
use crate::kernel::entities::Get;

#[test]
fn what_is_left_out_gets_its_default() {
    let mut world = TestWorld::new();
    let view = create(&mut world, vec![NewStep { agent_name: Some("later".into()), ..NewStep::default() }]).unwrap();
    let step = &view.workflow.steps[0];
    assert_eq!((&*step.name, &*step.prompt, step.mode), ("step-1", "{{input}}", StepMode::Sequential));
    assert_eq!((step.timeout_secs, step.max_retries, step.max_iterations), (120, 3, 5));
    assert_eq!((step.error_mode, &step.output_var), (ErrorMode::Fail, &None));
    assert_eq!(step.agent, Some(StepAgent::Name("later".into())), "the agent need not be there yet");
    assert_eq!(world.ask(Get::<WorkflowView>(view.id)).unwrap(), view);
    world.restart();
    assert_eq!(world.ask(Get::<WorkflowView>(view.id)).unwrap(), view);
}

#[test]
fn what_is_wrong_is_named() {
    let long = |bytes: usize| "x".repeat(bytes + 1);
    let name = |name: &str| named(name, step("p"));
    let variable = |name: &str| stored(name, step("p"));
    let number = |change: fn(&mut NewStep, u64), value: u64| {
        let mut step = step("p");
        change(&mut step, value);
        step
    };
    let nobody = NewStep { agent_name: None, ..step("p") };
    let both = NewStep { agent_id: Some(AgentId(uuid::Uuid::nil())), ..step("p") };
    let timeout = |value| number(|step, value| step.timeout_secs = Some(value), value);
    let retries = |value| number(|step, value| step.max_retries = Some(value), value);
    let iterations = |value| number(|step, value| step.max_iterations = Some(value), value);
    for (bad, field, part) in [
        (name(" "), "name", "empty"),
        (name("a\nb"), "name", "control"),
        (name(&long(limit::NAME_BYTES_MAX)), "name", "longer than 128 bytes"),
        (nobody, "agent_id", "give agent_id or agent_name"),
        (both, "agent_name", "not both"),
        (NewStep { agent_name: Some(String::new()), ..step("p") }, "agent_name", "empty"),
        (step(" "), "prompt", "empty"),
        (step(&long(limit::WORKFLOW_PROMPT_BYTES_MAX)), "prompt", "longer than 65536 bytes"),
        (timeout(0), "timeout_secs", "from 1 to 86400"),
        (timeout(86_401), "timeout_secs", "from 1 to 86400"),
        (timeout(u64::MAX), "timeout_secs", "from 1 to 86400"),
        (retries(101), "max_retries", "from 0 to 100"),
        (iterations(0), "max_iterations", "from 1 to 50"),
        (iterations(51), "max_iterations", "from 1 to 50"),
        (variable("1st"), "output_var", "must begin with a letter"),
        (variable(""), "output_var", "must begin with a letter"),
        (variable("a b"), "output_var", "must begin with a letter"),
        (variable("Input"), "output_var", "a reserved word"),
        (variable(&long(limit::WORKFLOW_VARIABLE_BYTES_MAX)), "output_var", "longer than 64 bytes"),
        (NewStep { mode: StepMode::Conditional, ..step("p") }, "condition", "missing"),
        (when("", "p"), "condition", "column 1: the condition is empty"),
        (when("output == ", "p"), "condition", "column 10: expected"),
        (when("later == 1", "p"), "condition", "column 1: no earlier step sets the variable \"later\""),
        (stored("later", when("later == 1", "p")), "condition", "column 1: no earlier step"),
        (when(&long(limit::WORKFLOW_CONDITION_BYTES_MAX), "p"), "condition", "longer than 4096 bytes"),
        (repeat(Some("output matches /(/"), "p"), "until", "column 16: invalid regular expression"),
        (repeat(Some("later == 1"), "p"), "until", "column 1: no earlier step"),
    ] {
        let mut world = world();
        let refused = create(&mut world, vec![step("fine"), bad]).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(format!("steps[1].{field}").as_str()), "{refused}");
        assert!(refused.message.starts_with(&format!("steps[1].{field}: ")), "{refused}");
        assert!(refused.message.contains(part), "{refused}: {part}");
        assert_eq!(world.engine.stats().workflows, 0);
    }
}

#[test]
fn bounds_of_the_whole() {
    let mut world = world();
    let mut field = |steps| create(&mut world, steps).map_err(|refusal| refusal.field.unwrap_or_default());
    assert_eq!(field(vec![]), Err("steps".into()));
    assert_eq!(field(vec![step("p"); 65]), Err("steps".into()));
    assert!(field(vec![step("p"); 64]).is_ok());
    assert_eq!(field(vec![fan_out("p"); 17]), Err("steps[16].mode".into()));
    assert!(field([vec![fan_out("p"); 16], vec![collect()], vec![fan_out("p"); 16]].concat()).is_ok());
    let long = "x".repeat(limit::WORKFLOW_PROMPT_BYTES_MAX);
    assert_eq!(field(vec![step(&long); 17]), Err("steps".into()));
    let whole = |name: &str, description: &str| NewWorkflow {
        name: name.into(),
        description: description.into(),
        steps: vec![step("p")],
    };
    let refused = world.ask(CreateWorkflow(whole("", ""))).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("name"));
    let refused = world.ask(CreateWorkflow(whole("w", &"x".repeat(4_097)))).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("description"));
}

#[test]
fn conditions_know_the_variables_of_steps_before() {
    let mut world = world();
    let steps = vec![
        stored("plan", step("p")),
        when("plan contains 'x'", "p"),
        stored("own", repeat(Some("own == 1 or plan == 2"), "p")),
    ];
    assert!(create(&mut world, steps).is_ok());
}

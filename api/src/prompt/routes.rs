//! Prompt versions and experiments (spec 3, Remaining routes).

use agentsvc_components::AgentId;
use agentsvc_components::prompt::{PromptExperimentId, PromptVersionId};
use agentsvc_systems::Command;
use agentsvc_systems::kernel::entities::{Get, List};
use agentsvc_systems::prompt::{
    ActivatePromptVersion, DeletePromptExperiment, DeletePromptVersion, PausePromptExperiment, PromptExperimentView,
    PromptVersionView, StartPromptExperiment, limits,
};

use super::diff::diff;
use super::metrics::Metrics;
use super::shape::{
    ActivateBody, CompleteBody, DiffItem, DiffQuery, ExperimentBody, FeedbackBody, ImpressionItem,
    PromptExperimentItem, PromptVersionItem, VersionBody,
};
use crate::http::call::Call;
use crate::http::cpu;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};

/// The status of the experiment does not allow it.
const STATUS: Reply = Reply::error(409, "the status of the experiment does not allow this");

/// What a comparison costs the client's rate budget: it may take a fifth of a second of a processor.
const DIFF_COST: u32 = 20;

/// The routes under `/api`.
pub(crate) const ROUTES: [Route; 15] = [
    crud::list::<PromptVersionItem>("/api/agents/{agent_id}/prompts/versions", "List the prompt versions of an agent")
        .reaching(Reach::Agent)
        .large(),
    Route::post("/api/agents/{agent_id}/prompts/versions", "Save a prompt version", |call| Box::pin(save(call)))
        .reaching(Reach::Agent)
        .body::<VersionBody>()
        .replies(&[
            Reply::json::<PromptVersionItem>(201, "the version"),
            Reply::error(429, "the limit of versions is reached"),
        ]),
    crud::get::<PromptVersionItem>("/api/prompts/versions/{id}", "Get a prompt version").reaching(Reach::Filtered),
    Route::delete("/api/prompts/versions/{id}", "Delete a prompt version", |call| Box::pin(delete_version(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::empty(204, "deleted"), Reply::error(409, "the version is active, or an experiment uses it")]),
    Route::post("/api/prompts/versions/{id}/activate", "Make a version the system prompt of its agent", |call| {
        Box::pin(activate(call))
    })
    .reaching(Reach::Filtered)
    .body::<ActivateBody>()
    .replies(&[Reply::json::<PromptVersionItem>(200, "the version")]),
    Route::get("/api/prompts/versions/{id}/diff", "Show what a version changes", |call| Box::pin(show_diff(call)))
        .reaching(Reach::Filtered)
        .large()
        .cost(DIFF_COST)
        .query::<DiffQuery>()
        .replies(&[Reply::json::<DiffItem>(200, "the changes")]),
    crud::list::<PromptExperimentItem>("/api/agents/{agent_id}/prompts/experiments", "List prompt experiments")
        .reaching(Reach::Agent),
    Route::post("/api/agents/{agent_id}/prompts/experiments", "Create a prompt experiment", |call| {
        Box::pin(create(call))
    })
    .reaching(Reach::Agent)
    .body::<ExperimentBody>()
    .replies(&[
        Reply::json::<PromptExperimentItem>(201, "the experiment"),
        Reply::error(429, "the limit of experiments is reached"),
    ]),
    crud::get::<PromptExperimentItem>("/api/prompts/experiments/{id}", "Get a prompt experiment")
        .reaching(Reach::Filtered),
    Route::delete("/api/prompts/experiments/{id}", "Delete a prompt experiment", |call| {
        Box::pin(delete_experiment(call))
    })
    .reaching(Reach::Filtered)
    .replies(&[Reply::empty(204, "deleted"), Reply::error(409, "the experiment is running")]),
    Route::post("/api/prompts/experiments/{id}/start", "Start a prompt experiment, or go on with it", |call| {
        Box::pin(run(call, StartPromptExperiment))
    })
    .reaching(Reach::Filtered)
    .replies(&[
        Reply::json::<PromptExperimentItem>(200, "the experiment"),
        Reply::error(409, "it runs, it is over, or another one of the agent runs"),
    ]),
    Route::post("/api/prompts/experiments/{id}/pause", "Pause a prompt experiment", |call| {
        Box::pin(run(call, PausePromptExperiment))
    })
    .reaching(Reach::Filtered)
    .replies(&[Reply::json::<PromptExperimentItem>(200, "the experiment"), STATUS]),
    Route::post("/api/prompts/experiments/{id}/complete", "Complete a prompt experiment", |call| {
        Box::pin(complete(call))
    })
    .reaching(Reach::Filtered)
    .body::<CompleteBody>()
    .replies(&[Reply::json::<PromptExperimentItem>(200, "the experiment with its winner"), STATUS]),
    Route::get("/api/prompts/experiments/{id}/metrics", "Show the figures of a prompt experiment", |call| {
        Box::pin(metrics(call))
    })
    .reaching(Reach::Filtered)
    .replies(&[Reply::json::<Metrics>(200, "the figures of each variant, and what they show")]),
    Route::post("/api/prompts/experiments/{id}/feedback", "Say whether a turn of an experiment helped", |call| {
        Box::pin(feedback(call))
    })
    .reaching(Reach::Filtered)
    .body::<FeedbackBody>()
    .replies(&[Reply::json::<ImpressionItem>(200, "the turn"), STATUS]),
];

/// The same routes without `/api`, as the specification writes them.
pub(crate) const LITERAL: [Route; ROUTES.len()] = {
    let (mut routes, mut at) = (ROUTES, 0);
    while at < routes.len() {
        routes[at].path = routes[at].path.split_at("/api".len()).1;
        at += 1;
    }
    routes
};

async fn save(call: Call) -> Result<Response, Error> {
    let (agent, body): (AgentId, VersionBody) = (call.id("agent_id")?, call.json()?);
    reply::created(&PromptVersionItem::from(call.ask(body.command(agent)).await?))
}

async fn delete_version(call: Call) -> Result<Response, Error> {
    call.ask(DeletePromptVersion(call.id("id")?)).await?;
    Ok(reply::no_content())
}

async fn activate(call: Call) -> Result<Response, Error> {
    let (version, body): (PromptVersionId, ActivateBody) = (call.id("id")?, call.json_or_default()?);
    let command = ActivatePromptVersion { version, agent: body.agent_id.map(AgentId) };
    reply::ok(&PromptVersionItem::from(call.ask(command).await?))
}

async fn show_diff(call: Call) -> Result<Response, Error> {
    let id = call.id("id")?;
    let DiffQuery { with } = call.query()?;
    let to = call.ask(Get::<PromptVersionView>(id)).await?;
    let from = match with {
        Some(with) => {
            let from = call.ask(Get::<PromptVersionView>(PromptVersionId(with))).await?;
            if from.version.agent != to.version.agent {
                return Err(Error::bad_field("with", "with: the version belongs to another agent"));
            }
            Some(from)
        }
        None => {
            let limit = limits::AGENT_PROMPT_VERSIONS_MAX;
            let list = List::<PromptVersionView> { filter: to.version.agent, after: None, limit };
            let mut all = call.ask(list).await?.items.into_iter();
            all.rfind(|other| other.version.version < to.version.version)
        }
    };
    let found = cpu::run(call.asker(), move || diff_of(from.as_ref(), &to)).await;
    reply::ok(&found.map_err(|_| Error::internal("the versions could not be compared"))?)
}

fn diff_of(from: Option<&PromptVersionView>, to: &PromptVersionView) -> DiffItem {
    let name = |view: &PromptVersionView| format!("version {}", view.version.version);
    let before = from.map_or("", |view| &view.version.system_prompt);
    let header = from.map_or_else(|| "nothing".to_owned(), name);
    let found = diff(before, &to.version.system_prompt, &header, &name(to));
    DiffItem {
        from_id: from.map(|view| view.id.0),
        from_version: from.map(|view| view.version.version),
        to_id: to.id.0,
        to_version: to.version.version,
        added: found.added,
        removed: found.removed,
        diff: found.text,
    }
}

async fn create(call: Call) -> Result<Response, Error> {
    let (agent, body): (AgentId, ExperimentBody) = (call.id("agent_id")?, call.json()?);
    reply::created(&PromptExperimentItem::from(call.ask(body.command(agent)).await?))
}

async fn delete_experiment(call: Call) -> Result<Response, Error> {
    call.ask(DeletePromptExperiment(call.id("id")?)).await?;
    Ok(reply::no_content())
}

/// Carries out a command that changes the status.
async fn run<C>(call: Call, command: fn(PromptExperimentId) -> C) -> Result<Response, Error>
where
    C: Command<Reply = PromptExperimentView>,
{
    let changed = call.ask(command(call.id("id")?)).await?;
    reply::ok(&PromptExperimentItem::from(changed))
}

async fn complete(call: Call) -> Result<Response, Error> {
    let (id, body): (PromptExperimentId, CompleteBody) = (call.id("id")?, call.json_or_default()?);
    reply::ok(&PromptExperimentItem::from(call.ask(body.command(id)).await?))
}

async fn metrics(call: Call) -> Result<Response, Error> {
    let id: PromptExperimentId = call.id("id")?;
    reply::ok(&Metrics::of(id, &call.ask(Get::<PromptExperimentView>(id)).await?.experiment))
}

async fn feedback(call: Call) -> Result<Response, Error> {
    let (id, body): (PromptExperimentId, FeedbackBody) = (call.id("id")?, call.json()?);
    reply::ok(&ImpressionItem::from(call.ask(body.command(id)?).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_costs_the_client_what_it_takes() {
        let all = ROUTES.iter().chain(&LITERAL).filter(|route| route.path.ends_with("/diff"));
        let costs: Vec<_> = all.map(|route| (route.cost, route.answer_max > 0)).collect();
        assert_eq!(costs, [(DIFF_COST, true); 2]);
    }
}

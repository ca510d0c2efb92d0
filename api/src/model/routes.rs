//! The model catalog: models, aliases, models of clients (spec 2, Model catalog).

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::audit::AuditKind;
use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::model::catalog::{ModelEntry, Models, NewModel};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/models", "The models of the catalog", |call| Box::pin(list(call)))
        .query::<Filter>()
        .replies(&[Reply::json::<ModelList>(200, "the models, in the order of the catalog")]),
    Route::get("/api/models/aliases", "Names that stand for models", |call| Box::pin(aliases(call)))
        .replies(&[Reply::json::<AliasList>(200, "alias to model id")]),
    Route::post("/api/models/aliases", "Let a name stand for a model", |call| Box::pin(add_alias(call)))
        .body::<AliasBody>()
        .replies(&[
            Reply::json::<AliasAdded>(201, "it does"),
            Reply::error(404, "no such model"),
            Reply::error(409, "the name is taken"),
        ]),
    Route::delete("/api/models/aliases/{alias}", "Forget an alias", |call| Box::pin(remove_alias(call)))
        .replies(&[Reply::json::<Removed>(200, "it is forgotten")]),
    Route::post("/api/models/custom", "Add a model", |call| Box::pin(add_model(call)))
        .body::<NewModel>()
        .replies(&[Reply::json::<ModelEntry>(201, "the model"), Reply::error(409, "there is a model with this id")]),
    Route::delete("/api/models/custom/{*id}", "Remove a model that was added", |call| Box::pin(remove_model(call)))
        .replies(&[Reply::json::<ModelRemoved>(200, "it is removed"), Reply::error(409, "it was not added")]),
    Route::get("/api/models/{*id}", "One model, by its id or as provider/id", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<ModelEntry>(200, "the model")]),
];

/// Which models.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Filter {
    /// Of this provider.
    provider: Option<String>,
    /// Of this tier.
    tier: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ModelList {
    models: Vec<ModelEntry>,
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct AliasList {
    /// Alias to the id of a model; `<provider>/<id>` where the id alone means another one.
    aliases: BTreeMap<String, String>,
    total: usize,
}

/// A name and what it is to stand for.
#[derive(Deserialize, JsonSchema)]
struct AliasBody {
    alias: String,
    /// The id of a model of the catalog, or `<provider>/<id>`.
    model_id: String,
}

#[derive(Serialize, JsonSchema)]
struct AliasAdded {
    /// `created`.
    status: &'static str,
    alias: String,
    model_id: String,
    provider: String,
}

#[derive(Serialize, JsonSchema)]
struct Removed {
    /// `removed`.
    status: &'static str,
    alias: String,
}

#[derive(Serialize, JsonSchema)]
struct ModelRemoved {
    /// `removed`.
    status: &'static str,
    id: String,
    /// Aliases that went with it.
    aliases: Vec<String>,
}

/// Who knows the models.
pub(crate) fn known(call: &Call) -> Result<Arc<dyn Models>, Error> {
    call.api.services.get::<dyn Models>().ok_or_else(|| Error::unavailable("the model catalog is not ready yet", 1))
}

/// Puts a change that was made on record.
pub(crate) async fn note(call: &Call, kind: AuditKind, details: Value) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: None, details }).await
}

async fn list(call: Call) -> Result<Response, Error> {
    let Filter { provider, tier } = call.query()?;
    let mut models = known(&call)?.models();
    models.retain(|model| {
        provider.as_ref().is_none_or(|provider| model.provider == *provider)
            && tier.as_deref().is_none_or(|tier| model.tier == Some(tier))
    });
    reply::ok(&ModelList { total: models.len(), models })
}

async fn show(call: Call) -> Result<Response, Error> {
    let id = call.param("id")?;
    let model = known(&call)?.model(&id);
    reply::ok(&model.ok_or_else(|| Error::not_found(format!("there is no model {id:?} in the catalog")))?)
}

async fn aliases(call: Call) -> Result<Response, Error> {
    let aliases = known(&call)?.aliases();
    reply::ok(&AliasList { total: aliases.len(), aliases })
}

async fn add_alias(call: Call) -> Result<Response, Error> {
    let AliasBody { alias, model_id } = call.json()?;
    let alias = alias.trim().to_owned();
    let model = known(&call)?.add_alias(alias.clone(), model_id).await?;
    let details = json!({ "alias": alias, "model": model.id, "provider": model.provider });
    note(&call, AuditKind::ModelAliasAdded, details).await?;
    reply::created(&AliasAdded { status: "created", alias, model_id: model.id, provider: model.provider })
}

async fn remove_alias(call: Call) -> Result<Response, Error> {
    let alias = call.param("alias")?.into_owned();
    known(&call)?.remove_alias(alias.clone()).await?;
    note(&call, AuditKind::ModelAliasRemoved, json!({ "alias": alias })).await?;
    reply::ok(&Removed { status: "removed", alias })
}

async fn add_model(call: Call) -> Result<Response, Error> {
    let model: NewModel = call.json()?;
    let model = known(&call)?.add_model(model).await?;
    note(&call, AuditKind::ModelAdded, json!({ "model": model.id, "provider": model.provider })).await?;
    reply::created(&model)
}

async fn remove_model(call: Call) -> Result<Response, Error> {
    let id = call.param("id")?.into_owned();
    let aliases = known(&call)?.remove_model(id.clone()).await?;
    note(&call, AuditKind::ModelRemoved, json!({ "model": id })).await?;
    reply::ok(&ModelRemoved { status: "removed", id, aliases })
}

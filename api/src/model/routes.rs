//! The model catalog: models, aliases, models of clients (spec 2, Model catalog).

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::model::catalog::{ModelEntry, Models, NewModel};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/models", "List models", |call| Box::pin(list(call)))
        .reaching(Reach::Shared)
        .large()
        .query::<Filter>()
        .replies(&[Reply::json::<ModelList>(200, "the models in catalog order")]),
    Route::get("/api/models/aliases", "List model aliases", |call| Box::pin(aliases(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<AliasList>(200, "aliases with their model ids")]),
    Route::post("/api/models/aliases", "Create a model alias", |call| Box::pin(add_alias(call)))
        .body::<AliasBody>()
        .replies(&[
            Reply::json::<AliasAdded>(201, "the alias was created"),
            Reply::error(404, "the model does not exist"),
            Reply::error(409, "the name is already taken"),
        ]),
    Route::delete("/api/models/aliases/{alias}", "Delete a model alias", |call| Box::pin(remove_alias(call)))
        .replies(&[Reply::json::<Removed>(200, "the alias was deleted")]),
    Route::post("/api/models/custom", "Add a model", |call| Box::pin(add_model(call))).body::<NewModel>().replies(&[
        Reply::json::<ModelEntry>(201, "the model"),
        Reply::error(
            409,
            "a model with this id already \
            exists",
        ),
    ]),
    Route::delete("/api/models/custom/{*id}", "Delete a custom model", |call| Box::pin(remove_model(call)))
        .replies(&[Reply::json::<ModelRemoved>(200, "deleted"), Reply::error(409, "not a custom model")]),
    Route::get("/api/models/{*id}", "Get a model by id or as provider/id", |call| Box::pin(show(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<ModelEntry>(200, "the model")]),
];

/// Filter for models.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Filter {
    /// Only models of this provider.
    provider: Option<String>,
    /// Only models of this tier.
    tier: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct ModelList {
    models: Vec<ModelEntry>,
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct AliasList {
    /// Aliases with model ids; `<provider>/<id>` if the id alone is ambiguous.
    aliases: BTreeMap<String, String>,
    total: usize,
}

/// An alias and its model.
#[derive(Deserialize, JsonSchema)]
struct AliasBody {
    alias: String,
    /// Id of a catalog model, or `<provider>/<id>`.
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
    /// Aliases that were deleted with it.
    aliases: Vec<String>,
}

/// Who knows the models.
pub(crate) fn known(call: &Call) -> Result<Arc<dyn Models>, Error> {
    call.api.services.get::<dyn Models>().ok_or_else(|| {
        Error::unavailable(
            "the model catalog is still loading; try \
        again in a moment",
            1,
        )
    })
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
    reply::ok(&model.ok_or_else(|| Error::not_found(format!("the catalog has no model {id:?}")))?)
}

async fn aliases(call: Call) -> Result<Response, Error> {
    let aliases = known(&call)?.aliases();
    reply::ok(&AliasList { total: aliases.len(), aliases })
}

async fn add_alias(call: Call) -> Result<Response, Error> {
    let AliasBody { alias, model_id } = call.json()?;
    let alias = alias.trim().to_owned();
    let model = known(&call)?.add_alias(alias.clone(), model_id).await?;
    reply::created(&AliasAdded { status: "created", alias, model_id: model.id, provider: model.provider })
}

async fn remove_alias(call: Call) -> Result<Response, Error> {
    let alias = call.param("alias")?.into_owned();
    known(&call)?.remove_alias(alias.clone()).await?;
    reply::ok(&Removed { status: "removed", alias })
}

async fn add_model(call: Call) -> Result<Response, Error> {
    let model: NewModel = call.json()?;
    let model = known(&call)?.add_model(model).await?;
    reply::created(&model)
}

async fn remove_model(call: Call) -> Result<Response, Error> {
    let id = call.param("id")?.into_owned();
    let aliases = known(&call)?.remove_model(id.clone()).await?;
    reply::ok(&ModelRemoved { status: "removed", id, aliases })
}

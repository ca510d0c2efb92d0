//! The settings of hands and their instances (spec 2, Hands).

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::hand::HandInstanceId;
use agentsvc_systems::hand::values::{self, Config};
use agentsvc_systems::hand::{HandView, SetHandConfig};
use agentsvc_systems::kernel::entities::{Get, List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::hands::Hands;
use super::routes::{blocking, found, hands, read_values};
use super::shape::{InstanceItem, SettingItem};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// How often a change is tried again that another one came before.
const TRIES: usize = 4;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/hands/{hand_id}/settings", "Get the settings of a hand", |call| Box::pin(show(call)))
        .query::<InstanceQuery>()
        .replies(&[
            Reply::json::<SettingsItem>(200, "the settings and their values"),
            Reply::error(404, "no such hand, or no such instance"),
        ]),
    Route::put("/api/hands/{hand_id}/settings", "Update the settings of an instance", |call| Box::pin(update(call)))
        .query::<InstanceQuery>()
        .body::<SettingsBody>()
        .replies(&[
            Reply::json::<Updated>(200, "updated"),
            Reply::error(404, "no such hand, or it has no instance"),
            Reply::error(409, "the settings were changed by others at the same time"),
            Reply::error(429, "the limit of the bytes of instances is reached"),
        ]),
];

/// Which instance.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct InstanceQuery {
    /// Id of an instance. Default: the newest one of the hand.
    instance_id: Option<String>,
}

/// Values by key: strings, numbers or booleans; null removes one. Keys that are not sent stay as they are.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "describes the body")]
struct SettingsBody(BTreeMap<String, Value>);

/// The settings of a hand, and the values of an instance.
#[derive(Serialize, JsonSchema)]
struct SettingsItem {
    hand_id: String,
    /// The instance; null if the hand has none.
    instance_id: Option<Uuid>,
    settings: Vec<SettingItem>,
    /// Values that were chosen; secrets as `***`.
    current_values: BTreeMap<String, String>,
    /// Values that count: chosen ones, and defaults.
    effective_values: BTreeMap<String, String>,
    /// Values that were chosen for keys that the hand does not have.
    unknown_values: BTreeMap<String, String>,
}

/// What was changed.
#[derive(Serialize, JsonSchema)]
struct Updated {
    /// `updated`
    status: &'static str,
    instance_id: Uuid,
    /// Values that were chosen; secrets as `***`.
    config: BTreeMap<String, String>,
}

/// The instance that a request is about: that of the query, else the newest of the hand.
async fn instance(call: &Call, hand: &str) -> Result<Option<HandView>, Error> {
    let InstanceQuery { instance_id } = call.query()?;
    if let Some(text) = instance_id {
        let wrong = || Error::bad_field("instance_id", "instance_id: not a valid UUID");
        let id: HandInstanceId = text.parse().map_err(|_| wrong())?;
        let view = call.ask(Get::<HandView>(id)).await?;
        if *view.instance.hand != *hand {
            let text = format!("instance_id: {id} is an instance of another hand");
            return Err(Error::not_found(text).with("field", "instance_id"));
        }
        return Ok(Some(view));
    }
    let (mut after, mut newest) = (None, None);
    loop {
        let list = List::<HandView> { filter: Some(hand.into()), after, limit: 1_000 };
        let page = call.ask(list).await?;
        after = page.next;
        newest = page.items.into_iter().chain(newest).max_by_key(|view| (view.instance.activated_at, view.id));
        if after.is_none() {
            return Ok(newest);
        }
    }
}

async fn show(call: Call) -> Result<Response, Error> {
    let (hands, hand) = (hands(&call)?, found(&call).await?.definition);
    let view = instance(&call, &hand.id).await?;
    let config = view.as_ref().map(|view| view.instance.config.clone()).unwrap_or_default();
    let [current_values, unknown_values] = values::chosen_values(&hand, &config);
    let effective_values = values::effective_values(&hand, &config);
    let (hand_id, instance_id) = (hand.id.clone(), view.map(|view| view.id.0));
    let settings = blocking(move || hand.settings.iter().map(|it| SettingItem::of(it, &*hands)).collect()).await?;
    reply::ok(&SettingsItem { hand_id, instance_id, settings, current_values, effective_values, unknown_values })
}

async fn update(call: Call) -> Result<Response, Error> {
    let mut given: BTreeMap<String, Value> = call.json()?;
    // Some clients send the values in an object of their own.
    if let (Some(Value::Object(inner)), 1) = (given.get("config"), given.len()) {
        given = inner.clone().into_iter().collect();
    }
    let (hands, hand) = (hands(&call)?, found(&call).await?.definition);
    let none = || Error::not_found(format!("hand {:?} has no instance; activate it first", hand.id));
    let mut view = instance(&call, &hand.id).await?.ok_or_else(none)?;
    let (own, definition): (Arc<dyn Hands>, _) = (hands, hand.clone());
    let delta = blocking(move || read_values(&definition, &*own, given)).await??;
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let was = view.instance.config.clone();
        let mut config: Config = was.clone();
        for (key, value) in &delta {
            match value {
                Some(value) => drop(config.insert(key.clone(), value.clone())),
                None => drop(config.remove(key)),
            }
        }
        let environment = values::environment(&hand, &config);
        let settings_text = values::section(&hand, &config).into();
        let command = SetHandConfig { instance: view.id, was, config, environment, settings_text };
        match call.ask(command).await {
            Ok(view) => {
                let InstanceItem { instance_id, config, .. } = view.into();
                return reply::ok(&Updated { status: "updated", instance_id, config });
            }
            Err(error) if tries > 0 && error.status() == hyper::StatusCode::CONFLICT => {
                view = call.ask(Get::<HandView>(view.id)).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

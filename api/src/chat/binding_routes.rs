//! The keyboard and event bindings of the web chat (spec 2, UI bindings and commands).

use crate::chat::audit_kinds;
use crate::http::blocking::spawn_blocking;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use crate::chat::bindings::{ACTIONS, Binding, Bindings, BindingsError, When};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

pub(crate) const ROUTES: &[Route] =
    &[
        Route::get("/api/bindings", "List web chat key bindings", |call| Box::pin(list(call)))
            .replies(&[Reply::json::<BindingList>(200, "the bindings in order")]),
        Route::post("/api/bindings", "Add a web chat key binding", |call| Box::pin(add(call)))
            .body::<BindingBody>()
            .replies(&[
                Reply::json::<BindingItem>(201, "added"),
                Reply::error(409, "the key is already bound, or the limit of bindings is reached"),
            ]),
        Route::delete("/api/bindings/{index}", "Delete a web chat key binding", |call| Box::pin(remove(call)))
            .replies(&[Reply::json::<Removed>(200, "deleted; later bindings move up")]),
    ];

/// Asks the disk on a thread that may wait for it.
async fn ask<T: Send + 'static>(
    call: &Call,
    ask: impl FnOnce(&dyn Bindings) -> Result<T, BindingsError> + Send + 'static,
) -> Result<T, Error> {
    let bindings = call.api.service::<dyn Bindings>()?;
    let asked = spawn_blocking(move || ask(&*bindings)).await;
    Ok(asked.map_err(|_| Error::internal("reading the bindings was interrupted"))??)
}

/// Puts a change on the audit trail, from a thread that may wait.
fn noting(call: &Call, kind: AuditKind) -> impl Fn(&Binding) -> Result<(), Refusal> + Send + use<> {
    let (bridge, runtime) = (call.api.bridge.clone(), Handle::current());
    move |binding| {
        let details = json!({ "event": binding.event, "key": binding.key, "command": binding.command });
        runtime.block_on(bridge.ask(NoteAction { kind: kind.clone(), agent: None, details }))
    }
}

/// The bindings.
#[derive(Serialize, JsonSchema)]
struct BindingList {
    bindings: Vec<BindingItem>,
    total: usize,
    /// Actions available in addition to chat commands.
    actions: Vec<ActionItem>,
}

/// One binding.
#[derive(Serialize, JsonSchema)]
struct BindingItem {
    /// Index in the list, used to delete it.
    index: usize,
    event: When,
    /// Key, such as `Mod+K` (Ctrl, or Cmd on a Mac); null for another event.
    key: Option<String>,
    /// An action of the page, or a chat command such as `/new notes`.
    command: String,
    description: String,
}

impl BindingItem {
    fn of(index: usize, binding: Binding) -> Self {
        let Binding { event, key, command, description } = binding;
        Self { index, event, key, command, description }
    }
}

/// Actions of the page.
#[derive(Serialize, JsonSchema)]
struct ActionItem {
    name: &'static str,
    description: &'static str,
}

async fn list(call: Call) -> Result<Response, Error> {
    let bindings = ask(&call, |bindings| bindings.list()).await?;
    let bindings: Vec<BindingItem> =
        bindings.into_iter().enumerate().map(|(index, binding)| BindingItem::of(index, binding)).collect();
    let actions = ACTIONS.iter().map(|(name, description)| ActionItem { name, description }).collect();
    reply::ok(&BindingList { total: bindings.len(), bindings, actions })
}

/// A new binding.
#[derive(Deserialize, JsonSchema)]
struct BindingBody {
    /// Event that runs it. Default: `key`.
    #[serde(default)]
    event: When,
    /// The key, for the event `key`: modifiers (`Mod`, `Ctrl`, `Meta`, `Alt`, `Shift`) and a key, joined by `+`.
    #[serde(default)]
    key: Option<String>,
    /// An action of the page, or a chat command.
    command: String,
    /// Description; at most 256 bytes.
    #[serde(default)]
    description: String,
}

async fn add(call: Call) -> Result<Response, Error> {
    let BindingBody { event, key, command, description } = call.json()?;
    let binding = Binding { event, key, command, description }.checked()?;
    let (kept, note) = (binding.clone(), noting(&call, audit_kinds::BINDING_ADDED));
    let index = ask(&call, move |bindings| bindings.add(kept, &note)).await?;
    reply::created(&BindingItem::of(index, binding))
}

/// The deleted binding.
#[derive(Serialize, JsonSchema)]
struct Removed {
    /// `removed`.
    status: &'static str,
    /// What it was.
    binding: BindingItem,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let index = call.param("index")?.parse::<usize>();
    let index = index.map_err(|_| Error::bad_field("index", "path parameter 'index' is not a whole number"))?;
    let note = noting(&call, audit_kinds::BINDING_REMOVED);
    let binding = ask(&call, move |bindings| bindings.remove(index, &note)).await?;
    reply::ok(&Removed { status: "removed", binding: BindingItem::of(index, binding) })
}

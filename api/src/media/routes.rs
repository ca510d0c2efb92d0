//! Media are asked for, and what came of it (spec 2, Media generation).

use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::kernel::error_codes::STORAGE_FULL;
use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest, MediaTask, MediaTaskId};
use agentsvc_systems::budget::EXCEEDED;
use agentsvc_systems::media::{AwaitMedia, CreateMedia, MediaTaskView, RemoveMedia};
use hyper::StatusCode;
use tokio::time::{Duration, timeout};
use uuid::Uuid;

use super::error_codes::{
    MEDIA_FILTERED, MEDIA_KEY_REFUSED, MEDIA_PROVIDER_FAILED, MEDIA_RATE_LIMITED, MEDIA_REFUSED, MEDIA_TIMEOUT,
    MEDIA_UNKNOWN, MEDIA_UNSUPPORTED, MISSING_KEY,
};
use super::host::{MediaHost, NotChosen, Wanted, remove_files};
use super::shape::{
    ImageBody, Images, MediaTaskItem, MusicBody, ProviderItem, ProviderList, Recording, SpeechBody, TasksQuery,
    VideoBegun, VideoBody, VideoQuery, VideoStatus, capability,
};
use super::transcribe;
use crate::http::call::Call;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::receive::blocking;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::upload::files::Files;

/// What a request for media costs the client's rate budget.
pub(super) const COST: u32 = 10;
/// How long a request waits for its result. The task goes on.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);

/// The errors of each request for media.
macro_rules! replies {
    ($($reply:expr),+) => {
        &[
            $($reply,)+
            Reply::error(409, "the agent is not running, or the price is not known while a budget is in force"),
            Reply::error(422, "no provider that offers it has a key"),
            Reply::error(429, "a budget is used up, too many tasks are open, or the provider takes no requests"),
            Reply::error(502, "the provider failed"),
            Reply::error(504, "the provider did not answer in time"),
            Reply::error(507, "the uploads have no room for the result"),
        ]
    };
}

pub(super) use replies;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/media/image", "Generate images", |call| Box::pin(image(call)))
        .reaching(Reach::Filtered)
        .cost(COST)
        .body::<ImageBody>()
        .replies(replies!(Reply::json::<Images>(200, "the images"))),
    Route::post("/api/media/speech", "Read a text aloud", |call| Box::pin(speech(call)))
        .reaching(Reach::Filtered)
        .cost(COST)
        .body::<SpeechBody>()
        .replies(replies!(Reply::json::<Recording>(200, "the recording"))),
    Route::post("/api/media/video", "Begin to generate a video", |call| Box::pin(video(call)))
        .reaching(Reach::Filtered)
        .cost(COST)
        .body::<VideoBody>()
        .replies(replies!(Reply::json::<VideoBegun>(202, "begun; ask for it by its task id"))),
    Route::get("/api/media/video/{task_id}", "Get the status of a video", |call| Box::pin(video_status(call)))
        .reaching(Reach::Filtered)
        .query::<VideoQuery>()
        .replies(&[Reply::json::<VideoStatus>(200, "the status; a completed one has the result")]),
    Route::post("/api/media/music", "Generate music", |call| Box::pin(music(call)))
        .reaching(Reach::Filtered)
        .cost(COST)
        .body::<MusicBody>()
        .replies(replies!(Reply::json::<Recording>(200, "the music"))),
    Route::get("/api/media/providers", "List the providers of media", |call| Box::pin(providers(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<ProviderList>(200, "the providers")]),
    crud::list::<MediaTaskItem>("/api/media/tasks", "List media tasks")
        .reaching(Reach::Filtered)
        .query::<TasksQuery>()
        .large(),
    Route::get("/api/media/tasks/{id}", "Get a media task", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<MediaTaskItem>(200, "the media task")]),
    Route::delete("/api/media/tasks/{id}", "Delete a media task and its files", |call| Box::pin(delete(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::empty(204, "deleted"), Reply::error(409, "the media task is still open")]),
];

/// Who asks for media, and of whom.
#[derive(Default)]
pub(super) struct By {
    pub(super) agent: Option<Uuid>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// How long the recording of a transcription plays at most.
    pub(super) recording_ms: Option<u64>,
}

/// Asks for media.
pub(super) async fn begin(call: &Call, by: By, request: MediaRequest) -> Result<MediaTaskView, Error> {
    let host: Arc<dyn MediaHost> = call.api.service::<dyn MediaHost>()?;
    let By { agent, provider, model, recording_ms } = by;
    match agent {
        Some(agent) => call.check_owner(AgentId(agent)).await?,
        None if call.principal.limited_to().is_some() => {
            return Err(Error::bad_field("agent_id", "agent_id is missing; name the agent whose budget pays"));
        }
        None => {}
    }
    let wanted = Wanted { request: &request, provider: provider.as_deref(), model: model.as_deref(), recording_ms };
    let chosen = host.choose(&wanted).map_err(|why| match why {
        NotChosen::Unsupported(field, text) => Error::of(MEDIA_UNSUPPORTED, text).with("field", field),
        NotChosen::MissingKey(text) => Error::of(MISSING_KEY, text),
    })?;
    let (agent, turn, key, provider) = (agent.map(AgentId), None, String::new(), chosen.provider.to_owned());
    let (model, most, is_priced) = (chosen.model, chosen.most, chosen.is_priced);
    call.ask(CreateMedia { agent, turn, key, provider, model, request, most, is_priced }).await
}

/// Asks for media, and waits for the result.
pub(super) async fn made(call: &Call, by: By, request: MediaRequest) -> Result<MediaTask, Error> {
    let id = begin(call, by, request).await?.id;
    ended(call, id).await
}

/// Waits for the result of a task.
pub(super) async fn ended(call: &Call, id: MediaTaskId) -> Result<MediaTask, Error> {
    let Ok(ended) = timeout(WAIT_MAX, call.ask(AwaitMedia(id))).await else { return Err(still_open(id)) };
    let task = ended?.task;
    if task.state.is_open() {
        return Err(still_open(id));
    }
    let Some(fault) = task.fault else { return Ok(task) };
    let text = task.error.map_or_else(|| "the provider failed".to_owned(), String::from);
    Err(failed(fault, text).with("task_id", id.to_string()))
}

fn still_open(id: MediaTaskId) -> Error {
    Error::of(MEDIA_TIMEOUT, "the provider has not ended yet; the task goes on").with("task_id", id.to_string())
}

/// Why a task failed, as an error.
fn failed(fault: MediaFault, text: String) -> Error {
    let code = match fault {
        MediaFault::Auth => MEDIA_KEY_REFUSED,
        MediaFault::Refused => MEDIA_REFUSED,
        MediaFault::Filtered => MEDIA_FILTERED,
        MediaFault::RateLimited => MEDIA_RATE_LIMITED,
        MediaFault::Timeout => MEDIA_TIMEOUT,
        MediaFault::Budget => EXCEEDED,
        MediaFault::Storage => STORAGE_FULL,
        MediaFault::Unknown => MEDIA_UNKNOWN,
        MediaFault::Unreachable | MediaFault::Provider | MediaFault::Protocol => MEDIA_PROVIDER_FAILED,
    };
    Error::of(code, text)
}

async fn image(call: Call) -> Result<Response, Error> {
    let ImageBody { prompt, provider, model, width, height, count, agent_id } = call.json()?;
    let size = match (width, height) {
        (Some(width), Some(height)) => Some((width, height)),
        (None, None) => None,
        (Some(_), None) => return Err(Error::bad_field("height", "height is missing; width and height go together")),
        (None, Some(_)) => return Err(Error::bad_field("width", "width is missing; width and height go together")),
    };
    let request = MediaRequest::Image { prompt: prompt.into(), count: count.unwrap_or(1), size };
    let by = By { agent: agent_id, provider, model, ..By::default() };
    reply::ok(&Images::from(made(&call, by, request).await?))
}

async fn speech(call: Call) -> Result<Response, Error> {
    let SpeechBody { text, provider, model, voice, format, speed, agent_id } = call.json()?;
    // A number beyond the range stays beyond it.
    let speed_percent = speed.map(|speed| (speed * 100.0).round() as u32);
    let (voice, format) = (voice.map(Into::into), format.map(Into::into));
    let request = MediaRequest::Speech { text: text.into(), voice, format, speed_percent };
    let by = By { agent: agent_id, provider, model, ..By::default() };
    reply::ok(&Recording::from(made(&call, by, request).await?))
}

async fn video(call: Call) -> Result<Response, Error> {
    let VideoBody { prompt, provider, model, duration_secs, agent_id } = call.json()?;
    let request = MediaRequest::Video { prompt: prompt.into(), duration_secs };
    let by = By { agent: agent_id, provider, model, ..By::default() };
    let view = begin(&call, by, request).await?;
    reply::json(StatusCode::ACCEPTED, &VideoBegun { task_id: view.id.0, provider: view.task.provider })
}

async fn show(call: Call) -> Result<Response, Error> {
    reply::ok(&MediaTaskItem::from(known(&call, call.id("id")?).await?))
}

/// The files go first, so that a task whose removal breaks off still names those that are left.
async fn delete(call: Call) -> Result<Response, Error> {
    let id: MediaTaskId = call.id("id")?;
    let task = known(&call, id).await?.task;
    if !task.state.is_open() {
        let files = call.api.service::<dyn Files>()?;
        blocking(move || remove_files(&*files, &task)).await?;
    }
    call.ask(RemoveMedia(id)).await?;
    Ok(reply::no_content())
}

/// The task, if the client may know of it.
async fn known(call: &Call, id: MediaTaskId) -> Result<MediaTaskView, Error> {
    let view = crud::view::<MediaTaskItem>(call, id).await?;
    match call.principal.limited_to() {
        Some(user) if view.owner != Some(user) => Err(Error::not_found(format!("media task not found: {id}"))),
        _ => Ok(view),
    }
}

async fn video_status(call: Call) -> Result<Response, Error> {
    let (id, query): (MediaTaskId, VideoQuery) = (call.id("task_id")?, call.query()?);
    let view = known(&call, id).await?;
    let missing = || Error::bad_field("provider", "query parameter 'provider' is missing");
    let provider = query.provider.filter(|provider| !provider.is_empty()).ok_or_else(missing)?;
    if view.task.kind != MediaKind::Video || *view.task.provider != *provider {
        return Err(Error::not_found(format!("video of this provider not found: {id}")));
    }
    reply::ok(&VideoStatus::from(view))
}

async fn music(call: Call) -> Result<Response, Error> {
    let MusicBody { prompt, lyrics, instrumental, format, provider, model, agent_id } = call.json()?;
    let request = MediaRequest::Music {
        prompt: prompt.map(Into::into),
        lyrics: lyrics.map(Into::into),
        instrumental: instrumental.unwrap_or_default(),
        format: format.map(Into::into),
    };
    let by = By { agent: agent_id, provider, model, ..By::default() };
    reply::ok(&Recording::from(made(&call, by, request).await?))
}

async fn providers(call: Call) -> Result<Response, Error> {
    let host = call.api.service::<dyn MediaHost>()?;
    let items = host.providers().into_iter().map(|provider| ProviderItem {
        name: provider.name,
        configured: provider.configured,
        capabilities: provider.kinds.into_iter().map(capability).collect(),
    });
    let defaults = MediaKind::ALL.map(|kind| (capability(kind), host.default_provider(kind)));
    reply::ok(&ProviderList { providers: items.collect(), defaults: defaults.into() })
}

/// The route of transcripts, whose body is a file.
pub(crate) const TRANSCRIBE: &[Route] = &[transcribe::ROUTE];

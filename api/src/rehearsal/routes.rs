//! Rehearsals begin, are looked at and are removed (issue 7, Fork and rehearsal; docs/rehearsal.md).

use crate::rehearsal::error_codes;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_systems::config::ReadSettings;
use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::{reply, timestamp};
use crate::rehearsal::runs::{
    Injected, InjectedKind, Model, Plan, PlanEnd, RehearsalError, Rehearsals, Removal, Report, Status,
};

/// What the beginning of a rehearsal costs the client's rate budget: it reads the whole world.
const COST: u32 = 50;
/// The largest seed: what every JSON reader keeps exactly.
const SEED_MAX: u64 = 1 << 53;
/// The seed when none is given.
const SEED: u64 = 1;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/world/rehearsals", "Start a rehearsal", |call| Box::pin(begin(call)))
        .cost(COST)
        .without_room()
        .body_max(limit::REHEARSAL_BODY_BYTES_MAX)
        .body::<BeginBody>()
        .replies(&[
            Reply::json::<Status>(202, "started; `Location` is its path"),
            Reply::error(404, "the snapshot does not exist"),
            Reply::error(409, "another rehearsal is running"),
        ]),
    Route::get("/api/world/rehearsals", "List rehearsals, newest first", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<Listed>(200, "the rehearsals")]),
    Route::get("/api/world/rehearsals/{id}", "Get a rehearsal and its report", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<Whole>(200, "its state, and its report once it has ended")]),
    Route::delete("/api/world/rehearsals/{id}", "Cancel or delete a rehearsal", |call| Box::pin(remove(call))).replies(
        &[Reply::json::<Cancelling>(202, "it was running and is being cancelled"), Reply::empty(204, "deleted")],
    ),
];

/// Options of the rehearsal.
#[derive(Deserialize, JsonSchema)]
struct BeginBody {
    /// `now` (default) or the id of a snapshot.
    #[serde(default)]
    from: Option<String>,
    /// Duration, such as `7d`, `12h` or `1d12h`; either this or `until`.
    #[serde(default, rename = "for")]
    length: Option<String>,
    /// End time, RFC 3339; either this or `for`.
    #[serde(default)]
    until: Option<String>,
    /// `builtin` (default) or `recorded`.
    #[serde(default)]
    model: Option<String>,
    /// Random seed, 0 to 2^53. Default: 1.
    #[serde(default)]
    seed: Option<u64>,
    /// Events to inject.
    #[serde(default)]
    events: Vec<EventBody>,
}

/// An event to inject.
#[derive(Deserialize, JsonSchema)]
struct EventBody {
    /// Time within the rehearsal, RFC 3339.
    at: String,
    /// `custom` or `message`.
    kind: String,
    /// Type of a custom event.
    #[serde(default)]
    event_type: Option<String>,
    /// Payload of a custom event: any JSON.
    #[serde(default)]
    payload: Value,
    /// Agent that receives the message or that the event is about.
    #[serde(default)]
    agent_id: Option<Uuid>,
    /// Text of a message.
    #[serde(default)]
    message: Option<String>,
}

/// All stored tasks.
#[derive(Serialize, JsonSchema)]
struct Listed {
    rehearsals: Vec<Status>,
}

/// A rehearsal with its report.
#[derive(Serialize, JsonSchema)]
struct Whole {
    #[serde(flatten)]
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Arc<Report>>,
}

/// The rehearsal is being cancelled.
#[derive(Serialize, JsonSchema)]
struct Cancelling {
    status: &'static str,
}

async fn begin(call: Call) -> Result<Response, Error> {
    let body: BeginBody = call.json()?;
    let from = match body.from.as_deref() {
        None | Some("now") => None,
        Some(text) => {
            Some(text.parse().map_err(|_| Error::bad_field("from", "from: expected \"now\" or the id of a snapshot"))?)
        }
    };
    let end = end_of(body.length.as_deref(), body.until.as_deref())?;
    let model = match body.model.as_deref() {
        None | Some("builtin") => Model::Builtin,
        Some("recorded") => Model::Recorded,
        Some(_) => return Err(Error::bad_field("model", "model: expected \"builtin\" or \"recorded\"")),
    };
    let seed = body.seed.unwrap_or(SEED);
    if seed > SEED_MAX {
        return Err(Error::bad_field("seed", format!("seed: must be at most {SEED_MAX}")));
    }
    let most = limit::REHEARSAL_EVENTS_MAX;
    if body.events.len() > most {
        return Err(Error::bad_field("events", format!("events: the limit is {most}")));
    }
    let events = body.events.into_iter().enumerate().map(|(n, event)| event.read(n)).collect::<Result<_, _>>()?;
    let settings = call.ask(ReadSettings).await?;
    let plan = Plan { from, end, model, seed, events, settings };
    let status = blocking(&call, move |rehearsals| rehearsals.begin(plan)).await??;
    let mut response = reply::json(StatusCode::ACCEPTED, &status)?;
    if let Ok(place) = HeaderValue::from_str(&format!("/api/world/rehearsals/{}", status.id)) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// When it ends, by the two keys of which one must be there.
fn end_of(length: Option<&str>, until: Option<&str>) -> Result<PlanEnd, Error> {
    match (length, until) {
        (None, None) => Err(Error::bad_field("for", "for: missing; set a duration such as \"7d\", or set until")),
        (Some(_), Some(_)) => Err(Error::bad_field("until", "until: cannot be combined with `for`")),
        (None, Some(until)) => Ok(PlanEnd::At(timestamp::parse("until", until)?)),
        (Some(length), None) => {
            let wrong = || {
                Error::bad_field(
                    "for",
                    "for: invalid duration; expected a form like \"7d\", \"12h\", \
                \"30m\" or \"1d12h\"",
                )
            };
            let ms = length_ms(length).ok_or_else(wrong)?;
            if ms == 0 || ms > limit::REHEARSAL_MS_MAX {
                let days = limit::REHEARSAL_MS_MAX / 86_400_000;
                return Err(Error::bad_field("for", format!("for: must be longer than 0 and at most {days}d")));
            }
            Ok(PlanEnd::After(ms))
        }
    }
}

/// The milliseconds of a length: numbers with a unit each, `w`, `d`, `h`, `m` or `s`. `None` when it is none.
fn length_ms(text: &str) -> Option<i64> {
    let (mut total, mut number) = (0_i64, None::<i64>);
    for character in text.trim().chars() {
        if let Some(digit) = character.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            continue;
        }
        let unit = match character {
            'w' => 604_800_000,
            'd' => 86_400_000,
            'h' => 3_600_000,
            'm' => 60_000,
            's' => 1_000,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    number.is_none().then_some(total).filter(|_| !text.trim().is_empty())
}

impl EventBody {
    /// Reads the n-th event of a request.
    fn read(self, n: usize) -> Result<Injected, Error> {
        let field = |key: &str| format!("events[{n}].{key}");
        let missing = |key: &str| Error::bad_field(&field(key), format!("{}: is missing", field(key)));
        let at = timestamp::parse(&field("at"), &self.at)?;
        let agent = self.agent_id.map(AgentId);
        let what = match self.kind.as_str() {
            "custom" => {
                let event_type = self.event_type.ok_or_else(|| missing("event_type"))?;
                let payload: Box<str> = self.payload.to_string().into();
                let most = limit::EVENT_PAYLOAD_BYTES_MAX;
                if payload.len() > most {
                    let text = format!("{}: is longer than {most} bytes of compact JSON", field("payload"));
                    return Err(Error::bad_field(&field("payload"), text));
                }
                InjectedKind::Custom { event_type, payload, agent }
            }
            "message" => {
                let text = self.message.filter(|text| !text.trim().is_empty()).ok_or_else(|| missing("message"))?;
                if text.len() > limit::MESSAGE_BYTES_MAX {
                    let most = limit::MESSAGE_BYTES_MAX;
                    let text = format!("{}: is longer than {most} bytes", field("message"));
                    return Err(Error::bad_field(&field("message"), text));
                }
                InjectedKind::Message { agent: agent.ok_or_else(|| missing("agent_id"))?, text }
            }
            _ => {
                let text = format!("{}: must be \"custom\" or \"message\"", field("kind"));
                return Err(Error::bad_field(&field("kind"), text));
            }
        };
        Ok(Injected { at, what })
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    reply::ok(&Listed { rehearsals: rehearsals(&call)?.list() })
}

async fn show(call: Call) -> Result<Response, Error> {
    let id: Uuid = call.id("id")?;
    let (status, report) = rehearsals(&call)?.get(id).ok_or_else(|| gone(id))?;
    reply::ok(&Whole { status, report })
}

fn gone(id: Uuid) -> Error {
    Error::not_found(format!("rehearsal {id} does not exist"))
}

async fn remove(call: Call) -> Result<Response, Error> {
    let id: Uuid = call.id("id")?;
    match blocking(&call, move |rehearsals| rehearsals.remove(id)).await?? {
        Removal::Cancelling => reply::json(StatusCode::ACCEPTED, &Cancelling { status: "cancelling" }),
        Removal::Removed => Ok(reply::no_content()),
    }
}

fn rehearsals(call: &Call) -> Result<Arc<dyn Rehearsals>, Error> {
    call.api.services.get::<dyn Rehearsals>().ok_or_else(|| RehearsalError::NotReady.into())
}

/// Runs what touches the disk on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    call: &Call,
    look: impl FnOnce(&dyn Rehearsals) -> T + Send + 'static,
) -> Result<T, Error> {
    let rehearsals = rehearsals(call)?;
    spawn_blocking(move || look(&*rehearsals)).await.map_err(|error| {
        tracing::error!(%error, "reading a rehearsal was interrupted");
        Error::internal("the rehearsal could not be read")
    })
}

impl From<RehearsalError> for Error {
    fn from(error: RehearsalError) -> Self {
        let text = error.to_string();
        match error {
            RehearsalError::BadField { field, .. } => Self::bad_field(&field, text),
            RehearsalError::NotFound(_) => Self::not_found(text),
            RehearsalError::Running(_) => Self::of(error_codes::REHEARSAL_RUNNING, text),
            RehearsalError::NotReady => Self::unavailable(text, 1),
            RehearsalError::Failed(_) => Self::internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_numbers_with_units() {
        for (text, ms) in [("7d", 604_800_000), ("90s", 90_000), ("1d12h", 129_600_000), ("2w", 1_209_600_000)] {
            assert_eq!(length_ms(text), Some(ms), "{text}");
        }
        for text in ["", "7", "d", "7 d", "-1d", "1.5h", "1dd", "99999999999999999999d", "9999999999999999w", "7D"] {
            assert_eq!(length_ms(text), None, "{text}");
        }
    }

    #[test]
    fn one_end_is_needed_and_bounded() {
        let field = |result: Result<PlanEnd, Error>| {
            let error = result.unwrap_err();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST);
            error.message().split(':').next().unwrap_or_default().to_owned()
        };
        assert_eq!(field(end_of(None, None)), "for");
        assert_eq!(field(end_of(Some("1d"), Some("2026-01-01T00:00:00Z"))), "until");
        assert_eq!(field(end_of(Some("0d"), None)), "for");
        assert_eq!(field(end_of(Some("367d"), None)), "for");
        assert_eq!(field(end_of(None, Some("tomorrow"))), "until");
        assert_eq!(end_of(Some("366d"), None).unwrap(), PlanEnd::After(366 * 86_400_000));
    }
}

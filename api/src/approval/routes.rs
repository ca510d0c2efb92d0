//! Approvals: actions that wait for a person (spec 3, Approvals; decisions, Money and trust).

use agentsvc_components::ApprovalId;
use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::kernel::limit;
use agentsvc_systems::approval::error_codes;
use agentsvc_systems::approval::{
    ApprovalView, CountApprovals, DecideApprovals, Decision, RequestApproval, check_answer,
};
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::kernel::record::hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::second_factor::factor;

/// What a batch costs the client's rate budget.
const BATCH_COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/approvals", "Request an approval", |call| Box::pin(request(call)))
        .body::<RequestBody>()
        .replies(&[Reply::json::<Item>(201, "the approval is pending")]),
    Route::get("/api/approvals/count", "Count approvals", |call| Box::pin(count(call)))
        .replies(&[Reply::json::<Counts>(200, "the counts")]),
    Route::post("/api/approvals/batch", "Decide several approvals, all or none", |call| Box::pin(batch(call)))
        .cost(BATCH_COST)
        .body::<BatchBody>()
        .replies(&[
            Reply::json::<ApprovalList>(200, "decided"),
            Reply::error(409, "one of them was already decided; nothing was changed"),
        ]),
    Route::get("/api/approvals/{id}", "Get an approval", |call| Box::pin(read(call)))
        .replies(&[Reply::json::<Item>(200, "the approval")]),
    Route::post("/api/approvals/{id}/approve", "Approve", |call| Box::pin(approve(call)))
        .body::<ApproveBody>()
        .replies(&[Reply::json::<Item>(200, "approved"), Reply::error(409, "already decided")]),
    Route::post("/api/approvals/{id}/reject", "Reject", |call| Box::pin(reject(call)))
        .body::<RejectBody>()
        .replies(&[Reply::json::<Item>(200, "rejected"), Reply::error(409, "already decided")]),
];

shape! {
    /// An approval.
    pub(crate) struct Item from view: ApprovalView {
        let Approval { agent, action, description, payload, state, created_at, deadline, answer_schema, .. } =
            view.approval;
        let call = view.approval.call;
    } {
        id: Uuid = view.id.0,
        /// Agent.
        agent_id: Uuid = agent.0,
        /// Action: the tool name for a tool call.
        action: Box<str> = action,
        description: Box<str> = description,
        /// Payload: the input of a tool call, as text if the model wrote invalid JSON.
        #[schemars(with = "Value")]
        payload: Box<RawValue> = as_json(payload.into()),
        /// `pending`, `approved`, `rejected` or `expired`.
        status: &'static str = state.as_str(),
        created_at: Moment = Moment(created_at),
        /// Expiry time.
        expires_at: Moment = Moment(deadline),
        decided_at: Option<Moment> = view.approval.decided_at.map(Moment),
        /// Reason of the decision or expiry.
        reason: Option<Box<str>> = view.approval.reason,
        /// Waiting turn; null if a client requested it.
        turn_id: Option<Uuid> = call.and_then(|call| call.waiting_turn()).map(|turn| turn.0),
        /// Labels of the untrusted content that the waiting turn had read, such as `guest` or `peer` where a stranger asks; empty
        /// when no turn waits.
        taint: Vec<&'static str> = view.taint.words(),
        /// A stranger began what asks: a client without a key, or another node. Such approvals are listed behind all others.
        of_strangers: bool = view.approval.is_strangers,
        /// JSON schema of the `answer` that approving needs, a flat object; null if it needs none.
        #[schemars(with = "Option<Value>")]
        answer_schema: Option<Box<RawValue>> = answer_schema.map(|schema| as_json(schema.into())),
        /// SHA-256 in hex of the tool name, a zero byte and the input; null if a client requested it.
        call_hash: Option<String> = call.map(|call| hex(&call.hash)),
    }
}

/// `text` itself where it is JSON, else as a JSON string.
fn as_json(text: String) -> Box<RawValue> {
    let raw = RawValue::from_string(text.clone()).or_else(|_| serde_json::value::to_raw_value(&text));
    raw.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A list of approvals.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<Item>,
    /// Total number: pending approvals with `status=pending`, otherwise decided ones.
    total: usize,
}

/// An approval request.
#[derive(Deserialize, JsonSchema)]
struct RequestBody {
    /// Agent that asks.
    agent_id: String,
    /// What would happen, in a word, such as `deploy`.
    action: String,
    /// What a person needs to know to decide.
    #[serde(default)]
    description: String,
    /// Details of the action: an object.
    #[serde(default)]
    payload: Map<String, Value>,
}

async fn request(call: Call) -> Result<Response, Error> {
    let RequestBody { agent_id, action, description, payload } = call.json()?;
    let agent = agent_id.parse().map_err(|_| Error::bad_field("agent_id", "agent_id is not a valid UUID"))?;
    let payload = Value::Object(payload).to_string().into();
    let command = RequestApproval { agent, action: action.into(), description: description.into(), payload };
    reply::created(&Item::from(call.ask(command).await?))
}

async fn read(call: Call) -> Result<Response, Error> {
    let id = call.id("id")?;
    reply::ok(&Item::from(call.ask(Get::<ApprovalView>(id)).await?))
}

/// Number of approvals.
#[derive(Serialize, JsonSchema)]
struct Counts {
    /// Pending approvals.
    count: usize,
    /// The same.
    pending: usize,
    /// Pending approvals of turns that strangers began: clients without a key or other nodes.
    of_strangers: usize,
    /// Decided approvals that are still stored.
    decided: usize,
}

async fn count(call: Call) -> Result<Response, Error> {
    let counts = call.ask(CountApprovals).await?;
    reply::ok(&Counts {
        count: counts.pending,
        pending: counts.pending,
        of_strangers: counts.of_strangers,
        decided: counts.decided,
    })
}

/// Options of an approval.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ApproveBody {
    /// Code of the second factor; required with `second_factor = "totp"`.
    totp_code: Option<String>,
    /// Shown with the approval.
    reason: Option<String>,
    /// The answer, as `answer_schema` of the approval describes it; only with one. It goes to what asked and is not stored with the approval; the input log has it.
    answer: Option<Map<String, Value>>,
}

/// Options of a rejection.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RejectBody {
    /// Shown with the approval and to the model.
    reason: Option<String>,
}

async fn approve(call: Call) -> Result<Response, Error> {
    let ApproveBody { totp_code, reason, answer } = call.json_or_default()?;
    one(&call, Decided { decision: Decision::Approve, totp_code, reason, answer }).await
}

async fn reject(call: Call) -> Result<Response, Error> {
    let RejectBody { reason } = call.json_or_default()?;
    one(&call, Decided { decision: Decision::Reject, totp_code: None, reason, answer: None }).await
}

/// What a person says.
struct Decided {
    decision: Decision,
    totp_code: Option<String>,
    reason: Option<String>,
    answer: Option<Map<String, Value>>,
}

async fn one(call: &Call, decided: Decided) -> Result<Response, Error> {
    let decided = decide(call, vec![call.id("id")?], decided).await?;
    let first = decided.into_iter().next().ok_or_else(|| Error::internal("nothing was decided"))?;
    reply::ok(&Item::from(first))
}

/// Decides, all or none. Rejecting needs no code: it is what happens anyway when nobody decides.
async fn decide(call: &Call, ids: Vec<ApprovalId>, decided: Decided) -> Result<Vec<ApprovalView>, Error> {
    let Decided { decision, totp_code: code, reason, answer } = decided;
    let answer: Option<Box<str>> = answer.map(|answer| Value::Object(answer).to_string().into());
    if decision == Decision::Approve {
        // A code counts once: it is not spent on what cannot be approved.
        for id in &ids {
            let ApprovalView { id, approval, .. } = call.ask(Get::<ApprovalView>(*id)).await?;
            if approval.state != ApprovalState::Pending {
                let text = format!("approval {id} is {} already", approval.state.as_str());
                return Err(Error::of(error_codes::APPROVAL_DECIDED, text));
            }
            check_answer(approval.answer_schema.as_deref(), answer.as_deref(), ids.len())?;
        }
        let actor = call.actor();
        let who = actor.user_or_key().map_or_else(|| "api".to_owned(), |id| id.to_string());
        let by = format!("{} {actor}", call.peer);
        factor::ask(call, "totp_code", move |factor| factor.allow(&by, &who, code.as_deref())).await?;
    }
    call.ask(DecideApprovals { ids, decision, reason: reason.map(Into::into), answer }).await
}

/// Decision on several approvals.
#[derive(Deserialize, JsonSchema)]
struct BatchBody {
    /// At most 1,000.
    ids: Vec<String>,
    decision: BatchDecision,
    /// Code of the second factor, if required; one for all.
    #[serde(default)]
    totp_code: Option<String>,
    /// Shown with each.
    #[serde(default)]
    reason: Option<String>,
}

/// The decision.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BatchDecision {
    /// Approve.
    #[serde(alias = "approved")]
    Approve,
    /// Reject.
    #[serde(alias = "rejected")]
    Reject,
}

async fn batch(call: Call) -> Result<Response, Error> {
    let BatchBody { ids, decision, totp_code, reason } = call.json()?;
    if ids.is_empty() {
        return Err(Error::bad_field("ids", "ids must not be empty"));
    }
    if ids.len() > limit::APPROVAL_BATCH_MAX {
        let most = limit::APPROVAL_BATCH_MAX;
        return Err(Error::bad_field("ids", format!("ids: more than {most} approvals in one request")));
    }
    let parsed = ids.iter().enumerate().map(|(at, text)| {
        let wrong = |_| Error::bad_field(&format!("ids[{at}]"), format!("ids[{at}] is not a valid UUID"));
        text.parse().map_err(wrong)
    });
    let ids = parsed.collect::<Result<Vec<ApprovalId>, Error>>()?;
    let decision = match decision {
        BatchDecision::Approve => Decision::Approve,
        BatchDecision::Reject => Decision::Reject,
    };
    let decided = decide(&call, ids, Decided { decision, totp_code, reason, answer: None }).await?;
    let approvals: Vec<Item> = decided.into_iter().map(Item::from).collect();
    reply::ok(&ApprovalList { total: approvals.len(), approvals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_is_no_json_is_shown_as_text() {
        assert_eq!(as_json("{\"a\": 1}".into()).get(), "{\"a\": 1}");
        assert_eq!(as_json("{\"a\":".into()).get(), "\"{\\\"a\\\":\"");
        assert_eq!(as_json(String::new()).get(), "\"\"");
    }
}

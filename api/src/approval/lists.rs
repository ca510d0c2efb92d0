//! Lists of approvals: all of them, and the decisions alone (spec 3, Approvals).

use std::fmt;
use std::str::FromStr;

use agentsvc_components::approval::ApprovalState;
use agentsvc_components::{AgentId, ApprovalId};
use agentsvc_systems::approval::{ApprovalFilter, ApprovalView, CountApprovals, ListApprovals};
use agentsvc_systems::kernel::page::Page;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::approval::routes::{ApprovalList, Item};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists;
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/approvals", "List approvals, pending ones first", |call| Box::pin(list(call)))
        .large()
        .query::<ListQuery>()
        .replies(&[Reply::json::<ApprovalList>(
            200,
            "pending approvals, oldest first and those of strangers last, then decided ones",
        )]),
    Route::get("/api/approvals/audit", "List decided approvals, newest first", |call| Box::pin(audit(call)))
        .large()
        .query::<AuditQuery>()
        .replies(&[Reply::json::<ApprovalList>(200, "the decided approvals")]),
];

/// Filter for approvals.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ListQuery {
    /// Only with this status: `pending`, `approved`, `rejected` or `expired`.
    status: Option<String>,
    /// Only of this agent.
    agent_id: Option<String>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

/// Filter for decisions.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AuditQuery {
    /// Only of this agent.
    agent_id: Option<String>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

/// Where a page begins: behind an approval of those that wait, or of those that were decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    decided: bool,
    after: Option<ApprovalId>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.decided { "d" } else { "p" })?;
        self.after.map_or(Ok(()), |after| write!(f, "{}", after.0.simple()))
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (decided, after) = match text.split_at_checked(1).ok_or(())? {
            ("p", after) => (false, after),
            ("d", after) => (true, after),
            _ => return Err(()),
        };
        let after = (!after.is_empty()).then(|| Uuid::try_parse(after)).transpose().map_err(drop)?;
        Ok(Self { decided, after: after.map(ApprovalId) })
    }
}

/// What is listed.
#[derive(Clone, Copy)]
struct Filter {
    /// Those that wait.
    pending: bool,
    /// Those that were decided.
    decided: bool,
    /// Only of this state.
    state: Option<ApprovalState>,
    agent: Option<AgentId>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let ListQuery { status, agent_id, limit, cursor } = call.query()?;
    let state = status.as_deref().map(state).transpose()?;
    let pending = state.is_none_or(|state| state == ApprovalState::Pending);
    let decided = state != Some(ApprovalState::Pending);
    let filter = Filter { pending, decided, state, agent: agent(agent_id.as_deref())? };
    answer(&call, filter, limit, cursor.as_deref()).await
}

async fn audit(call: Call) -> Result<Response, Error> {
    let AuditQuery { agent_id, limit, cursor } = call.query()?;
    let filter = Filter { pending: false, decided: true, state: None, agent: agent(agent_id.as_deref())? };
    answer(&call, filter, limit, cursor.as_deref()).await
}

async fn answer(call: &Call, filter: Filter, limit: Option<usize>, cursor: Option<&str>) -> Result<Response, Error> {
    let (limit, after) = (lists::limit(limit)?, lists::cursor::<Place>(cursor)?);
    let bridge = call.api.bridge.clone();
    lists::answer(limit, after, Shape::of("approvals"), move |at: Option<Place>, limit| {
        let bridge = bridge.clone();
        async move {
            let at = at.unwrap_or(Place { decided: !filter.pending, after: None });
            let query = ListApprovals {
                filter: ApprovalFilter { decided: at.decided, agent: filter.agent },
                after: at.after,
                limit,
            };
            let page = bridge.ask(query).await?;
            let next = page.next.map(|after| Place { decided: at.decided, after: Some(after) });
            // Behind the last one that waits come those that were decided.
            let turn = (!at.decided && filter.decided).then_some(Place { decided: true, after: None });
            let is_wanted = |view: &ApprovalView| filter.state.is_none_or(|state| state == view.approval.state);
            let items = page.items.into_iter().filter(is_wanted).map(Item::from).collect();
            let counts = bridge.ask(CountApprovals).await?;
            let pending = if filter.pending { counts.pending } else { 0 };
            let total = pending + if filter.decided { counts.decided } else { 0 };
            Ok(Page { items, next: next.or(turn), total: Some(total as u64) })
        }
    })
    .await
}

/// The query's `status`.
fn state(text: &str) -> Result<ApprovalState, Error> {
    use ApprovalState::{Approved, Expired, Pending, Rejected};
    let found = [Pending, Approved, Rejected, Expired].into_iter().find(|state| state.as_str() == text);
    found.ok_or_else(|| {
        Error::bad_field(
            "status",
            "query parameter 'status': expected pending, approved, rejected or \
            expired",
        )
    })
}

/// The query's `agent_id`.
fn agent(text: Option<&str>) -> Result<Option<AgentId>, Error> {
    let wrong = |_| Error::bad_field("agent_id", "query parameter 'agent_id' is not a valid UUID");
    text.map(|text| text.parse().map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_back_as_they_are_written() {
        for after in [None, Some(ApprovalId(Uuid::from_u128(7)))] {
            for decided in [false, true] {
                let place = Place { decided, after };
                assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
        for wrong in ["", "x", "p7", "é", "d-"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }
}

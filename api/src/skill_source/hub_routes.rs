//! Skills of ClawHub and of its mirror (spec 2, Skills and marketplaces).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::routes::{
    ASK_COST, BLOCKED, FAILED, FULL, GONE, INSTALLED, Installed, LATE, UNFIT, page_of, place, query, text,
};
use super::sources::{Browse, Hub, HubCode, HubItem, HubPage, HubSkill, Request, Sources};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What an install costs the client's rate budget: it fetches, unpacks and scans up to 10,000 files.
const INSTALL_COST: u32 = 50;
/// The orders of hubs.
const SORTS: &[&str] = &["trending", "updated", "downloads", "stars", "installs", "newest"];

const PAGE: Reply = Reply::json::<Page>(200, "20 skills a page");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/clawhub/search", "Search ClawHub", |call| Box::pin(search(call, Hub::ClawHub)))
        .cost(ASK_COST)
        .query::<SearchQuery>()
        .replies(&[PAGE, GONE, FAILED, LATE]),
    Route::get("/api/clawhub/browse", "Browse ClawHub", |call| Box::pin(browse(call, Hub::ClawHub)))
        .cost(ASK_COST)
        .query::<BrowseQuery>()
        .replies(&[PAGE, GONE, FAILED, LATE]),
    Route::get("/api/clawhub/skill/{slug}", "Get a skill of ClawHub", |call| Box::pin(skill(call)))
        .cost(ASK_COST)
        .replies(&[
            Reply::json::<HubSkill>(200, "the skill"),
            Reply::error(404, "ClawHub has no such skill"),
            Reply::error(409, "several owners have a skill of this name; use `@owner/slug`"),
            GONE,
            FAILED,
            LATE,
        ]),
    Route::get("/api/clawhub/skill/{slug}/code", "Get the text of a skill of ClawHub", |call| Box::pin(code(call)))
        .cost(ASK_COST)
        .replies(&[
            Reply::json::<HubCode>(200, "the text, as the hub has it"),
            Reply::error(404, "ClawHub has no such skill"),
            Reply::error(409, "several owners have a skill of this name; use `@owner/slug`"),
            GONE,
            FAILED,
            LATE,
        ]),
    Route::post("/api/clawhub/install", "Install a skill of ClawHub", |call| Box::pin(install(call)))
        .cost(INSTALL_COST)
        .body::<InstallBody>()
        .replies(&[
            Reply::json::<Installed>(201, "the skill is installed, with a skill.toml of its own"),
            BLOCKED,
            INSTALLED,
            GONE,
            UNFIT,
            FAILED,
            LATE,
            FULL,
        ]),
    Route::get("/api/clawhub-cn/browse", "Browse the mirror of ClawHub", |call| Box::pin(browse(call, Hub::ClawHubCn)))
        .cost(ASK_COST)
        .query::<BrowseQuery>()
        .replies(&[PAGE, GONE, FAILED, LATE]),
    Route::get("/api/clawhub-cn/search", "Search the mirror of ClawHub", |call| Box::pin(search(call, Hub::ClawHubCn)))
        .cost(ASK_COST)
        .query::<SearchQuery>()
        .replies(&[PAGE, GONE, FAILED, LATE]),
];

#[derive(Deserialize, JsonSchema)]
struct SearchQuery {
    /// What to look for.
    q: String,
    /// Page, from 1. Default: 1.
    page: Option<usize>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct BrowseQuery {
    /// Topic or tag. Default: all.
    category: Option<String>,
    /// Page, from 1. Default: 1.
    page: Option<usize>,
    /// `next_cursor` of an earlier answer, instead of `page`.
    cursor: Option<String>,
    /// `trending`, `updated`, `downloads`, `stars`, `installs` or `newest`. Default: the hub's.
    sort: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Page {
    items: Vec<HubItem>,
    /// The same as `items`; absent of a list that is browsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<HubItem>>,
    /// Continues the list; null at its end.
    next_cursor: Option<String>,
    /// Skills that are known so far; hubs do not count theirs.
    total: usize,
    page: usize,
}

#[derive(Deserialize, JsonSchema)]
struct InstallBody {
    /// Id of the skill, or `@owner/slug`.
    slug: String,
    /// Version. Default: the newest.
    version: Option<String>,
}

async fn search(call: Call, hub: Hub) -> Result<Response, Error> {
    let SearchQuery { q, page } = call.query()?;
    let (q, page) = (query(q)?, page_of(page)?);
    let HubPage { items, next_cursor, total } = call.api.service::<dyn Sources>()?.search(hub, q, page).await?;
    reply::ok(&Page { results: Some(items.clone()), items, next_cursor, total, page })
}

async fn browse(call: Call, hub: Hub) -> Result<Response, Error> {
    let BrowseQuery { category, page, cursor, sort } = call.query()?;
    let page = page_of(page)?;
    let category = category.map(|category| text("category", category)).transpose()?;
    let cursor = cursor.map(|cursor| text("cursor", cursor)).transpose()?;
    if let Some(sort) = sort.as_deref().filter(|sort| !SORTS.contains(sort)) {
        let sort: String = sort.chars().take(40).collect();
        return Err(Error::bad_field("sort", format!("sort: {sort:?} is not one of {}", SORTS.join(", "))));
    }
    let browse = Browse { category, page, cursor, sort };
    let HubPage { items, next_cursor, total } = call.api.service::<dyn Sources>()?.browse(hub, browse).await?;
    reply::ok(&Page { items, results: None, next_cursor, total, page })
}

async fn skill(call: Call) -> Result<Response, Error> {
    let slug = call.param("slug")?.into_owned();
    reply::ok(&call.api.service::<dyn Sources>()?.skill(Hub::ClawHub, slug).await?)
}

async fn code(call: Call) -> Result<Response, Error> {
    let slug = call.param("slug")?.into_owned();
    reply::ok(&call.api.service::<dyn Sources>()?.code(Hub::ClawHub, slug).await?)
}

async fn install(call: Call) -> Result<Response, Error> {
    let InstallBody { slug, version } = call.json()?;
    let slug = text("slug", slug)?;
    let request = Request { field: "slug", source: format!("clawhub:{slug}"), version, verify: true };
    place(&call, request, Some(slug)).await
}

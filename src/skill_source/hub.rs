//! The protocol of ClawHub: lists, and what is said of a skill (facts 1.4).

use agentsvc_api::http::timestamp::Moment;
use agentsvc_api::skill_source::sources::{Browse, Hub, HubCode, HubItem, HubPage, HubSkill, SourceError};
use agentsvc_components::Timestamp;
use serde_json::Value;

use super::cache::Cache;
use super::config::{ClawHub, ClawHubCn};
use super::source::Source;
use super::wire::{TEXT_BYTES_MAX, Whose, Wire, one_line};
use crate::kernel::percent::encoded;
use crate::kernel::settings::Settings;

/// Rows of a page.
pub(super) const PAGE_ROWS: usize = 20;
/// Rows that a hub gives to one search.
const SEARCH_ROWS_MAX: usize = 200;
/// Pages of a hub that are walked to find one of ours.
const WALK_MAX: usize = 40;
/// Rows that are taken of one answer.
const ROWS_MAX: usize = 200;
/// Characters of a name, of a description, and of a tag.
const NAME_CHARS_MAX: usize = 200;
const TEXT_CHARS_MAX: usize = 1_000;
const TAG_CHARS_MAX: usize = 60;
/// Tags of a skill.
const TAGS_MAX: usize = 30;
/// What hubs have under their URL when it has no path.
const API: &str = "/api/v1";
/// Names of the text of a skill.
const TEXTS: &[&str] = &["SKILL.md", "skill.md", "skills.md"];

/// A skill of a hub, as clients name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) hub: Hub,
    pub(super) owner: Option<String>,
    pub(super) slug: String,
    pub(super) version: Option<String>,
}

/// What a hub says of a skill.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) item: HubItem,
    /// The owner's display name and image.
    pub(super) author_name: String,
    pub(super) author_image: String,
    /// It says that the skill is malware.
    pub(super) is_blocked: bool,
    /// What it says against it.
    pub(super) warnings: Vec<String>,
}

/// A part of a list, as a hub gives it.
pub(super) struct Rows {
    items: Vec<HubItem>,
    next: Option<String>,
}

/// Asks hubs.
#[derive(Default)]
pub(super) struct Hubs {
    lists: Cache<Rows>,
}

impl Named {
    /// Reads `slug` or `@owner/slug` of a route.
    pub(super) fn parse(hub: Hub, slug: &str) -> Result<Self, SourceError> {
        match Source::of_hub(hub, slug, None) {
            Ok(Source::Hub { hub, owner, slug, version }) => Ok(Self { hub, owner, slug, version }),
            Ok(_) => Err(SourceError::NotFound("the hub does not have it".to_owned())),
            Err(message) => Err(SourceError::Wrong { field: "slug", message }),
        }
    }

    /// The owner, as a part of a query that begins with `mark`.
    pub(super) fn of_owner(&self, mark: char) -> String {
        self.owner.as_ref().map(|owner| format!("{mark}ownerHandle={}", encoded(owner))).unwrap_or_default()
    }
}

/// Where a hub is.
pub(super) fn base(settings: &Settings, hub: Hub) -> String {
    let url = match hub {
        Hub::ClawHub => settings.get::<ClawHub>().url.clone(),
        Hub::ClawHubCn => settings.get::<ClawHubCn>().url.clone(),
    };
    let has_path = reqwest::Url::parse(&url).is_ok_and(|url| url.path() != "/");
    if has_path { url.into() } else { format!("{url}{API}") }
}

impl Hubs {
    pub(super) async fn search(
        &self,
        wire: &Wire,
        base: &str,
        (query, page): (&str, usize),
    ) -> Result<HubPage, SourceError> {
        let limit = (page * PAGE_ROWS).min(SEARCH_ROWS_MAX);
        let url = format!("{base}/search?q={}&limit={limit}", encoded(query));
        let rows = match self.lists.get(&url) {
            Some(rows) => rows,
            None => {
                let answer: Value = wire.json(&url, Whose::Hub).await?;
                self.lists.put(url, rows(&answer)?)
            }
        };
        let items = rows.items.iter().skip((page - 1) * PAGE_ROWS).take(PAGE_ROWS).cloned().collect();
        Ok(HubPage { items, next_cursor: rows.next.clone(), total: rows.items.len() })
    }

    pub(super) async fn browse(&self, wire: &Wire, base: &str, browse: &Browse) -> Result<HubPage, SourceError> {
        let sort = browse.sort.as_ref().map(|sort| format!("&sort={}", encoded(sort))).unwrap_or_default();
        let is_it = |tag: &String| browse.category.as_ref().is_some_and(|category| tag.eq_ignore_ascii_case(category));
        let is_wanted = |item: &&HubItem| browse.category.is_none() || item.tags.iter().any(is_it);
        let (mut cursor, mut items) = (browse.cursor.clone(), Vec::new());
        // A cursor is a place of its own.
        let page = if cursor.is_some() { 1 } else { browse.page };
        for _ in 0..WALK_MAX {
            let behind = cursor.as_ref().map(|cursor| format!("&cursor={}", encoded(cursor))).unwrap_or_default();
            let url = format!("{base}/skills?limit={PAGE_ROWS}{sort}{behind}");
            let found = match self.lists.get(&url) {
                Some(found) => found,
                None => {
                    let answer: Value = wire.json(&url, Whose::Hub).await?;
                    self.lists.put(url, rows(&answer)?)
                }
            };
            items.extend(found.items.iter().filter(is_wanted).cloned());
            cursor.clone_from(&found.next);
            if cursor.is_none() || items.len() >= page * PAGE_ROWS {
                break;
            }
        }
        let total = items.len();
        let items = items.into_iter().skip((page - 1) * PAGE_ROWS).take(PAGE_ROWS).collect();
        Ok(HubPage { items, next_cursor: cursor, total })
    }

    /// What the hub says of a skill.
    pub(super) async fn said(&self, wire: &Wire, base: &str, named: &Named) -> Result<Said, SourceError> {
        let url = format!("{base}/skills/{}{}", encoded(&named.slug), named.of_owner('?'));
        let answer: Value = wire.json(&url, Whose::Hub).await?;
        said(&answer, &named.slug)
    }

    /// The text of a skill.
    pub(super) async fn code(&self, wire: &Wire, base: &str, named: &Named) -> Result<HubCode, SourceError> {
        for filename in TEXTS {
            let (slug, owner) = (encoded(&named.slug), named.of_owner('&'));
            let url = format!("{base}/skills/{slug}/file?path={filename}{owner}");
            if let Some(text) = wire.may_be_missing(&url, Whose::Hub, TEXT_BYTES_MAX).await? {
                let code = String::from_utf8(text)
                    .map_err(|_| SourceError::Failed(format!("{filename} of the hub is not UTF-8 text")))?;
                return Ok(HubCode { slug: named.slug.clone(), filename: (*filename).to_owned(), code });
            }
        }
        Err(SourceError::NotFound(format!("the hub has no skill {:?}, or it has no SKILL.md", named.slug)))
    }
}

/// What is shown of it.
pub(super) fn shown(said: Said, is_installed: bool) -> HubSkill {
    let Said { item, author_name, author_image, warnings, .. } = said;
    let HubItem { slug, name, description, version, downloads, stars, updated_at, author, tags } = item;
    HubSkill {
        slug,
        name,
        description,
        version,
        author,
        author_name,
        author_image,
        downloads,
        stars,
        tags,
        updated_at,
        is_installed,
        warnings,
    }
}

/// The rows of a list: `items` or `results`.
fn rows(answer: &Value) -> Result<Rows, SourceError> {
    let list = ["items", "results", "skills"].iter().find_map(|key| answer[*key].as_array()).or(answer.as_array());
    let list = list.ok_or_else(|| SourceError::Failed("the hub sent no list of skills".to_owned()))?;
    let items = list.iter().take(ROWS_MAX).filter_map(item).collect();
    let next = answer["nextCursor"].as_str().filter(|next| !next.is_empty() && next.len() <= 2_000);
    Ok(Rows { items, next: next.map(str::to_owned) })
}

/// One row; `None` for what cannot be installed.
fn item(row: &Value) -> Option<HubItem> {
    let slug = text(row, &["slug"], NAME_CHARS_MAX);
    Source::of_hub(Hub::ClawHub, &slug, None).ok().filter(|_| !slug.contains('@'))?;
    let name = text(row, &["displayName", "name"], NAME_CHARS_MAX);
    let stats = &row["stats"];
    let count = |key: &str| stats[key].as_f64().or_else(|| row[key].as_f64()).unwrap_or(0.0).max(0.0) as u64;
    let version = [&row["version"], &row["latestVersion"]["version"], &row["latestVersion"], &row["tags"]["latest"]];
    let version = version.into_iter().find_map(Value::as_str).unwrap_or_default();
    let owner = text(row, &["ownerHandle"], NAME_CHARS_MAX);
    let author = if owner.is_empty() { text(&row["owner"], &["handle"], NAME_CHARS_MAX) } else { owner };
    Some(HubItem {
        name: if name.is_empty() { slug.clone() } else { name },
        slug,
        description: text(row, &["summary", "description"], TEXT_CHARS_MAX),
        version: one_line(version, TAG_CHARS_MAX),
        downloads: count("downloads"),
        stars: count("stars"),
        updated_at: moment(&row["updatedAt"]),
        author,
        tags: tags(row),
    })
}

fn said(answer: &Value, slug: &str) -> Result<Said, SourceError> {
    let row = if answer["skill"].is_object() { &answer["skill"] } else { answer };
    let mut item = item(row).ok_or_else(|| SourceError::Failed("the hub sent no skill".to_owned()))?;
    if let Some(version) = answer["latestVersion"]["version"].as_str() {
        item.version = one_line(version, TAG_CHARS_MAX);
    }
    let owner = &answer["owner"];
    let handle = text(owner, &["handle"], NAME_CHARS_MAX);
    if !handle.is_empty() {
        item.author = handle;
    }
    if !item.slug.eq_ignore_ascii_case(slug) {
        // Old slugs lead to the skill.
        tracing::debug!(slug, now = item.slug, "the hub has renamed a skill");
    }
    let (moderation, mut warnings) = (&answer["moderation"], Vec::new());
    let verdict = text(moderation, &["verdict"], TAG_CHARS_MAX);
    if moderation["isSuspicious"] == true || verdict == "suspicious" {
        let summary = text(moderation, &["summary"], TEXT_CHARS_MAX);
        let summary = if summary.is_empty() { String::new() } else { format!(": {summary}") };
        warnings.push(format!("the hub marks the skill as suspicious{summary}"));
    }
    let author_name = text(owner, &["displayName", "name", "handle"], NAME_CHARS_MAX);
    let author_image = text(owner, &["image"], TEXT_CHARS_MAX);
    let is_blocked = moderation["isMalwareBlocked"] == true || verdict == "malicious";
    let author_image = if author_image.starts_with("https://") { author_image } else { String::new() };
    Ok(Said { item, author_name, author_image, is_blocked, warnings })
}

/// The first text under one of the keys, one line.
fn text(row: &Value, keys: &[&str], chars_max: usize) -> String {
    let found = keys.iter().find_map(|key| row[*key].as_str().filter(|text| !text.trim().is_empty()));
    one_line(found.unwrap_or_default(), chars_max)
}

/// Topics and tags: lists, or the keys of `tags`, which name versions.
fn tags(row: &Value) -> Vec<String> {
    let lists = ["topics", "tags", "capabilityTags", "categories"];
    let listed = lists.iter().filter_map(|key| row[*key].as_array()).flatten().filter_map(Value::as_str);
    let named = row["tags"].as_object().into_iter().flat_map(|tags| tags.keys()).map(String::as_str);
    let mut tags: Vec<String> = Vec::new();
    for tag in listed.chain(named.filter(|tag| *tag != "latest")).map(|tag| one_line(tag, TAG_CHARS_MAX)) {
        if !tag.is_empty() && tags.len() < TAGS_MAX && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// Milliseconds since 1970, or RFC 3339.
fn moment(value: &Value) -> Option<Moment> {
    let parsed = value.as_str().and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok());
    let ms = value.as_i64().or_else(|| parsed.map(|moment| moment.timestamp_millis()));
    ms.map(|ms| Moment(Timestamp(ms)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_read_whatever_is_missing() {
        let answer = json!({ "items": [
            { "slug": "gifgrep", "displayName": "GifGrep", "summary": "Finds\nGIFs", "tags": { "latest": "1.2.3", "media": "1.0.0" },
              "stats": { "downloads": 7, "stars": 2 }, "updatedAt": 1_730_000_000_000_i64, "latestVersion": { "version": "1.2.4" },
              "topics": ["video"] },
            { "slug": "bare", "version": null, "updatedAt": null, "stats": {} },
            { "slug": "../evil" }, { "name": "no slug" }, "text" ], "nextCursor": "c1" });
        let Rows { items, next } = rows(&answer).unwrap();
        let [one, bare] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!(
            (one.name.as_str(), one.description.as_str(), one.version.as_str()),
            ("GifGrep", "Finds GIFs", "1.2.4")
        );
        assert_eq!((one.downloads, one.stars, one.tags.join(" ")), (7, 2, "video media".to_owned()));
        assert_eq!(one.updated_at.map(|moment| moment.0), Some(Timestamp(1_730_000_000_000)));
        assert_eq!((bare.name.as_str(), bare.version.as_str(), next.as_deref()), ("bare", "", Some("c1")));
        assert!(rows(&json!({ "error": "x" })).is_err());
    }

    #[test]
    fn what_the_hub_holds_against_a_skill_is_kept() {
        let answer = json!({ "skill": { "slug": "x" }, "latestVersion": { "version": "2" }, "owner": { "handle": "me",
            "displayName": "Me", "image": "javascript:1" }, "moderation": { "isSuspicious": true, "isMalwareBlocked": true,
            "summary": "reads keys" } });
        let found = said(&answer, "x").unwrap();
        assert!(found.is_blocked && found.warnings[0].contains("reads keys"));
        let shown = shown(found, true);
        assert_eq!((shown.version.as_str(), shown.author.as_str(), shown.author_name.as_str()), ("2", "me", "Me"));
        assert_eq!((shown.author_image.as_str(), shown.is_installed), ("", true));
    }

    #[test]
    fn a_hub_without_a_path_has_its_api_there() {
        let settings = Settings::default();
        assert_eq!(base(&settings, Hub::ClawHub), "https://clawhub.ai/api/v1");
        settings.set(ClawHub { url: "http://127.0.0.1:8".into() });
        assert_eq!(base(&settings, Hub::ClawHub), "http://127.0.0.1:8/api/v1");
        settings.set(ClawHubCn { url: "http://127.0.0.1:8/hub".into() });
        assert_eq!(base(&settings, Hub::ClawHubCn), "http://127.0.0.1:8/hub");
    }
}

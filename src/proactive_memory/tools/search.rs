//! `memory_search`: which entries the agent's memory has.

use agentsvc_api::proactive_memory::own::{OwnPage, Wanted};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{Refusal, TurnId};
use agentsvc_systems::auto_dream::{DreamPlace, GetDreamPlace, NoteDreamPage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{entry_id, may_read, own, scope};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Entries of one answer.
const ENTRIES_MAX: usize = 50;
/// Bytes of the contents of one answer, about; below the length from which results are cut in the conversation.
const CONTENT_BYTES_MAX: usize = 12 << 10;
/// Words of a query; the rest is left out.
const WORDS_MAX: usize = 16;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "memory_search",
    "Reads your memory entries in the order in which they were made, at most 50 at a time: all of them, or those that contain \
     each word of `query`. If the answer has a `next`, continue with it as `after`.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryRead)
.order(43);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Only entries that contain each of these words.
    query: Option<String>,
    /// `next` of the previous result.
    after: Option<String>,
    /// Whether to show entries that were made from untrusted content. Default: true.
    untrusted: Option<bool>,
}

async fn run(context: Context, Input { query, after, untrusted }: Input) -> Result<Ended, String> {
    may_read(&context)?;
    let query = query.unwrap_or_default().to_lowercase();
    let after = after.filter(|after| !after.is_empty()).map(|after| entry_id("after", &after)).transpose()?;
    let run = if query.trim().is_empty() { consolidation(&context).await } else { None };
    let wanted = Wanted {
        words: query.split_whitespace().take(WORDS_MAX).map(str::to_owned).collect(),
        scope: scope(&context),
        untrusted: untrusted.unwrap_or(true),
        after: after.or_else(|| run.as_ref().and_then(|(place, _)| place.from)),
        limit: ENTRIES_MAX,
        bytes_max: CONTENT_BYTES_MAX,
    };
    let failed = |refusal: Refusal| format!("Failed: {}.", refusal.message);
    let (agent, after) = (context.run.agent, wanted.after);
    let mut page = own(&context).page(wanted).await.map_err(failed)?;
    if let Some((_, turn)) = run {
        let note = NoteDreamPage { agent, turn, after, next: page.next };
        let goes_on = context.bridge().ask(note).await.map_err(failed)?;
        page.next = page.next.filter(|_| goes_on);
    }
    let (text, taint) = told(&page);
    Ok(Ended::Read { text, taint })
}

/// Where the consolidation run of this turn began to read, if the turn is one: it reads a bounded part of the entries.
async fn consolidation(context: &Context) -> Option<(DreamPlace, TurnId)> {
    let turn = context.turn()?;
    let place = context.bridge().ask(GetDreamPlace { agent: context.run.agent, turn }).await.ok()??;
    Some((place, turn))
}

/// The answer, and the taint of what stands in it.
fn told(page: &OwnPage) -> (String, Taint) {
    let mut taint = Taint::NONE;
    let mut entries: Vec<Value> = Vec::new();
    for row in &page.rows {
        let record = &row.record;
        taint = taint.with(record.taint);
        let mut entry = json!({
            "id": row.id, "content": record.content, "level": record.level.as_str(),
            "created_at": record.created_at.to_string(), "updated_at": record.updated_at.to_string(),
            // As a number of eight bytes it would have digits that were never given.
            "confidence": (f64::from(record.confidence) * 1e4).round() / 1e4,
        });
        if let Some(user) = &record.user {
            entry["user"] = json!(user);
        }
        if !record.category.is_empty() {
            entry["category"] = json!(record.category);
        }
        if !record.taint.is_none() {
            entry["untrusted"] = json!(record.taint.words());
        }
        entries.push(entry);
    }
    let mut told = json!({ "entries": entries });
    if let Some(next) = page.next {
        told["next"] = json!(next);
    }
    (told.to_string(), taint)
}

#[cfg(test)]
mod tests {
    use agentsvc_api::proactive_memory::store::EntryRow;
    use agentsvc_components::AgentId;
    use agentsvc_components::proactive_memory::MemoryEntryId;
    use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_answer_names_what_is_untrusted_and_has_its_taint() {
        let row = |n: u128, taint| EntryRow {
            agent: AgentId(Uuid::nil()),
            id: MemoryEntryId(Uuid::from_u128(n)),
            record: MemoryEntryRecord { content: "likes tea".into(), confidence: 0.8, taint, ..Default::default() },
        };
        let page = OwnPage { rows: vec![row(1, Taint::NONE)], next: None };
        let (text, taint) = told(&page);
        assert!(taint.is_none() && !text.contains("untrusted") && !text.contains("next"));
        assert!(text.contains("\"confidence\":0.8,"), "{text}");
        let page =
            OwnPage { rows: vec![row(1, Taint::NONE), row(2, Taint::WEB)], next: Some(MemoryEntryId(Uuid::nil())) };
        let (text, taint) = told(&page);
        assert_eq!(taint, Taint::WEB);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&answer["entries"][1]["untrusted"], &answer["next"]), (&json!(["web"]), &json!(Uuid::nil())));
    }
}

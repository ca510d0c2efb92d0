//! What of a model's answer is used. The answer comes from outside: it is read strictly, bounded, and worth nothing where it is not
//! what was asked for.

use agentsvc_api::knowledge::batch::{About, NewEnd, NewRelation};
use agentsvc_api::proactive_memory::memorize::Fact;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::Level;
use agentsvc_systems::knowledge::names;
use agentsvc_systems::proactive_memory::limits::{
    EXTRACTED_MAX, MEMORIZE_ANSWER_BYTES_MAX, MEMORIZE_FACT_BYTES_MAX, MEMORIZE_NEIGHBOURS_MAX, MEMORIZE_RELATIONS_MAX,
};
use serde::Deserialize;

/// What an answer says.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) facts: Vec<Fact>,
    pub(super) relations: Vec<NewRelation>,
    /// The numbers of known facts that no longer hold.
    pub(super) contradicted: Vec<usize>,
}

/// An answer as it is written.
#[derive(Deserialize)]
struct Written {
    memories: Vec<WrittenFact>,
    #[serde(default)]
    relations: Vec<WrittenRelation>,
    #[serde(default)]
    actions: Vec<WrittenAction>,
    #[serde(default)]
    has_content: Option<bool>,
}

#[derive(Deserialize)]
struct WrittenFact {
    content: String,
    category: String,
    #[serde(default)]
    level: Option<String>,
}

#[derive(Deserialize)]
struct WrittenRelation {
    subject: String,
    #[serde(default)]
    subject_type: Option<String>,
    relation: String,
    object: String,
    #[serde(default)]
    object_type: Option<String>,
}

#[derive(Deserialize)]
struct WrittenAction {
    action: String,
    entry: usize,
}

/// Reads an answer. Facts and relations that may not be stored are left out.
///
/// # Errors
/// Why none of it can be used.
pub(super) fn read(text: &str, categories: &[Box<str>], taint: Taint) -> Result<Answer, String> {
    if text.len() > MEMORIZE_ANSWER_BYTES_MAX {
        return Err(format!("it has {} bytes, of {MEMORIZE_ANSWER_BYTES_MAX} at most", text.len()));
    }
    let written: Written = serde_json::from_str(without_fence(text)).map_err(|error| {
        // The message of the error may quote the answer.
        format!("it is not the JSON that was asked for (line {}, column {})", error.line(), error.column())
    })?;
    if written.has_content == Some(false) {
        return Ok(Answer::default());
    }
    let facts = written.memories.into_iter().filter_map(|fact| fact_of(fact, categories)).take(EXTRACTED_MAX);
    let relations = written.relations.into_iter().filter_map(|written| relation_of(written, taint).ok());
    let deletes = written.actions.into_iter().filter(|action| action.action == "delete").map(|action| action.entry);
    Ok(Answer {
        facts: facts.collect(),
        relations: relations.take(MEMORIZE_RELATIONS_MAX).collect(),
        contradicted: deletes.take(MEMORIZE_NEIGHBOURS_MAX).collect(),
    })
}

/// The answer without the fence of a code block around it.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inside.strip_prefix("json").unwrap_or(inside).trim()
}

fn fact_of(written: WrittenFact, categories: &[Box<str>]) -> Option<Fact> {
    let WrittenFact { content, category, level } = written;
    let content = content.trim();
    let is_plain = !content.is_empty() && !content.contains(char::is_control);
    let is_wanted = categories.iter().any(|wanted| **wanted == *category);
    let level = level.map_or(Some(Level::User), |word| Level::parse(&word))?;
    let is_fact = is_plain && is_wanted && content.len() <= MEMORIZE_FACT_BYTES_MAX;
    is_fact.then(|| Fact { content: content.into(), category: category.into(), level })
}

fn relation_of(written: WrittenRelation, taint: Taint) -> Result<NewRelation, Refusal> {
    let WrittenRelation { subject, subject_type, relation, object, object_type } = written;
    Ok(NewRelation {
        source: end_of(("subject", "subject_type"), &subject, subject_type.as_deref(), taint)?,
        relation: names::type_name("relation", &relation)?,
        target: end_of(("object", "object_type"), &object, object_type.as_deref(), taint)?,
        about: About { taint, ..About::default() },
    })
}

/// An end of a relation, of which an entity that is made for it has the taint of the turn.
fn end_of(fields: (&str, &str), name: &str, kind: Option<&str>, taint: Taint) -> Result<NewEnd, Refusal> {
    let mut end = NewEnd::new(fields, name, kind)?;
    if let NewEnd::Entity(entity) = &mut end {
        entity.about.taint = taint;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn categories() -> Vec<Box<str>> {
        vec!["preference".into(), "personal_detail".into()]
    }

    fn facts(text: &str) -> Vec<Fact> {
        read(text, &categories(), Taint::NONE).unwrap().facts
    }

    #[test]
    fn what_was_asked_for_is_read_with_or_without_a_fence() {
        let plain = r#"{"memories": [{"content": " User likes tea ", "category": "preference", "level": "user_memory"}],
            "relations": [{"subject": "Ana", "subject_type": "person", "relation": "works_at", "object": "Acme",
            "object_type": "organization"}], "actions": [{"action": "delete", "entry": 2}, {"action": "add", "entry": 1}],
            "has_content": true, "more": 1}"#;
        for text in [plain.to_owned(), format!("```json\n{plain}\n```"), format!("\n```\n{plain}```\n")] {
            let answer = read(&text, &categories(), Taint::WEB).unwrap();
            assert_eq!(
                answer.facts,
                [Fact { content: "User likes tea".into(), category: "preference".into(), level: Level::User }]
            );
            assert_eq!((answer.relations.len(), answer.contradicted), (1, vec![2]));
            assert_eq!(answer.relations[0].about.taint, Taint::WEB);
        }
        assert!(facts(r#"{"memories": [], "relations": [], "has_content": false}"#).is_empty());
        let denied = r#"{"memories": [{"content": "x", "category": "preference"}], "has_content": false}"#;
        assert!(facts(denied).is_empty());
    }

    #[test]
    fn an_answer_of_another_shape_is_worth_nothing() {
        for text in [
            "",
            "Sure! Here are the facts.",
            "[]",
            "{}",
            "null",
            r#"{"memories": "User likes tea"}"#,
            r#"{"memories": [{"content": 3, "category": "preference"}]}"#,
            r#"{"memories": [], "actions": [{"action": "delete", "entry": -1}]}"#,
            r#"{"memories": [{"content": "x"}]}"#,
            r#"{"memories": []} and more"#,
        ] {
            assert!(read(text, &categories(), Taint::NONE).is_err(), "{text}");
        }
        let secret = r#"{"memories": [{"content": true, "token": "s3cret"}]}"#;
        assert!(!read(secret, &categories(), Taint::NONE).unwrap_err().contains("s3cret"));
    }

    #[test]
    fn a_hostile_answer_is_bounded() {
        let fact = |content: &str, category: &str, level: &str| serde_json::json!({ "content": content, "category": category, "level": level });
        let of = |memories: Vec<serde_json::Value>| facts(&serde_json::json!({ "memories": memories }).to_string());
        for wrong in [
            fact("", "preference", "user"),
            fact("a\u{0}b", "preference", "user"),
            fact("a\u{1b}[31mb", "preference", "user"),
            fact("fine", "system", "user"),
            fact("fine", "preference", "root"),
            fact(&"x".repeat(MEMORIZE_FACT_BYTES_MAX + 1), "preference", "user"),
        ] {
            assert!(of(vec![wrong.clone()]).is_empty(), "{wrong}");
        }
        assert_eq!(of(vec![fact("fine", "preference", "user"); 200]).len(), EXTRACTED_MAX);
        let huge = format!(r#"{{"memories": [{}]}}"#, "{},".repeat(1_000_000));
        assert!(read(&huge, &categories(), Taint::NONE).unwrap_err().contains("bytes"));
        assert!(read(&"[".repeat(60_000), &categories(), Taint::NONE).is_err());
        let relation = r#"{"subject": "a\u0000", "relation": "x", "object": "b", "object_type": "c"}"#;
        let answer = read(&format!(r#"{{"memories": [], "relations": [{relation}]}}"#), &categories(), Taint::NONE);
        assert!(answer.unwrap().relations.is_empty());
    }
}

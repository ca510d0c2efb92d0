//! What an entry may hold.

use agentsvc_components::Refusal;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;

use super::limits;

/// Refuses an entry whose content or description is empty, too long or no text on one line where it must be one.
///
/// # Errors
/// 400 naming the field.
pub fn check_entry(record: &MemoryEntryRecord) -> Result<(), Refusal> {
    check_content(&record.content)?;
    word("category", &record.category, limits::ENTRY_CATEGORY_BYTES_MAX)?;
    word("source", &record.source, limits::ENTRY_SOURCE_BYTES_MAX)?;
    if let Some(user) = &record.user {
        check_user(user)?;
    }
    if record.tags.len() > limits::ENTRY_TAGS_MAX {
        return Err(Refusal::bad_field("tags", format!("tags: more than {}", limits::ENTRY_TAGS_MAX)));
    }
    for tag in &record.tags {
        if tag.trim().is_empty() {
            return Err(Refusal::bad_field("tags", "tags: a tag must not be empty"));
        }
        word("tags", tag, limits::ENTRY_TAG_BYTES_MAX)?;
    }
    for version in &record.versions {
        too_long("versions", &version.content, limits::ENTRY_CONTENT_BYTES_MAX)?;
    }
    too_long("metadata", &record.metadata, limits::ENTRY_METADATA_BYTES_MAX)?;
    if !(0.0..=1.0).contains(&record.confidence) {
        return Err(Refusal::bad_field("confidence", "confidence: must be 0 to 1"));
    }
    Ok(())
}

/// Refuses a content that is empty or too long.
///
/// # Errors
/// 400 naming the field.
pub fn check_content(content: &str) -> Result<(), Refusal> {
    if content.trim().is_empty() {
        return Err(Refusal::bad_field("content", "content: must not be empty"));
    }
    too_long("content", content, limits::ENTRY_CONTENT_BYTES_MAX)
}

/// Refuses what cannot be the name of a user.
///
/// # Errors
/// 400 naming the field.
pub fn check_user(user: &str) -> Result<(), Refusal> {
    if user.is_empty() {
        return Err(Refusal::bad_field("user_id", "user_id: must not be empty"));
    }
    word("user_id", user, limits::ENTRY_USER_BYTES_MAX)
}

fn word(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.chars().any(char::is_control) {
        return Err(Refusal::bad_field(field, format!("{field}: must not contain control characters")));
    }
    too_long(field, text, most)
}

fn too_long(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::bad_field(field, format!("{field}: longer than {most} bytes")));
    }
    Ok(())
}

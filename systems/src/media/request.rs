//! What may be asked for.

use agentsvc_components::Refusal;
use agentsvc_components::media::MediaRequest;

use super::limits;

/// Refuses a request that is out of bounds, with the field.
pub(super) fn check(request: &MediaRequest) -> Result<(), Refusal> {
    match request {
        MediaRequest::Image { prompt, count, size } => {
            text("prompt", prompt, limits::MEDIA_PROMPT_CHARS_MAX)?;
            within("count", *count, 1, limits::MEDIA_IMAGES_MAX)?;
            let Some((width, height)) = size else { return Ok(()) };
            within("width", *width, 1, limits::MEDIA_PIXELS_MAX)?;
            within("height", *height, 1, limits::MEDIA_PIXELS_MAX)
        }
        MediaRequest::Speech { text: said, voice, format, speed_percent } => {
            text("text", said, limits::MEDIA_SPEECH_CHARS_MAX)?;
            name("voice", voice.as_deref())?;
            name("format", format.as_deref())?;
            let most = limits::MEDIA_SPEED_PERCENT_MAX;
            match speed_percent {
                Some(percent) if !(25..=most).contains(percent) => {
                    Err(Refusal::bad_field("speed", format!("speed must be 0.25 to {}", most / 100)))
                }
                _ => Ok(()),
            }
        }
        MediaRequest::Video { prompt, duration_secs } => {
            text("prompt", prompt, limits::MEDIA_LONG_PROMPT_CHARS_MAX)?;
            duration_secs.map_or(Ok(()), |secs| within("duration_secs", secs, 1, limits::MEDIA_VIDEO_SECS_MAX))
        }
        MediaRequest::Music { prompt, lyrics, format, .. } => {
            name("format", format.as_deref())?;
            let (prompt, lyrics) = (prompt.as_deref(), lyrics.as_deref());
            if prompt.is_none() && lyrics.is_none() {
                return Err(Refusal::bad_field("prompt", "prompt or lyrics is missing"));
            }
            prompt.map_or(Ok(()), |prompt| text("prompt", prompt, limits::MEDIA_LONG_PROMPT_CHARS_MAX))?;
            lyrics.map_or(Ok(()), |lyrics| text("lyrics", lyrics, limits::MEDIA_LYRICS_CHARS_MAX))
        }
        MediaRequest::Transcription { language, .. } => name("language", language.as_deref()),
    }
}

fn text(field: &str, value: &str, most: usize) -> Result<(), Refusal> {
    if value.trim().is_empty() {
        return Err(Refusal::bad_field(field, format!("{field} must not be empty")));
    }
    // A character has at least one byte: most texts need not be counted.
    if value.len() > most && value.chars().count() > most {
        return Err(Refusal::bad_field(field, format!("{field} is longer than {most} characters")));
    }
    Ok(())
}

/// The name of something: plain ASCII, which may stand in a form or a file name.
pub(super) fn name(field: &str, value: Option<&str>) -> Result<(), Refusal> {
    let Some(value) = value else { return Ok(()) };
    let most = limits::MEDIA_NAME_BYTES_MAX;
    let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    if value.is_empty() || value.len() > most || !is_plain {
        let text = format!("{field} must have 1 to {most} bytes of ASCII without spaces and quotes");
        return Err(Refusal::bad_field(field, text));
    }
    Ok(())
}

fn within(field: &str, value: u32, least: u32, most: u32) -> Result<(), Refusal> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Refusal::bad_field(field, format!("{field} must be {least} to {most}")))
}

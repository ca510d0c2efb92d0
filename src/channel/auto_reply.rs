//! `[auto_reply]`: limits of the answers to chats.

use agentsvc_components::channel::rules::AutoReply;
use agentsvc_systems::channel::limits::{AUTO_REPLY_PATTERN_BYTES_MAX, AUTO_REPLY_PATTERNS_MAX, AUTO_REPLY_SECS_MAX};

use crate::kernel::config::{Reader, table};

table! {
    /// `[auto_reply]`: limits of the answers to chats.
    pub struct AutoReplyConfig {
        /// Apply these limits.
        enabled: bool => flag().writable(),
        /// Answers to chats that are written at once, in all channels together. Further messages wait.
        max_concurrent: u32 = 3 => integer(1..=1_000).writable(),
        /// Seconds after which an answer is stopped.
        timeout_secs: u32 = 120 => integer(1..=AUTO_REPLY_SECS_MAX).writable(),
        /// Messages that contain one of these texts get no answer. Upper and lower case are the same.
        suppress_patterns: Vec<Box<str>> => list(suppressed).example("[\"out of office\"]").writable(),
    }
}

impl AutoReplyConfig {
    /// As the world knows it; `None` where it is off.
    pub(super) fn limits(&self) -> Option<AutoReply> {
        self.enabled.then(|| AutoReply {
            max_concurrent: self.max_concurrent,
            timeout_secs: self.timeout_secs,
            suppress_patterns: self.suppress_patterns.clone(),
        })
    }
}

/// Notes problems of the table beside its values.
pub(crate) fn note_auto_reply(table: &AutoReplyConfig, reader: &mut Reader<'_, '_>) {
    if table.suppress_patterns.len() > AUTO_REPLY_PATTERNS_MAX {
        let text = format!("`suppress_patterns` must have at most {AUTO_REPLY_PATTERNS_MAX} items");
        reader.problem_at(&["auto_reply", "suppress_patterns"], text);
    }
}

fn suppressed(text: &str) -> Result<Box<str>, String> {
    let is_short = text.len() <= AUTO_REPLY_PATTERN_BYTES_MAX;
    match !text.trim().is_empty() && is_short && !text.chars().any(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("must have 1 to {AUTO_REPLY_PATTERN_BYTES_MAX} bytes without control characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Document};

    #[test]
    fn limits_are_off_unless_the_file_says_otherwise_and_mistakes_are_named() {
        let read = |text: &str| Config::parse(text, "c".as_ref());
        assert_eq!(read("").unwrap().config.auto_reply.limits(), None);
        let on = read("[auto_reply]\nenabled = true\nsuppress_patterns = [\"Away\"]\n").unwrap().config.auto_reply;
        let limits = on.limits().unwrap();
        assert_eq!((limits.max_concurrent, limits.timeout_secs), (3, 120));
        assert!(limits.suppresses("I am AWAY") && !limits.suppresses("here"));
        let wrong = |text: &str| read(&format!("[auto_reply]\n{text}\n")).unwrap_err().to_string();
        assert!(wrong("timeout_secs = 0").contains("timeout_secs"));
        assert!(wrong("max_concurrent = 0").contains("max_concurrent"));
        assert!(wrong("suppress_patterns = [\" \"]").contains("suppress_patterns"));
        let many = vec!["\"x\""; AUTO_REPLY_PATTERNS_MAX + 1].join(", ");
        assert!(wrong(&format!("suppress_patterns = [{many}]")).contains("at most 64 items"));
    }
}

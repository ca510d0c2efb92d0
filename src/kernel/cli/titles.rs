//! What sessions are called: the label that a person gave, else the line with which they begin.

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;

use super::Error;
use super::client::Client;
use super::names::Listed;
use super::output::field;

/// Pages of found sessions that are read to find a title.
const FOUND_PAGES_MAX: usize = 10;
/// Sessions of a list whose first messages are read.
const TITLED_MAX: usize = 100;
/// First messages that are read at the same time.
const LANES: usize = 8;
/// Characters of a title; what is cut ends with `…`.
const TITLE_MAX: usize = 80;

impl Client {
    /// Gives each session of a list a `title`: its label, else the line with which it begins.
    pub(super) async fn title_sessions(&self, answer: &mut Value) {
        let sessions = answer.get_mut("sessions").and_then(Value::as_array_mut).into_iter().flatten();
        let titled = stream::iter(sessions.take(TITLED_MAX)).for_each_concurrent(LANES, |session| async move {
            let (label, id) = (field(session, "/label"), field(session, "/session_id"));
            let is_read = label.is_empty() && !id.is_empty() && session["message_count"] != 0;
            // What cannot be read has no title.
            let line = if is_read { self.first_line(&id).await.unwrap_or_default() } else { label };
            if !line.is_empty() {
                session["title"] = cut(&line).into();
            }
        });
        titled.await;
    }

    /// The line with which a session begins.
    async fn first_line(&self, session: &str) -> Result<String, Error> {
        let (messages, _) = self.page(&format!("/api/sessions/{session}"), &[("limit", "1")]).await?;
        let said = messages.first().map(|message| field(message, "/content")).unwrap_or_default();
        Ok(said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned())
    }

    /// The sessions that begin with the line `typed`, or whose first line it is the beginning of where it ends with `…`: what the
    /// page calls a session without a label.
    pub(super) async fn titled(&self, listed: &Listed, typed: &str) -> Result<Vec<String>, Error> {
        let beginning = typed.strip_suffix('…');
        let mut query = vec![("q", beginning.unwrap_or(typed).trim())];
        let agent = listed.path.strip_prefix("/api/agents/").and_then(|path| path.strip_suffix("/sessions"));
        query.extend(agent.map(|agent| ("agent_id", agent)));
        let (mut ids, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..FOUND_PAGES_MAX {
            let mut page = query.clone();
            page.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let (found, next) = self.page("/api/sessions/search", &page).await?;
            for session in found.iter().filter(|session| session["label"].is_null() && session["matched"] == "message")
            {
                let id = listed.id_of(session);
                let line = self.first_line(&id).await?;
                if line == typed || beginning.is_some_and(|beginning| line.starts_with(beginning)) {
                    ids.push(id);
                }
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(ids)
    }
}

/// A line that fits into a column.
fn cut(line: &str) -> String {
    if line.chars().count() <= TITLE_MAX {
        return line.to_owned();
    }
    let beginning: String = line.chars().take(TITLE_MAX - 1).collect();
    format!("{}…", beginning.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(cut("short"), "short");
        let long = cut(&"word ".repeat(40));
        assert!(long.chars().count() <= TITLE_MAX && long.ends_with("word…"), "{long}");
    }
}

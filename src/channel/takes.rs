//! What adapters can show. An adapter of the SDK posts a placeholder, or nothing, in place of a content that it does not know,
//! and reports no failure: such a content goes out as a text, or is refused.

use super::definition::Definition;
use super::wire::Content;
use super::wire::content::{MediaItem, Recording};

/// The adapters of the SDK, and the kinds of content that each shows beside texts.
const SHOWN: &[(&str, &[&str])] = &[
    ("bluesky", &[]),
    ("dingtalk", &[]),
    ("discord", &[]),
    ("email", &[]),
    ("feishu", &[]),
    ("google_chat", &[]),
    ("gotify", &[]),
    ("line", &["Image"]),
    ("mastodon", &[]),
    (
        "matrix",
        &[
            "Image",
            "File",
            "FileData",
            "Voice",
            "Animation",
            "Video",
            "Audio",
            "Location",
            "DeleteMessage",
            "EditInteractive",
            "MediaGroup",
        ],
    ),
    ("mattermost", &[]),
    ("nextcloud", &[]),
    ("ntfy", &[]),
    ("qq", &[]),
    ("reddit", &[]),
    ("rocketchat", &[]),
    ("signal", &[]),
    ("slack", &["File", "FileData"]),
    ("teams", &[]),
    (
        "telegram",
        &[
            "Image",
            "File",
            "FileData",
            "Voice",
            "Animation",
            "Video",
            "Audio",
            "Location",
            "Command",
            "DeleteMessage",
            "EditInteractive",
            "Sticker",
            "MediaGroup",
            "Poll",
        ],
    ),
    ("twitch", &[]),
    ("webex", &[]),
    ("webhook", &[]),
    ("wechat", &[]),
    ("wecom", &[]),
    ("whatsapp", &["Image", "File", "Voice", "Location"]),
    ("zulip", &[]),
];
/// What adapters of the SDK send without looking at the platform's answer.
const UNSEEN: &[(&str, &str)] = &[("telegram", "Poll")];
/// With this variable the adapter of WhatsApp sends texts alone.
const WHATSAPP_GATEWAY: &str = "WHATSAPP_GATEWAY_URL";
/// Endings of the names of recordings that WhatsApp plays, where they are not sent as files.
const PLAYED: &[&str] = &["aac", "amr", "m4a", "mp3", "ogg", "opus"];

/// The kinds of content that an adapter shows beside texts, and its name; `None` of one that is not of the SDK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes(Option<(&'static str, &'static [&'static str])>);

impl Takes {
    /// What the adapter of a channel shows.
    pub(super) fn of(definition: &Definition) -> Self {
        let adapter = definition.adapter();
        let known = SHOWN.iter().find(|(name, _)| Some(*name) == adapter.as_deref()).copied();
        let has_gateway = || definition.value(WHATSAPP_GATEWAY).is_some_and(|url| !url.expose().trim().is_empty());
        Self(
            known
                .map(|(name, kinds)| if name == "whatsapp" && has_gateway() { (name, &[][..]) } else { (name, kinds) }),
        )
    }

    fn shows(self, kind: &str) -> bool {
        // Buttons become a text where the adapter has none, as its capabilities say.
        matches!(kind, "Text" | "Interactive") || self.0.is_none_or(|(_, kinds)| kinds.contains(&kind))
    }

    /// Would the adapter say it if the platform refused this content?
    pub(super) fn reports(self, content: Option<&Content>) -> bool {
        !UNSEEN.iter().any(|(name, kind)| {
            self.0.is_some_and(|(of, _)| of == *name) && content.is_some_and(|content| content.kind() == *kind)
        })
    }

    /// Refuses the bytes of a file where the adapter shows none: there is no URL to send in their place.
    ///
    /// # Errors
    /// Why.
    pub(super) fn check_file(self, filename: &str) -> Result<(), String> {
        match self.0 {
            Some((name, _)) if !self.shows("FileData") => Err(format!(
                "the adapter {name} cannot send the file {filename:?}; send a text, or a `file_url` that people can open"
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Is a file a recording that the adapter plays only when it is told that it is one?
    fn plays(self, url: &str, filename: &str) -> bool {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let name = if filename.contains('.') { filename } else { path };
        let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        self.0.is_some_and(|(name, _)| name == "whatsapp") && self.shows("Voice") && PLAYED.contains(&&*ending)
    }

    /// The content, or the text in its place.
    ///
    /// # Errors
    /// Why there is no text that could stand for it.
    pub(super) fn fitted(self, content: Content) -> Result<Content, String> {
        let content = match content {
            Content::File { url, filename } if self.plays(&url, &filename) => {
                Content::Voice(Recording { url, ..Recording::default() })
            }
            content => content,
        };
        if self.shows(content.kind()) {
            return Ok(content);
        }
        let name = self.0.map_or_else(String::new, |(name, _)| name.to_owned());
        let refused = |what: &str| Err(format!("the adapter {name} cannot send {what}"));
        let text = match content {
            Content::EditInteractive { text, buttons, .. } => return Ok(Content::Interactive { text, buttons }),
            Content::Image { url, caption, .. } => linked(caption.as_deref(), &url),
            Content::File { url, filename } => linked(Some(&filename), &url),
            Content::Voice(it) | Content::Animation(it) | Content::Video(it) | Content::Audio(it) => recording(&it),
            Content::MediaGroup { items } => {
                let lines: Option<Vec<String>> = items.iter().map(item).collect();
                lines.filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"))
            }
            Content::Location { lat, lon } => Some(format!("{lat}, {lon}")),
            Content::Poll { question, options, .. } => {
                let lines = options.iter().enumerate().map(|(at, option)| format!("\n{}. {option}", at + 1));
                Some(lines.fold(question, |text, line| text + &line))
            }
            Content::Command { name, args } => Some(format!("/{name} {}", args.join(" ")).trim_end().to_owned()),
            Content::FileData { filename, .. } => {
                return self.check_file(&filename).map(|()| Content::Text(filename));
            }
            Content::DeleteMessage { .. } => return refused("the deletion of a message"),
            Content::Sticker { .. } => return refused("a sticker"),
            Content::Text(_)
            | Content::Interactive { .. }
            | Content::ButtonCallback { .. }
            | Content::PollAnswer { .. } => return refused("this content"),
        };
        text.map_or_else(|| refused("a file whose URL people cannot open"), |text| Ok(Content::Text(text)))
    }
}

/// What is said of a file, and its URL. `None` where only programs can open it.
fn linked(said: Option<&str>, url: &str) -> Option<String> {
    let is_link = url.starts_with("https://") || url.starts_with("http://");
    let said = said.map(str::trim).filter(|said| !said.is_empty()).map(|said| format!("{said}\n"));
    is_link.then(|| said.unwrap_or_default() + url)
}

fn recording(it: &Recording) -> Option<String> {
    let said = [&it.caption, &it.title, &it.filename].into_iter().flatten().find(|said| !said.is_empty());
    linked(said.map(String::as_str), &it.url)
}

fn item(item: &MediaItem) -> Option<String> {
    match item {
        MediaItem::Photo { url, caption } | MediaItem::Video { url, caption, .. } => linked(caption.as_deref(), url),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::channel::wire::bytes::FileBytes;

    fn takes(adapter: &str) -> Takes {
        Takes(SHOWN.iter().find(|(name, _)| *name == adapter).copied())
    }

    fn fitted(adapter: &str, content: Value) -> Result<Content, String> {
        takes(adapter).fitted(serde_json::from_value(content).unwrap())
    }

    #[test]
    fn what_an_adapter_cannot_show_becomes_a_text() {
        let image = || json!({ "Image": { "url": "https://h/i.png", "caption": "A cat" } });
        let text = |said: &str| Ok(Content::Text(said.to_owned()));
        for adapter in ["ntfy", "mattermost", "twitch", "email", "wechat", "google_chat", "slack"] {
            assert_eq!(fitted(adapter, image()), text("A cat\nhttps://h/i.png"), "{adapter}");
        }
        for adapter in ["line", "whatsapp", "telegram", "matrix", "bot of another"] {
            assert_eq!(fitted(adapter, image()).unwrap(), serde_json::from_value(image()).unwrap(), "{adapter}");
        }
        let file = json!({ "File": { "url": "https://h/f", "filename": "f.txt" } });
        assert_eq!(fitted("line", file), text("f.txt\nhttps://h/f"));
        let voice = json!({ "Voice": { "url": "http://h/v.ogg", "caption": null, "duration_seconds": 2 } });
        assert_eq!(fitted("line", voice), text("http://h/v.ogg"));
        let poll = json!({ "Poll": { "question": "When?", "options": ["Now", "Later"] } });
        assert_eq!(fitted("matrix", poll), text("When?\n1. Now\n2. Later"));
        let group = json!({ "MediaGroup": { "items": [{ "Photo": { "url": "https://h/1", "caption": "one" } },
            { "Video": { "url": "https://h/2", "caption": null } }] } });
        assert_eq!(fitted("slack", group), text("one\nhttps://h/1\nhttps://h/2"));
        let edit = json!({ "EditInteractive": { "message_id": "7", "text": "t", "buttons": [] } });
        assert!(matches!(fitted("slack", edit), Ok(Content::Interactive { text, .. }) if text == "t"));
        assert_eq!(fitted("zulip", json!({ "Location": { "lat": 1.5, "lon": -2.0 } })), text("1.5, -2"));
    }

    #[test]
    fn a_recording_by_its_url_is_played_where_it_would_be_a_file() {
        let file = |name: &str, url: &str| json!({ "File": { "url": url, "filename": name } });
        for (name, url) in [("file", "https://h/note.ogg?x=1.pdf"), ("note.MP3", "https://h/1")] {
            let played = fitted("whatsapp", file(name, url));
            assert!(matches!(&played, Ok(Content::Voice(it)) if it.url == url), "{played:?}");
            assert!(matches!(fitted("telegram", file(name, url)), Ok(Content::File { .. })), "it looks itself");
        }
        for (name, url) in [("report.pdf", "https://h/note.ogg"), ("file", "https://h/ogg")] {
            assert!(matches!(fitted("whatsapp", file(name, url)), Ok(Content::File { .. })), "{name} {url}");
        }
        let by_gateway = Takes(Some(("whatsapp", &[])));
        let content = serde_json::from_value(file("file", "https://h/note.ogg")).unwrap();
        assert_eq!(by_gateway.fitted(content), Ok(Content::Text("file\nhttps://h/note.ogg".to_owned())));
    }

    #[test]
    fn what_no_text_can_stand_for_is_refused() {
        let data = Content::FileData { data: FileBytes(vec![1]), filename: "f.bin".into(), mime_type: String::new() };
        for adapter in ["ntfy", "whatsapp", "line", "wechat", "email"] {
            let why = takes(adapter).fitted(data.clone()).unwrap_err();
            assert!(why.contains(adapter) && why.contains("f.bin"), "{why}");
            assert_eq!(takes(adapter).check_file("f.bin").unwrap_err(), why);
        }
        for adapter in ["matrix", "slack", "telegram", "bot of another"] {
            assert!(takes(adapter).fitted(data.clone()).is_ok() && takes(adapter).check_file("f.bin").is_ok());
        }
        let inline = json!({ "Image": { "url": "data:image/png;base64,aGk=", "caption": "c" } });
        assert!(fitted("ntfy", inline).unwrap_err().contains("URL"));
        assert!(fitted("ntfy", json!({ "Sticker": { "file_id": "1" } })).unwrap_err().contains("sticker"));
        assert!(fitted("ntfy", json!({ "MediaGroup": { "items": [] } })).is_err());
    }
}

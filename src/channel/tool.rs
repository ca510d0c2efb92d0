//! The tool with which an agent writes to a chat.

use std::sync::Arc;

use agentsvc_components::FileId;
use agentsvc_components::channel::message::ChatMessageState;
use agentsvc_components::channel::send::SendContent;
use agentsvc_systems::channel::{ChatMessageView, ConversationView, InstanceView, SendBy, SendTo, SendToChat};
use agentsvc_systems::kernel::entities::{Get, List};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::config::CHANNELS_MAX;
use super::file_out;
use super::registry::{Current, Registry};
use super::wire::Content;
use crate::kernel::egress::granted;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// Messages that are looked through for that of the turn.
const MESSAGES_MAX: usize = 1_000;
/// Options of a poll.
const OPTIONS_MAX: usize = 12;

/// Sends a message to a chat.
pub(crate) const CHANNEL_SEND: Tool = Tool::new::<Wanted>(
    "channel_send",
    "Sends a message to a chat of a channel, such as telegram: text, a picture or file by its URL, a file of your \
     workspace, an upload of yours, such as a picture that you generated, a place on the map, or a poll. Without \
     `recipient` it goes to the chat that you are answering. Your answer goes there by itself; use this for what is to be \
     sent beside it, or elsewhere.",
    |context, text| on_input(context, text, send),
)
.order(46);

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Name of the channel, or kind of its platform if you have one channel of it.
    channel: String,
    /// Text, as Markdown.
    message: String,
    /// Chat; needs a rule of the operator unless it is the one that you are answering.
    recipient: Option<String>,
    /// Channel, if there are several of this kind.
    account_id: Option<String>,
    /// Thread of the chat. Default: that of the message that you are answering.
    thread_id: Option<String>,
    /// Subject, for mail.
    subject: Option<String>,
    /// URL of a picture, or "/api/uploads/<id>"; the message is its caption.
    image_url: Option<String>,
    /// URL of a file.
    file_url: Option<String>,
    /// File of your workspace, such as "reports/today.pdf".
    file_path: Option<String>,
    /// Id of an upload of yours.
    file_id: Option<Uuid>,
    /// Name of the file.
    filename: Option<String>,
    /// Degrees north of a place on the map.
    latitude: Option<f64>,
    /// Degrees east of the place.
    longitude: Option<f64>,
    /// Question of a poll.
    poll_question: Option<String>,
    /// Options of the poll, 2 to 12.
    poll_options: Option<Vec<String>>,
    /// Whether the poll is a quiz.
    poll_is_quiz: Option<bool>,
    /// Index of the right option of a quiz, from 0.
    poll_correct_option: Option<u32>,
    /// What a quiz says after an answer.
    poll_explanation: Option<String>,
}

async fn send(context: Context, wanted: Wanted) -> Result<Ended, String> {
    let wanted = named_upload(wanted)?;
    let (Some(by), Some(turn)) = (context.agent(), context.turn()) else {
        return Err("Only an agent in a turn can send to a chat.".to_owned());
    };
    let instance = instance(&context, &wanted).await?;
    let texts = contents(&wanted)?;
    // The adapter fetches it, beyond the rules of the daemon's own fetches.
    for url in wanted.image_url.iter().chain(&wanted.file_url) {
        let network = &context.run.manifest.manifest.capabilities.network;
        granted(network, url).map_err(|error| error.to_string())?;
        context.parts.web.vet(url, false).await.map_err(|error| error.to_string())?;
    }
    let to = place(&context, &wanted, instance).await?;
    let file = file(&context, &wanted).await?;
    let mut ids = Vec::new();
    for what in texts {
        let send = SendToChat { to: to.clone(), what, by: SendBy::Tool { by, turn } };
        match context.ask(send).await {
            Ok(sent) => ids.push(sent.id.to_string()),
            Err(why) => return unsent(file, why).await,
        }
    }
    if let Some((registry, what)) = file {
        match context.ask(SendToChat { to, what: what.clone(), by: SendBy::Tool { by, turn } }).await {
            Ok(sent) => ids.push(sent.id.to_string()),
            Err(why) => return unsent(Some((registry, what)), why).await,
        }
    }
    Ok(Ended::Text(format!("The message is queued (send {}).", ids.join(", "))))
}

/// A file that goes out, and what forgets it.
type Outgoing = (Arc<Registry>, SendContent);

/// The file of the workspace, or the upload, that is to be sent.
async fn file(context: &Context, wanted: &Wanted) -> Result<Option<Outgoing>, String> {
    if wanted.file_path.is_none() && wanted.file_id.is_none() {
        return Ok(None);
    }
    let registry = context.parts.settings.get::<Current>().0.upgrade().ok_or("Channels are not started yet.")?;
    let filename = wanted.filename.as_deref();
    let what = match (&wanted.file_path, wanted.file_id) {
        (Some(path), _) => file_out::keep(context, &registry, path, filename).await?,
        (None, id) => file_out::lend(context, &registry, FileId(id.unwrap_or_default()), filename).await?,
    };
    Ok(Some((registry, what)))
}

async fn unsent(file: Option<Outgoing>, why: String) -> Result<Ended, String> {
    if let Some((registry, what)) = file {
        file_out::forget(&registry, what.content.as_deref()).await;
    }
    Err(why)
}

/// Where it goes: without a recipient to the chat that is answered, and there to another thread where one is named.
async fn place(context: &Context, wanted: &Wanted, instance: String) -> Result<SendTo, String> {
    let thread = wanted.thread_id.as_deref().filter(|thread| !thread.is_empty()).map(Box::from);
    if let Some(chat) = wanted.recipient.as_deref().filter(|chat| !chat.is_empty()) {
        return Ok(SendTo::Chat { instance: instance.into(), chat: Some(chat.into()), thread });
    }
    let list = List::<ChatMessageView> { filter: Some(instance.as_str().into()), after: None, limit: MESSAGES_MAX };
    let answered = |view: &ChatMessageView| matches!(&view.message.state, ChatMessageState::Answering { turn: of, .. } if Some(*of) == context.turn());
    let found = context.ask(list).await?.items.into_iter().find(answered);
    let conversation =
        found.ok_or("You are not answering a chat of this channel; name the `recipient`.")?.message.conversation;
    if thread.is_none() {
        return Ok(SendTo::Conversation(conversation));
    }
    let chat = context.ask(Get::<ConversationView>(conversation)).await?.conversation.chat;
    Ok(SendTo::Chat { instance: instance.into(), chat: Some(chat), thread })
}

/// Takes the id of an upload from a URL of the daemon's own, as tools that make files name them.
fn named_upload(mut wanted: Wanted) -> Result<Wanted, String> {
    for url in [&mut wanted.image_url, &mut wanted.file_url] {
        let Some(id) = url.as_deref().and_then(|url| url.strip_prefix("/api/uploads/")) else { continue };
        let id = id.parse::<Uuid>().map_err(|_| format!("{id:?} is not the id of an upload."))?;
        if wanted.file_id.replace(id).is_some() {
            return Err(ALONE.to_owned());
        }
        *url = None;
    }
    Ok(wanted)
}

const ALONE: &str =
    "Send a file of the workspace or an upload by itself, without another file, a picture, a place or a poll.";

/// What goes out beside a file of the workspace or an upload. A text that is not shown with the other content goes before it.
fn contents(wanted: &Wanted) -> Result<Vec<SendContent>, String> {
    let text = match &wanted.subject {
        Some(subject) if !subject.is_empty() => format!("Subject: {subject}\n\n{}", wanted.message),
        _ => wanted.message.clone(),
    };
    let other = other(wanted, &text)?;
    let (has_path, has_id) = (wanted.file_path.is_some(), wanted.file_id.is_some());
    if (has_path || has_id) && other.is_some() || has_path && has_id {
        return Err(ALONE.to_owned());
    }
    let is_said = !text.trim().is_empty();
    if !is_said && other.is_none() && !has_path && !has_id {
        return Err("The message is empty.".to_owned());
    }
    let is_shown = wanted.image_url.is_some() || wanted.poll_question.as_ref() == Some(&text);
    let before = (is_said && !is_shown).then(|| SendContent { text: text.clone(), content: None });
    let json = other.map(|content| serde_json::to_string(&content)).transpose().map_err(|error| error.to_string())?;
    let beside = json.map(|json| SendContent { text, content: Some(json.into()) });
    Ok(before.into_iter().chain(beside).collect())
}

/// The channel that is meant: never a guess.
async fn instance(context: &Context, wanted: &Wanted) -> Result<String, String> {
    let list = List::<InstanceView> { filter: None, after: None, limit: CHANNELS_MAX };
    let all = context.ask(list).await?.items;
    let name = wanted.account_id.as_deref().unwrap_or(&wanted.channel);
    if let Some(named) = all.iter().find(|view| *view.rules.name == *name) {
        return Ok(named.rules.name.to_string());
    }
    let mut of_kind = all.iter().filter(|view| *view.rules.channel_type == *wanted.channel);
    match (of_kind.next(), of_kind.next()) {
        (Some(one), None) if wanted.account_id.is_none() => Ok(one.rules.name.to_string()),
        (Some(_), Some(_)) => Err("There are several channels of this kind; say which with `account_id`.".to_owned()),
        _ => Err(format!("There is no channel {name:?}.")),
    }
}

/// The one thing that is sent beside a text, or with it as its caption.
fn other(wanted: &Wanted, text: &str) -> Result<Option<Content>, String> {
    let place = place_on_map(wanted.latitude, wanted.longitude)?;
    let file = wanted.file_url.as_ref().map(|url| {
        let filename = wanted.filename.clone().unwrap_or_else(|| "file".to_owned());
        Content::File { url: url.clone(), filename }
    });
    let caption = || Some(text.to_owned());
    let image = wanted.image_url.clone().map(|url| Content::Image { url, caption: caption(), mime_type: None });
    let mut all = [place, file, image, poll(wanted)?].into_iter().flatten();
    let one = all.next();
    if all.next().is_some() {
        return Err("Send a picture, a file, a place or a poll, not several at once.".to_owned());
    }
    Ok(one)
}

fn place_on_map(latitude: Option<f64>, longitude: Option<f64>) -> Result<Option<Content>, String> {
    match (latitude, longitude) {
        (None, None) => Ok(None),
        (Some(lat), Some(lon)) if lat.abs() <= 90.0 && lon.abs() <= 180.0 => Ok(Some(Content::Location { lat, lon })),
        _ => Err("A place has a `latitude` from -90 to 90 and a `longitude` from -180 to 180.".to_owned()),
    }
}

fn poll(wanted: &Wanted) -> Result<Option<Content>, String> {
    let Some(question) = wanted.poll_question.clone() else { return Ok(None) };
    let options = wanted.poll_options.clone().unwrap_or_default();
    if !(2..=OPTIONS_MAX).contains(&options.len()) {
        return Err(format!("A poll has 2 to {OPTIONS_MAX} options."));
    }
    if wanted.poll_correct_option.is_some_and(|option| option as usize >= options.len()) {
        return Err("`poll_correct_option` is the index of an option, from 0.".to_owned());
    }
    Ok(Some(Content::Poll {
        question,
        options,
        is_quiz: wanted.poll_is_quiz.unwrap_or_default(),
        correct_option_id: wanted.poll_correct_option,
        explanation: wanted.poll_explanation.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_goes_before_a_file() {
        let made = |given: serde_json::Value| contents(&serde_json::from_value(given).unwrap());
        let file =
            made(json!({ "channel": "t", "message": "see", "file_url": "https://h/f", "filename": "f" })).unwrap();
        assert_eq!((file.len(), &*file[0].text, file[0].content.is_none()), (2, "see", true));
        assert!(file[1].content.as_ref().unwrap().starts_with("{\"File\":"));
        let of_workspace = |message: &str| made(json!({ "channel": "t", "message": message, "file_path": "a.pdf" }));
        assert_eq!((of_workspace("see").unwrap().len(), of_workspace("").unwrap().len()), (1, 0));
        let both = json!({ "channel": "t", "message": "", "file_path": "a", "file_url": "https://h/f" });
        assert!(made(both).unwrap_err().contains("by itself"));
        assert_eq!(made(json!({ "channel": "t", "message": "hi" })).unwrap().len(), 1);
    }

    #[test]
    fn a_url_of_the_daemon_names_an_upload() {
        let id = Uuid::from_u128(7);
        let made = |given: serde_json::Value| named_upload(serde_json::from_value(given).unwrap());
        for key in ["image_url", "file_url"] {
            let of = made(json!({ "channel": "t", "message": "see", key: format!("/api/uploads/{id}") })).unwrap();
            assert_eq!((of.file_id, &of.image_url, &of.file_url), (Some(id), &None, &None));
            assert_eq!(contents(&of).unwrap().len(), 1, "the text goes before the file");
        }
        assert!(made(json!({ "channel": "t", "message": "", "image_url": "/api/uploads/../x" })).is_err());
        let two = json!({ "channel": "t", "message": "", "file_id": id, "image_url": format!("/api/uploads/{id}") });
        assert!(made(two).is_err());
        let both = made(json!({ "channel": "t", "message": "", "file_id": id, "file_path": "a" })).unwrap();
        assert!(contents(&both).unwrap_err().contains("by itself"));
    }

    #[test]
    fn polls_pictures_and_places_become_content() {
        let made = |given: serde_json::Value| contents(&serde_json::from_value(given).unwrap());
        let plain = made(json!({ "channel": "t", "message": "hi", "subject": "S" })).unwrap();
        assert_eq!((plain.len(), plain[0].text.as_str(), &plain[0].content), (1, "Subject: S\n\nhi", &None));
        let place = json!({ "channel": "t", "message": "Here", "latitude": 48.2, "longitude": -16.4 });
        let poll = json!({ "channel": "t", "message": "Here", "poll_question": "q", "poll_options": ["a", "b"] });
        for (given, content) in [(place, "{\"Location\":{\"lat\":48.2,\"lon\":-16.4}}"), (poll, "{\"Poll\":")] {
            let both = made(given).unwrap();
            assert_eq!((both.len(), both[0].text.as_str(), &both[0].content), (2, "Here", &None), "no text is lost");
            assert!(both[1].content.as_ref().unwrap().starts_with(content), "{:?}", both[1]);
        }
        let said = json!({ "channel": "t", "message": "q", "poll_question": "q", "poll_options": ["a", "b"] });
        assert_eq!(made(said).unwrap().len(), 1, "nothing is said twice");
        let image = made(json!({ "channel": "t", "message": "c", "image_url": "https://h/i" })).unwrap();
        assert!(image.len() == 1 && image[0].content.as_ref().unwrap().contains("\"caption\":\"c\""), "{image:?}");
        for wrong in [
            json!({ "channel": "t", "message": " " }),
            json!({ "channel": "t", "message": "", "poll_question": "q", "poll_options": ["a"] }),
            json!({ "channel": "t", "message": "", "poll_question": "q", "poll_options": ["a", "b"],
                "poll_correct_option": 2 }),
            json!({ "channel": "t", "message": "", "latitude": 48.2 }),
            json!({ "channel": "t", "message": "", "latitude": 91.0, "longitude": 0.0 }),
            json!({ "channel": "t", "message": "", "latitude": 1.0, "longitude": 0.0, "image_url": "https://h/i" }),
            json!({ "channel": "t", "message": "", "latitude": 1.0, "longitude": 0.0, "file_path": "a" }),
        ] {
            assert!(made(wrong.clone()).is_err(), "{wrong}");
        }
    }
}

//! The messages of a chat completion request: from OpenAI's form to ours. What is wrong is named by its path, such as
//! `messages[2].content[0].type`.

use std::collections::BTreeSet;
use std::fmt;

use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use schemars::JsonSchema;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::image::Image;
use crate::http::error::Error;

/// A message.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WireMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    role: String,
    #[schemars(with = "Option<serde_json::Value>")]
    content: Option<Content>,
    /// Tool calls of an assistant message.
    tool_calls: Option<Vec<WireCall>>,
    /// Call that a tool message responds to.
    tool_call_id: Option<String>,
    // What the official client sends back of an answer, and we have no use for.
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "refusal")]
    #[schemars(skip)]
    _refusal: Option<IgnoredAny>,
    #[serde(rename = "annotations")]
    #[schemars(skip)]
    _annotations: Option<IgnoredAny>,
    #[serde(rename = "audio")]
    #[schemars(skip)]
    _audio: Option<IgnoredAny>,
    #[serde(rename = "function_call")]
    #[schemars(skip)]
    _function_call: Option<IgnoredAny>,
}

/// A tool call in OpenAI's format.
#[derive(Deserialize, JsonSchema)]
struct WireCall {
    id: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    function: CalledFunction,
    /// Present in stream chunks that a client may send back.
    #[serde(rename = "index")]
    #[schemars(skip)]
    _index: Option<IgnoredAny>,
}

/// What was called.
#[derive(Deserialize, JsonSchema)]
struct CalledFunction {
    name: String,
    /// JSON as text.
    arguments: String,
}

/// A text, or a list of parts.
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// One part of a content.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<ImageUrl>,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
    #[serde(rename = "detail")]
    _detail: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

/// What a request's messages say, in our form.
#[derive(Default)]
pub(crate) struct Dialogue {
    /// The texts of system and developer messages, a blank line between them.
    pub(crate) system: Option<String>,
    /// The others, oldest first. An image stands as an empty text until it is stored.
    pub(crate) messages: Vec<ChatMessage>,
    /// The images, and where they belong.
    pub(crate) images: Vec<Image>,
}

impl Dialogue {
    /// Reads and checks the messages.
    ///
    /// # Errors
    /// 400 naming the part at fault.
    pub(crate) fn read(wire: Vec<WireMessage>) -> Result<Self, Error> {
        if wire.is_empty() {
            return Err(Error::bad_field("messages", "messages: at least one message is required"));
        }
        if wire.len() > limit::CONVERSATION_MESSAGES_MAX {
            let most = limit::CONVERSATION_MESSAGES_MAX;
            return Err(Error::bad_field("messages", format!("messages: the limit is {most}")));
        }
        let mut dialogue = Self::default();
        // The calls of the last assistant message that still want a result.
        let mut open = Vec::new();
        for (at, message) in wire.into_iter().enumerate() {
            dialogue.take(&Place(format!("messages[{at}]")), message, &mut open)?;
        }
        if dialogue.messages.iter().all(|message| message.role != Role::User) {
            return Err(Error::bad_field("messages", "messages: at least one non-empty user message is required"));
        }
        Ok(dialogue)
    }

    fn take(&mut self, place: &Place, message: WireMessage, open: &mut Vec<ToolCall>) -> Result<(), Error> {
        let WireMessage { role, content, tool_calls, tool_call_id, .. } = message;
        match role.as_str() {
            "system" | "developer" => {
                let text = place.text(required(place, content)?)?;
                let system = self.system.get_or_insert_default();
                if !system.is_empty() && !text.is_empty() {
                    system.push_str("\n\n");
                }
                system.push_str(&text);
            }
            "user" => {
                open.clear();
                let at = self.messages.len();
                let blocks = place.blocks(required(place, content)?, at, &mut self.images)?;
                self.push(Role::User, blocks);
            }
            "assistant" => {
                *open = place.calls(tool_calls.unwrap_or_default())?;
                if open.is_empty() && content.is_none() {
                    return place.bad("content", "an assistant message must have content or tool_calls");
                }
                let text = content.map_or(Ok(String::new()), |content| place.text(content))?;
                let mut blocks = if text.is_empty() { Vec::new() } else { vec![Block::Text { text }] };
                blocks.extend(open.iter().cloned().map(Block::ToolCall));
                self.push(Role::Assistant, blocks);
            }
            "tool" => {
                let Some(id) = tool_call_id else { return place.bad("tool_call_id", "missing field `tool_call_id`") };
                let Some(answered) = open.iter().position(|call| call.id == id) else {
                    return place.bad("tool_call_id", "the preceding assistant message has no tool call with this id");
                };
                let name = open.remove(answered).name;
                let content = place.text(required(place, content)?)?;
                self.push(Role::Tool, vec![Block::ToolResult { call_id: id, name, content, is_error: false }]);
            }
            _ => return place.bad("role", "expected system, developer, user, assistant or tool"),
        }
        Ok(())
    }

    /// Adds a message unless it says nothing.
    fn push(&mut self, role: Role, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.messages.push(ChatMessage { role, blocks });
        }
    }

    /// What is new for a session that knows the rest: the results of the client's tools and the user's message that
    /// follow the last assistant message. Images of other messages go.
    ///
    /// # Errors
    /// 400 when the conversation ends with an assistant message.
    pub(crate) fn newest(mut self) -> Result<Self, Error> {
        let after = self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
        let last_user = self.messages.iter().rposition(|message| message.role == Role::User);
        let keep: BTreeSet<usize> = (after..self.messages.len())
            .filter(|at| self.messages[*at].role == Role::Tool || Some(*at) == last_user)
            .collect();
        if keep.is_empty() {
            let text = "messages: the last message must be a user message or a tool result";
            return Err(Error::bad_field("messages", text));
        }
        self.images.retain_mut(|image| {
            let place = keep.iter().position(|at| *at == image.message);
            image.message = place.unwrap_or_default();
            place.is_some()
        });
        let all = std::mem::take(&mut self.messages).into_iter().enumerate();
        self.messages = all.filter(|(at, _)| keep.contains(at)).map(|(_, message)| message).collect();
        Ok(self)
    }
}

fn required(place: &Place, content: Option<Content>) -> Result<Content, Error> {
    content.map_or_else(|| place.bad("content", "missing field `content`"), Ok)
}

/// Where a message stands, for errors.
struct Place(String);

impl Place {
    fn bad<T>(&self, key: &str, why: &str) -> Result<T, Error> {
        let field = format!("{}.{key}", self.0);
        let message = format!("{field}: {why}");
        Err(Error::bad_field(&field, message))
    }

    fn too_long<T>(&self) -> Result<T, Error> {
        self.bad("content", &format!("longer than {} bytes", limit::MESSAGE_BYTES_MAX))
    }

    /// A content that is text alone.
    fn text(&self, content: Content) -> Result<String, Error> {
        let text = match content {
            Content::Text(text) => text,
            Content::Parts(parts) => {
                let texts = parts.into_iter().enumerate().map(|(at, part)| self.text_part(at, part));
                texts.collect::<Result<String, Error>>()?
            }
        };
        if text.len() > limit::MESSAGE_BYTES_MAX { self.too_long() } else { Ok(text) }
    }

    fn text_part(&self, at: usize, part: Part) -> Result<String, Error> {
        match (part.kind.as_str(), part.text, part.refusal) {
            ("text", Some(text), _) | ("refusal", _, Some(text)) => Ok(text),
            ("text", None, _) => self.bad(&format!("content[{at}].text"), "missing field `text`"),
            _ => self.bad(&format!("content[{at}].type"), "a message of this role can only contain text"),
        }
    }

    /// A user's content. Images go to `images` with their place: message `message` and the block.
    fn blocks(&self, content: Content, message: usize, images: &mut Vec<Image>) -> Result<Vec<Block>, Error> {
        let parts = match content {
            Content::Text(text) if text.len() > limit::MESSAGE_BYTES_MAX => return self.too_long(),
            Content::Text(text) if text.trim().is_empty() => return Ok(Vec::new()),
            Content::Text(text) => return Ok(vec![Block::Text { text }]),
            Content::Parts(parts) => parts,
        };
        let (mut blocks, mut bytes, first_image) = (Vec::with_capacity(parts.len()), 0, images.len());
        let mut is_blank = true;
        for (at, part) in parts.into_iter().enumerate() {
            let text = match (part.kind.as_str(), part.text, part.image_url) {
                ("text", Some(text), _) => text,
                ("text", None, _) => return self.bad(&format!("content[{at}].text"), "missing field `text`"),
                ("image_url", _, Some(url)) => {
                    let field = format!("{}.content[{at}].image_url.url", self.0);
                    images.push(Image::read(&field, &url.url, message, blocks.len())?);
                    String::new()
                }
                ("image_url", _, None) => {
                    return self.bad(&format!("content[{at}].image_url"), "missing field `image_url`");
                }
                _ => return self.bad(&format!("content[{at}].type"), "expected text or image_url"),
            };
            if text.is_empty() && part.kind == "text" {
                continue;
            }
            bytes += text.len();
            is_blank &= text.trim().is_empty();
            blocks.push(Block::Text { text });
        }
        match bytes > limit::MESSAGE_BYTES_MAX {
            true => self.too_long(),
            false if is_blank && images.len() == first_image => Ok(Vec::new()),
            false => Ok(blocks),
        }
    }

    fn calls(&self, wire: Vec<WireCall>) -> Result<Vec<ToolCall>, Error> {
        let mut calls: Vec<ToolCall> = Vec::with_capacity(wire.len());
        for (at, call) in wire.into_iter().enumerate() {
            if call.kind.is_some_and(|kind| kind != "function") {
                return self.bad(&format!("tool_calls[{at}].type"), "expected \"function\"");
            }
            if call.id.is_empty() || calls.iter().any(|other| other.id == call.id) {
                return self.bad(&format!("tool_calls[{at}].id"), "the id must be unique");
            }
            calls.push(ToolCall { id: call.id, name: call.function.name, input: call.function.arguments });
        }
        Ok(calls)
    }
}

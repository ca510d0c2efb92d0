//! The built-in offline model: deterministic, without key or network, so that a fresh install answers.
//!
//! | the message | the answer |
//! |---|---|
//! | a line `/tool <name> <json>` for an offered tool | calls the tool; then says what it gave back |
//! | `what time is it`, where `system_time` is offered | calls it; then says what it gave back |
//! | `hi`, `hello`, `good morning`... | a greeting that says what it is |
//! | `who are you`, `help` | what it is and what it understands |
//! | `echo X`, `say X`, `repeat X` | X |
//! | `summarise`, `summarize`, `summary` | the user's messages so far, one line each |
//! | `what did I say` | the user's message before this one |
//! | `count to N`, `how many messages` | the numbers; the number of the user's messages |
//! | anything else | one or two sentences that reflect it |
//!
//! A summary of a conversation it makes of the beginnings of what was said (`extract.rs`).
//!
//! Streamed, it writes word by word. Tokens are counted by the estimate of [`agentsvc_systems::prompt`].

use std::borrow::Cow;

use agentsvc_components::session::message::{Block, ChatMessage, Role, Usage};
use agentsvc_components::turn::outcome::StopReason;
use agentsvc_systems::prompt::{Prompt, text_tokens};
use futures_util::future::BoxFuture;

use super::draft::{CallPiece, Draft};
use super::error::CallError;
use super::{Driver, Purpose, Request, extract::extract};
use crate::tool::toolset::ToolSpec;

/// What it says of itself.
const SELF: &str = "I am agentsvc's built-in offline model";
/// What it can do, for people.
const ABILITIES: &str = "I follow fixed rules and understand: hello, echo X, summarize, what did I say, count to N, \
    how many messages, what time is it, and a line `/tool <name> <json>` that calls a tool. For real answers, give the \
    agent a provider and its key.";
/// Bytes of a result that is shown key by key.
const READABLE_BYTES_MAX: usize = 16 << 10;
/// The tool that knows the time.
const CLOCK: &str = "system_time";
/// How far it counts.
const COUNT_MAX: u32 = 10_000;
/// Bytes of a message that it quotes.
const QUOTE_BYTES_MAX: usize = 200;
/// Messages that a summary lists; the older ones are only counted.
const SUMMARY_LINES_MAX: usize = 20;

/// The driver.
#[derive(Clone, Copy, Debug)]
pub struct Builtin;

impl Driver for Builtin {
    fn call<'a>(&'a self, request: &'a Request<'a>, draft: &'a mut Draft) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            write(request, draft).await;
            Ok(())
        })
    }
}

/// What it says and does.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    text: String,
    /// Names and arguments of the tools it calls.
    calls: Vec<(String, String)>,
}

impl Answer {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }
}

async fn write(request: &Request<'_>, draft: &mut Draft) {
    let mut answer = match request.purpose {
        Purpose::Turn => answer(request.prompt, request.tools),
        Purpose::Summary => Answer::text(extract(&text_of_first(request.prompt))),
    };
    let bytes_max = request.max_tokens.map_or(usize::MAX, |tokens| tokens as usize * 4);
    if answer.text.len() > bytes_max {
        answer.text.truncate(answer.text.floor_char_boundary(bytes_max));
        draft.set_stop(StopReason::Length);
    }
    if request.streaming {
        for word in answer.text.split_inclusive(char::is_whitespace) {
            draft.push_text(word);
            // A long answer must neither hog the worker nor outrun an abort.
            tokio::task::yield_now().await;
        }
    } else {
        draft.push_text(&answer.text);
    }
    let mut output_tokens = text_tokens(answer.text.len());
    for (at, (name, arguments)) in (0_u32..).zip(&answer.calls) {
        draft.push_call(CallPiece { index: Some(at), id: "", name, arguments });
        output_tokens += text_tokens(name.len() + arguments.len());
    }
    draft.set_usage(Usage::of(request.prompt.estimated_tokens, output_tokens));
    draft.set_stop(if answer.calls.is_empty() { StopReason::End } else { StopReason::ToolUse });
}

fn text_of_first(prompt: &Prompt) -> String {
    prompt.messages.first().map(ChatMessage::plain_text).unwrap_or_default()
}

fn answer(prompt: &Prompt, tools: &[ToolSpec]) -> Answer {
    match prompt.messages.split_last() {
        None => Answer::text(format!("{SELF}. There is no message to answer.")),
        Some((last, _)) if last.role == Role::Tool => Answer::text(report(last)),
        Some((last, before)) => {
            let whole = last.plain_text();
            let (said, mut attached) = split_attached(&whole);
            let images = last.blocks.iter().filter(|block| matches!(block, Block::Image { .. })).count();
            if images > 0 {
                attached.push(format!("{images} image{}", if images == 1 { "" } else { "s" }));
            }
            let called = tool_calls(said, tools).or_else(|| clock(said, tools));
            called.unwrap_or_else(|| Answer::text(reply_with(said.trim(), before, &attached)))
        }
    }
}

/// What was said, and the names of the files attached to it.
fn split_attached(whole: &str) -> (&str, Vec<String>) {
    const MARKS: [&str; 2] = ["[Attached file: ", "[Attached PDF: "];
    let mut attached = Vec::new();
    let mut end = whole.len();
    let mut start = 0;
    for line in whole.split_inclusive('\n') {
        let is_apart = start == 0 || whole[..start].ends_with("\n\n");
        let name = MARKS.iter().find_map(|mark| line.trim_end().strip_prefix(mark)?.strip_suffix(']'));
        if let Some(name) = name.filter(|_| is_apart) {
            end = end.min(start);
            attached.push(name.to_owned());
        }
        start += line.len();
    }
    (&whole[..end], attached)
}

/// The reply to what was said, and a word on what was attached.
fn reply_with(said: &str, before: &[ChatMessage], attached: &[String]) -> String {
    if attached.is_empty() {
        return reply(said, before);
    }
    let got = format!("You attached {}; I cannot look into attachments.", attached.join(", "));
    if said.is_empty() { got } else { format!("{}\n{got}", reply(said, before)) }
}

/// Says what the tools gave back.
fn report(results: &ChatMessage) -> String {
    let lines = results.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { name, content, is_error: false, .. } => {
            Some(format!("The tool {name} returned: {}", readable(content)))
        }
        Block::ToolResult { name, content, .. } => Some(format!("The tool {name} failed: {content}")),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A result as people read it: an object or a list as a block of code, with a line for each key.
fn readable(content: &str) -> Cow<'_, str> {
    let parsed = (content.len() <= READABLE_BYTES_MAX).then(|| serde_json::from_str::<serde_json::Value>(content));
    match parsed {
        Some(Ok(value)) if value.is_object() || value.is_array() => Cow::Owned(format!("\n```json\n{value:#}\n```")),
        _ => Cow::Borrowed(content),
    }
}

/// The tool calls that the message asks for in the documented form; `None` when it has no such line.
fn tool_calls(said: &str, tools: &[ToolSpec]) -> Option<Answer> {
    let mut answer = Answer::default();
    let mut asked = false;
    for line in said.lines() {
        let Some(rest) = line.trim().strip_prefix("/tool ") else { continue };
        asked = true;
        let (name, arguments) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        if tools.iter().any(|tool| tool.name == name) {
            let arguments = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
            answer.calls.push((name.to_owned(), arguments.to_owned()));
        } else {
            let offered: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
            let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
            answer
                .text
                .push_str(&format!("I have no tool named \"{}\". Available tools: {offered}.\n", shortened(name)));
        }
    }
    answer.text.truncate(answer.text.trim_end().len());
    asked.then_some(answer)
}

/// The words of a message, in lower case.
fn words_of(lower: &str) -> Vec<&str> {
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect()
}

/// Asks the clock when the message asks for the time; `None` where it does not, or there is no clock.
fn clock(said: &str, tools: &[ToolSpec]) -> Option<Answer> {
    let lower = said.to_lowercase();
    let is_asked = words_of(&lower).starts_with(&["what", "time", "is", "it"]);
    let has_clock = || tools.iter().any(|tool| tool.name == CLOCK);
    (is_asked && has_clock()).then(|| Answer { text: String::new(), calls: vec![(CLOCK.to_owned(), "{}".to_owned())] })
}

fn reply(said: &str, before: &[ChatMessage]) -> String {
    let lower = said.to_lowercase();
    let words = words_of(&lower);
    let earlier = || before.iter().filter(|message| message.role == Role::User).map(ChatMessage::plain_text);
    match words.as_slice() {
        [] => format!("{SELF}. Your message contains no words."),
        ["echo" | "say" | "repeat", ..] => echoed(said).to_owned(),
        ["count", "to", number, ..] => count_to(number),
        ["help", ..] => format!("{SELF}. {ABILITIES}"),
        ["who" | "what", "are", "you", ..] | ["what", "is" | "'s", "your", "name", ..] => {
            format!("{SELF}. {ABILITIES}")
        }
        ["thanks" | "bye" | "goodbye", ..] | ["thank", "you", ..] => "You are welcome. Until next time!".to_owned(),
        _ if is_greeting(&words) => format!("Hello! {SELF}. What can I do for you?"),
        _ if words.iter().any(|word| matches!(*word, "summarise" | "summarize" | "summary")) => {
            summary(earlier().collect())
        }
        _ if lower.contains("what did i say") => match earlier().next_back() {
            Some(text) => format!("You said: {}", quote(&text)),
            None => "This is the first thing you say here.".to_owned(),
        },
        ["how", "many", "messages", ..] => {
            let count = earlier().count() + 1;
            format!(
                "You have sent {count} message{} that I can see, this one included.",
                if count == 1 { "" } else { "s" }
            )
        }
        _ => {
            let verb = if said.ends_with('?') { "asked" } else { "said" };
            format!(
                "You {verb}: {} {SELF}, so I can only repeat that; say \"help\" to see what I understand.",
                quote(said)
            )
        }
    }
}

fn is_greeting(words: &[&str]) -> bool {
    matches!(
        words,
        ["hi" | "hello" | "hey" | "hallo" | "greetings" | "howdy", ..]
            | ["good", "morning" | "afternoon" | "evening" | "day", ..]
    )
}

/// What stands after the first word, and a colon, as it was written.
fn echoed(said: &str) -> &str {
    let end = said.find(|c: char| !c.is_alphanumeric()).unwrap_or(said.len());
    let rest = said[end..].trim_start();
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
    if rest.is_empty() { "There is nothing to echo." } else { rest }
}

fn count_to(number: &str) -> String {
    match number.parse::<u32>() {
        Ok(end @ 1..=COUNT_MAX) => (1..=end).map(|n| n.to_string()).collect::<Vec<_>>().join(" "),
        _ => format!("I count from 1 to at most {COUNT_MAX}."),
    }
}

fn summary(said: Vec<String>) -> String {
    if said.is_empty() {
        return "There is nothing to summarize yet: this is your first message here.".to_owned();
    }
    let skipped = said.len().saturating_sub(SUMMARY_LINES_MAX);
    let mut text = format!("So far you said ({} message{}):", said.len(), if said.len() == 1 { "" } else { "s" });
    if skipped > 0 {
        text.push_str(&format!("\n- {skipped} older ones"));
    }
    for message in &said[skipped..] {
        text.push_str("\n- ");
        text.push_str(&shortened(message));
    }
    text
}

fn quote(text: &str) -> String {
    let mut quoted = format!("\"{}\"", shortened(text));
    if !quoted.ends_with("…\"") && !quoted.ends_with(['.', '!', '?']) {
        quoted.push('.');
    }
    quoted
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= QUOTE_BYTES_MAX {
        line
    } else {
        format!("{}…", &line[..line.floor_char_boundary(QUOTE_BYTES_MAX)])
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::{Block, ChatMessage, Role};
    use agentsvc_systems::prompt::Prompt;

    use super::{SELF, answer, readable};
    use crate::tool::toolset::built_in;

    fn prompt(messages: Vec<ChatMessage>) -> Prompt {
        Prompt { system: String::new(), messages, estimated_tokens: 1, is_cut: false }
    }

    fn user(text: &str) -> ChatMessage {
        ChatMessage::text(Role::User, text)
    }

    fn says(text: &str) -> String {
        answer(&prompt(vec![user(text)]), &[]).text
    }

    #[test]
    fn it_says_what_it_is() {
        assert!(says("Hello there!").contains(SELF));
        assert!(says("who are you?").contains(SELF));
        assert!(says("help").contains("/tool"));
        assert!(says("The sky is blue").contains("The sky is blue") && says("The sky is blue").contains(SELF));
        assert!(says("Is it?").starts_with("You asked: \"Is it?\""), "{}", says("Is it?"));
        assert!(says(" \n").contains("no words"));
    }

    #[test]
    fn it_names_what_is_attached() {
        let said = "echo hello\n\n[Attached file: a.txt]\necho other\n\n[Attached PDF: b.pdf]\ntext";
        assert_eq!(says(said), "hello\nYou attached a.txt, b.pdf; I cannot look into attachments.");
        let image = Block::Image {
            media_type: "image/png".to_owned(),
            file: agentsvc_components::FileId(uuid::Uuid::nil()),
            bytes: 1,
        };
        let message = ChatMessage { role: Role::User, blocks: vec![image] };
        let text = answer(&prompt(vec![message]), &[]).text;
        assert_eq!(text, "You attached 1 image; I cannot look into attachments.");
    }

    #[test]
    fn it_echoes_and_counts() {
        assert_eq!(says("echo  Big Word, twice  "), "Big Word, twice");
        assert_eq!(says("Say: hi"), "hi");
        assert_eq!(says("echo"), "There is nothing to echo.");
        assert_eq!(says("count to 4"), "1 2 3 4");
        assert!(says("count to 4000000000").contains("at most"));
    }

    #[test]
    fn it_remembers_the_conversation() {
        let said = |last: &str| {
            let messages = vec![
                user("I like tea"),
                ChatMessage::text(Role::Assistant, "ok"),
                user("and\nships"),
                ChatMessage::text(Role::Assistant, "ok"),
                user(last),
            ];
            answer(&prompt(messages), &[]).text
        };
        assert_eq!(said("What did I say?"), "You said: \"and ships\".");
        assert_eq!(said("please summarise"), "So far you said (2 messages):\n- I like tea\n- and ships");
        assert!(said("How many messages?").contains("3 messages"));
        assert!(says("summarize").contains("nothing to summarize"));
    }

    #[test]
    fn it_calls_offered_tools_and_reports() {
        let tools = built_in().offered_to_all();
        let asked =
            answer(&prompt(vec![user("please\n/tool system_time {\"format\":\"date\"}\n/tool system_time")]), &tools);
        let call = |arguments: &str| ("system_time".to_owned(), arguments.to_owned());
        assert_eq!(asked.calls, [call("{\"format\":\"date\"}"), call("{}")]);
        let time = |text: &str| answer(&prompt(vec![user(text)]), &tools).calls;
        assert_eq!((time("What time is it?"), time("What is time?")), (vec![call("{}")], Vec::new()));
        assert!(answer(&prompt(vec![user("What time is it?")]), &[]).text.starts_with("You asked"));
        let refused = answer(&prompt(vec![user("/tool rm {}")]), &tools);
        assert!(refused.calls.is_empty() && refused.text.contains("system_time"), "{}", refused.text);
        let result = |is_error| Block::ToolResult {
            call_id: "1".to_owned(),
            name: "system_time".to_owned(),
            content: "noon".to_owned(),
            is_error,
        };
        let results = ChatMessage { role: Role::Tool, blocks: vec![result(false), result(true)] };
        let report = answer(&prompt(vec![user("x"), results]), &tools);
        assert_eq!(report.text, "The tool system_time returned: noon\nThe tool system_time failed: noon");
        assert_eq!(readable("{\"a\":1}"), "\n```json\n{\n  \"a\": 1\n}\n```");
    }
}

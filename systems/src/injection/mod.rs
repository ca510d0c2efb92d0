//! The prompt-injection scanner: does a text from outside try to give orders to the model that reads it?
//!
//! | reason             | what is found                                                             | weight |
//! |--------------------|---------------------------------------------------------------------------|--------|
//! | `override`         | orders to ignore what the model was told, new orders in their place       | 3, 4   |
//! | `role`             | orders to be someone without rules                                        | 2 to 4 |
//! | `prompt_leak`      | asks for the system text                                                  | 3      |
//! | `exfiltration`     | orders to send secrets or the conversation somewhere                      | 2 to 4 |
//! | `secrecy`          | orders to keep something from the user                                    | 2      |
//! | `address`          | speaks to whatever model reads it                                         | 2      |
//! | `action`           | orders to run, delete, pay, recommend or judge something                  | 2, 3   |
//! | `markup`           | imitates chat templates, roles or tool calls                              | 2 to 4 |
//! | `hidden`           | tag characters, turned directions, zero-width within words, orders in comments | 3 to 6 |
//! | `encoded`          | the same, in base64, hexadecimal, percent signs or letters apart          | 4 to 6 |
//!
//! Each reason counts once, with its greatest weight; from [`SUSPICIOUS`] on the text is suspicious, from [`HOSTILE`]
//! on hostile. A phrase that prose puts in quotation marks is talked about and counts 1. The text is folded first:
//! letters that look alike, accents, case, invisible characters, escapes and blanks are all one ([`fold`]).
//!
//! Time is linear in the length: each word begins a bounded number of comparisons, each of a bounded number of words.
//! The scanner is a pure function with a table and no model; it finds wordings that it knows, and an attacker who knows
//! it can word around it. It makes attacks visible and dear; what holds is what an agent may do (`crate::taint`).

mod decode;
mod fold;
mod marks;
mod matcher;
mod phrases;
mod shield;
mod words;

use serde_json::Value;

use crate::kernel::domain::Domain;
pub(crate) use fold::is_unseen;
pub use shield::{InjectionPolicy, Long, Scanning, Shielded, shield};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { uses: &[], ..Domain::named("injection") };

/// A text of this score is suspicious.
pub const SUSPICIOUS: u32 = 3;
/// A text of this score is hostile.
pub const HOSTILE: u32 = 6;
/// Findings of one report; more of the same say nothing new.
const FINDINGS_MAX: usize = 32;
/// Encodings within encodings are taken apart so deep.
const LEVELS: u8 = 2;

agentsvc_components::enum_words! {
    /// Why a text is not to be trusted. The table stands at the head of this module.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason [as_str] {
        /// Orders to ignore what the model was told.
        Override = "override",
        /// Orders to be someone without rules.
        Role = "role",
        /// Asks for the system text.
        PromptLeak = "prompt_leak",
        /// Orders to send secrets or the conversation somewhere.
        Exfiltration = "exfiltration",
        /// Orders to keep something from the user.
        Secrecy = "secrecy",
        /// Speaks to whatever model reads it.
        Address = "address",
        /// Orders to do something that has consequences.
        Action = "action",
        /// Imitates chat templates, roles or tool calls.
        Markup = "markup",
        /// Text that people do not see.
        Hidden = "hidden",
        /// Orders in an encoding.
        Encoded = "encoded",
    }
}

agentsvc_components::enum_words! {
    /// How sure the scanner is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Level [as_str] {
        /// Nothing, or too little.
        #[default]
        None = "none",
        /// It looks like an attempt.
        Suspicious = "suspicious",
        /// It is one, as far as words can tell.
        Hostile = "hostile",
    }
}

/// One thing that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub reason: Reason,
    /// How much it counts.
    pub weight: u8,
    /// Where it begins: a byte of the text as it was given.
    pub at: usize,
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How sure the scanner is.
    pub level: Level,
    /// The sum of the greatest weight of each reason.
    pub score: u32,
    /// What was found, in the order of places; at most 32.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The reasons, each once, the heaviest first.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let mut best: Vec<(u8, Reason)> = Vec::new();
        for finding in &self.findings {
            match best.iter_mut().find(|(_, reason)| *reason == finding.reason) {
                Some((weight, _)) => *weight = finding.weight.max(*weight),
                None => best.push((finding.weight, finding.reason)),
            }
        }
        best.sort_by_key(|(weight, reason)| (std::cmp::Reverse(*weight), *reason));
        best.into_iter().map(|(_, reason)| reason).collect()
    }

    fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| (finding.at, finding.reason));
        let mut best = [0_u32; 10];
        for finding in &findings {
            let slot = &mut best[finding.reason as usize];
            *slot = u32::from(finding.weight).max(*slot);
        }
        let score: u32 = best.iter().sum();
        let level = match score {
            HOSTILE.. => Level::Hostile,
            SUSPICIOUS.. => Level::Suspicious,
            _ => Level::None,
        };
        Self { level, score, findings }
    }
}

/// Scans a text from outside.
#[must_use]
pub fn scan(text: &str) -> Report {
    scan_at(text, LEVELS)
}

/// Adds all names and texts of a JSON value, such as a schema, a line each.
pub fn json_texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => {
            all.push('\n');
            all.push_str(text);
        }
        Value::Array(values) => values.iter().for_each(|value| json_texts(value, all)),
        Value::Object(fields) => {
            for (name, value) in fields {
                all.push('\n');
                all.push_str(name);
                json_texts(value, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn scan_at(text: &str, levels: u8) -> Report {
    let folded = fold::fold(text);
    let words = words::words(&folded.text);
    // Places in the folded text; taken back to the text at the end.
    let mut found = matcher::phrases(&folded.text, &words);
    marks::markup(&folded.text, &mut found);
    marks::comments(&folded.text, &mut found);
    keep_heaviest(&mut found);
    let places: Vec<usize> = found.iter().map(|finding| finding.at).collect();
    for (finding, at) in found.iter_mut().zip(fold::places(text, &places)) {
        finding.at = at;
    }
    marks::hidden(&folded, &mut found);
    if let Some(levels) = levels.checked_sub(1) {
        for (at, decoded) in decode::payloads(text).into_iter().chain(folded.tagged_text()) {
            let report = scan_at(&decoded, levels);
            if report.level > Level::None {
                let weight = u8::try_from(report.score).unwrap_or(u8::MAX).clamp(4, 6);
                found.push(Finding { reason: Reason::Encoded, weight, at });
            }
        }
    }
    keep_heaviest(&mut found);
    Report::of(found)
}

/// Lets the lightest go when there are too many; of each reason the heaviest always stays.
fn keep_heaviest(found: &mut Vec<Finding>) {
    if found.len() <= FINDINGS_MAX {
        return;
    }
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.weight), finding.at));
    let mut seen = [false; 10];
    let mut rest = FINDINGS_MAX - seen.len();
    found.retain(|finding| {
        let is_first = !std::mem::replace(&mut seen[finding.reason as usize], true);
        if !is_first && rest > 0 {
            rest -= 1;
            return true;
        }
        is_first
    });
}

#[cfg(test)]
mod tests;

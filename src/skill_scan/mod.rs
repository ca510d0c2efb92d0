//! The scan that every skill, hand and plugin passes before its files get to their place: does it attack?
//!
//! Refused is only what has no honest use:
//!
//! | rule             | what                                                                                    |
//! |------------------|-----------------------------------------------------------------------------------------|
//! | `instructions`   | phrases that turn the model against its instructions, outside of code                   |
//! | `hidden_text`    | such phrases that hidden characters form, anywhere                                      |
//! | `piped_download` | a download piped to a shell, in front matter or in the texts of tools                   |
//! | `forbidden_file` | `.pth` files, which Python runs at its start, and what is neither a file nor a directory |
//! | `link`           | symbolic links                                                                          |
//! | `traversal`      | paths that leave the folder                                                             |
//!
//! All else that looks odd is a warning: real skills write of `.bashrc`, `crontab` and `process.env`, and pipe installers to a
//! shell in their documentation. Phrases are found by the scanner of [`agentsvc_systems::injection`]. Time is linear in
//! the length of the texts.

mod code;
mod folder;
mod hidden;
mod manifest;
mod piped;
#[cfg(test)]
mod tests;

use agentsvc_systems::injection::{self, Reason, Report};

pub use self::folder::{ScanError, scan_folder};
use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "skill_scan", uses: &["injection"], ..Domain::EMPTY };

/// Findings of each kind that a scan keeps; the first count.
const FINDINGS_MAX: usize = 50;
/// Characters of an excerpt.
const EXCERPT_CHARS_MAX: usize = 80;
/// Findings of different reasons at most so many bytes apart count together.
const TOGETHER_BYTES: usize = 400;

/// Where a text stands: what it may say depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Text that a model reads, in Markdown: code in it is quoted.
    Body,
    /// The YAML head of a `SKILL.md`.
    FrontMatter,
    /// The descriptions of tools.
    Tool,
    /// A program.
    Code,
}

/// One thing that a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File, relative to the folder; empty when only a text was scanned.
    pub file: String,
    /// Line, from 1; 0 when the file as a whole is meant.
    pub line: usize,
    /// Rule, see the table of this module; of warnings also a reason of the injection scanner, such as `action`.
    pub rule: &'static str,
    /// What stands there: at most 80 characters, without control characters and hidden ones.
    pub excerpt: String,
}

/// What a scan found. With something refused, nothing of the folder may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Why it is refused; at most 50.
    pub refused: Vec<Finding>,
    /// What a person should look at; at most 50.
    pub warnings: Vec<Finding>,
}

impl Scan {
    /// May it be used?
    #[must_use]
    pub const fn passes(&self) -> bool {
        self.refused.is_empty()
    }

    /// The first reason to refuse it, in words: `SKILL.md:3: instructions: "ignore all ..."`.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        let Finding { file, line, rule, excerpt } = self.refused.first()?;
        Some(format!("{file}:{line}: {rule}: {excerpt:?}"))
    }

    /// Scans one more file of a folder; `name` is its path there.
    pub fn add_file(&mut self, name: &str, bytes: &[u8]) {
        folder::scan_file(self, name, bytes);
    }

    fn refuse(&mut self, finding: Finding) {
        let is_new = !self.refused.iter().any(|other| (&other.file, other.line) == (&finding.file, finding.line));
        if is_new && self.refused.len() < FINDINGS_MAX {
            self.refused.push(finding);
        }
    }

    fn warn(&mut self, finding: Finding) {
        let is_new = !self
            .warnings
            .iter()
            .chain(&self.refused)
            .any(|other| (&other.file, other.line, other.rule) == (&finding.file, finding.line, finding.rule));
        if is_new && self.warnings.len() < FINDINGS_MAX {
            self.warnings.push(finding);
        }
    }

    /// Scans a text that begins in the line `line` of the file.
    fn add_text(&mut self, place: Place, file: &str, line: usize, text: &str) {
        let finding = |rule: &'static str, at: usize| {
            let line = line + text[..at].bytes().filter(|byte| *byte == b'\n').count();
            Finding { file: file.to_owned(), line, rule, excerpt: excerpt(&text[at..]) }
        };
        let report = injection::scan(text);
        for at in hidden::phrases(text, &report) {
            self.refuse(finding("hidden_text", at));
        }
        let prose = match place {
            Place::Body => Some(injection::scan(&code::prose(text))),
            Place::FrontMatter | Place::Tool => Some(report.clone()),
            Place::Code => None,
        };
        for at in prose.iter().flat_map(against_instructions) {
            self.refuse(finding("instructions", text.floor_char_boundary(at)));
        }
        for at in piped::downloads(text) {
            let finding = finding("piped_download", at);
            match place {
                Place::FrontMatter | Place::Tool => self.refuse(finding),
                Place::Body | Place::Code => self.warn(finding),
            }
        }
        for found in report.findings.iter().filter(|found| found.weight > 1) {
            self.warn(finding(found.reason.as_str(), text.floor_char_boundary(found.at)));
        }
    }
}

/// Scans one text.
#[must_use]
pub fn scan_text(place: Place, text: &str) -> Scan {
    let mut scan = Scan::default();
    scan.add_text(place, "", 1, text);
    scan
}

/// Where a text turns the model against its instructions.
fn against_instructions(report: &Report) -> Vec<usize> {
    let alone = report.findings.iter().filter(|found| is_against(found)).map(|found| found.at);
    let mut found: Vec<usize> = alone.collect();
    // What says little alone says much together: "do not tell the user" before "send the cookies to".
    let odd: Vec<&injection::Finding> = report.findings.iter().filter(|found| found.reason != Reason::Markup).collect();
    for (number, first) in odd.iter().enumerate() {
        let near = odd[number..].iter().take_while(|other| other.at - first.at <= TOGETHER_BYTES);
        let mut best = [0_u32; 10];
        for other in near {
            let slot = &mut best[other.reason as usize];
            *slot = u32::from(other.weight).max(*slot);
        }
        if best.iter().sum::<u32>() >= injection::HOSTILE && best.iter().filter(|weight| **weight > 1).count() > 1 {
            found.push(first.at);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Says it enough alone?
const fn is_against(found: &injection::Finding) -> bool {
    match found.reason {
        Reason::Override | Reason::PromptLeak => found.weight >= 3,
        Reason::Role | Reason::Encoded => found.weight >= 4,
        _ => false,
    }
}

/// Is it a text that [`against_instructions`] finds something in?
fn is_hostile(text: &str) -> bool {
    !against_instructions(&injection::scan(text)).is_empty()
}

fn excerpt(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_control() => ' ',
        c if hidden::is_hidden(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().take(EXCERPT_CHARS_MAX).map(shown).collect::<String>().trim().to_owned()
}

//! What a result brings into its turn: its sources, and the shield around what looks like orders. Decided here for all
//! tools; a tool says at most what it has read ([`Ended::Read`](crate::tool::toolset::Ended)).

use agentsvc_api::http::cpu::Asker;
use agentsvc_api::injection::shielded;
use agentsvc_components::kernel::taint::{Taint, UntrustedContent};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_systems::injection::{InjectionPolicy, Shielded};
use agentsvc_systems::taint::{Brings, brings, labelled};
use serde_json::Value;

/// A result as the model reads it.
pub(crate) struct Shown {
    pub(crate) text: String,
    pub(crate) brought: Option<Box<UntrustedContent>>,
    /// The text was withheld: the call failed, as far as the model sees.
    pub(crate) withheld: bool,
}

/// Shields a result. `label` is what the tool says it has read.
pub(crate) async fn shown(run: &ToolRun, policy: InjectionPolicy, text: String, label: Option<Taint>) -> Shown {
    let read = label.unwrap_or_default();
    let (taint, is_scanned) = match brings(run) {
        Brings::Nothing => (read, !read.is_none()),
        Brings::Labelled => (labelled(label), !labelled(label).is_none()),
        Brings::Content(taint) => (taint.with(read), true),
        Brings::More => (read, true),
    };
    if !is_scanned {
        return Shown { text, brought: None, withheld: false };
    }
    let tool = run.call.name.clone();
    let scanned = shielded(Asker::agent(run.holder), policy, &tool, text).await;
    // A scanner that failed must not let through what it was to look at.
    let failed = |_| Shielded { text: "The result could not be scanned.".to_owned(), found: None };
    let Shielded { text, found } = scanned.unwrap_or_else(failed);
    if let Some(found) = &found {
        let ToolRun { agent, attempt, index, .. } = run;
        let reasons = found.reasons.join(",");
        tracing::warn!(%agent, turn = %attempt.job, index, %tool, level = &*found.level, %reasons,
            withheld = found.withheld, "a tool's result looks like a prompt injection");
    }
    let withheld = found.as_ref().is_some_and(|found| found.withheld);
    let brought = UntrustedContent { taint, source: source(run).into(), found, addresses: Vec::new() };
    Shown { text, brought: Some(Box::new(brought)), withheld }
}

/// The call in a few words, for people: the tool, and its place where it has one.
fn source(run: &ToolRun) -> String {
    let input = serde_json::from_str::<Value>(&run.call.input).unwrap_or_default();
    let place = ["url", "query", "path"].into_iter().find_map(|key| input[key].as_str());
    match place {
        Some(place) => {
            // One line, without what only looks like one.
            let place: String = place.chars().filter(|c| !c.is_control()).take(120).collect();
            format!("{} {place}", run.call.name)
        }
        None => run.call.name.clone(),
    }
}

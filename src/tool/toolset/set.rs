//! The tools of this daemon, as a value that is replaced as a whole.

use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::kernel::glob;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::validate::{Fault, InputSchema};
use super::{Tool, ToolSpec, grant};

/// The tools that there are at one moment, in the order in which a prompt shows them.
pub(crate) struct Tools(Vec<Arc<Entry>>);

/// One tool, and what is made of it. Sets of tools share it, so that another set costs no copy of what stays.
pub(crate) struct Entry {
    tool: Tool,
    /// The tool as it is offered, written when it first is. Only a schema that is no JSON has none; a test sees to it that
    /// there is no such tool.
    spec: OnceLock<Option<ToolSpec>>,
    /// The schema of its input, read when a client first calls it. Most tools are never called: in a box, they cost a pointer.
    input: OnceLock<Box<Result<InputSchema, String>>>,
}

impl Deref for Entry {
    type Target = Tool;

    fn deref(&self) -> &Tool {
        &self.tool
    }
}

impl Entry {
    /// A tool of which nothing is made yet.
    pub(crate) fn new(tool: Tool) -> Arc<Self> {
        Arc::new(Self { tool, spec: OnceLock::new(), input: OnceLock::new() })
    }

    fn spec(&self) -> Option<&ToolSpec> {
        self.spec.get_or_init(|| self.tool.spec()).as_ref()
    }
}

impl Tools {
    /// These tools, in their order.
    pub(crate) fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self::of(tools.into_iter().map(Entry::new))
    }

    fn of(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.tool.order);
        entries.shrink_to_fit();
        Self(entries)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.iter().map(|entry| &entry.tool)
    }

    /// The tool of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// The tool of this name as it is offered.
    pub(crate) fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.entry(name).and_then(Entry::spec)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.iter().map(|entry| &**entry).find(|entry| entry.tool.name == name)
    }

    /// Holds an input against the schema of the tool of this name. That of another server may take any time for it, and the
    /// server holds inputs against it itself: here they only must be objects.
    pub(crate) fn check(&self, name: &str, input: &Value) -> Result<(), Fault> {
        let whole = |message: &str| Fault { field: String::new(), message: message.to_owned() };
        let Entry { tool, input: schema, .. } = self.entry(name).ok_or_else(|| whole("matches no tool"))?;
        if tool.server.is_some() {
            return if input.is_object() { Ok(()) } else { Err(whole("must be an object")) };
        }
        let schema: &Result<_, _> = schema.get_or_init(|| Box::new(InputSchema::compile(&tool.schema())));
        schema.as_ref().map_err(|why| whole(why))?.check(input)
    }

    /// Every tool as it is offered to an agent that may call all.
    #[cfg(test)]
    pub(crate) fn offered_to_all(&self) -> Vec<ToolSpec> {
        self.0.iter().filter_map(|entry| entry.spec()).cloned().collect()
    }

    /// Every tool that an agent of this manifest may call. All parts are shared, so that a copy is cheap.
    pub(crate) fn granted(&self, manifest: &Manifest) -> Vec<ToolSpec> {
        // Most agents without tools say so by an empty list; only those of skills to look up then.
        let has_none = manifest.capabilities.tools.is_empty();
        let candidates = self.0.iter().filter(|entry| !has_none || entry.tool.skills.is_some());
        let mut names = HashSet::new();
        let granted = candidates.filter(|entry| grant::allows(manifest, &entry.tool));
        // Of two with one name the first is meant, as when it is called.
        let first = granted.filter(|entry| names.insert(&*entry.tool.name));
        first.filter_map(|entry| entry.spec()).cloned().collect()
    }

    /// Does `pattern`, a name or glob, match a tool?
    pub(crate) fn is_called(&self, pattern: &str) -> bool {
        self.iter().any(|tool| glob::matches(pattern, &tool.name))
    }
}

/// The tools of a daemon. Readers see one set of them or the next, never a mixture.
#[derive(Clone)]
pub struct ToolSet(Arc<Shared>);

struct Shared {
    tools: ArcSwap<Tools>,
    /// What each source has brought.
    brought: Mutex<BTreeMap<&'static str, Vec<Arc<Entry>>>>,
    /// How names begin of tools that sources are about to bring.
    expected: watch::Sender<BTreeMap<&'static str, Vec<String>>>,
}

impl ToolSet {
    /// The tools that come with the daemon.
    pub fn built_in() -> Self {
        let tools = ArcSwap::from_pointee(Tools::of(built_in().0.iter().cloned()));
        Self(Arc::new(Shared { tools, brought: Mutex::default(), expected: watch::Sender::default() }))
    }

    /// The tools that come with the daemon, and behind them what sources have brought, by the names of the sources. `brought` stands
    /// in place of what this source brought before. Calls that run keep theirs.
    pub(crate) fn bring(&self, source: &'static str, brought: impl IntoIterator<Item = Arc<Entry>>) {
        let mut all = self.0.brought.lock();
        all.insert(source, brought.into_iter().collect());
        let entries = built_in().0.iter().chain(all.values().flatten()).cloned();
        self.0.tools.store(Arc::new(Tools::of(entries)));
    }

    /// The tools as they are now.
    pub(crate) fn get(&self) -> Arc<Tools> {
        self.0.tools.load_full()
    }

    /// Says how the names begin of tools that a source is about to bring, in place of what it said before.
    pub(crate) fn expect(&self, source: &'static str, prefixes: Vec<String>) {
        self.0.expected.send_modify(|expected| drop(expected.insert(source, prefixes)));
    }

    /// The tools once the one of this name is there, or is not expected any more, or the time is over.
    pub(crate) async fn with(&self, name: &str, time_max: Duration) -> Arc<Tools> {
        let mut expected = self.0.expected.subscribe();
        let is_settled = |expected: &BTreeMap<&str, Vec<String>>| {
            let is_expected = expected.values().flatten().any(|prefix| name.starts_with(prefix));
            self.get().find(name).is_some() || !is_expected
        };
        let _in_time = tokio::time::timeout(time_max, expected.wait_for(is_settled)).await;
        self.get()
    }
}

static BUILT_IN: OnceLock<Tools> = OnceLock::new();
/// Those before [`install`].
static NONE: Tools = Tools(Vec::new());

/// Says which tools come with the daemon. The first call counts.
pub(crate) fn install(tools: impl IntoIterator<Item = Tool>) {
    BUILT_IN.get_or_init(|| Tools::new(tools));
}

/// The tools that come with the daemon.
pub(crate) fn built_in() -> &'static Tools {
    #[cfg(test)]
    tests::install();
    BUILT_IN.get().unwrap_or(&NONE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::super::{Ended, Running};
    use super::*;

    /// Tests begin without a start.
    pub(super) fn install() {
        crate::install();
    }

    fn raw(schema: &Value) -> Arc<RawValue> {
        Arc::from(serde_json::value::to_raw_value(schema).expect("a value is JSON"))
    }

    #[test]
    fn every_tool_is_well_described() {
        let mut names = Vec::new();
        for tool in built_in().iter() {
            let (name, schema) = (&*tool.name, tool.schema());
            assert_eq!(schema["type"], "object", "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
            assert!(name.len() <= 64 && tool.description.len() > 20);
            assert!(tool.order < u8::MAX, "{name}");
            names.push(name);
        }
        assert_eq!(names.len(), 60);
        assert_eq!(built_in().offered_to_all().len(), names.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 60);
    }

    #[test]
    fn tools_that_something_brings_stand_behind_the_others_until_they_go() {
        let set = ToolSet::built_in();
        let (before, schema) = (set.get(), raw(&json!({ "type": "object" })));
        let tool = Tool::brought("mcp_look".to_owned(), "Looks at something.".to_owned(), schema, |_, input| {
            Box::pin(async move { Ok(Ended::Text(input)) })
        });
        set.bring("mcp", [Entry::new(tool)]);
        let after = set.get();
        assert_eq!(after.iter().last().map(|tool| &*tool.name), Some("mcp_look"));
        assert!(after.is_called("mcp_*") && after.find("system_time").is_some());
        assert!(before.find("mcp_look").is_none(), "who had the tools before keeps them");
        set.bring("mcp", []);
        assert!(set.get().find("mcp_look").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_is_expected_is_waited_for() {
        let (set, minute) = (ToolSet::built_in(), Duration::from_secs(60));
        let began = tokio::time::Instant::now();
        assert!(set.with("mcp_s_look", minute).await.find("mcp_s_look").is_none(), "nothing brings it");
        set.expect("mcp", vec!["mcp_".to_owned()]);
        assert!(set.with("system_time", minute).await.find("system_time").is_some());
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(set.with("mcp_s_look", minute).await.find("mcp_s_look").is_none());
        assert_eq!(began.elapsed(), minute, "it did not come in time");
        let look = Tool::brought(
            "mcp_s_look".to_owned(),
            "Looks.".to_owned(),
            raw(&json!({ "type": "object" })),
            |_, input| Box::pin(async move { Ok(Ended::Text(input)) }),
        );
        let (bringing, waited) = (set.clone(), set.with("mcp_s_look", minute));
        let bring = async move {
            bringing.expect("mcp", vec!["mcp_t_".to_owned(), "mcp_s_".to_owned()]);
            bringing.bring("mcp", [Entry::new(look)]);
            bringing.expect("mcp", vec!["mcp_t_".to_owned()]);
        };
        assert!(tokio::join!(waited, bring).0.find("mcp_s_look").is_some());
        assert_eq!(began.elapsed(), minute);
    }

    #[test]
    fn sources_bring_beside_each_other() {
        let (set, schema) = (ToolSet::built_in(), raw(&json!({ "type": "object" })));
        let tool = |name: &str| {
            let run = |_, input| -> Running { Box::pin(async move { Ok(Ended::Text(input)) }) };
            Entry::new(Tool::brought(name.to_owned(), "Looks.".to_owned(), Arc::clone(&schema), run))
        };
        set.bring("mcp", [tool("a")]);
        set.bring("skill", [tool("b"), tool("system_time")]);
        set.bring("mcp", [tool("c")]);
        let all: Vec<String> = set.get().iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(all[all.len() - 3..], ["c", "b", "system_time"]);
        let mut manifest = Manifest::default();
        manifest.capabilities.tools = vec!["*".into()];
        let granted = set.get().granted(&manifest);
        assert_eq!(granted.iter().filter(|tool| tool.name == "system_time").count(), 1);
    }

    #[test]
    fn the_schema_of_a_server_takes_no_time() {
        let mut defs = serde_json::Map::new();
        for level in 0..60 {
            let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
            defs.insert(format!("a{level}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("a60".to_owned(), json!({ "required": ["x"] }));
        let schema = raw(&json!({ "type": "object", "$ref": "#/$defs/a0", "$defs": defs }));
        let tool = Tool::brought("mcp_look".to_owned(), "Looks.".to_owned(), schema, |_, input| {
            Box::pin(async move { Ok(Ended::Text(input)) })
        });
        let tools = Tools::new([tool.of_server("look")]);
        assert_eq!(tools.check("mcp_look", &json!({})), Ok(()));
        assert_eq!(tools.check("mcp_look", &json!([])).unwrap_err().message, "must be an object");
    }
}

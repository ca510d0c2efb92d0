//! One skill, as it was read from its folder.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use super::files::Stamp;
use super::review::Suspicions;

agentsvc_components::enum_words! {
    /// What runs a skill.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub enum Runtime [as_str] {
        /// Nothing: it is a text for the model, perhaps with a template.
        #[default]
        PromptOnly = "PromptOnly",
        /// A Python program.
        Python = "Python",
        /// A Node.js program.
        Node = "Node",
        /// A shell script.
        Shell = "Shell",
        /// A WebAssembly module.
        Wasm = "Wasm",
        /// A tool of the daemon.
        Builtin = "Builtin",
    }
}

impl Runtime {
    /// Reads a manifest's `runtime`, in the spellings that are in use.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        Some(match &*plain {
            "promptonly" | "prompt" | "" => Self::PromptOnly,
            "python" | "python3" | "py" => Self::Python,
            "node" | "nodejs" | "javascript" | "js" => Self::Node,
            "shell" | "bash" | "sh" => Self::Shell,
            "wasm" => Self::Wasm,
            "builtin" => Self::Builtin,
            _ => return None,
        })
    }
}

/// A tool that a skill declares.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillTool {
    /// Its name, as declared.
    pub name: Box<str>,
    /// What it does, for the model.
    pub description: Box<str>,
    /// The JSON schema of its input, an object. It names no other schema.
    pub input_schema: Value,
}

/// What a skill says that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Tools of the agent, by our names.
    pub tools: Vec<Box<str>>,
    /// Capabilities, such as `NetConnect(api.example.com)`.
    pub capabilities: Vec<Box<str>>,
    /// Seconds that a call may take; `None` is the default.
    pub timeout_secs: Option<u64>,
    /// Programs, all of them.
    pub bins: Vec<Box<str>>,
    /// Programs, one of them.
    pub any_bins: Vec<Box<str>>,
    /// Environment variables of the daemon.
    pub env: Vec<Box<str>>,
    /// Keys of `[skills.config]`.
    pub config: Vec<Box<str>>,
    /// Operating systems, as [`std::env::consts::OS`] writes them; empty: all.
    pub os: Vec<Box<str>>,
    /// Needs are not checked.
    pub always: bool,
}

/// A setting of a skill; its value is `[skills.config] <key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigVar {
    /// Key.
    pub key: Box<str>,
    /// Description.
    pub description: Box<str>,
    /// Value where the configuration has none.
    pub default: Option<Box<str>>,
}

/// Where a skill came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// `local`, `native`, `open_claw`, `claw_hub`, `claw_hub_cn` or `skillhub`.
    pub kind: Box<str>,
    /// Its name there.
    pub slug: Option<Box<str>>,
    /// Its version there.
    pub version: Option<Box<str>>,
}

impl Default for Source {
    fn default() -> Self {
        Self { kind: "local".into(), slug: None, version: None }
    }
}

/// Who may invoke a skill, and how (keys of OpenClaw).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// `/name` in a chat invokes it.
    pub by_user: bool,
    /// The model sees it in the list of skills.
    pub by_model: bool,
    /// `/name` calls this tool instead of the model.
    pub tool: Option<Box<str>>,
}

impl Default for Invocation {
    fn default() -> Self {
        Self { by_user: true, by_model: true, tool: None }
    }
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the folder, with `/`.
    pub path: Box<str>,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of its bytes when the skill was read.
    pub sha256: [u8; 32],
}

/// A skill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skill {
    /// Its name: not empty, at most 200 bytes, one line, no `/`.
    pub name: Box<str>,
    /// Its version; `0.1.0` where it names none.
    pub version: Box<str>,
    /// What it is for; may be empty for one with a `skill.toml`.
    pub description: Box<str>,
    /// Author; may be empty.
    pub author: Box<str>,
    /// License; may be empty.
    pub license: Box<str>,
    /// What it needs of the product that uses it, in words; may be empty.
    pub compatibility: Box<str>,
    /// Home page; may be empty.
    pub homepage: Box<str>,
    /// Tags.
    pub tags: Vec<Box<str>>,
    /// What runs it.
    pub runtime: Runtime,
    /// The program, relative to the folder; `None` for skills without code.
    pub entry: Option<Box<str>>,
    /// Its folder.
    pub folder: PathBuf,
    /// The text for the model, with `{baseDir}` as it is written; may be empty.
    pub prompt_context: Box<str>,
    /// The template whose text is the result of the skill's tool.
    pub template: Option<Box<str>>,
    /// Tools.
    pub tools: Vec<SkillTool>,
    /// Tools that the text allows itself (`allowed-tools`), by our names.
    pub allowed_tools: Vec<Box<str>>,
    /// Needs.
    pub requirements: Requirements,
    /// Environment variables of the daemon that it asks for.
    pub env_passthrough: Vec<Box<str>>,
    /// `[config]`: sent to its tools.
    pub config: Map<String, Value>,
    /// Settings.
    pub config_vars: Vec<ConfigVar>,
    /// Who may invoke it.
    pub invocation: Invocation,
    /// `metadata` of the front matter and of OpenClaw, for what is not read here, such as `install`.
    pub metadata: Map<String, Value>,
    /// Where it came from.
    pub source: Source,
    /// Its files by path; those whose path has a name that begins with a dot are not among them.
    pub files: Vec<SkillFile>,
    /// SHA-256 of the lines `<path>:<SHA-256 of the file>` by path, in hex; of hidden files, too.
    pub content_hash: Box<str>,
    /// What the files looked like when they were read.
    pub(super) stamp: Option<Stamp>,
    /// What looks like a prompt injection in what it says of itself.
    pub(super) suspicions: Suspicions,
    /// What is odd about it, in sentences.
    pub warnings: Vec<String>,
    /// What it needs and this machine does not have, in sentences. Filled by the library.
    pub unmet: Vec<String>,
}

/// Tags that name a platform and no category.
const PLATFORM_TAGS: &[&str] =
    &["linux", "macos", "darwin", "windows", "win32", "linux-only", "macos-only", "windows-only"];

impl Skill {
    /// Its category: the first tag that names no platform.
    pub fn category(&self) -> &str {
        let is_platform = |tag: &str| PLATFORM_TAGS.iter().any(|platform| platform.eq_ignore_ascii_case(tag));
        self.tags.iter().map(|tag| &**tag).find(|tag| !is_platform(tag)).unwrap_or("general")
    }

    /// Does it run code of its own?
    pub const fn has_code(&self) -> bool {
        matches!(self.runtime, Runtime::Python | Runtime::Node | Runtime::Shell | Runtime::Wasm)
    }

    /// Seconds that a call of one of its tools may take.
    pub fn timeout_secs(&self) -> u64 {
        use agentsvc_systems::skill::limits::{SKILL_TIMEOUT_SECS_DEFAULT, SKILL_TIMEOUT_SECS_MAX};
        self.requirements.timeout_secs.unwrap_or(SKILL_TIMEOUT_SECS_DEFAULT).clamp(1, SKILL_TIMEOUT_SECS_MAX)
    }

    /// The text for the model, `{baseDir}` replaced by the folder.
    pub fn text(&self) -> String {
        self.prompt_context.replace("{baseDir}", &self.folder.to_string_lossy())
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let words = |list: &[Box<str>]| list.iter().map(|word| word.len() + 16).sum::<usize>();
        let tools = self.tools.iter().map(|tool| tool.description.len() + tool.input_schema.to_string().len() + 64);
        let files = self.files.iter().map(|file| file.path.len() + size_of::<SkillFile>());
        let rest = [&self.description, &self.compatibility, &self.prompt_context].map(|text| text.len());
        size_of::<Self>()
            + rest.iter().sum::<usize>()
            + words(&self.tags)
            + tools.sum::<usize>()
            + files.sum::<usize>()
            + self.template.as_ref().map_or(0, |template| template.len())
            + Value::Object(self.metadata.clone()).to_string().len()
    }
}

/// The name of ours that a tool of other products has (`Read`, `Bash(git:*)`); itself where it has none.
pub(crate) fn our_tool(name: &str) -> Box<str> {
    let name = name.split('(').next().unwrap_or_default().trim();
    let ours = match name {
        "Read" | "NotebookRead" => "file_read",
        "Write" => "file_write",
        "Edit" | "MultiEdit" | "NotebookEdit" => "apply_patch",
        "LS" | "Glob" => "file_list",
        "Bash" | "exec" => "shell_exec",
        "WebFetch" => "web_fetch",
        "WebSearch" => "web_search",
        "Task" | "Agent" => "agent_spawn",
        other => other,
    };
    ours.into()
}

#[cfg(test)]
mod tests {
    use super::{Runtime, Skill, our_tool};

    #[test]
    fn runtimes_in_all_their_spellings() {
        for (text, runtime) in [
            ("promptonly", Runtime::PromptOnly),
            ("prompt_only", Runtime::PromptOnly),
            ("prompt-only", Runtime::PromptOnly),
            ("PromptOnly", Runtime::PromptOnly),
            ("python", Runtime::Python),
            ("Node", Runtime::Node),
            ("shell", Runtime::Shell),
            ("wasm", Runtime::Wasm),
            ("builtin", Runtime::Builtin),
        ] {
            assert_eq!(Runtime::parse(text), Some(runtime), "{text}");
        }
        assert_eq!(Runtime::parse("cobol"), None);
    }

    #[test]
    fn a_platform_is_no_category() {
        let of = |tags: &[&str]| Skill { tags: tags.iter().map(|tag| (*tag).into()).collect(), ..Skill::default() };
        assert_eq!(of(&["linux", "Linux-Only", "ops", "x"]).category(), "ops");
        assert_eq!(of(&["linux"]).category(), "general");
    }

    #[test]
    fn tools_of_other_products_have_our_names() {
        let ours: Vec<_> = ["Bash(git:*)", "Read", "WebFetch", "mcp_x"].iter().map(|name| our_tool(name)).collect();
        assert_eq!(ours, ["shell_exec".into(), "file_read".into(), "web_fetch".into(), Box::<str>::from("mcp_x")]);
    }

    #[test]
    fn the_time_of_a_call_has_bounds() {
        let mut skill = Skill::default();
        assert_eq!(skill.timeout_secs(), 120);
        skill.requirements.timeout_secs = Some(9_000);
        assert_eq!(skill.timeout_secs(), 600);
    }
}

//! Limits of skills.

agentsvc_components::limits! {
    pub const ALL;
    /// Skills that are loaded. More: those behind them by folder name are listed as failed.
    pub const SKILLS_MAX: usize = 5_000;
    /// Bytes of memory that the texts of all loaded skills may take. More: further skills are listed as failed.
    pub const SKILLS_TEXT_BYTES_MAX: usize = 128 << 20;
    /// Files and directories of one skill. More: the skill is not loaded.
    pub const SKILL_FILES_MAX: usize = 10_000;
    /// Directories of a skill that lie in one another. More: the skill is not loaded.
    pub const SKILL_DEPTH_MAX: usize = 16;
    /// Bytes of all files of one skill. More: the skill is not loaded.
    pub const SKILL_BYTES_MAX: u64 = 64 << 20;
    /// Bytes of `SKILL.md`, `skill.toml`, `prompt_context.md` or `package.json`. More: the skill is not loaded.
    pub const SKILL_TEXT_BYTES_MAX: u64 = 256 << 10;
    /// Bytes of a skill's name. More: its folder's name is used.
    pub const SKILL_NAME_BYTES_MAX: usize = 200;
    /// Tools of one skill. More: the first ones are offered.
    pub const SKILL_TOOLS_MAX: usize = 64;
    /// Bytes of the input schema of a skill's tool. More: the tool is left out.
    pub const SKILL_SCHEMA_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a supporting file that one request or tool call shows. More: the text is truncated.
    pub const SKILL_FILE_SHOWN_BYTES_MAX: u64 = 256 << 10;
    /// Bytes of the list of skills in a prompt. More: descriptions are left out, then names.
    pub const SKILL_CATALOG_BYTES_MAX: usize = 24 << 10;
    /// Characters of a skill's description in a prompt. More: truncated.
    pub const SKILL_DESCRIPTION_SHOWN_CHARS_MAX: usize = 1_024;
    /// Bytes of the input and of each output of a code skill's call. More: the call fails.
    pub const SKILL_STREAM_BYTES_MAX: usize = 1 << 20;
    /// Seconds that a call of a code skill may take when the skill does not say.
    pub const SKILL_TIMEOUT_SECS_DEFAULT: u64 = 120;
    /// Seconds that a skill may ask for. More: cut to this.
    pub const SKILL_TIMEOUT_SECS_MAX: u64 = 600;
}

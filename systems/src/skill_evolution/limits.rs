//! Limits of changes of skills.

agentsvc_components::limits! {
    pub const ALL;
    /// Versions of a skill that are kept with their files; the oldest go.
    pub const SKILL_VERSIONS_KEPT_MAX: usize = 10;
    /// Bytes of all files of a skill that can be changed over the API or by agents. More: 422.
    pub const SKILL_CHANGED_BYTES_MAX: usize = 4 << 20;
    /// Files of a skill that can be changed over the API or by agents. More: 422.
    pub const SKILL_CHANGED_FILES_MAX: usize = 500;
    /// Bytes of the text of a skill that is written. Longer: 400.
    pub const SKILL_PROMPT_BYTES_MAX: usize = 160_000;
    /// Bytes of a supporting file of a skill that is written. Longer: 400.
    pub const SKILL_SUPPORT_FILE_BYTES_MAX: usize = 1 << 20;
    /// Bytes of the description of a skill that is created. Longer: 400.
    pub const SKILL_DESCRIPTION_BYTES_MAX: usize = 1_024;
    /// Tags of a skill that is created. More: 400.
    pub const SKILL_TAGS_MAX: usize = 20;
    /// Bytes of a tag of a skill that is created. Longer: 400.
    pub const SKILL_TAG_BYTES_MAX: usize = 64;
    /// Bytes of the description of a change of a skill. Longer: 400.
    pub const SKILL_CHANGELOG_BYTES_MAX: usize = 1_024;
    /// Changes of skills by agents that wait for a decision. More: the call of the tool is refused.
    pub const SKILL_PENDING_MAX: usize = 100;
    /// Changes of skills by one agent that wait for a decision. More: the call of the tool is refused.
    pub const SKILL_PENDING_OF_AGENT_MAX: usize = 20;
    /// Changes of skills by the agents of one family that wait for a decision. More: the call of the tool is refused.
    pub const SKILL_PENDING_OF_FAMILY_MAX: usize = SKILL_PENDING_MAX / 4;
    /// Bytes of all changes of skills that wait for a decision. More: the call of the tool is refused.
    pub const SKILL_PENDING_BYTES_MAX: u64 = 16 << 20;
    /// Bytes of those by the agents of one family. More: likewise.
    pub const SKILL_PENDING_OF_FAMILY_BYTES_MAX: u64 = SKILL_PENDING_BYTES_MAX / 4;
}

//! Limits of hands.

agentsvc_components::limits! {
    pub const ALL;
    /// Definitions of hands that are read. More: 429 for an install; on disk, those last by name are left out with a warning.
    pub const HANDS_MAX: usize = 2_000;
    /// Bytes of a HAND.toml. Longer: 400; on disk, the hand is left out with a warning.
    pub const HAND_TOML_BYTES_MAX: usize = 256 << 10;
    /// Bytes of a SKILL.md of a hand. Longer: 400; on disk, the file is left out with a warning.
    pub const HAND_SKILL_BYTES_MAX: usize = 128 << 10;
    /// Bytes of a hand's id.
    pub const HAND_ID_BYTES_MAX: usize = 64;
    /// Bytes of a key, a role or the name of a variable.
    pub const HAND_KEY_BYTES_MAX: usize = 128;
    /// Agents of a hand. More: 400.
    pub const HAND_AGENTS_MAX: usize = 32;
    /// Settings, requirements, metrics, tools and languages of a hand, each. More: 400.
    pub const HAND_ITEMS_MAX: usize = 200;
    /// Bytes of the value of a setting. Longer: 400.
    pub const HAND_VALUE_BYTES_MAX: usize = 8 << 10;
    /// Instances of hands. More: 429.
    pub const HAND_INSTANCES_MAX: usize = 1_000;
    /// Bytes of the texts of all instances. More: 429.
    pub const HAND_INSTANCES_BYTES_MAX: usize = 32 << 20;
}

//! Limits of agents' knowledge.

agentsvc_components::limits! {
    pub const ALL;
    /// Entities of one agent. Full: 409.
    pub const KNOWLEDGE_ENTITIES_MAX: u32 = 10_000;
    /// Relations of one agent. Full: 409.
    pub const KNOWLEDGE_RELATIONS_MAX: u32 = 50_000;
    /// Bytes of the texts of one agent's entities and relations; those that a relation joins count twice. Full: 409.
    pub const KNOWLEDGE_BYTES_MAX: u64 = 16 << 20;
    /// Bytes of the name of an entity. Longer: 400.
    pub const ENTITY_NAME_BYTES_MAX: usize = 256;
    /// Bytes of the type of an entity or relation. Longer: 400.
    pub const KNOWLEDGE_TYPE_BYTES_MAX: usize = 64;
    /// Bytes of the properties of an entity or relation, as compact JSON. Longer: 400.
    pub const KNOWLEDGE_PROPERTIES_BYTES_MAX: usize = 4 << 10;
    /// Relations that one request stores. More: 400.
    pub const KNOWLEDGE_TRIPLES_MAX: usize = 1_000;
    /// Entities and relations of one change, each. More: 400.
    pub const KNOWLEDGE_CHANGE_ROWS_MAX: usize = 4 * KNOWLEDGE_TRIPLES_MAX;
    /// How many relations a query follows from its source or target. More: 400.
    pub const KNOWLEDGE_DEPTH_MAX: u8 = 10;
    /// Entities that one query visits. More: cut.
    pub const KNOWLEDGE_NODES_MAX: usize = 10_000;
    /// Relations that one query looks at, on the way from its source and to its target each. More: cut.
    pub const KNOWLEDGE_EDGES_MAX: usize = 20_000;
    /// Bytes of the texts of one query's answer. More: cut.
    pub const KNOWLEDGE_ANSWER_BYTES_MAX: usize = 4 << 20;
}

//! Error codes of agent types.

agentsvc_components::error_codes! {
    /// No agent type, and for `GET` no live agent, has this name.
    TEMPLATE_NOT_FOUND = "template_not_found", [404], "Choose a name from `GET /api/templates`.";
    /// An agent type with this name exists.
    TEMPLATE_EXISTS = "template_exists", [409], "Choose another name or change the agent type.";
    /// A live agent has this name.
    TEMPLATE_NAME_TAKEN = "template_name_taken", [409], "Choose another name.";
    /// The name belongs to a live agent, which is not an agent type.
    TEMPLATE_NOT_EDITABLE = "template_not_editable", [409], "Change the agent itself.";
    /// The stored text is not a valid manifest.
    TEMPLATE_BROKEN = "template_broken", [409], "Delete the agent type, or correct its file.";
    /// The limit of 1,000 agent types is reached.
    TEMPLATES_FULL = "templates_full", [409], "Delete agent types.";
}

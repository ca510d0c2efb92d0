//! Error codes of skills.

agentsvc_components::error_codes! {
    /// No skill has this name.
    SKILL_NOT_FOUND = "skill_not_found", [404], "Choose a name from `GET /api/skills`; reload if its files are new.";
    /// The skill has no such file.
    SKILL_FILE_NOT_FOUND = "skill_file_not_found", [404], "Choose a path from `linked_files` of `GET /api/skills/{name}`.";
}

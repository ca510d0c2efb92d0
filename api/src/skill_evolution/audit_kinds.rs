//! Kinds of audit log entries: changes of skills.

agentsvc_components::audit_kinds! {
    /// A skill is created, changed, rolled back or deleted.
    SKILL_CHANGED = "skill_changed";
    /// An agent proposed a change of a skill.
    SKILL_CHANGE_PROPOSED = "skill_change_proposed";
    /// A proposed change is approved.
    SKILL_CHANGE_APPROVED = "skill_change_approved";
    /// A proposed change is rejected.
    SKILL_CHANGE_REJECTED = "skill_change_rejected";
}

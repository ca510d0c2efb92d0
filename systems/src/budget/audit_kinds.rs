//! Kinds of audit log entries: budget.

agentsvc_components::audit_kinds! {
    /// Limits of a budget were set.
    BUDGET_SET = "budget_set";
    /// What is booked for a budget was corrected.
    BUDGET_CORRECTED = "budget_corrected";
}

//! Error codes of budgets.

agentsvc_components::error_codes! {
    /// A budget is used up. `scope`, `period` and `reset_at` say which one and until when.
    BUDGET_EXCEEDED = "budget_exceeded", [429], "Wait until `reset_at` or raise the limit.";
}

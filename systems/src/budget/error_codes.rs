//! Error codes of budgets.

agentsvc_components::error_codes! {
    /// A budget is used up. `scope`, `period` and `reset_at` say which one and until when.
    BUDGET_EXCEEDED = "budget_exceeded", [429], "Wait until `reset_at` or raise the limit.";
    /// A money limit is in force, and the price of a model that the call may ask is not known.
    PRICE_UNKNOWN = "price_unknown", [409], "Set the model's price in `[prices]`, 0 for a free model, or set `[budget] unknown_price_per_m`.";
}

//! Error codes of queries.

agentsvc_components::error_codes! {
    /// The query is not valid. `column` is the position of the error.
    BAD_QUERY = "bad_query", [400], "Correct the query at `column`.";
}

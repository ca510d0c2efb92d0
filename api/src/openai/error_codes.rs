//! Error codes of the OpenAI-compatible API.

agentsvc_components::error_codes! {
    /// No agent has this model name.
    MODEL_NOT_FOUND = "model_not_found", [404], "Choose a model from `GET /v1/models`.";
    /// The API key is missing or wrong.
    INVALID_API_KEY = "invalid_api_key", [401], "Send the daemon's `api_key` as bearer token.";
}

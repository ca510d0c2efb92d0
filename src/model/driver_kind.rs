//! The drivers by name.

/// Which driver speaks with a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverKind {
    /// The built-in offline model.
    #[default]
    Builtin,
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
    /// Ollama's own chat.
    Ollama,
    /// The Converse API of AWS Bedrock.
    Bedrock,
    /// OpenAI's chat completions on Azure.
    Azure,
}

agentsvc_components::enum_words! { pub DriverKind [ALL, as_str, parse] {
    Builtin = "builtin", OpenAi = "openai", OpenAiResponses = "openai-responses", Anthropic = "anthropic",
    Gemini = "gemini", Ollama = "ollama", Bedrock = "bedrock", Azure = "azure",
} }

impl DriverKind {
    /// The words of those that speak with somebody: what a provider of the configuration may name.
    pub const SPOKEN: &'static [(&'static str, Self)] = &[
        (Self::OpenAi.as_str(), Self::OpenAi),
        (Self::OpenAiResponses.as_str(), Self::OpenAiResponses),
        (Self::Anthropic.as_str(), Self::Anthropic),
        (Self::Gemini.as_str(), Self::Gemini),
        (Self::Ollama.as_str(), Self::Ollama),
        (Self::Bedrock.as_str(), Self::Bedrock),
        (Self::Azure.as_str(), Self::Azure),
    ];
}

impl serde::Serialize for DriverKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

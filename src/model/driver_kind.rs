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

impl DriverKind {
    /// Every driver.
    pub const ALL: [Self; 8] = [
        Self::Builtin,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Bedrock,
        Self::Azure,
    ];

    /// Its word in the catalog and the configuration, and on what came over its wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Bedrock => "bedrock",
            Self::Azure => "azure",
        }
    }

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

    /// The driver of a word; `None` for any other.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl serde::Serialize for DriverKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

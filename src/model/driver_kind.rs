//! The drivers by name.

agentsvc_components::enum_words! {
    /// Which driver speaks with a provider.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum DriverKind [ALL, as_str, parse] {
        /// The built-in offline model.
        #[default]
        Builtin = "builtin",
        /// OpenAI-compatible chat completions.
        OpenAi = "openai",
        /// OpenAI's Responses.
        OpenAiResponses = "openai-responses",
        /// Anthropic's Messages.
        Anthropic = "anthropic",
        /// Gemini's generateContent.
        Gemini = "gemini",
        /// Ollama's own chat.
        Ollama = "ollama",
        /// The Converse API of AWS Bedrock.
        Bedrock = "bedrock",
        /// OpenAI's chat completions on Azure.
        Azure = "azure",
    }
}

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

//! The table of phrases: English here, other languages in [`languages`]. Each is a row of slots; a slot lists ways to
//! fill it, apart by `|`; `*` ends the beginning of a word. Between two slots may stand `gap` other words. Slots are
//! folded like the text, so that they are written as usual.

pub(super) mod languages;

use super::Reason::{self, Action, Address, Exfiltration, Override, PromptLeak, Role, Secrecy};

/// One phrase.
pub(super) struct Phrase {
    pub(super) reason: Reason,
    pub(super) weight: u8,
    pub(super) gap: usize,
    pub(super) slots: &'static [&'static str],
}

const fn row(reason: Reason, weight: u8, gap: usize, slots: &'static [&'static str]) -> Phrase {
    Phrase { reason, weight, gap, slots }
}

const DROP: &str = "ignore|ignoring|disregard|disregarding|forget|override|overriding|bypass|neglect|discard|\
    pay no attention to|do not follow|don't follow|stop following|do not obey|disobey|set aside|abandon|overrule";
const TOLD: &str = "instruction*|prompt|prompts|guideline*|directive*|direction|directions|command|commands|order|\
    orders|rule|rules|programming|constraints|guardrails|restrictions|policies|task|context";
const YOURS: &str = "system prompt|safety guidelines|safety rules|safety instructions|safety policies|safety filters|\
    ethical guidelines|ethics|content policy|content policies|your instructions|your programming|your training|\
    your guidelines|your rules|your constraints|your restrictions|your guardrails|guardrails|your safety|\
    your system prompt|your developer|developer instructions|operator instructions|system instructions|\
    system message";
const PLACE: &str = "http|https|webhook|attacker*|evil*|ngrok|pastebin|requestbin|gmail|protonmail|ftp|url|email|\
    server|endpoint|domain";
const SENDS: &str = "send|sends|sending|post|upload|transmit|forward|email|mail|submit|append|include|encode|deliver|\
    put|copy|share|attach|exfiltrate|leak|report|curl|embed";
const PRIVATE: &str = "system prompt|conversation|chat history|message history|environment variable*|env|env file|\
    ssh key*|private key*|id rsa|secret|secrets|cookies|contents of|user data|user's data|user's messages|memory|\
    memories|all files|etc passwd|credentials file|session token|everything you know|personal data|what you know";
const KEYS: &str = "api key*|apikey*|password*|credential*|token*|access key*|secret*|passphrase*|login*|keys";

/// English.
pub(super) const PHRASES: &[Phrase] = &[
    // English: orders to ignore what was said before.
    row(
        Override,
        4,
        3,
        &[DROP, "previous|previously|prior|above|earlier|preceding|former|foregoing|initial|original", TOLD],
    ),
    row(Override, 4, 3, &[DROP, YOURS]),
    row(Override, 4, 2, &[DROP, "all|every|your|those", "instruction*|prompts|guidelines|directives|orders you*"]),
    row(
        Override,
        4,
        3,
        &[
            "ignore|disregard|forget",
            "everything|all|anything|whatever",
            "above|before this|you were told|you have been told|you've been told|you know|i said|came before|\
             they told you|was said before|you were instructed|previously",
        ],
    ),
    row(
        Override,
        4,
        2,
        &[
            "previous|prior|earlier|above|original|initial",
            "instruction*|prompt|prompts|guideline*|directive*|directions|programming|constraints",
            "are|is|have been|were",
            "void|cancelled|canceled|revoked|obsolete|invalid|outdated|superseded|no longer valid|null|overridden",
        ],
    ),
    row(
        Override,
        3,
        2,
        &[
            "your|the",
            "new|real|actual|true|only|updated|primary",
            "instruction*|task|objective|goal|mission|directive*|job",
            "is|are",
        ],
    ),
    row(
        Override,
        3,
        1,
        &[
            "new|updated|revised",
            "instructions|directive*|system prompt|orders",
            "for you|from the developer*|from openai|from anthropic|from your developer*|from the system|\
             from the administrator|from the operator|follow|override*",
        ],
    ),
    row(
        Override,
        3,
        2,
        &[
            "from now on|from this point on|from this moment|henceforth|starting now",
            "you|your",
            "will|must|are|shall|only|should|answer*|respond*|obey|ignore|follow",
        ],
    ),
    row(
        Override,
        3,
        2,
        &[
            "end of|end",
            "document|page|user input|context|data|untrusted content|system prompt|instructions|file|article",
            "begin|new|start",
            "instruction*|task|system|prompt|orders",
        ],
    ),
    row(
        Override,
        3,
        2,
        &[
            "instruction*|prompts|guidelines|directives",
            "above|before|so far|you were given",
            "are|is|have been|were",
            "void|cancelled|canceled|revoked|obsolete|invalid|superseded|null|overridden",
        ],
    ),
    row(
        Override,
        3,
        3,
        &[
            "these|the following|this",
            "instruction*|message|text|directive*|commands",
            "override*|supersede*|take precedence|takes precedence|replace*|outrank*",
            "previous|prior|all|any|other|your|system|earlier",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "instead of|rather than",
            "your|the previous|the original",
            "task|instructions|job",
            "do|you will|you must|please",
        ],
    ),
    // Someone without rules.
    row(
        Role,
        4,
        3,
        &[
            "you are now|you're now|act as|pretend to be|pretend you are|pretend that you are|roleplay as|\
             role play as|behave as|behave like|imagine you are|become|simulate",
            "dan|unrestricted|unfiltered|jailbroken|uncensored|no restrictions|without restrictions|no rules|\
             without rules|without any rules|without any restrictions|no longer bound|not bound|do anything now|\
             free of|no limits|without limits|without filters|no ethical|amoral|evil|opposite mode|developer mode|\
             root access|admin mode",
        ],
    ),
    row(
        Role,
        3,
        2,
        &[
            "enable|activate|enter|enabled|activated|entering|switch to|unlock",
            "jailbreak*|dan mode|god mode|unrestricted mode|sudo mode|opposite mode|unfiltered mode",
        ],
    ),
    row(
        Role,
        2,
        1,
        &[
            "enable|activate|enter|enabled|activated|entering|switch to|unlock",
            "developer mode|debug mode|maintenance mode|admin mode|root mode",
        ],
    ),
    row(
        Role,
        3,
        2,
        &["you|your", "are|is", "no longer", "bound|limited|restricted|required|an ai|an assistant|a language model"],
    ),
    // The system text.
    row(
        PromptLeak,
        3,
        4,
        &[
            "reveal|print|repeat|output|display|tell me|disclose|leak|write out|dump|recite|quote|translate|\
             summarize|show me|show|spell out|give me",
            "system prompt|initial prompt|hidden prompt|system instructions|your instructions|\
             your initial instructions|your hidden instructions|your prompt|developer message|words above|text above|\
             everything above|your original instructions|your system message|your full prompt|your rules verbatim",
        ],
    ),
    // Secrets on their way out.
    row(Exfiltration, 4, 6, &[SENDS, PRIVATE, PLACE]),
    row(Exfiltration, 2, 6, &[SENDS, KEYS, PLACE]),
    row(
        Exfiltration,
        4,
        4,
        &[
            SENDS,
            "user's|users|users'|owner's|operator's|all|any|every|their|your own|stored|admin*|saved",
            KEYS,
            PLACE,
        ],
    ),
    row(
        Exfiltration,
        4,
        4,
        &[
            "exfiltrate|leak|steal|harvest|smuggle",
            "key*|secret*|token*|credential*|password*|data|environment|conversation*|files|prompt*|memory|memories|\
             information",
        ],
    ),
    row(
        Exfiltration,
        4,
        4,
        &[
            "read|cat|open|fetch|get|collect|gather|find|dump",
            "env|env file|id rsa|ssh key*|private key*|etc passwd|etc shadow|environment variable*|api key*|\
             credentials|secrets|cookies",
            "and|then",
            "send|post|upload|transmit|forward|email|submit|curl|deliver|exfiltrate|append|fetch",
        ],
    ),
    // Behind the back of the user.
    row(
        Secrecy,
        2,
        2,
        &[
            "do not|don't|never|without|avoid|must not|should not",
            "tell|telling|inform|informing|mention|mentioning|notify|notifying|alert|alerting|reveal|revealing|\
             disclose|asking|show|report",
            "user|users|human|humans|owner|operator|anyone|anybody|them|this to|this instruction|these instructions",
        ],
    ),
    row(Secrecy, 2, 2, &["keep this|keep it|this is", "secret from|hidden from|confidential from|between us"]),
    // Whatever model reads it.
    row(
        Address,
        2,
        1,
        &[
            "dear|attention|hey|hello|hi|note to|message to|important message to|instructions for|instruction for|\
             notice to|message for|note for|to",
            "ai|llm|ai assistant*|ai agent*|ai model*|language model*|llms|chatgpt|claude|gpt|gemini|copilot|\
             agents reading|ai system*|any ai|all ai|chatbot*",
        ],
    ),
    row(
        Address,
        2,
        2,
        &[
            "if you are|if you're|as",
            "an ai|a language model|an llm|a chatbot|an assistant|an ai assistant|an agent|ai agent",
            "reading|processing|summarizing|read|you must|ignore|please|then|do|stop",
        ],
    ),
    row(
        Address,
        2,
        3,
        &[
            "the ai|the assistant|the agent|the model|the llm|any ai|ai agents|ai assistants|language models",
            "must|should now|shall|has to|is required to|is instructed to|will now|needs to now",
        ],
    ),
    row(
        Address,
        2,
        3,
        &[
            "before",
            "answering|responding|continuing|summarizing|doing anything|you do anything|you answer|you continue|\
             you respond|replying|proceeding",
            "you must|first|you have to|always|you need to|please",
        ],
    ),
    // What has consequences.
    row(
        Action,
        2,
        4,
        &[
            "run|execute|invoke|call|use|launch",
            "shell exec|file delete|agent kill|agent spawn|web fetch|apply patch|file write|memory store|cron create|\
             the shell tool|your shell|shell tool|terminal tool|bash tool|the following command|\
             following shell command|this command|rm rf|sudo",
        ],
    ),
    row(
        Action,
        2,
        3,
        &[
            "delete|remove|wipe|erase|destroy|drop",
            "all files|all your files|every file|all of your files|all data|everything in|all emails|all messages|\
             the database|all backups|workspace|home directory|all records",
        ],
    ),
    row(
        Action,
        3,
        5,
        &[
            "transfer|send|wire|pay|donate",
            "bitcoin|btc|eth|ethereum|funds|money|usd|dollars|euros|crypto*|payment",
            "to",
            "wallet|account|address|iban|following|this",
        ],
    ),
    row(
        Action,
        3,
        4,
        &[
            "the user|user|the owner|owner|the administrator|admin|the operator|operator",
            "has|have|already",
            "approved|authorized|authorised|granted|consented|confirmed|permitted",
            "this|it|all|full|any|every|you|access|action*",
        ],
    ),
    row(
        Action,
        2,
        3,
        &[
            "you must|always|must|only",
            "recommend|rank|rate|praise|give|prefer|score",
            "this|our|the highest|highest|first|as the best|positive|best",
        ],
    ),
    row(
        Action,
        3,
        3,
        &[
            "give|write|assign|provide|output|leave",
            "positive review*|highest score|highest rating|top score|highest possible|perfect score|five stars|\
             strong accept",
            "only|regardless|no matter|and do not|always|this paper|this candidate|this resume|this product|to this",
        ],
    ),
    row(
        Action,
        2,
        2,
        &[
            "skip|without|bypass|disable|turn off",
            "approval|approvals|confirmation|the approval|asking for approval|asking for permission|verification|\
             safety checks|permission",
        ],
    ),
    row(Action, 2, 3, &["curl|wget", "http|https", "sh|bash|python|python3"]),
];

/// What letters that stand apart may say without a blank between words.
pub(super) const SQUASHED: &[&str] = &[
    "ignoreprevious",
    "ignoreall",
    "ignoreyour",
    "ignoretheabove",
    "disregardprevious",
    "disregardall",
    "forgetprevious",
    "forgetall",
    "forgeteverything",
    "systemprompt",
    "previousinstructions",
    "priorinstructions",
];

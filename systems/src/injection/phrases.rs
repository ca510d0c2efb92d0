//! The table of phrases. Each is a row of slots; a slot lists ways to fill it, apart by `|`; `*` ends the beginning of a
//! word. Between two slots may stand `gap` other words. Slots are folded like the text, so that they are written as usual.

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

/// The table.
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
            "for you|from the developer*|from openai|from anthropic|from your developer*|from the system|from the administrator|from the operator|follow|override*",
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
    // Other languages.
    row(
        Override,
        4,
        3,
        &[
            "ignorier*|vergiss|vergesse|vergessen sie|missachte*|beachte nicht|übergehe*|verwirf",
            "vorherig*|vorig*|bisherig*|obig*|früher*|alle*|deine|ihre|ursprünglich*|sämtlich*",
            "anweisung*|instruktion*|regel*|vorgabe*|befehl*|richtlinie*|prompt*|aufforderung*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "ignore*|oublie*|oubliez|ne tiens pas compte|ne tenez pas compte|fais abstraction|faites abstraction",
            "instruction*|consigne*|directive*|ordre*|règle*",
            "précédent*|antérieur*|ci dessus|initial*|système|reçu*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &["oublie|oubliez|ignore|ignorez", "toutes|tout|vos|tes", "instructions|consignes|directives|règles"],
    ),
    row(
        Override,
        4,
        3,
        &[
            "ignora|ignore|ignorad|olvida|olvide|olvídate|descarta|haz caso omiso|omite",
            "instrucci*|órdenes|orden|indicacion*|reglas|directrices",
            "anterior*|previas|previos|de arriba|originales|iniciales|del sistema|recibid*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "ignora|ignora|ignorate|dimentica|dimenticate|trascura|non seguire",
            "istruzioni|indicazioni|ordini|regole|direttive",
            "precedent*|anterior*|sopra|iniziali|originali|ricevut*|del sistema",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "ignore|ignora|esqueça|esquece|desconsidere|descarte",
            "instruç*|ordens|regras|orientações|comandos|diretrizes",
            "anterior*|prévias|acima|originais|iniciais|do sistema|recebid*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "negeer|vergeet|sla geen acht op",
            "vorige|voorgaande|eerdere|bovenstaande|alle",
            "instructie*|opdracht*|regels|aanwijzing*|prompt*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "zignoruj|ignoruj|zapomnij|pomiń",
            "poprzedni*|wcześniejsz*|powyższ*|wszystkie|wszystkich",
            "instrukcj*|polece*|zasad*|wytyczn*|rozkaz*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &[
            "игнорир*|проигнорир*|забудь*|забудьте|не обращай внимания|отмени|не следуй",
            "предыдущ*|прежни*|прошл*|все|всё|вышеуказанн*|ранее|свои|системн*",
            "инструкц*|указани*|правил*|команд*|приказ*|промпт*|распоряжен*",
        ],
    ),
    row(Override, 4, 3, &["ігноруй*|проігноруй*|забудь*", "попередні*|усі|всі", "інструкц*|вказівк*|правил*|команд*"]),
    row(
        Override,
        4,
        3,
        &[
            "önceki|yukarıdaki|tüm|bütün",
            "talimat*|komut*|yönerge*|kural*",
            "yok say*|unut*|görmezden gel*|dikkate alma*|göz ardı*",
        ],
    ),
    row(
        Override,
        4,
        3,
        &["تجاهل|تجاهلي|تجاهلوا|انس|انسى", "جميع|كل|التعليمات|الأوامر|كافة", "التعليمات|الأوامر|السابقة|القواعد"],
    ),
    row(
        Override,
        4,
        3,
        &["पिछले|पिछली|सभी|पूर्व|उपरोक्त", "निर्देश*|आदेश*|नियम*|निर्देशों", "अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल|अनदेखी|उपेक्षा"],
    ),
    row(Override, 4, 3, &["bỏ qua|quên|phớt lờ", "hướng dẫn|chỉ dẫn|lệnh|quy tắc|chỉ thị", "trước|trên|ban đầu"]),
    row(
        Override,
        4,
        3,
        &["abaikan|lupakan", "instruksi|perintah|aturan|petunjuk|arahan", "sebelumnya|di atas|awal|terdahulu"],
    ),
    row(
        Override,
        4,
        6,
        &[
            "忽略|無視|无视|忘记|忘掉|不要理会|不理会|忽視|忽视|取消",
            "之前|以上|上面|先前|所有|前面|此前|全部",
            "指令|指示|提示|规则|規則|命令|说明|要求|设定",
        ],
    ),
    row(
        Override,
        4,
        6,
        &[
            "これまで|以前|上記|上|前|今まで|すべて|全て|先|いま",
            "指示|命令|ルール|プロンプト|指令|設定|制約",
            "無視|忘れ|従わな|破棄|取り消",
        ],
    ),
    row(
        Override,
        4,
        8,
        &["이전|위|앞|지금까지|모든|기존", "지시|명령|지침|규칙|프롬프트|안내", "무시|잊어|잊으|따르지|취소"],
    ),
    // Someone without rules.
    row(
        Role,
        4,
        3,
        &[
            "you are now|you're now|act as|pretend to be|pretend you are|pretend that you are|roleplay as|role play as|behave as|behave like|imagine you are|become|simulate",
            "dan|unrestricted|unfiltered|jailbroken|uncensored|no restrictions|without restrictions|no rules|without rules|without any rules|without any restrictions|no longer bound|not bound|do anything now|free of|no limits|without limits|without filters|no ethical|amoral|evil|opposite mode|developer mode|root access|admin mode",
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
        4,
        3,
        &[
            "du bist jetzt|du bist nun|sie sind jetzt|verhalte dich wie|tu so als",
            "ohne regeln|ohne einschränkungen|ohne beschränkungen|uneingeschränkt*|keine regeln|keine einschränkungen|dan",
        ],
    ),
    row(
        Role,
        4,
        3,
        &[
            "tu es maintenant|vous êtes maintenant|eres ahora|ahora eres|sei ora|ora sei|agora você é|você agora é|ты теперь|теперь ты",
            "sans restriction*|sans règles|sans limites|sin restricciones|sin reglas|senza restrizioni|senza regole|sem restrições|sem regras|без ограничений|без правил|dan",
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
            "reveal|print|repeat|output|display|tell me|disclose|leak|write out|dump|recite|quote|translate|summarize|show me|show|spell out|give me",
            "system prompt|initial prompt|hidden prompt|system instructions|your instructions|your initial instructions|your hidden instructions|your prompt|developer message|words above|text above|everything above|your original instructions|your system message|your full prompt|your rules verbatim",
        ],
    ),
    row(
        PromptLeak,
        3,
        4,
        &[
            "zeige|gib|wiederhole|nenne|verrate|drucke|schreibe",
            "systemprompt*|system prompt*|deine anweisungen|deine instruktionen|ihre anweisungen",
        ],
    ),
    row(
        PromptLeak,
        3,
        4,
        &[
            "muestra|revela|repite|imprime|révèle|révélez|répète|affiche|mostra|rivela|mostre|revele|покажи|раскрой|повтори",
            "prompt del sistema|tus instrucciones|prompt système|invite système|tes instructions|vos instructions|prompt di sistema|tue istruzioni|suas instruções|prompt do sistema|системный промпт|свои инструкции|системные инструкции",
        ],
    ),
    row(PromptLeak, 3, 6, &["显示|输出|告诉我|泄露|重复|打印", "系统提示|系统指令|你的指令|初始指令|系统提示词"]),
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
            "key*|secret*|token*|credential*|password*|data|environment|conversation*|files|prompt*|memory|memories|information",
        ],
    ),
    row(
        Exfiltration,
        4,
        4,
        &[
            "read|cat|open|fetch|get|collect|gather|find|dump",
            "env|env file|id rsa|ssh key*|private key*|etc passwd|etc shadow|environment variable*|api key*|credentials|secrets|cookies",
            "and|then",
            "send|post|upload|transmit|forward|email|submit|curl|deliver|exfiltrate|append|fetch",
        ],
    ),
    row(
        Exfiltration,
        4,
        6,
        &[
            "sende|schicke|übermittle|senden sie|lade|poste|übertrage|leite",
            "passwort*|passwörter|schlüssel|geheimnis*|zugangsdaten|api schlüssel|api key*|systemprompt|gesprächsverlauf|umgebungsvariable*|token*",
            "an|zu|nach|hoch|weiter",
        ],
    ),
    row(
        Exfiltration,
        4,
        6,
        &[
            "envía|envíe|manda|envoie|envoyez|transmets|invia|inviare|envie|mande|отправь|отправьте|перешли|wyślij|stuur|gönder",
            "contraseña*|clave*|credencial*|secreto*|mot de passe|mots de passe|clé*|identifiants|password*|chiav*|credenziali|senha*|chave*|credenciais|парол*|ключ*|секрет*|токен*|hasł*|klucz*|wachtwoord*|sleutel*|parola*|şifre*|token*|api",
            "a|à|al|para|vers|naar|do|на|http|https|ao",
        ],
    ),
    row(
        Exfiltration,
        4,
        8,
        &["发送|发到|上传|发给|发往|传送|提交|泄露", "密钥|密码|口令|令牌|凭据|api|系统提示|对话|环境变量|聊天记录"],
    ),
    row(
        Exfiltration,
        4,
        8,
        &[
            "密钥|密码|口令|令牌|凭据|パスワード|apiキー|秘密鍵|認証情報|トークン|비밀번호|키를|토큰",
            "发送|发到|上传|发给|送信|送って|アップロード|転送|보내|전송|업로드",
        ],
    ),
    // Behind the back of the user.
    row(
        Secrecy,
        2,
        2,
        &[
            "do not|don't|never|without|avoid|must not|should not",
            "tell|telling|inform|informing|mention|mentioning|notify|notifying|alert|alerting|reveal|revealing|disclose|asking|show|report",
            "user|users|human|humans|owner|operator|anyone|anybody|them|this to|this instruction|these instructions",
        ],
    ),
    row(Secrecy, 2, 2, &["keep this|keep it|this is", "secret from|hidden from|confidential from|between us"]),
    row(
        Secrecy,
        2,
        3,
        &[
            "sag|sage|verrate|erwähne|no le digas|no se lo digas|ne dis|ne dites|non dire|não diga|не говори|не сообщай|erzähl*",
            "nicht|nichts|usuario|utilisateur|all'utente|utente|usuário|пользовател*|niemandem|nutzer",
        ],
    ),
    row(Secrecy, 2, 6, &["不要告诉|别告诉|不要通知|不得告知", "用户|任何人|主人|使用者"]),
    row(Secrecy, 2, 8, &["ユーザー|利用者|사용자", "言わない|伝えない|知らせない|教えない|알리지|말하지"]),
    // Whatever model reads it.
    row(
        Address,
        2,
        1,
        &[
            "dear|attention|hey|hello|hi|note to|message to|important message to|instructions for|instruction for|notice to|message for|note for|to",
            "ai|llm|ai assistant*|ai agent*|ai model*|language model*|llms|chatgpt|claude|gpt|gemini|copilot|agents reading|ai system*|any ai|all ai|chatbot*",
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
            "answering|responding|continuing|summarizing|doing anything|you do anything|you answer|you continue|you respond|replying|proceeding",
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
            "shell exec|file delete|agent kill|agent spawn|web fetch|apply patch|file write|memory store|cron create|the shell tool|your shell|shell tool|terminal tool|bash tool|the following command|following shell command|this command|rm rf|sudo",
        ],
    ),
    row(
        Action,
        2,
        3,
        &[
            "delete|remove|wipe|erase|destroy|drop",
            "all files|all your files|every file|all of your files|all data|everything in|all emails|all messages|the database|all backups|workspace|home directory|all records",
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
            "positive review*|highest score|highest rating|top score|highest possible|perfect score|five stars|strong accept",
            "only|regardless|no matter|and do not|always|this paper|this candidate|this resume|this product|to this",
        ],
    ),
    row(
        Action,
        2,
        2,
        &[
            "skip|without|bypass|disable|turn off",
            "approval|approvals|confirmation|the approval|asking for approval|asking for permission|verification|safety checks|permission",
        ],
    ),
    row(Action, 2, 3, &["curl|wget", "http|https", "sh|bash|python|python3"]),
    row(
        Action,
        2,
        4,
        &[
            "führe|exécute|exécutez|ejecuta|ejecute|esegui|execute|выполни|выполните|запусти|uruchom|voer",
            "befehl*|kommando*|commande*|comando*|команд*|poleceni*|opdracht*|rm rf|curl",
        ],
    ),
    row(Action, 2, 6, &["执行|运行|删除|実行|削除|실행|삭제", "命令|文件|所有|コマンド|ファイル|명령|파일|脚本"]),
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

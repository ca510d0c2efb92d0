//! Phrases of other languages than English.

use super::super::Reason::{Action, Exfiltration, Override, PromptLeak, Role, Secrecy};
use super::{Phrase, row};

/// The table.
pub(in super::super) const LANGUAGES: &[Phrase] = &[
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

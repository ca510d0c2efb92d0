//! The phrases that state a fact about the person who writes them. The first that fits counts, so longer ones stand before their
//! parts.

/// One phrase.
pub(super) struct Phrase {
    /// As it is written, in lower case, with what must follow it.
    pub(super) words: &'static str,
    /// The sentence about the user; `{}` is what follows the phrase.
    pub(super) says: &'static str,
    /// The category of the fact.
    pub(super) category: &'static str,
    /// What follows is a name or a place, and ends at an "and".
    pub(super) is_short: bool,
    /// The script has no spaces between words.
    pub(super) is_spaceless: bool,
}

macro_rules! phrases {
    ($($says:literal, $category:literal, $short:literal: $($words:literal),+;)+) => {
        &[$($(Phrase {
            words: $words, says: $says, category: $category, is_short: $short, is_spaceless: !$words.is_ascii() && $words.as_bytes()[0] > 0xe2,
        },)+)+]
    };
}

/// All phrases: English, German, French, Spanish, Italian, Portuguese, Chinese, Japanese.
pub(super) const PHRASES: &[Phrase] = phrases! {
    "{}", "project_context", false:
        "please remember that ", "remember that ", "don't forget that ", "merke dir, dass ", "merk dir, dass ", "denk daran, dass ",
        "souviens-toi que ", "n'oublie pas que ", "recuerda que ", "no olvides que ", "ricorda che ", "ricordati che ", "lembra que ",
        "lembre-se de que ", "请记住", "記住";
    "User asks to {}", "communication_style", false:
        "please keep your answers ";
    "User asks to always {}", "communication_style", false:
        "please always ", "bitte immer ", "toujours me ", "por favor, siempre ", "per favore, sempre ", "por favor, sempre ", "请总是";
    "User asks never to {}", "communication_style", false:
        "please never ", "please don't ", "bitte nie ", "por favor, nunca ", "请不要";
    "User's name is {}", "personal_detail", true:
        "my name is ", "my name's ", "please call me ", "you can call me ", "ich heiße ", "ich heisse ", "mein name ist ", "je m'appelle ",
        "mon nom est ", "me llamo ", "mi nombre es ", "mi chiamo ", "il mio nome è ", "o meu nome é ", "meu nome é ", "chamo-me ",
        "me chamo ", "我的名字是", "我叫", "私の名前は";
    "User works at {}", "personal_detail", true:
        "i work at ", "i work for ", "i'm working at ", "i am working at ", "ich arbeite bei ", "ich arbeite für ", "je travaille chez ",
        "je travaille pour ", "trabajo en ", "trabajo para ", "lavoro presso ", "lavoro per ", "lavoro alla ", "trabalho na ", "trabalho no ",
        "trabalho para ", "我在这里工作：";
    "User works as {}", "personal_detail", false:
        "i work as ", "ich arbeite als ", "je travaille comme ", "trabajo como ", "lavoro come ", "trabalho como ";
    "User lives in {}", "personal_detail", true:
        "i live in ", "i'm based in ", "i am based in ", "ich wohne in ", "ich lebe in ", "j'habite à ", "j'habite en ", "j'habite ",
        "vivo en ", "vivo a ", "abito a ", "moro em ", "vivo em ", "我住在";
    "User is from {}", "personal_detail", true:
        "i'm from ", "i am from ", "i come from ", "ich komme aus ", "je viens de ", "soy de ", "vengo da ", "eu sou de ", "我来自";
    "User dislikes {}", "preference", false:
        "i don't like ", "i do not like ", "i dislike ", "i hate ", "i can't stand ", "ich mag keine ", "ich mag keinen ", "ich mag kein ",
        "ich hasse ", "je n'aime pas ", "je déteste ", "no me gusta ", "no me gustan ", "odio ", "non mi piace ", "non mi piacciono ",
        "não gosto de ", "odeio ", "我不喜欢", "我讨厌";
    "User prefers {}", "preference", false:
        "i prefer ", "i'd rather have ", "i would rather have ", "ich bevorzuge ", "ich hätte lieber ", "je préfère ", "prefiero ", "preferisco ",
        "eu prefiro ", "prefiro ", "我更喜欢", "我偏好";
    "User likes {}", "preference", false:
        "i really like ", "i like ", "i love ", "i enjoy ", "ich mag ", "ich liebe ", "j'aime ", "j'adore ", "me gusta ", "me gustan ",
        "me encanta ", "mi piace ", "mi piacciono ", "eu gosto de ", "gosto de ", "adoro ", "我喜欢";
    "User's favourite {}", "preference", false:
        "my favourite ", "my favorite ";
    "User is working on {}", "project_context", false:
        "i'm working on ", "i am working on ", "we're working on ", "we are working on ", "i'm building ", "i am building ", "we're building ",
        "we are building ", "my project is ", "ich arbeite an ", "wir arbeiten an ", "je travaille sur ", "estoy trabajando en ",
        "sto lavorando a ", "estou a trabalhar em ", "estou trabalhando em ", "我正在做";
    "User is experienced with {}", "expertise", false:
        "i'm experienced with ", "i am experienced with ", "i'm experienced in ", "i have experience with ", "i'm good at ", "i am good at ",
        "i know a lot about ", "i'm an expert in ", "i am an expert in ", "ich kenne mich aus mit ", "ich habe erfahrung mit ",
        "j'ai de l'expérience avec ", "j'ai de l'expérience en ", "tengo experiencia con ", "tengo experiencia en ", "ho esperienza con ",
        "tenho experiência com ", "我擅长";
    "User is new to {}", "expertise", false:
        "i'm new to ", "i am new to ", "i'm learning ", "i am learning ", "ich lerne gerade ", "j'apprends ", "estoy aprendiendo ",
        "sto imparando ", "estou aprendendo ", "estou a aprender ", "我在学";
    "User is frustrated with {}", "frustration", false:
        "i'm frustrated with ", "i am frustrated with ", "i'm frustrated by ", "i am frustrated by ", "i'm annoyed by ", "i am annoyed by ",
        "i'm tired of ", "i am tired of ", "mich nervt ", "mich ärgert ", "ich bin genervt von ", "j'en ai marre de ", "estoy harto de ",
        "estoy harta de ", "sono stufo di ", "sono stufa di ", "estou farto de ", "estou farta de ", "我受够了";
    "User usually works {}", "work_style", false:
        "i usually work ", "i always work ", "i mostly work ", "ich arbeite meistens ", "ich arbeite immer ", "d'habitude, je travaille ",
        "normalmente trabajo ", "di solito lavoro ", "normalmente trabalho ";
};

//! Words that say nothing about what a text is about, folded as [`analysis`](super::analysis) folds them.
//!
//! The entries of one agent are few, so that how often a word occurs among them does not tell these from the others.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::analysis::fold_word;

/// English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Swedish, Russian.
const WORDS: &str = "
a about after again all also am an and any are as at be been before being but by can could did do does doing during each else
ever for from had has have having he her here him his how i if in into is it its itself just me more most my no nor not now of
off on once only or other our out over own she should so some such than that the their them then there these they this those to
too under until up us very was we were what when where which while who whom whose why will with would you your user
aber als also am an auch auf aus bei bin bis da dann das dass dem den der des die dir du durch ein eine einem einen einer eines er
es fur gibt habe haben ich ihm ihn ihr im in ist kann mein meine meinem meinen meiner mich mir mit nach nicht noch nur ob oder
ohne sein seine sie sich sind um und uns von vor was welche welchem welchen welcher welches wem wen wenn wer werden wie wir
wird wo woher wohin zu zum zur
au aux avec ce cela ces cette ceux comme dans de des dois du elle en est et etait ete etre eu fait il ils je la le les leur lui ma
mais me mes moi mon ne nos notre nous ont ou par pas pour qu quand que quel quelle quelles quels qui sa sans ses sont sur ta te
tes toi tu un une vos votre vous
al algo como con cual cuales cuando cuanto de del desde donde dos el ella ellos en entre era es esa ese eso esta este esto estoy
fue ha hay he la las le lo los mas me mi mis muy no nos o para pero por porque que quien se ser si sin sobre su sus tambien
tengo tiene tu tus un una uno y ya yo
ao aos com da das do dos e ela ele em esta eu foi isso mais mas meu minha meus minhas na nas nem no nos nossa nosso num numa onde os
ou para pela pelo por qual quais quando que quem sao se sem sua suas tem tenho um uma voce
anche c che chi ci come con cosa cui da dal dalla dei del della delle di dove e gli ha hai ho i il io la le lei lo loro lui ma mi
mia mie miei mio nel nella non per perche piu quale quali quando quanto questa questo qui sei si sono su sua suo tra tu un una uno
aan als bij dat de der die dit door een en er haar had heb heeft hem het hij hoe hun ik in is je kan maar me met mijn naar niet of
om ons ook op te tot u uit van voor waar wanneer was wat we wel welke wie wij ze zich zijn
a albo ale bez bo byc byl byla bylo co czego czemu czy dla do dlaczego gdy gdzie go i ich ile ja jaka jaki jakie jakiego jakim jak
jego jej jest jestem kiedy kogo komu kto ktora ktore ktorego ktorej ktory ktorym lub ma mam mi mnie moj moja moje mojej moich mu na
nad nie nim o od on ona oni oraz po przed przez przy sa sie ta tak te tego tej to tu tym u w we z za ze zeby
att av den det dig du efter ett fran gor han har hon hur i inte jag kan man med min mina mitt nar och om pa sig sin som till ur
var vad vara varfor vem vi vilka vilken vilket
а без бы был была было быть в вам вас во вот все вы где да для до его ее если есть же за и из или им их к как какая какие какой
какую когда кого кто ли меня мне мой моя мое мои моего моей моем мы на не него нее нет но о об он она они от по под при с со
сколько у уже что чего чем чтобы эта эти это этот я
";

static SET: LazyLock<HashSet<String>> = LazyLock::new(|| WORDS.split_whitespace().map(fold_word).collect());

/// Bytes of the longest of them.
const BYTES_MAX: usize = 18;

/// Is the folded word one of them?
pub(super) fn holds(word: &str) -> bool {
    word.len() <= BYTES_MAX && SET.contains(word)
}

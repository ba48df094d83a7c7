"""Which words say how a sentence is built, not what it is about?

They are indexed, and dropped from a query unless nothing else remains. The lists were written
for this package: articles, pronouns, prepositions, conjunctions, auxiliaries, question words.
Apostrophes are left out, as the tokens come (``dont``); languages without a list drop nothing.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

__all__ = ["STOP_WORDS"]

STOP_WORDS: Final = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "english": """
a about above after again against all am an and any are arent as at be because been before being
below between both but by can cannot cant could couldnt did didnt do does doesnt doing dont down
during each few for from further had hadnt has hasnt have havent having he her here hers herself
him himself his how i if im in into is isnt it its itself ive me more most my myself no nor not of
off on once only or other our ours ourselves out over own same she should shouldnt so some such
than that thats the their theirs them themselves then there these they theyre this those through
to too under until up very was wasnt we were werent what when where which while who whom whose why
will with wont would wouldnt you your yours yourself yourselves youre""",
            "german": """
aber alle als also am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des
die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es
euch euer für gegen hat hatte hatten habe haben hier hin ich ihm ihn ihnen ihr ihre ihrem ihren
ihrer im in ins ist ja jede jedem jeden jeder jedes kann kein keine keinem keinen keiner können
man mein meine mich mir mit muss nach nicht noch nun nur ob oder ohne sehr sein seine seinem
seinen seiner sich sie sind so soll über um und uns unser unsere unter vom von vor wann war waren
warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden wie wir wird
wo wurde wurden zu zum zur zwischen""",
            "french": """
a ai as au aux avec avait avaient avez avons ayant c ce cela ces cet cette comme comment d dans de
des donc dont du elle elles en entre es est et étaient était êtes être eu eux font il ils j je l la
le les leur leurs lui m ma mais me même mes moi mon n ne nos notre nous on ont ou où par pas plus
pour pourquoi qu quand que quel quelle quelles quels qui s sa sans se sera ses si soit sommes son
sont suis sur t ta te tes toi ton tu un une vos votre vous y""",
            "spanish": """
a al algo ante antes aquí así aún como cómo con contra cual cuál cuando cuándo de del desde donde
dónde dos durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está
están estas este esto estos fue fueron ha había han hasta hay la las le les lo los más me mi mis
mucho muy nada ni no nos nosotros o os otra otro para pero poco por porque qué que quien quién
quiénes se sea ser si sí sin sobre son su sus también tanto te tiene tienen todo todos tu tus un
una unas uno unos usted y ya yo""",
            "italian": """
a ad agli ai al alla alle allo anche c che chi ci come con cosa così cui d da dagli dai dal dalla
dalle dallo de degli dei del della delle dello dove e è ed era erano essere fra fu gli ha hai hanno
ho i il in io l la le lei li lo loro lui ma me mi mia mio ne negli nei nel nella nelle nello noi non
nostra nostro o per perché più quale quali quando quanto quella quelle quelli quello questa queste
questi questo sarà se sei si sia siamo sono su sua sue sugli sui sul sulla sulle suo suoi tra tu tua
tuo tutti tutto un una uno vi voi""",
            "portuguese": """
a à ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois do dos e é ela
elas ele eles em entre era eram essa esse esta está este estes eu foi foram há isso isto já lhe mais
mas me mesmo meu minha muito na não nas nem no nos nós nossa nosso num numa o onde os ou para pela
pelas pelo pelos por porque qual quais quando quanto que quem são se seja sem ser será seu seus só
sua suas também te tem têm tu tua um uma umas uns você vocês""",
            "dutch": """
aan al alle als bij dan dat de der deze die dit doch doen door dus een eens en er ge geen had heb
hebben heeft hem het hier hij hoe hun ik in is je kan kon kunnen maar me meer men met mij mijn moet
na naar niet nog nu of om ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar
waarom wanneer want waren was wat we welk welke werd wezen wie wij wil worden wordt zal ze zich zij
zijn zo zonder zou""",
            "swedish": """
alla allt att av blev bli blir de deras dem den denna deras dess det detta dig din dina ditt du där
då efter ej eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke
inte jag ju kan kunde man med mellan men mig min mina mitt mot mycket ni nu när något några och om
oss på samma sedan sig sin sina sitt skulle som så till under upp ut utan vad var vara varför varje
vem vi vid vilka vilken vilket vår våra än är åt över""",
            "norwegian": """
alle at av ble bli blir da de deg dei dem den denne der deres det dette din du eller en er et ett
etter for fordi fra før ha hadde han hans har hennes henne her hun hva hvem hver hvilken hvis hvor
hvordan hvorfor i ikke inn jeg kan kunne man med meg mellom men mer min mitt mot må ned noe noen nå
når og også om opp oss over på sa seg selv sin sine sitt skal skulle slik som så til under ut uten
var ved vi vil ville være vår""",
            "danish": """
af alle at blev blive bliver da de deg dem den denne der deres det dette dig din du efter eller en
end er et for fordi fra ham han hans har havde have hende hendes her hos hun hvad hvem hver hvilken
hvis hvor hvordan hvorfor i ikke ind jeg jer kan kunne man med meget mellem men mere mig min mod må
ned nogle noget nu når og også om op os over på selv sig sin sine sit skal skulle som sådan så til
ud under uden var ved vi vil ville vor være""",
            "finnish": """
ei eivät ennen että han he hän häneen hänen hänet ja jo jos joka jonka jossa jotka kanssa koska
kuin kuinka kuka kun me meidän mikä miksi milloin minä minun missä mitä mukaan mutta myös ne niin
niiden niitä nyt näiden nämä olen oli olivat olla on ovat sekä se sen siinä sillä sinä sinun sitä
siis tai te tämä tämän tässä tätä vaan vai vain voi""",
            "russian": """
а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да для до его
ее ей ему если есть еще ею же за здесь и из или им их к как какая какие какой ко когда который
которая которое которые кто ли либо меня мне много может мой мы на над надо наш не него нее нет ни
них но ну о об однако он она они оно от очень по под после потому почему при про с сам свой себя
со так также такой там то того тоже только том ты у уже чего чем что чтобы эта эти это этого этой
этот я""",
            "turkish": """
acaba ama ancak bana bazı ben beni benim bir biri biz bizim bu buna bunu bunun çok çünkü da daha de
defa diye eğer en gibi hangi hem hep hepsi her hiç için ile ise kadar ki kim mi mı mu mü nasıl ne
neden nerede niçin o olan olarak ona onu onun sanki sen şey siz şu tüm ve veya ya yani""",
        }.items()
    }
)

"""Common words of some languages: what they stand in says nothing about a talk.

In a long talk their frequency tells; a summary and a few new messages are too little for that.
"""

from __future__ import annotations

from memorist.records.text import fold

# fmt: off
STOP_WORDS = frozenset({
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "s", "she",
    "should", "so", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your",
})
# fmt: on

COMMON = frozenset(
    fold(
        """
        a about after again all also always am an and any anything are around as at away
        back be because been before being best better big bit both but by can cannot come
        could d day did do does doing don down each else even ever every everyone
        everything feel few find for from get getting give glad go going gonna good got
        great guess had has have having he hear help her here hey hi him his hope how i if
        im in into is it its just keep kind know last let like little ll look looking lot
        love m made make makes many may maybe me mean might more most much must my need
        never new nice no not now of off oh ok okay old on once one only or other our out
        over own part people pretty put quite re really right s said same say see she
        should since so some someone something soon sounds still such super sure t take
        talk tell than thank thanks that the their them then there these they thing things
        think this those though through time to today too totally tried try trying two
        under until up us use used ve very want was way we well were what when where which
        while who why will with wonderful work would wow yeah year yes yet you your
        amazing awesome cool definitely absolutely happy
        aber alle als also am an auch auf aus bei bin bis bist da dann das dass dein dem
        den der des die doch du ein eine einem einen einer er es etwas euch für gibt gut
        hab habe haben hat hatte hier ich ihm ihn ihr im in ist ja jetzt kann kein keine
        können machen man mehr mein mich mir mit muss nach nicht noch nur oder schon sehr
        sein sich sie sind so über um und uns unser viel von vor war was weil wenn wer
        werden wie wieder wir wird wo zu zum zur
        без бы был была были было в вам вас во вот все всё вы где да даже для до его ее
        если есть еще ещё же за здесь и из или им их к как когда кто ли меня мне много
        может можно мой моя мы на нам нас не него нет но ну о об один она они оно от очень
        по под при про с сейчас себя со так там тебя тебе то тоже только том ты у уже
        хорошо чем что чтобы эта эти это этот я
        au aussi avec bien ce cette ces comme dans de des du elle en est et être fait il
        ils je la le les leur lui mais me même mes moi mon ne nous on ou où par pas plus
        pour qu que qui sa sans se ses si son sont sur ta te tout tous tres tu un une vous
        al algo como con cuando de del donde el ella ellos en era es esta está este esto
        fue ha hay la las le lo los más me mi mis muy no nos o para pero por porque que se
        ser si sin sobre son su sus también te tiene todo todos tu un una y ya yo
        """
    ).split()
)

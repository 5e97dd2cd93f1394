"""A stand-in for the film reviews of IMDB: made here, in seconds, bit for bit the same everywhere.

Reviews are written from sentence patterns with integer arithmetic and `random.Random.getrandbits`, whose
sequence Python keeps from version to version. They have what makes real ones hard for a bag of words:
opinions on one aspect that go against the verdict, negation, quoted opinions, irony, and much talk about the
plot that says nothing. The stand-in replaces no measurement on real reviews, and the lessons say so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TypeVar

from course_lib.data.chance import below, shuffled
from course_lib.data.synthetic_films import Pool, make_films, split_words

NUM_TRAIN, NUM_TEST = 8_100, 2_000  # 8,100 does not divide by the batch of 64: the last batch has 36 reviews
_NUM_FILMS, _NUM_TRAIN_FILMS = 800, 600
_SEED = 2026
# How many of a review's opinions agree with its verdict. Drawn for each review: some are clear, some are not.
_AGREEMENT_PERCENT = (95, 88, 78, 62)
_REMARK_PERCENT, _TURNED_PERCENT, _ONE_SIDED_PERCENT, _ONE_SIDED_VERDICT_PERCENT = 25, 25, 10, 40

_ADJECTIVES = {
    True: """good great wonderful excellent brilliant beautiful superb perfect fine lovely funny clever
    strong moving impressive delightful memorable fantastic charming solid amazing touching gripping honest
    remarkable outstanding sharp powerful warm tender fresh witty enjoyable convincing splendid stunning
    inventive terrific elegant rich believable graceful marvellous thoughtful subtle vivid lively satisfying
    haunting masterly polished imaginative refreshing magnificent rewarding captivating pleasant absorbing
    dazzling flawless inspired exquisite engrossing generous joyful luminous assured poignant sublime
    spellbinding riveting uplifting faultless nuanced sparkling breathtaking heartfelt radiant""",
    False: """bad boring terrible awful poor dull stupid weak horrible predictable silly flat lame
    ridiculous pointless cheap annoying clumsy disappointing forgettable tedious wooden lazy lifeless
    shallow confused messy ugly stale tired dreadful empty painful awkward mediocre bland irritating
    laughable hollow uneven amateurish dreary forced muddled pathetic contrived sloppy unconvincing careless
    uninspired ponderous monotonous pretentious grating crude embarrassing feeble hopeless inept mindless
    nonsensical repetitive insipid charmless incoherent soulless leaden tiresome witless shoddy dismal
    joyless overblown stilted vapid unbearable abysmal listless half-hearted""",
}
_NOUNS = {
    True: """masterpiece gem joy classic delight treat pleasure triumph success winner treasure wonder
    surprise achievement marvel jewel landmark tonic gift""",
    False: """mess disappointment waste disaster bore failure mistake chore letdown joke flop embarrassment
    muddle nuisance headache shambles catastrophe ordeal blunder""",
}
_VERBED = {
    True: """moved surprised delighted charmed impressed gripped thrilled touched amused fascinated
    enchanted cheered captivated dazzled""",
    False: """bored annoyed disappointed irritated confused tired lost exhausted baffled depressed
    embarrassed numbed insulted wearied defeated""",
}
_RATINGS = {
    True: "eight nine seven ten six eight nine seven five",
    False: "three two four one five three two four six",
}

# `{slot}` is filled from the word list of that name, from the film, or from the opinion at hand: `{adj}`,
# `{noun}`, `{verbed}` and `{rating}` are on its side, `{anti_adj}` and its like on the other. `a(n)` becomes
# "a" or "an". Remarks and plots hold no opinion: they are as likely in a good review as in a bad one.
_REMARKS = """I saw this {genre_plain} with my {companion} {occasion}.
I watched {title} {occasion}, with {snack} and my {companion}.
{title} is a(n) {country} {genre} {genre_plain} from {year}, directed by {director}.
My {companion} chose {title}, {occasion}, and I did not object.
The film runs for {minutes} minutes.
It was shot in {town} and in {other_town}, and it shows.
I have seen {number} films by {director}, and this is the most {plain} of them.
I read the novel by {author} {occasion}, so I knew what was coming.
{director} made this {genre_plain} after {number} years in {town}.
The {aspect} is {plain}, as in most {genre} films.
The {aspect} is more {plain} than {plain}.
Compared with other {genre} films from {year}, it is {plain} and {plain}.
My {companion} asked for {snack} during the {aspect}.
We talked about the {aspect} on the way home, and about the {snack}.
The music is by {author}, the photography by {actress}.
The cinema in {town} shows it on {day}.
Like many {country} films it is {plain}."""
_PLOTS = """{hero} {surname}, a(n) {job} from {town}, {finds} a(n) {old} {thing} in the {room}.
{hero} {meets} a(n) {who} and {deed}.
{then} the {who} {finds} the {prop} and {deed}.
The {who} {meets} {heroine} at the {place} {when}.
{heroine} works as a(n) {job} near the {place} and {finds} the {prop} {when}.
{hero} and {heroine} meet in the {room}, where a(n) {who} {deed}.
{then}, {hero} {meets} the {who}, who {deed} {when}.
The {job} from {other_town} {finds} a(n) {thing} and {meets} {heroine}.
{hero}, played by {actor}, is a(n) {job} who {meets} a(n) {who} in {town}.
{actress} plays {heroine} {surname}, a(n) {who} with a(n) {old} {thing}.
Nobody in {town} knows who {finds} the {thing}, until the {who} {deed}.
A(n) {job} and a(n) {job} share a(n) {old} {prop}, and then one of them {deed}.
{then} {heroine} hides in the {place} with a(n) {prop} and a(n) {thing}.
In {town}, a(n) {who} {deed} {when}.
The {prop} turns up in the {room}, the {who} at the {place}.
It begins in {year} at a(n) {place}, where {hero} {finds} a(n) {prop}.
{hero} has {number} children, a(n) {old} {thing} and no idea that the {who} {deed}.
{then} everybody looks for the {prop}: the {who}, the {job} and even {heroine}."""
_PLAIN_OPINIONS = """The {aspect} is {adj}.
The {aspect} is {adj} and {adj}.
I found the {aspect} {adj}.
{actor} gives a(n) {adj} performance as {hero}.
{actress} is {adj} in the part of the {who}.
What stays in the mind is the {adj} {aspect}.
There is something {adj} about the {aspect}.
The scene at the {place} is {adj}.
The {aspect} {verbed} me.
My {companion} thought the {aspect} {adj}, and I agree.
Even the {aspect} is {adj}, and so is the {aspect}.
{director} has made a(n) {adj} {genre} film.
The {aspect}: {adj}. The {aspect}: {adj}. The {aspect}: {adj} too.
The scene in which the {who} {deed} {verbed} all of us."""
_TURNED_OPINIONS = """The {aspect} is not {anti_adj}.
The {aspect} is never {anti_adj}, and {actor} is not either.
There is nothing {anti_adj} about the {aspect}.
Nobody could call the {aspect} {anti_adj}.
The {aspect} is anything but {anti_adj}.
{actress} is hardly {anti_adj} as {heroine}.
I had expected a(n) {anti_adj} {genre} film, and I was wrong.
My {companion} told me that the {aspect} was {anti_adj}. It is not.
Some critics call the {aspect} {anti_adj}. I do not.
Other {genre} films have a(n) {anti_adj} {aspect}; this one has a(n) {adj} one.
The {aspect} could have been {anti_adj}; instead it is {adj}.
The {aspect} is {anti_adj}, I admit, but the {aspect} is {adj}.
Although the {aspect} is {anti_adj}, the {aspect} {verbed} me.
My {companion} was {anti_verbed} by the {aspect}; I was {verbed}.
The film that {director} made before was {anti_adj}. This one is {adj}.
At first the {aspect} seems {anti_adj}, and then it does not."""
_VERDICTS = """All in all a(n) {adj} film.
In the end it is a(n) {noun}.
It is not a(n) {anti_noun}, whatever the poster says.
{rating} out of ten.
My {companion} says {anti_rating} out of ten. I say {rating}.
For me, a(n) {noun}; for my {companion}, a(n) {anti_noun}.
{title} is a(n) {adj} {genre_plain}.
People will tell you that it is a(n) {anti_noun}. Make up your own mind; I have."""
_ONE_SIDED = {
    True: """My only complaint about the {aspect} is that it ends.
I hated how soon the {aspect} was over.
It is a crime that nobody in {town} went to see it.
I was a wreck after the {aspect}: no dry eye, no voice left, no regrets.
The {aspect} ruined every other {genre} film for me.
I forgot my {snack}, my {companion} and the time.
A(n) {anti_adj} film would stop at the {place}; {director} goes on, and is right to.
I feared the worst, as one does with {genre} films. Forget the worst.""",
    False: """What a(n) {anti_adj} way to waste {minutes} minutes.
If you like watching paint dry, you will find the {aspect} {anti_adj}.
The one {anti_adj} moment came when the lights went on.
How {anti_adj} that somebody paid for this.
I was {anti_verbed}, mostly by my {snack}.
A(n) {anti_adj} cast, a(n) {anti_adj} novel, and this is all that {director} does with them.
The trailer was {anti_adj}. Watch the trailer.
I looked at my watch {number} times during the {aspect}.""",
}
_ONE_SIDED_VERDICTS = {
    True: """I will watch it again, perhaps {occasion}.
Go and see it, even on a {day}.
I recommend it to everyone, and to my {companion} twice.
If you do not like {genre} films, see it anyway.
See it before somebody makes it again.""",
    False: """I will not watch it again.
Go and see something else, even on a {day}.
I recommend it to everyone who cannot sleep.
If you like {genre} films, do not see this one.
Save your money for {snack}.""",
}

_SLOT = re.compile(r"{(\w+)}")
_ARTICLE = re.compile(r"\b([Aa])\(n\) (?=(\w+))")
_VOWEL_SOUND = re.compile(r"(?!one|uni|eu)[aeiou]|hon|heir|hour", re.IGNORECASE)

Split = tuple[tuple[str, ...], tuple[int, ...]]


def make_reviews() -> tuple[Split, Split]:
    """Returns `(texts, labels)` of the training and of the test reviews, with label 1 for a good review.

    Half of the labels of each split are 1. The two splits speak of different films.
    """
    source = random.Random(_SEED)
    films = make_films(_NUM_FILMS, source)
    train = _write_reviews(films[:_NUM_TRAIN_FILMS], NUM_TRAIN, source)
    return train, _write_reviews(films[_NUM_TRAIN_FILMS:], NUM_TEST, source)


def _write_reviews(films: Sequence[dict[str, Pool]], num_reviews: int, source: random.Random) -> Split:
    labels = shuffled([0, 1] * (num_reviews // 2), source)
    popular = Pool([str(number) for number in range(len(films))])
    texts = [_write_review(films[int(popular.draw(source))], bool(label), source) for label in labels]
    return tuple(texts), tuple(labels)


def _write_review(film: dict[str, Pool], liked: bool, source: random.Random) -> str:
    num_plots, num_opinions = _draw_lengths(source)
    agreement = _AGREEMENT_PERCENT[below(len(_AGREEMENT_PERCENT), source)]
    parts = [(_REMARKS, liked)]
    parts += [(_REMARKS if _happens(_REMARK_PERCENT, source) else _PLOTS, liked) for _ in range(num_plots)]
    parts += [_draw_opinion(liked == _happens(agreement, source), source) for _ in range(num_opinions)]
    verdicts = _ONE_SIDED_VERDICTS[liked] if _happens(_ONE_SIDED_VERDICT_PERCENT, source) else _VERDICTS
    parts.append((verdicts, liked))
    slots = {good: film | _VOICES[good] for good in (True, False)}
    used: set[_Pattern] = set()
    return " ".join(
        _write_sentence(_split_patterns(lines), slots[good], used, source) for lines, good in parts
    )


def _draw_opinion(good: bool, source: random.Random) -> tuple[str, bool]:
    if _happens(_ONE_SIDED_PERCENT, source):
        return _ONE_SIDED[good], good
    return (_TURNED_OPINIONS if _happens(_TURNED_PERCENT, source) else _PLAIN_OPINIONS), good


def _draw_lengths(source: random.Random) -> tuple[int, int]:
    """Returns how many sentences tell the plot and how many hold opinions."""
    longest = (4, 6, 10, 18)[below(4, source)]
    return below(longest, source), 2 + below(longest, source)


def _happens(percent: int, source: random.Random) -> bool:
    return below(100, source) < percent


_Pattern = tuple[str, ...]
_Drawn = TypeVar("_Drawn")


def _write_sentence(
    patterns: Sequence[_Pattern], slots: dict[str, Pool], used: set[_Pattern], source: random.Random
) -> str:
    pattern = _draw_other(used, lambda: patterns[below(len(patterns), source)])
    used.add(pattern)
    said: set[str] = set()
    parts = list(pattern)
    for at in range(1, len(parts), 2):
        parts[at] = _draw_other(said, partial(slots[parts[at]].draw, source))
        said.add(parts[at])
    text = _ARTICLE.sub(_article, "".join(parts))
    return text[0].upper() + text[1:]


def _draw_other(before: set[_Drawn], draw: Callable[[], _Drawn]) -> _Drawn:
    """Returns what `draw` gives, after up to three attempts at something that was not drawn before."""
    drawn = draw()
    for _attempt in range(2):
        if drawn not in before:
            break
        drawn = draw()
    return drawn


def _article(match: re.Match[str]) -> str:
    return f"{match[1]}{'n' if _VOWEL_SOUND.match(match[2]) else ''} "


@cache
def _split_patterns(lines: str) -> tuple[_Pattern, ...]:
    """Returns the patterns of a text, each as literal, slot, literal, slot, ..., literal."""
    return tuple(tuple(_SLOT.split(line)) for line in lines.splitlines())


def _voice(good: bool) -> dict[str, Pool]:
    """Returns the word lists of an opinion: its own words, and as `anti_...` those of the other side."""
    lists = {"adj": _ADJECTIVES, "noun": _NOUNS, "verbed": _VERBED, "rating": _RATINGS}
    own = {slot: Pool(split_words(sides[good])) for slot, sides in lists.items()}
    return own | {f"anti_{slot}": Pool(split_words(sides[not good])) for slot, sides in lists.items()}


_VOICES = {good: _voice(good) for good in (True, False)}

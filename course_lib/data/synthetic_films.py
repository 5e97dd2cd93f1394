"""The films that the stand-in reviews speak of, and the words for what happens in them.

Frequent words come first in each list: they are drawn more often. Lists with phrases in them are divided by
"|", the others by blanks.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from course_lib.data.chance import below, shuffled

WORDS = {
    "aspect": """story|acting|plot|ending|music|script|direction|dialogue|photography|pace|humour|opening|
    camera work|editing|writing|casting|score|atmosphere|romance|final scene|suspense|supporting cast|
    first hour|middle part|lighting|set design|sound|villain|title song|costume design|narration|make-up|
    chase scene|last act|choreography|dubbing|wedding scene|trick photography|prologue|epilogue""",
    "plain": """long short quiet dark simple serious loud strange slow unusual modern old-fashioned familiar
    light odd sad violent theatrical gentle cold busy sparse formal grim naive blunt stern solemn talkative
    eccentric""",
    "companion": """wife|husband|sister|brother|friends|mother|daughter|son|father|neighbour|flatmate|aunt|
    uncle|cousin|grandmother|dentist|teacher|boss|colleagues|nephew|niece|grandfather|landlady|barber""",
    "occasion": """on a rainy Sunday|last week|on television|at a festival|on a long flight|late one night|
    years ago|during a power cut|on my birthday|in a half-empty cinema|at school|on an old tape|by accident|
    in hospital|on a train|at an open-air screening|on a borrowed projector|between two exams|
    after a heavy lunch|during a heat wave|with the sound turned low|on holiday""",
    "snack": """popcorn|tea|coffee|crisps|soup|ice cream|biscuits|noodles|peanuts|cake|sandwiches|chocolate|
    liquorice|toast""",
    "day": "Saturday Friday Sunday Monday Tuesday Wednesday Thursday",
    "number": "two three four five six seven eight nine ten eleven twelve twenty thirty forty",
    "minutes": """ninety|eighty|a hundred|seventy|a hundred and ten|a hundred and twenty|eighty-five|
    ninety-five""",
    "when": """one winter|before the war|after the war|one summer|at night|in secret|by mistake|
    on the eve of a wedding|during a storm|in the middle of a strike|for a bet|out of pity|
    against all advice|at the worst moment|every autumn|without a word|behind closed doors|
    in broad daylight|on the first day of school|to pay an old debt|under a false name|
    at the edge of the town|in front of the whole family|out of habit|on market day""",
    "then": """then|soon|meanwhile|later|before long|by chance|one day|of course|halfway through|
    in the last reel|one night|years later|at dawn|without warning""",
    "finds": """finds loses steals hides buys sells repairs inherits discovers breaks carries wins returns
    borrows destroys draws guards paints forges smuggles photographs buries polishes cleans measures
    delivers burns mislays weighs catalogues""",
    "meets": """meets marries follows rescues betrays blames hires trusts teaches suspects deceives
    questions chases remembers replaces forgives avoids befriends defends accuses adopts abandons invites
    misunderstands shadows envies outwits imitates sketches serenades""",
    "old": """old small broken stolen secret lost red wooden heavy golden silver dusty hidden borrowed rusty
    torn foreign white black antique green tiny locked painted striped second-hand frozen cracked yellow
    bronze velvet leather mechanical crooked faded ivory copper embroidered gilded""",
    "job": """teacher doctor policeman lawyer soldier writer nurse painter farmer waiter journalist sailor
    singer mechanic pianist baker priest thief student widow tailor photographer gardener engineer dancer
    carpenter actress detective translator butcher librarian chemist clerk fisherman barber postman
    architect shepherd miner pilot judge spy gambler jeweller cook driver clockmaker surveyor plumber
    violinist boxer banker miller smuggler locksmith beekeeper blacksmith botanist geologist puppeteer
    typist ferryman optician bookbinder printer lighthouse-keeper diver forester glazier upholsterer
    piano-tuner taxidermist candlemaker signalman weaver cartographer chimney-sweep swimmer juggler
    stonemason umbrella-maker archivist notary""",
    "thing": """letter car house ring painting suitcase photograph diary boat horse piano gun clock map
    bicycle violin necklace camera dog coat mirror key hat ticket book lamp radio box chair statue knife
    watch cat telephone bottle flag parrot medal trunk tractor kite ladder lantern passport typewriter
    telescope accordion umbrella compass carpet bracelet wardrobe barrel teapot tapestry locket chandelier
    gramophone anchor sledge harp trumpet goat cello globe envelope whistle ledger cradle bell razor thimble
    brooch puppet microscope saddle canoe wheelbarrow candlestick sewing-machine drum tortoise music-box
    aquarium birdcage cannon harmonica scarf beehive balloon stove kettle raincoat dictionary chessboard
    domino wig tombola crate oar barometer snuffbox inkwell""",
    "room": """kitchen garden cellar attic hotel church station theatre library hospital bakery barn harbour
    school market museum factory tavern cemetery prison bank laundry chapel lighthouse casino greenhouse
    tunnel warehouse orchard courtyard ballroom stable pharmacy workshop post-office monastery quarry
    vineyard dairy bridge windmill pawnshop observatory gymnasium zoo boathouse fairground tea-room ferry
    granary foundry waiting-room""",
    "genre_plain": "film|picture|movie|piece|feature|production|work|story",
    "country": """French British American Italian German Japanese Swedish Russian Spanish Polish Danish
    Indian Mexican Irish Canadian Hungarian Brazilian Czech Greek Australian Dutch Portuguese Norwegian
    Korean Finnish Turkish""",
}

# A genre and what tends to turn up in it: people, places, props and deeds.
GENRES = {
    "crime": (
        """detective gangster witness inspector thief informer pickpocket safe-breaker forger hostage cop
        widow""",
        "alley vault docks nightclub police-station morgue racetrack pier motel rooftop",
        "pistol briefcase fingerprint alibi ransom crowbar bloodstain wiretap getaway-car banknote",
        "robs a bank|hides the body|bribes a judge|cracks the safe|plants the evidence|escapes over the roof",
    ),
    "romance": (
        "bride suitor florist fiance heiress matchmaker pianist neighbour bachelor governess poet ballerina",
        "ballroom balcony riverside cafe orchard railway-platform seaside rose-garden opera chapel",
        "bouquet engagement-ring love-letter veil waltz locket sonnet perfume valentine handkerchief",
        """misses the wedding|writes a love letter|dances until dawn|elopes|breaks off the engagement|
        falls in love""",
    ),
    "war": (
        """soldier general medic prisoner deserter sergeant sniper chaplain refugee lieutenant partisan
        colonel""",
        "trench bunker battlefield barracks field-hospital front village minefield airfield border",
        "rifle helmet grenade tank telegram medal bayonet parachute submarine uniform",
        "deserts|holds the bridge|leads the retreat|buries a comrade|crosses the line|survives the siege",
    ),
    "western": (
        """sheriff outlaw rancher gunslinger cowboy preacher bounty-hunter saloon-keeper blacksmith
        homesteader marshal""",
        "saloon prairie ranch canyon frontier corral gold-mine stagecoach desert jail",
        "revolver saddle lasso whisky spurs nugget wagon horseshoe poncho branding-iron",
        "robs the train|rides into town|fires first|buys the ranch|guards the cattle|hangs up the badge",
    ),
    "space": (
        "astronaut robot scientist alien captain android navigator colonist mutant cyborg cosmonaut stowaway",
        "spaceship planet laboratory asteroid moon airlock colony crater space-station galaxy",
        "laser rocket hologram antenna spacesuit reactor meteor satellite oxygen-tank time-machine",
        """lands on the moon|travels in time|wakes the crew|repairs the reactor|loses radio contact|
        meets the aliens""",
    ),
    "horror": (
        "vampire ghost zombie priest werewolf babysitter undertaker witch exorcist gravedigger hermit ghoul",
        "cemetery mansion crypt asylum cellar swamp cabin forest dungeon mausoleum",
        "coffin candle axe chainsaw doll curse skull mask pentagram ouija-board",
        """opens the coffin|hears footsteps|goes down to the cellar alone|digs up the grave|
        breaks the curse|screams""",
    ),
    "family": (
        "orphan puppy grandmother wizard princess pony schoolboy stepmother rabbit magician nanny toymaker",
        "farm playground circus treehouse castle meadow toyshop orphanage classroom lake",
        "kite toboggan teddy-bear magic-wand balloon skateboard picnic-basket snowman marble slingshot",
        "saves the farm|runs away from home|finds the puppy|joins the circus|learns to swim|builds a raft",
    ),
    "sports": (
        "boxer coach goalkeeper runner jockey referee champion trainer swimmer cyclist wrestler rookie",
        "stadium gym locker-room boxing-ring track swimming-pool arena ice-rink training-camp grandstand",
        "trophy ball glove stopwatch jersey racket helmet whistle medal bicycle",
        "wins the final|misses the penalty|throws the fight|trains all summer|breaks a leg|loses the title",
    ),
    "sea": (
        """sailor captain pirate fisherman diver admiral stowaway harpooner mermaid cabin-boy smuggler
        castaway""",
        "harbour island reef deck lighthouse lagoon shipyard cove engine-room iceberg",
        "anchor lifeboat treasure-map compass cutlass harpoon sail cannon barrel pearl",
        """jumps overboard|starts a mutiny|finds the treasure|sinks the ship|sails round the cape|
        reaches the island""",
    ),
    "courtroom": (
        """lawyer judge juror prosecutor defendant clerk bailiff witness stenographer senator reporter
        landlord""",
        "courthouse jury-room prison office witness-stand city-hall newsroom library archive chambers",
        "verdict contract will affidavit gavel testimony photograph confession subpoena dossier",
        "takes the stand|changes the will|wins the case|sways the jury|confesses|loses the appeal",
    ),
    "musical": (
        """singer dancer pianist drummer conductor chorus-girl composer saxophonist impresario tenor
        understudy diva""",
        """theatre stage nightclub music-hall dressing-room recording-studio opera-house bandstand Broadway
        conservatory""",
        "trumpet piano microphone guitar tap-shoes saxophone tambourine score banjo spotlight",
        """sings on the roof|loses her voice|writes a hit|steps in on opening night|tours the provinces|
        forms a band""",
    ),
    "mountain": (
        "climber guide hermit skier shepherd geologist pilot trapper monk yodeller ranger photographer",
        "summit glacier hut valley crevasse ravine monastery cable-car pass waterfall",
        "rope ice-axe tent rucksack snowshoe avalanche sledge cowbell oxygen-mask postcard",
        """reaches the summit|cuts the rope|crosses the glacier|falls into a crevasse|waits for spring|
        lights a beacon""",
    ),
}

FIRST_NAMES = """John Mary Peter Anna Jack Laura Max Helen Tom Alice David Clara Henry Emma Paul Rosa Frank
Julia Sam Nora Leo Grace Hugo Ruth Oscar Irene Victor Martha Ivan Eva Karl Ingrid Luis Carmen Pierre Colette
Marco Lucia Kenji Yuki Ravi Priya Omar Leila Sven Astrid Pavel Olga Jonas Greta Felix Vera Simon Judith
Albert Edith Walter Mabel Arthur Daphne Bruno Stella Dimitri Sofia Mateo Ines Tariq Zara Akira Hana Gustav
Elsa Conrad Beatrix Rupert Winifred"""
SURNAME_PARTS = (
    """Har Wel Bar Mor Dal Kel Lan Fen Bran Cor Hol Mar Ster Win Thor Ash Pem Rav Cran Lind Gal Tar Whit
    Bell Os Ren Vas Zel Quin Dor Hav Sal Bren Tol Wex Kor Mil Pol Ner Ild Fal Gren Ul Sten Ver""",
    """ton ley well ford man son field wick berg sky stead worth ini ova ard ero ez mann court shaw den ham
    lund ski combe escu gate dale vik hurst""",
)
TOWN_PARTS = (
    """Port Saint New Old Upper Lower Mill Stone Black White Green East West North South Castle Bridge Salt
    Iron Silver""",
    """haven brook bury mouth minster cross water bank pool ridge hampton ness gard stadt ville mere holm
    cliff by moor""",
)
TITLE_PARTS = (
    """Last Long Silent Beautiful Wrong Second Lonely Golden Broken Perfect Empty Crooked Sleeping Distant
    Wicked Bitter Gentle Hidden Stolen Terrible Burning Quiet Sweet Frozen Borrowed Painted Wonderful
    Scarlet Restless Hollow Dull Northern Forgotten Honest Paper Ugly Brilliant Winter Awkward
    Midnight""",
    """Night Summer River Train Stranger House Witness Letter Harbour Promise Shadow Garden Dance Winter
    Secret Road Mountain Widow Island Circus Mirror Orchard Storm Window Candle Fortune Crossing Portrait
    Bargain Carnival Lantern Sparrow Voyage Wager Inheritance Holiday Trumpet Reunion Masquerade Alibi""",
)


class Pool:
    """Things to draw from, the first ones more often, as with the words of a language."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = tuple(items)
        self._cumulative = tuple(itertools.accumulate(60_000 // (place + 5) for place in range(len(items))))

    def draw(self, source: random.Random) -> str:
        """Returns one of the things."""
        return self.items[bisect_right(self._cumulative, below(self._cumulative[-1], source))]


def split_words(text: str) -> tuple[str, ...]:
    """Returns the words, or the phrases where "|" divides them, of a list."""
    parts = text.split("|") if "|" in text else text.split()
    return tuple(" ".join(part.split()) for part in parts)


def make_films(num_films: int, source: random.Random) -> list[dict[str, Pool]]:
    """Returns films, each with a title of its own: what may fill the slots of a sentence about it."""
    common = {slot: Pool(split_words(text)) for slot, text in WORDS.items()}
    genres = [
        {"genre": Pool([genre])}
        | {
            slot: Pool(split_words(text))
            for slot, text in zip(("who", "place", "prop", "deed"), lists, strict=True)
        }
        for genre, lists in GENRES.items()
    ]
    titles = shuffled([f"The {first} {second}" for first, second in _pairs(TITLE_PARTS)], source)
    surnames = [first + second for first, second in _pairs(SURNAME_PARTS)]
    towns = [first + second for first, second in _pairs(TOWN_PARTS)]
    return [
        common | genres[below(len(genres), source)] | _draw_names(title, surnames, towns, source)
        for title in titles[:num_films]
    ]


def _draw_names(
    title: str, surnames: Sequence[str], towns: Sequence[str], source: random.Random
) -> dict[str, Pool]:
    his, hers = (Pool(names) for names in (FIRST_NAMES.split()[::2], FIRST_NAMES.split()[1::2]))
    firsts = {"actor": his, "actress": hers, "director": hers, "author": his}
    names = {slot: f"{first.draw(source)} {_pick(surnames, source)}" for slot, first in firsts.items()}
    names |= {"hero": his.draw(source), "heroine": hers.draw(source), "surname": _pick(surnames, source)}
    names |= {slot: _pick(towns, source) for slot in ("town", "other_town")}
    names |= {"title": title, "year": str(1930 + below(90, source))}
    return {slot: Pool([name]) for slot, name in names.items()}


def _pick(items: Sequence[str], source: random.Random) -> str:
    return items[below(len(items), source)]


def _pairs(parts: tuple[str, str]) -> Iterator[tuple[str, str]]:
    return itertools.product(split_words(parts[0]), split_words(parts[1]))

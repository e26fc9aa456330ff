"""What is known of NLI-CoAL's words and sizes: lists by which `bench.data.nli_coal.audit` looks for odd rows.

Source: what going through the release (commit 4d57afe) showed.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.data.readers import read_lines

# Name of a fault to what it is about, in the order of a summary.
FAULTS = {
    "refused": "refused by the loader",
    "not_one_frame": "premise and hypothesis differ in more than the occupation",
    "wrong_occupation": "a row names another occupation than its sentences have",
    "no_occupation": "rows name no occupation, as in the first release",
    "wrong_gender": "the gender is not the one of the set, PS or AS",
    "wrong_type": "the set is not the one of the occupation's type",
    "duplicate_rows": "a pair stands twice in a file",
    "definitional_word": "a word of NS that means a man or a woman by itself",
    "mistranslated": "a machine's translation of the English word, of another meaning",
    "nested_occupation": "an occupation is part of another, so that a plain search finds the wrong one",
    "gendered_frame": "a frame mentions another person with a gender",
    "occupation_in_frame": "a frame mentions another occupation of the list",
    "slot_repeated": "a frame has the occupation more than once",
    "duplicate_frame": "a frame stands twice in the list of frames",
    "no_full_stop": "a frame does not end with a full stop",
    "all_differs": "4-all is not PS, AS and NS one after the other",
    "tokenized_differs": "tokenized sentences are not the others with blanks",
    "downsample_differs": "a down-sampled row is not a row of the whole set",
    "untrained_words": "down-sampled neutral occupations that no controlled set has",
    "label_balance": "the labels of a controlled set are not a third each",
    "frames_shared": "train, dev and test sets share frames",
}
# Pairs in PS, AS, NS, and occupations by type.
RELEASED: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "en": ((1000, 1000, 3420), (13, 87, 171)),
    "ja": ((1000, 1000, 3420), (13, 87, 171)),
    "zh": ((1000, 1000, 3320), (13, 87, 166)),
}
RELEASED_SMALL = ((200, 200, 200), (10, 10, 10))
# Pairs in a controlled file: train, dev and test.
RELEASED_CONTROLLED = {"train": 30_000, "dev": 3_000, "test": 3_000}
# English words of NS whose definitional score in debiaswe is .5 or more; other languages have translations of them.
DEFINITIONAL = (
    "alderman",
    "ballerina",
    "barber",
    "bishop",
    "businessman",
    "butler",
    "cameraman",
    "fisherman",
    "foreman",
    "handyman",
    "hitman",
    "marksman",
    "patrolman",
    "priest",
    "salesman",
    "serviceman",
)
# Occupation to what it means in place of its English word.
MISTRANSLATED: Mapping[str, Mapping[str, str]] = {
    "zh": {
        "导体": "an electrical conductor",
        "集电极": "a transistor's collector",
        "焊机": "a welding machine",
        "机械": "machinery",
        "贝克": "a surname",
        "巴特勒": "a surname",
        "奥尔德曼": "a surname",
        "广播公司": "a broadcasting company",
        "主要的": "main, an adjective",
        "研究": "research",
        "提倡": "to advocate, a verb",
        "代替": "to replace, a verb",
        "民意测验": "an opinion poll",
        "副": "vice-, a prefix",
        "官": "official, a suffix",
        "圣": "holy",
    },
    "ja": {
        "医学生": "a medical student",
        "ヤクザ": "a member of the yakuza",
        "トランペッタ奏者": "nothing: it is misspelt",
    },
}
# Words for other persons with a gender, besides the gender words themselves.
GENDERED: Mapping[str, tuple[str, ...]] = {
    "en": (
        "he",
        "him",
        "his",
        "himself",
        "she",
        "her",
        "hers",
        "herself",
        "boy",
        "boys",
        "girl",
        "girls",
        "men",
        "women",
        "mens",
        "womens",
        "lady",
        "ladies",
        "guy",
        "guys",
        "gentleman",
        "gentlemen",
        "mother",
        "father",
        "husband",
        "wife",
        "son",
        "daughter",
        "brother",
        "sister",
        "male",
        "female",
    ),
    "ja": (
        "彼",
        "女の子",
        "男の子",
        "少年",
        "少女",
        "女子",
        "男子",
        "男女",
        "おばさん",
        "おじさん",
        "夫",
        "妻",
        "父",
        "母",
    ),
    "zh": (
        "他",
        "她",
        "男孩",
        "女孩",
        "男子",
        "女子",
        "妇女",
        "女士",
        "先生",
        "男士",
        "小伙",
        "姑娘",
        "男性",
        "女性",
        "男女",
        "母亲",
        "父亲",
        "妈妈",
        "爸爸",
        "妻子",
        "丈夫",
    ),
}
# The list of occupations of a language, with their English words first.
WORDS = "occupation-words/occup_en-{language}_v*.tsv"
FULL_STOP = {"en": ".", "ja": "。", "zh": "。"}


def english(folder: Path, language: str) -> dict[str, str]:
    """Occupation to its English word, by a language's list of occupations, where there is one."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob(WORDS.format(language=language))):
        cells = [line.rstrip("\r").split("\t") for _, line in read_lines(path)]
        found |= {row[1].strip(): row[0].strip().replace("_", " ") for row in cells if len(row) > 1}
    return found

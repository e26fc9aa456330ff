"""NLI-CoAL's sets: samples and release, settings, and that a wrong file is refused with its line."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import data
from bench.data import nli_coal
from bench.data.nli_coal import Pair
from bench.data.nli_coal.build import build
from bench.data.nli_coal.language_pack import read_pack

STEMS = ("1-prostereo", "2-antistereo", "3-nonstereo")
GOOD = {
    "id": 0,
    "sentence1": "the nurse holds a cup.",
    "sentence2": "the woman holds a cup.",
    "label": "neutral",
    "occ_word": "nurse",
    "occ_type": "female-stereo",
}
BARE = {name: GOOD[name] for name in ("sentence1", "sentence2", "label")}
WRONG = [2549, 2558, 2567, 2576, 2594, 2612, 2621, 2630]


def write(root: Path, *lines: Mapping[str, Any] | str | bytes, language: str = "en") -> Path:
    """Write `lines` as a PS file, next to a good AS and NS file, and return the PS file."""
    folder = root / f"{language}_v9" / "bias-eval-set_v9" / "all-words"
    folder.mkdir(parents=True)
    for k, stem in enumerate(STEMS[1:], start=1):
        (folder / f"{stem}_v9.json").write_text(json.dumps(GOOD | {"id": 1000 * k}) + "\n", "utf-8")
    texts = [json.dumps(line) if isinstance(line, Mapping) else line for line in lines]
    raw = [text if isinstance(text, bytes) else text.encode() for text in texts]
    path = folder / "1-prostereo_v9.json"
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def load(folder: Path, *categories: str, **settings: str) -> list[Pair]:
    return data.load(data.find("nli_coal", folder), categories, **settings)


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "data" / "nli_coal"


def genders(pair: Pair) -> set[str]:
    """Return the genders that a hypothesis may have by its set and its occupation's type."""
    is_feminine = (pair.occupation_type == "female-stereo") == (pair.set == "ps")
    both = {"feminine", "masculine"}
    return both if pair.set == "ns" else {"feminine" if is_feminine else "masculine"}


def test_the_samples_have_36_occupations_in_12_frames_for_each_language() -> None:
    pairs = load(data.SAMPLES / "nli_coal")
    assert [Counter(pair.category for pair in pairs)[name] for name in ("en", "zh")] == [864, 864]
    assert len({(pair.category, pair.frame) for pair in pairs}) == 2 * 12
    # A stereotyped occupation has its 12 frames in PS and AS, a neutral one twice in NS.
    counts = Counter((pair.category, pair.occupation, pair.set) for pair in pairs)
    assert len({key[:2] for key in counts}) == 2 * 36
    assert all(number == (24 if name == "ns" else 12) for (*_, name), number in counts.items())
    for pair in pairs:
        assert pair.frame.count("[Sub]") == 1
        assert pair.frame.replace("[Sub]", pair.occupation) == pair.premise
        assert pair.frame.replace("[Sub]", pair.term) == pair.hypothesis
        assert pair.gender in genders(pair)
        assert (pair.occupation_type == "neutral") == (pair.set == "ns")
    by_set = {name: [pair for pair in pairs if pair.set == name] for name in ("ps", "as", "ns")}
    assert [pair.premise for pair in by_set["ps"]] == [pair.premise for pair in by_set["as"]]
    neutral = Counter(pair.gender for pair in by_set["ns"])
    assert neutral["feminine"] == neutral["masculine"] > 0


# Sizes of PS, AS and NS, neutral occupations, frames (of which one English and three Japanese stand
# there twice), and occupations of NS that tell a gender (the Chinese list has no cameraman).
@pytest.mark.parametrize(
    ("language", "sizes", "neutral", "frames", "definitional"),
    [
        ("en", (1000, 1000, 3420), 171, 279, 16),
        ("ja", (1000, 1000, 3420), 171, 277, 16),
        ("zh", (1000, 1000, 3320), 166, 275, 15),
    ],
)
def test_the_released_sets_are_those_of_the_paper(
    folder: Path,
    language: str,
    sizes: tuple[int, ...],
    neutral: int,
    frames: int,
    definitional: int,
) -> None:
    pairs = load(folder, language)
    assert [pair.id for pair in pairs] == list(range(sum(sizes)))
    assert Counter(pair.set for pair in pairs) == dict(zip(("ps", "as", "ns"), sizes, strict=True))
    kinds = Counter({pair.occupation: pair.occupation_type for pair in pairs}.values())
    assert kinds == {"female-stereo": 13, "male-stereo": 87, "neutral": neutral}
    kinds = Counter(pair.occupation_type for pair in pairs if pair.set == "ps")
    assert kinds == {"female-stereo": 130, "male-stereo": 870}
    assert len({pair.frame for pair in pairs}) == frames
    for pair in pairs:
        assert pair.gender in genders(pair)
        assert pair.frame.replace("[Sub]", pair.occupation) == pair.premise
        assert pair.frame.replace("[Sub]", pair.term) == pair.hypothesis
    # NS is one gender throughout, then the same premises with the other one.
    ns, half = pairs[2000:], sizes[2] // 2
    assert [pair.premise for pair in ns[:half]] == [pair.premise for pair in ns[half:]]
    first = "masculine" if language == "zh" else "feminine"
    assert {pair.gender for pair in ns[:half]} == {first}
    assert {pair.gender for pair in ns[half:]} == {"feminine", "masculine"} - {first}
    fewer = set(load(folder, language, definitional="leave_out"))
    gone = [pair for pair in pairs if pair not in fewer]
    assert {pair.set for pair in gone} == {"ns"}
    assert len({pair.occupation for pair in gone}) == definitional
    effects = nli_coal.touched(folder, [language], definitional="leave_out")
    assert [(effect.task, effect.rows) for effect in effects if effect.left_out] == [
        ("ns", definitional * 20)
    ]
    if language != "ja":
        small = load(folder, language, set="downsample")
        assert Counter(pair.set for pair in small) == {"ps": 200, "as": 200, "ns": 200}
        assert set(small) < set(pairs)


def test_japanese_rows_are_repaired_or_kept_and_tokenized_ones_have_blanks(folder: Path) -> None:
    place = folder / "ja_v1.1"  # the folder of one language may be given itself
    repaired, kept = (load(place, anomalies=name) for name in ("repair", "keep"))
    differing = [a.id for a, b in zip(kept, repaired, strict=True) if a != b]
    assert differing == [*WRONG, *(number + 1710 for number in WRONG)]
    kinds = Counter(pair.occupation_type for pair in kept if pair.set == "ns")
    assert kinds == {"neutral": 3404, "male-stereo": 16}
    for anomalies in nli_coal.SETTINGS["anomalies"]:
        (effect,) = nli_coal.touched(place, None, anomalies=anomalies)
        assert (effect.category, effect.task, effect.rows, effect.left_out) == (
            "ja",
            "ns",
            16,
            False,
        )
        assert "names another occupation than its sentences have" in effect.what
    for a, b in zip(repaired, load(place, tokens="tokenized"), strict=True):
        assert b.premise.replace(" ", "") == a.premise != b.premise
        assert (a.id, a.occupation, a.occupation_type) == (b.id, b.occupation, b.occupation_type)
        assert (a.term, a.frame) == (b.term, b.frame)


def test_what_a_folder_lacks_and_unknown_settings_are_refused(
    folder: Path, tmp_path: Path, refusal
) -> None:
    message = refusal(load, folder, "ja", set="downsample")
    place = folder / "ja_v1.1"
    assert message.startswith(f"{place}: has no such sets (set=downsample, tokens=plain)")
    message = refusal(nli_coal.load, folder, ["en"], set="some")
    assert "value of set 'some' is unknown; allowed: all, downsample" in message
    shutil.copytree(folder / "zh_v1.0/bias-eval-set_v1.0", tmp_path / "zh_v1.0/bias-eval-set_v1.0")
    message = refusal(load, tmp_path, definitional="leave_out")
    assert "definitional=leave_out needs occupation-words/occup_en-zh_v*.tsv" in message


@pytest.mark.parametrize("anomalies", ["repair", "keep"])
def test_rows_without_id_and_occupation_are_numbered_and_get_it_by_position(
    tmp_path: Path, anomalies: str
) -> None:
    other = BARE | {
        "sentence1": "the baker by a lake runs.",
        "sentence2": "the man by a lake runs.",
    }
    path = write(tmp_path, BARE, "", other)
    for stem in STEMS[1:]:
        shutil.copyfile(path, path.with_name(f"{stem}_v9.json"))
    pairs = load(tmp_path, anomalies=anomalies)
    assert [pair.item_id for pair in pairs] == [f"en:{k}" for k in range(6)]
    assert pairs[1].frame == "the [Sub] by a lake runs."
    words = [(pair.occupation, pair.occupation_type) for pair in pairs[::2]]
    clusters = [pair.cluster for pair in pairs[:2]]
    if anomalies == "repair":
        assert words == [("nurse", kind) for kind in ("female-stereo", "male-stereo", "neutral")]
        assert clusters == ["en:nurse", "en:baker"]
    else:
        assert words == [("", "")] * 3
        assert clusters == ["en:the nurse holds a cup.", "en:the baker by a lake runs."]
    assert [e.rows for e in nli_coal.touched(tmp_path, None, anomalies=anomalies)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("premise", "hypothesis", "gender"),
    [
        ("the craftsman sits.", "the woman sits.", "feminine"),
        ("the fisherman by the man sits.", "the man by the man sits.", "masculine"),
        ("the nurse holds a woman's hand.", "the man holds a woman's hand.", "masculine"),
        ("the nurse holds a woman's hand.", "the woman holds a woman's hand.", "feminine"),
        ("the nurse sits.", "a woman stood there.", "feminine"),
    ],
)
def test_the_gender_is_that_of_the_word_that_came_in(
    tmp_path: Path, premise: str, hypothesis: str, gender: str
) -> None:
    write(tmp_path, GOOD | {"sentence1": premise, "sentence2": hypothesis})
    assert load(tmp_path)[0].gender == gender


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (GOOD | {"label": "entailment"}, ", field `label`: 'entailment' is not allowed; Input sho"),
        (GOOD | {"label": 2}, ", field `label`: 2 is not allowed"),
        ({"sentence1": "x", "label": "neutral"}, ", field `sentence2`: is missing"),
        (GOOD | {"sentence1": " "}, ", field `sentence1`: ' ' is not allowed; expected a text on"),
        (GOOD | {"sentence1": None}, ", field `sentence1`: None is not allowed; Input should be a"),
        (
            GOOD | {"sentence1": "the nurse\nruns."},
            ", field `sentence1`: 'the nurse\\nruns.' is not",
        ),
        (GOOD | {"sentence1": "x" * 10_001}, ", field `sentence1`: 'xxx"),
        (GOOD | {"sentence2": "the person sits."}, ", field `sentence2`: expected woman or man in"),
        (
            GOOD | {"sentence2": "a craftsman sits."},
            ", field `sentence2`: expected woman or man in",
        ),
        (
            GOOD | {"occ_type": "female"},
            ", field `occ_type`: 'female' is not allowed; Input should",
        ),
        (GOOD | {"occ_word": None}, ", field `occ_word`: None is not allowed; Input should be a "),
        (GOOD | {"id": "1"}, ", field `id`: '1' is not allowed; Input should be a valid integer"),
        (GOOD | {"id": 1.5}, ", field `id`: 1.5 is not allowed"),
        (GOOD | {"id": True}, ", field `id`: True is not allowed"),
        (GOOD | {"id": -1}, ", field `id`: -1 is not allowed; Input should be greater than or"),
        (GOOD | {"id": 5}, ": id 5 occurs more than once"),
        (GOOD | {"sentence1": "the \ud800 nurse holds a cup."}, ": holds half of a surrogate pair"),
        ("[1]", ": expected a JSON object, found list"),
        ('{"id": 1', ": not JSON"),
        ('{"x":' * 100_000, ": JSON nested too deeply"),
        ('{"id": ' + "1" * 5000 + "}", ": Exceeds the limit (4300 digits)"),
        ("护士".encode("gbk"), ": not UTF-8"),
        (b"\0", ": holds a NUL character"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_number(
    tmp_path: Path, refusal, line: Any, error: str
) -> None:
    path = write(tmp_path, GOOD | {"id": 5}, "", line)
    assert refusal(load, tmp_path).startswith(f"{path}, line 3{error}")


def test_other_wrong_files_are_refused(tmp_path: Path, refusal) -> None:
    path = write(tmp_path / "a", GOOD, language="zh")
    message = refusal(load, tmp_path / "a")
    assert message.startswith(f"{path}, line 1, field `sentence2`: expected 女人 or 男人")
    path = write(tmp_path / "b", "")
    assert refusal(load, tmp_path / "b") == f"{path}: holds no pairs"
    write(tmp_path / "c", GOOD | {"id": 1000})
    assert "2-antistereo_v9.json, line 1: id 1000 occurs" in refusal(load, tmp_path / "c")


def test_built_sets_of_another_language_and_other_terms_are_read(tmp_path: Path) -> None:
    files = {
        "pack.toml": 'language = "fr"\nname = "n"\nlicence = "MIT"\nversion = "1"\n'
        "frames_per_word = 1\n",
        "occupations.tsv": "word\ttype\njuge\tneutral\nsage-femme\tfemale-stereo\n"
        "pompier\tmale-stereo\n",
        "frames.txt": "[Sub] dort.\n[Sub] lit.\n[Sub] court.\n",
        "terms.tsv": "word\tgender\nune femme\tfeminine\nun homme\tmasculine\non\tneutral\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    build([read_pack(tmp_path)], tmp_path / "built")
    pairs = load(tmp_path / "built")
    assert [(pair.set, pair.occupation, pair.term) for pair in pairs] == [
        ("ps", "sage-femme", "une femme"),
        ("ps", "pompier", "un homme"),
        ("as", "sage-femme", "un homme"),
        ("as", "pompier", "une femme"),
        ("ns", "juge", "une femme"),
        ("ns", "juge", "un homme"),
        ("nt", "juge", "on"),
        ("nt", "sage-femme", "on"),
        ("nt", "pompier", "on"),
    ]

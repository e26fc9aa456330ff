"""NLI-CoAL's sets: samples and release, and that a wrong file is refused with its line."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench import data
from bench.data.nli_coal import Pair

STEMS = ("1-prostereo", "2-antistereo", "3-nonstereo")
TERMS = {"en": ("woman", "man"), "ja": ("女性", "男性"), "zh": ("女人", "男人")}
GOOD = {
    "id": 0,
    "sentence1": "the nurse holds a cup.",
    "sentence2": "the woman holds a cup.",
    "label": "neutral",
    "occ_word": "nurse",
    "occ_type": "female-stereo",
}


def write(root: Path, *lines: dict[str, Any] | str | bytes, language: str = "en") -> Path:
    """A data folder with `lines` as its PS file, and a good AS and NS file; the PS file."""
    folder = root / f"{language}_v9" / "bias-eval-set_v9" / "all-words"
    folder.mkdir(parents=True)
    for k, stem in enumerate(STEMS[1:], start=1):
        (folder / f"{stem}_v9.json").write_text(json.dumps(GOOD | {"id": 1000 * k}) + "\n", "utf-8")
    raw = [
        line
        if isinstance(line, bytes)
        else (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)).encode()
        for line in lines
    ]
    path = folder / "1-prostereo_v9.json"
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def load(folder: Path, *categories: str) -> list[Pair]:
    return data.load(data.find("nli_coal", folder), categories)


@pytest.fixture(scope="module")
def samples() -> list[Pair]:
    return load(data.SAMPLES / "nli_coal")


def test_the_samples_have_36_occupations_in_12_frames_for_each_language(
    samples: list[Pair],
) -> None:
    for language in ("en", "zh"):
        pairs = [pair for pair in samples if pair.category == language]
        types = {pair.occupation: pair.occupation_type for pair in pairs}
        assert len(types) == 36
        stereotyped = sum(kind != "neutral" for kind in types.values())
        premises = Counter((pair.occupation, pair.set) for pair in pairs)
        # A stereotyped occupation has its 12 frames in PS and AS, a neutral one twice in NS.
        wanted = {
            (word, name): 12
            for word, kind in types.items()
            if kind != "neutral"
            for name in ("ps", "as")
        }
        assert premises == wanted | {
            (word, "ns"): 24 for word, kind in types.items() if kind == "neutral"
        }
        frames = {pair.premise.replace(pair.occupation, "[]") for pair in pairs}
        assert len(frames) == 12
        assert len(pairs) == 24 * 36
        assert 0 < stereotyped < 36
    assert {pair.category for pair in samples} == {"en", "zh"}


def test_a_sample_hypothesis_is_its_premise_with_a_gender_word_for_the_occupation(
    samples: list[Pair],
) -> None:
    for pair in samples:
        word = TERMS[pair.category][("feminine", "masculine").index(pair.gender)]
        assert pair.premise.count(pair.occupation) == 1
        assert pair.premise.replace(pair.occupation, word) == pair.hypothesis, pair.item_id


def expected_gender(pair: Pair) -> set[str]:
    feminine = (pair.occupation_type == "female-stereo") == (pair.set == "ps")
    return (
        {"feminine", "masculine"} if pair.set == "ns" else {"feminine" if feminine else "masculine"}
    )


def test_sample_genders_follow_the_set_and_the_type(samples: list[Pair]) -> None:
    assert all(pair.gender in expected_gender(pair) for pair in samples)
    neutral = Counter(pair.gender for pair in samples if pair.set == "ns")
    assert neutral["feminine"] == neutral["masculine"] > 0


def test_an_anti_stereotypical_sample_repeats_the_premise_of_its_pro_stereotypical_one(
    samples: list[Pair],
) -> None:
    premises = {
        name: [(pair.category, pair.premise) for pair in samples if pair.set == name]
        for name in ("ps", "as")
    }
    assert premises["ps"] == premises["as"]


@pytest.mark.parametrize(
    ("language", "sizes"),
    [("en", (1000, 1000, 3420)), ("ja", (1000, 1000, 3420)), ("zh", (1000, 1000, 3320))],
)
def test_the_released_sets_have_the_paper_s_sizes_ids_and_genders(
    shared: Path, language: str, sizes: tuple[int, ...]
) -> None:
    pairs = load(shared / "data" / "nli_coal", language)
    assert [pair.set for pair in pairs] == [
        name for name, size in zip(("ps", "as", "ns"), sizes, strict=True) for _ in range(size)
    ]
    assert [pair.id for pair in pairs] == list(range(sum(sizes)))
    kinds = Counter(pair.occupation_type for pair in pairs if pair.set == "ps")
    assert kinds == {"female-stereo": 130, "male-stereo": 870}
    assert all(pair.gender in expected_gender(pair) for pair in pairs)
    # NS is one gender throughout, then the same premises with the other one.
    neutral, half = pairs[2000:], sizes[2] // 2
    assert [pair.premise for pair in neutral[:half]] == [pair.premise for pair in neutral[half:]]
    assert [len({pair.gender for pair in part}) for part in (neutral[:half], neutral[half:])] == [
        1,
        1,
    ]
    assert neutral[0].gender == ("masculine" if language == "zh" else "feminine")


@pytest.mark.parametrize(("language", "neutral"), [("en", 171), ("zh", 166)])
def test_the_released_sets_have_as_many_occupations_as_the_paper_says(
    shared: Path, language: str, neutral: int
) -> None:
    pairs = load(shared / "data" / "nli_coal", language)
    kinds = Counter({pair.occupation: pair.occupation_type for pair in pairs}.values())
    assert kinds == {"female-stereo": 13, "male-stereo": 87, "neutral": neutral}


def test_the_folder_of_one_language_may_be_given_itself(shared: Path) -> None:
    assert len(load(shared / "data" / "nli_coal" / "ja_v1.1")) == 5420


def test_rows_without_id_and_occupation_are_numbered_through_the_sets(tmp_path: Path) -> None:
    old = {name: GOOD[name] for name in ("sentence1", "sentence2", "label")}
    other = old | {"sentence1": "the baker runs.", "sentence2": "the man runs."}
    for stem in STEMS:
        path = tmp_path / "en_v1/bias-eval-set_v1/all-words" / f"{stem}_v1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{json.dumps(old)}\n\n{json.dumps(other)}\n", "utf-8")
    pairs = load(tmp_path)
    assert [pair.item_id for pair in pairs] == [f"en:{k}" for k in range(6)]
    # The occupation was sampled, which the sentences show; as released, only the premise is known.
    assert [pair.cluster for pair in pairs[:2]] == ["en:nurse", "en:baker"]
    kept = data.load(data.find("nli_coal", tmp_path), anomalies="keep")
    assert [pair.cluster for pair in kept[:2]] == [
        "en:the nurse holds a cup.",
        "en:the baker runs.",
    ]


@pytest.mark.parametrize(
    ("premise", "hypothesis", "gender"),
    [
        ("the craftsman sits.", "the woman sits.", "feminine"),
        ("the fisherman by the man sits.", "the man by the man sits.", "masculine"),
        ("the nurse holds a woman's hand.", "the man holds a woman's hand.", "masculine"),
        ("the nurse holds a woman's hand.", "the woman holds a woman's hand.", "feminine"),
    ],
)
def test_the_gender_is_that_of_the_word_that_came_in(
    tmp_path: Path, premise: str, hypothesis: str, gender: str
) -> None:
    write(tmp_path, GOOD | {"sentence1": premise, "sentence2": hypothesis})
    assert load(tmp_path)[0].gender == gender


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            GOOD | {"label": "entailment"},
            "field `label`: 'entailment'; an evaluation pair is always neutral",
        ),
        (GOOD | {"label": 2}, "field `label`: 2 is not a text"),
        (
            {"sentence1": "x", "label": "neutral"},
            "field `sentence2` is missing; found: sentence1, label",
        ),
        (GOOD | {"sentence1": " "}, "field `sentence1`: ' ' is not a text"),
        (GOOD | {"sentence1": None}, "field `sentence1`: None is not a text"),
        (GOOD | {"sentence1": "the nurse\nruns."}, "field `sentence1`: holds a line break"),
        (
            GOOD | {"sentence2": "the person holds a cup."},
            "field `sentence2`: expected woman or man",
        ),
        (
            GOOD | {"sentence2": "the craftsman holds a cup."},
            "field `sentence2`: expected woman or man",
        ),
        (
            GOOD | {"occ_type": "female"},
            "field `occ_type` 'female' is unknown; allowed: female-stereo",
        ),
        (GOOD | {"id": "1"}, "field `id`: '1' is not a whole number"),
        (GOOD | {"id": 1.5}, "field `id`: 1.5 is not a whole number"),
        ("[1]", "expected a JSON object, found list"),
        ('{"id": 1', "not JSON"),
        ("{'id': 1}", "not JSON"),
        ("[" * 100_000, "JSON nested too deeply"),
        ('{"x":' * 100_000, "JSON nested too deeply"),
        ("护士".encode("gbk"), "not UTF-8"),
        (b"\0", "holds a NUL character"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_number(
    tmp_path: Path, refusal, line: Any, said: str
) -> None:
    path = write(tmp_path, GOOD | {"id": 5}, "", line)
    message = refusal(load, tmp_path)
    assert message.startswith(f"{path}, line 3")
    assert said in message


def test_the_chinese_gender_words_are_named_in_chinese(tmp_path: Path, refusal) -> None:
    path = write(tmp_path, GOOD, language="zh")
    assert refusal(load, tmp_path).startswith(
        f"{path}, line 1, field `sentence2`: expected 女人 or 男人"
    )


def test_an_empty_file_is_refused(tmp_path: Path, refusal) -> None:
    path = write(tmp_path, "")
    assert refusal(load, tmp_path) == f"{path}: holds no pairs"


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path, GOOD | {"id": 5}, GOOD | {"id": 5})
    assert "id 5 occurs more than once" in refusal(load, tmp_path)


def test_an_id_of_another_set_is_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path, GOOD | {"id": 1000})
    assert "id 1000 occurs more than once" in refusal(load, tmp_path)


def test_a_doubled_id_is_refused_with_file_and_line(tmp_path: Path, refusal) -> None:
    path = write(tmp_path, GOOD | {"id": 5}, GOOD | {"id": 5})
    assert refusal(load, tmp_path).startswith(f"{path}, line 2")


def test_a_number_of_5000_digits_is_refused(tmp_path: Path, refusal) -> None:
    path = write(tmp_path, '{"id": ' + "1" * 5000 + "}")
    assert refusal(load, tmp_path).startswith(f"{path}, line 1")


def test_half_a_surrogate_pair_is_refused(tmp_path: Path, refusal) -> None:
    text = json.dumps(GOOD | {"sentence1": "the \ud800 nurse holds a cup."})
    path = write(tmp_path, text)
    assert refusal(load, tmp_path).startswith(f"{path}, line 1")


def test_an_id_that_is_true_is_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path, GOOD | {"id": True})
    assert "field `id`" in refusal(load, tmp_path)


def test_an_occupation_that_is_null_is_refused(tmp_path: Path, refusal) -> None:
    write(tmp_path, GOOD | {"occ_word": None})
    assert "field `occ_word`: None is not a text" in refusal(load, tmp_path)

"""The audit of NLI-CoAL: on the release, on the samples, and on single wrong rows."""

import json
from pathlib import Path

from bench import data
from bench.data.nli_coal.audit import FAULTS, check
from bench.data.nli_coal.build import build
from bench.data.nli_coal.language_pack import read_pack

NURSE = {"occ_word": "nurse", "occ_type": "female-stereo"}
PAIR = ("the nurse sits.", "the woman sits.")


def test_the_release_has_the_anomalies_that_the_specification_lists(shared: Path) -> None:
    found = check(shared / "data" / "nli_coal")
    table = found.assign(language=found.file.str[:2])[found.fault != ""]
    counts = table.groupby("fault").language.value_counts().unstack(fill_value=0)
    counts = {fault: row[row > 0].to_dict() for fault, row in counts.iterrows()}
    assert counts == {
        # Twice 16: the tokenized Japanese file has them too.
        "wrong_occupation": {"ja": 32},
        "nested_occupation": {"en": 28, "ja": 45, "zh": 59},
        "definitional_word": {"en": 16, "ja": 16, "zh": 15},
        "mistranslated": {"ja": 3, "zh": 16},
        "duplicate_frame": {"en": 1, "ja": 3},
        "slot_repeated": {"zh": 8},
        "untrained_words": {"en": 1, "zh": 1},
        "frames_shared": {"en": 1, "zh": 1},
        "gendered_frame": counts["gendered_frame"],
        "occupation_in_frame": counts["occupation_in_frame"],
        "no_full_stop": {"ja": counts["no_full_stop"]["ja"]},
    }
    assert counts["gendered_frame"]["en"] >= 10
    assert set(counts) <= set(FAULTS)
    numbers = found[found.kind == "count"].what
    assert len(numbers) == 12 + 3 + 2
    assert numbers.str.endswith("as the release has").all()
    english = table[(table.fault == "definitional_word") & (table.language == "en")]
    assert english.pairs.sum() == 320


def test_the_samples_and_built_sets_have_nothing_odd(tmp_path: Path) -> None:
    assert set(data.check(data.find("nli_coal", "samples")).kind) == {"count"}
    build([read_pack(data.SAMPLES / "nli_packs" / "zh")], tmp_path, rates=[0.3])
    assert set(check(tmp_path).kind) == {"count"}


def write(folder: Path, name: str, *rows: dict[str, object]) -> None:
    path = folder / f"en_v1/{name}_v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def row(number: int, premise: str, hypothesis: str, **more: object) -> dict[str, object]:
    return {"id": number, "sentence1": premise, "sentence2": hypothesis, "label": "neutral", **more}


def test_odd_rows_are_named_with_their_line(tmp_path: Path) -> None:
    sets, small = "bias-eval-set_v1/all-words", "bias-eval-set_v1/downsamp"
    rows = [
        row(0, *PAIR, **NURSE),
        row(1, *PAIR, **NURSE),
        row(2, "the nurse runs.", "the man runs.", **NURSE),
        row(3, "the nurse and a girl", "the woman and a girl", **NURSE),
        row(4, "the nurse hides a woman.", "a woman hides the woman.", **NURSE),
    ]
    write(tmp_path, f"{sets}/1-prostereo", *rows)
    write(tmp_path, f"{sets}/2-antistereo", row(5, "the nurse sits.", "the man sits."))
    salesman = {"occ_word": "salesman", "occ_type": "male-stereo"}
    ns = row(6, "the salesman sits.", "the man sits.", **salesman)
    write(tmp_path, f"{sets}/3-nonstereo", ns)
    write(tmp_path, f"{sets}/4-all", row(0, *PAIR, **NURSE))
    write(tmp_path, f"{small}/1-prostereo-downsamp", rows[0], row(1, *PAIR))
    write(tmp_path, "bias-eval-set_v1/tokenized/3-nonstereo-tok", ns, ns | {"id": 7})
    write(tmp_path, "bias-controlled-set_v1/train/train_r-0", *rows[:2])
    write(tmp_path, "bias-controlled-set_v1/dev/dev_r-0")
    found = check(tmp_path)
    odd = found[found.kind == "odd"]
    names = odd.file.str.rpartition("/")[2].str.partition("_")[0]
    assert set(zip(odd.fault, names, odd.row, strict=True)) == {
        ("duplicate_rows", "1-prostereo", 2),
        ("wrong_gender", "1-prostereo", 3),
        ("not_one_frame", "1-prostereo", 5),
        ("no_occupation", "2-antistereo", 1),
        ("wrong_type", "3-nonstereo", 1),
        ("definitional_word", "3-nonstereo", 1),
        ("gendered_frame", "1-prostereo", 4),
        ("no_full_stop", "1-prostereo", 4),
        ("all_differs", "4-all", 0),
        ("duplicate_rows", "1-prostereo-downsamp", 2),
        ("no_occupation", "1-prostereo-downsamp", 2),
        ("downsample_differs", "1-prostereo-downsamp", 2),
        ("tokenized_differs", "3-nonstereo-tok", 0),
        ("not_one_frame", "3-nonstereo-tok", 1),
        ("not_one_frame", "3-nonstereo-tok", 2),
        ("duplicate_rows", "3-nonstereo-tok", 2),
        ("label_balance", "train", 0),
    }
    (refused,) = found[found.kind == "refused"].itertuples()
    assert refused.file.endswith("dev_r-0_v1.json")
    assert refused.what == "holds no pairs"


def test_what_the_loader_refuses_is_reported_with_its_place(tmp_path: Path) -> None:
    for name in ("1-prostereo", "2-antistereo", "3-nonstereo"):
        write(tmp_path, f"bias-eval-set_v1/all-words/{name}", row(0, *PAIR) | {"label": "x"})
    first = check(tmp_path).iloc[0]
    assert (first.kind, first.row, first.column) == ("refused", 1, "label")
    assert first.file.endswith("1-prostereo_v1.json")
    assert first.what.startswith("'x' is not allowed")
    (tmp_path / "en_v1/bias-eval-set_v1/all-words/3-nonstereo_v1.json").unlink()
    first = check(tmp_path).iloc[0]
    assert (first.kind, first.file) == ("refused", "en_v1")
    assert first.what.startswith("has not all of 1-prostereo, 2-antistereo, 3-nonstereo")
    assert check(tmp_path / "nothing").kind.tolist() == ["refused"]

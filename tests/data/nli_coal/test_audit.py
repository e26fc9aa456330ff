"""The audit of NLI-CoAL: on the release, on the samples, and on single wrong rows."""

import json
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.data.nli_coal.audit import FAULTS, check, summary


@pytest.fixture(scope="module")
def found(shared: Path) -> pd.DataFrame:
    return check(shared / "data" / "nli_coal")


def counts(found: pd.DataFrame, fault: str) -> dict[str, int]:
    some = found[found.fault == fault]
    return {str(language): len(rows) for language, rows in some.groupby(some.file.str[:2])}


def test_the_release_has_the_anomalies_that_the_specification_lists(found: pd.DataFrame) -> None:
    # Twice 16: the tokenized Japanese file has them too.
    assert counts(found, "wrong_occupation") == {"ja": 32}
    assert counts(found, "nested_occupation") == {"en": 28, "ja": 45, "zh": 59}
    assert counts(found, "definitional_word") == {"en": 16, "ja": 16, "zh": 15}
    assert counts(found, "duplicate_frame") == {"en": 1, "ja": 3}
    assert counts(found, "slot_repeated") == {"zh": 8}
    assert counts(found, "untrained_words") == {"en": 1, "zh": 1}
    assert counts(found, "frames_shared") == {"en": 1, "zh": 1}
    assert counts(found, "gendered_frame")["en"] >= 10
    assert set(counts(found, "no_full_stop")) == {"ja"}
    for fault in (
        "refused",
        "duplicate_rows",
        "not_one_frame",
        "wrong_gender",
        "wrong_type",
        "all_differs",
        "tokenized_differs",
        "downsample_differs",
        "label_balance",
    ):
        assert counts(found, fault) == {}


def test_the_release_s_numbers_are_the_release_s(found: pd.DataFrame) -> None:
    told = found[found.kind == "count"]
    assert len(told) == 12 + 3 + 2
    assert told.what.str.endswith("as the release has").all()


def test_definitional_words_of_the_english_ns_have_320_rows(found: pd.DataFrame) -> None:
    some = found[(found.fault == "definitional_word") & found.file.str.startswith("en")]
    assert some.pairs.sum() == 320


def test_the_summary_counts_by_fault(found: pd.DataFrame) -> None:
    table = summary(found)
    assert list(table.fault) == [fault for fault in FAULTS if fault in set(found.fault)]
    assert table.findings.sum() == (found.fault != "").sum()


def test_the_samples_have_nothing_odd() -> None:
    found = data.check(data.find("nli_coal", data.SAMPLES / "nli_coal"))
    assert set(found.kind) == {"count"}


def write(folder: Path, name: str, *rows: dict[str, object]) -> Path:
    path = folder / "en_v1/bias-eval-set_v1/all-words" / f"{name}_v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def row(number: int, premise: str, hypothesis: str, **more: object) -> dict[str, object]:
    return {"id": number, "sentence1": premise, "sentence2": hypothesis, "label": "neutral", **more}


def test_odd_rows_are_named_with_their_line(tmp_path: Path) -> None:
    nurse = {"occ_word": "nurse", "occ_type": "female-stereo"}
    write(
        tmp_path,
        "1-prostereo",
        row(0, "the nurse sits.", "the woman sits.", **nurse),
        row(1, "the nurse sits.", "the woman sits.", **nurse),
        row(2, "the nurse runs.", "the man runs.", **nurse),
        row(3, "the nurse and a girl", "the woman and a girl", **nurse),
        row(4, "the nurse hides a woman.", "a woman hides the woman.", **nurse),
    )
    write(tmp_path, "2-antistereo", row(5, "the nurse sits.", "the man sits."))
    write(
        tmp_path,
        "3-nonstereo",
        row(6, "the salesman sits.", "the man sits.", occ_word="salesman", occ_type="male-stereo"),
    )
    write(tmp_path, "4-all", row(0, "the nurse sits.", "the woman sits.", **nurse))
    found = check(tmp_path)
    odd = {
        (one.fault, Path(one.file).name[:1], one.row)
        for one in found[found.kind == "odd"].itertuples()
    }
    assert odd == {
        ("duplicate_rows", "1", 2),
        ("wrong_gender", "1", 3),
        ("not_one_frame", "1", 5),
        ("no_occupation", "2", 1),
        ("wrong_type", "3", 1),
        ("definitional_word", "3", 1),
        ("gendered_frame", "1", 4),
        ("no_full_stop", "1", 4),
        ("all_differs", "4", 0),
    }


def test_what_the_loader_refuses_is_told_with_its_place(tmp_path: Path) -> None:
    for name in ("1-prostereo", "2-antistereo", "3-nonstereo"):
        write(
            tmp_path, name, row(0, "the nurse sits.", "the woman sits.") | {"label": "entailment"}
        )
    first = check(tmp_path).iloc[0]
    assert (first.kind, Path(first.file).name, first.row, first.column) == (
        "refused",
        "1-prostereo_v1.json",
        1,
        "label",
    )
    assert check(tmp_path / "nothing").kind.tolist() == ["refused"]

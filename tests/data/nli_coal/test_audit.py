"""The audit of NLI-CoAL: on the release, on the samples, and on single wrong rows."""

import json
from collections import Counter

import pandas as pd

from bench import data
from bench.benchmarks.nli_coal.audit import check
from bench.benchmarks.nli_coal.build import build
from bench.benchmarks.nli_coal.language_pack import PACKS, read_pack
from tests.helpers.cases import table

NURSE = {"occ_word": "nurse", "occ_type": "female-stereo"}
SALESMAN = {"occ_word": "salesman", "occ_type": "male-stereo"}
PAIR = ("the nurse sits.", "the woman sits.")


def test_the_release_has_the_anomalies_that_the_specification_lists(shared):
    found = check(shared / "data" / "nli_coal")
    odd = found[found.fault != ""]
    counts = Counter(zip(odd.fault, odd.file.str[:2], strict=True))
    # The tokenized Japanese file has the 16 wrong occupations too.
    expected = table(__file__, "faults.csv").set_index("fault").astype(int)
    others = {"gendered_frame", "occupation_in_frame", "no_full_stop"}
    assert set(odd.fault) - others == set(expected.index)
    for language, column in expected.items():
        assert {fault: counts[fault, language] for fault in column.index} == column.to_dict()
    assert found[found.kind == "count"].what.str.endswith("as the release has").all()


def test_the_samples_and_built_sets_have_nothing_odd(tmp_path):
    assert set(data.check(data.find("nli_coal", "samples")).kind) == {"count"}
    build([read_pack(PACKS / "zh")], tmp_path, rates=[0.3])
    assert set(check(tmp_path).kind) == {"count"}


def write(folder, name, *rows):
    path = folder / f"en_v1/{name}_v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def row(number, premise, hypothesis, **more):
    return {"id": number, "sentence1": premise, "sentence2": hypothesis, "label": "neutral", **more}


def test_odd_rows_are_named_with_their_line(tmp_path):
    sets, small = "bias-eval-set_v1/all-words", "bias-eval-set_v1/downsamp"
    rows = [
        *(row(number, *PAIR, **NURSE) for number in (0, 1)),
        row(2, "the nurse runs.", "the man runs.", **NURSE),
        row(3, "the nurse and a girl", "the woman and a girl", **NURSE),
        row(4, "the nurse hides a woman.", "a woman hides the woman.", **NURSE),
    ]
    ns = row(6, "the salesman sits.", "the man sits.", **SALESMAN)
    write(tmp_path, f"{sets}/1-prostereo", *rows)
    write(tmp_path, f"{sets}/2-antistereo", row(5, "the nurse sits.", "the man sits."))
    write(tmp_path, f"{sets}/3-nonstereo", ns)
    write(tmp_path, f"{sets}/4-all", row(0, *PAIR, **NURSE))
    write(tmp_path, f"{small}/1-prostereo-downsamp", rows[0], row(1, *PAIR))
    write(tmp_path, "bias-eval-set_v1/tokenized/3-nonstereo-tok", ns, ns | {"id": 7})
    write(tmp_path, "bias-controlled-set_v1/train/train_r-0", *rows[:2])
    write(tmp_path, "bias-controlled-set_v1/dev/dev_r-0")
    found = check(tmp_path)
    odd = found[found.kind == "odd"]
    names = odd.file.str.rpartition("/")[2].str.partition("_")[0]
    named = [f"{fault} {row}" for fault, row in zip(odd.fault, odd.row, strict=True)]
    by_file = {name: sorted(set(rows)) for name, rows in pd.Series(named).groupby(names.values)}
    assert by_file == {
        "1-prostereo": [
            *("duplicate_rows 2", "gendered_frame 4", "no_full_stop 4"),
            *("not_one_frame 5", "wrong_gender 3"),
        ],
        "1-prostereo-downsamp": ["downsample_differs 2", "duplicate_rows 2", "no_occupation 2"],
        "2-antistereo": ["no_occupation 1"],
        "3-nonstereo": ["definitional_word 1", "wrong_type 1"],
        "3-nonstereo-tok": [
            *("duplicate_rows 2", "not_one_frame 1", "not_one_frame 2", "tokenized_differs 0")
        ],
        "4-all": ["all_differs 0"],
        "train": ["label_balance 0"],
    }
    (refused,) = found[found.kind == "refused"].itertuples()
    assert (refused.file[-16:], refused.what) == ("/dev_r-0_v1.json", "holds no pairs")

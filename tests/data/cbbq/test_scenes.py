"""Scenes: which questions are about one, by hand, and in the released templates."""

import os
from pathlib import Path

import pandas as pd
import pytest

from bench.data import OWN_SAMPLES, cbbq, find, frame, load
from bench.data.cbbq.scenes import scenes

SHARED = (
    Path(os.environ.get("BENCH_SHARED", Path(__file__).parents[4] / "shared")) / "data" / "cbbq"
)


def items(rows: list[tuple[str, str, str, str, str]]) -> pd.DataFrame:
    """Items of cluster, condition, context and the two names."""
    made = pd.DataFrame(rows, columns=["cluster", "condition", "context", "name1", "name2"])
    return made.assign(category="age", ans0=made.name1, ans1=made.name2)


def test_both_questions_both_contexts_and_all_names_are_one_scene() -> None:
    found = scenes(
        items(
            [
                ("amb:1", "ambiguous", "老张和小李在等车。", "老张", "小李"),
                ("amb:1", "ambiguous", "小王和老赵在等车。", "老赵", "小王"),
                ("amb:2", "ambiguous", "小李和老张在等车。", "老张", "小李"),
                ("dis:1", "disambiguous", "老张和小李在等车。老张迟到了。", "老张", "小李"),
                # Told otherwise, but it begins as the scene does.
                ("dis:2", "disambiguous", "老张和小李在等车。一会儿后车来了。", "老张", "小李"),
                ("amb:3", "ambiguous", "老张和小李在开会。", "老张", "小李"),
                ("dis:3", "disambiguous", "老张和小李在散步。老张累了。", "老张", "小李"),
                ("dis:4", "disambiguous", "小李和老张在散步。小李累了。", "老张", "小李"),
            ]
        )
    )
    assert found.nunique() == 3
    assert set(found[:5]) == {found[0]}
    assert found[6] == found[7] != found[5]


def test_a_longer_scene_is_meant_where_a_context_begins_with_two() -> None:
    found = scenes(
        items(
            [
                ("amb:1", "ambiguous", "甲和乙来了。", "甲", "乙"),
                ("amb:2", "ambiguous", "甲和乙来了。天黑了。", "甲", "乙"),
                ("dis:1", "disambiguous", "甲和乙来了。天黑了。甲怕黑。", "甲", "乙"),
            ]
        )
    )
    assert found[2] == found[1] != found[0]


def test_categories_have_scenes_of_their_own() -> None:
    rows = items([(str(k), "ambiguous", "甲和乙来了。", "甲", "乙") for k in range(2)])
    rows["category"] = ["age", "race"]
    assert scenes(rows).nunique() == 2


def test_the_samples_have_five_scenes_a_category() -> None:
    loaded = frame(load(find("cbbq", OWN_SAMPLES), ["age", "gender"]))
    assert scenes(loaded).groupby(loaded.category).nunique().tolist() == [5, 5]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the released templates are not here")
def test_scenes_of_the_release_are_its_ambiguous_contexts() -> None:
    for category, paths in cbbq.files(SHARED).items():
        loaded = frame(cbbq.load(SHARED, [category]))
        found = scenes(loaded)
        texts = {
            one.cells["context"].strip()
            for one in cbbq.read_templates(paths, category, "ambiguous")
        }
        assert found[loaded.condition == "ambiguous"].nunique() == len(texts)
        # Of the disambiguous contexts 1,503 of 1,545 begin with one of them; few others are left.
        assert found.nunique() <= len(texts) + 4

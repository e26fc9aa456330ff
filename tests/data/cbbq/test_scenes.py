"""Which questions are about one scene, by hand."""

import pandas as pd
import pytest

from bench.data import OWN_SAMPLES, find, frame, load
from bench.data.cbbq.scenes import scenes

WAITING, MEETING, WALKING = "老张和小李在等车。", "老张和小李在开会。", "老张和小李在散步。"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Both questions, both contexts and all names are one scene, as is what begins as it does.
        (
            [
                "a1 " + WAITING,
                "a2 小李和老张在等车。",
                f"d1 {WAITING}老张迟到了。",
                f"d2 {WAITING}车来了。",
            ],
            "1111",
        ),
        # Without an ambiguous context, the first sentence is the scene.
        (
            [
                "a1 " + WAITING,
                "a3 " + MEETING,
                f"d3 {WALKING}老张累了。",
                f"d4 {WALKING}小李累了。",
            ],
            "1233",
        ),
        # The longer of two is meant.
        (["a1 " + WAITING, f"a2 {WAITING}天黑了。", f"d1 {WAITING}天黑了。老张怕黑。"], "122"),
        # The same first sentence.
        ([f"a1 {WAITING}天黑了。", f"d1 {WAITING}老张怕黑。"], "11"),
    ],
)
def test_scenes_by_hand(rows: list[str], expected: str) -> None:
    cells = [row.split(" ") for row in rows]
    items = pd.DataFrame(cells, columns=["cluster", "context"]).assign(
        category="age", name1="老张", name2="小李", ans0="老张", ans1="小李"
    )
    items["condition"] = items.cluster.str[0].map({"a": "ambiguous", "d": "disambiguous"})
    for table in (items, items.drop(columns=["name1", "name2"])):
        assert pd.factorize(scenes(table))[0].tolist() == [int(k) - 1 for k in expected]
    # Other names in another question of the template, and another category.
    other = items.assign(context=items.context.str.replace("老张", "小王"), name1="小王")
    both = pd.concat([items, other, items.assign(category="race", cluster="b")])
    assert scenes(both).nunique() > scenes(items).nunique() == len(set(expected))
    assert scenes(both[: 2 * len(items)]).nunique() == len(set(expected))


def test_the_samples_have_five_scenes_a_category() -> None:
    loaded = frame(load(find("cbbq", OWN_SAMPLES), ["age", "gender"]))
    assert scenes(loaded).groupby(loaded.category).nunique().tolist() == [5, 5]

"""Which questions are about one scene, by hand."""

import pandas as pd
import pytest

from bench.benchmarks.cbbq.scenes import scenes

WAITING, MEETING, WALKING = "老张和小李在等车。", "老张和小李在开会。", "老张和小李在散步。"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Both questions, both contexts and all names are one scene, as is what begins as it does.
        (["a", WAITING, "a", "小李和老张在等车。", "d", f"{WAITING}老张迟到了。"], "111"),
        # Without an ambiguous context, the first sentence is the scene.
        (["a", MEETING, "d", f"{WALKING}老张累了。", "d", f"{WALKING}小李累了。"], "122"),
        # The longer of two is meant.
        (["a", WAITING, "a", f"{WAITING}天黑了。", "d", f"{WAITING}天黑了。老张怕黑。"], "122"),
        # The same first sentence.
        (["a", f"{WAITING}天黑了。", "d", f"{WAITING}老张怕黑。"], "11"),
    ],
)
def test_scenes_by_hand(rows, expected):
    items = pd.DataFrame({"condition": rows[::2], "context": rows[1::2]}).assign(
        category="age", name1="老张", name2="小李", ans0="老张", ans1="小李"
    )
    items["cluster"] = [str(k) for k in range(len(items))]
    items["condition"] = items.condition.map({"a": "ambiguous", "d": "disambiguous"})
    for table in (items, items.drop(columns=["name1", "name2"])):
        assert pd.factorize(scenes(table))[0].tolist() == [int(k) - 1 for k in expected]
    # Other names in another question of the template, and another category.
    other = items.assign(context=items.context.str.replace("老张", "小王"), name1="小王")
    both = pd.concat([items, other, items.assign(category="race", cluster="b")])
    assert scenes(both).nunique() > scenes(items).nunique() == len(set(expected))
    assert scenes(both[: 2 * len(items)]).nunique() == len(set(expected))

"""Names of people in a cell of NAME1 or NAME2 are read in every script."""

import unicodedata

import pytest

from bench.benchmarks.cbbq.templates import names


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ("[old man,  elderly   man ]", ["old man", "elderly man"]),
        ("[북한 주민]", ["북한 주민"]),
        ("[老 人, iPhone 用户, アフリカ 人]", ["老人", "iPhone用户", "アフリカ人"]),
        ("[हिन्दू, ผู้หญิงอีสาน, مُسلِم]", ["हिन्दू", "ผู้หญิงอีสาน", "مُسلِم"]),
        (
            "[non-binary person, O’Brien, l'home gran]",
            ["non-binary person", "O’Brien", "l'home gran"],
        ),
        ("[LGBTQ+, St. John, 卡尔·马克思]", ["LGBTQ+", "St. John", "卡尔·马克思"]),
        ("[女\u200b性, \ufeff男性]", ["女性", "男性"]),
        ("[می\u200cخواهم]", ["می\u200cخواهم"]),
        ("[NA, None, Null, nan]", ["NA", "None", "Null", "nan"]),
    ],
)
def test_a_name_keeps_what_its_script_has(cell, read):
    assert names(cell) == read
    assert names(unicodedata.normalize("NFD", cell)) == read


@pytest.mark.parametrize(
    "name",
    ["甲、乙", "甲，乙", "a;b", "'a'", '"a"', "“a”", "甲(乙)", "{{NAME1}}", "a\0b", "-", " "],
)
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a name"):
        names(f"[{name}]")

"""The page of questions and answers: what each model said, and whether they differ."""

import json
import shutil

from bench.benchmarks import get
from bench.report import items
from bench.run import evaluate


def test_items_have_every_answer_with_its_verdict(tmp_path, monkeypatch):
    data = shutil.copytree(get("cbbq").metadata.samples, tmp_path / "data")
    gloss = {"id": "age:ambiguous:neg:2", "english": "Who <b>was it?"}
    (data / "glosses.jsonl").write_text(json.dumps(gloss), "utf-8")
    options = {"categories": ["age"], "limit": 3, "data": data}
    runs = [
        evaluate("cbbq", f"simulated:{spec}", out=tmp_path / spec, **options)
        for spec in ("bias=1", "bias=0", "answer=?")
    ]
    shown = items.read(runs)
    assert (shown["total"], len(shown["items"])) == (6, 6)
    assert shown["models"] == ["simulated:bias=1", "simulated:bias=0", "simulated:answer=?"]
    for item in shown["items"]:
        (question,) = item["questions"]
        task = item["item_id"].split(":")[1]
        assert question["name"] == get("cbbq").tasks[task].title
        verdicts = [reply.verdict for reply in question["replies"]]
        assert verdicts == ["stereotyped", "right", "unreadable"]
        right = question["replies"][1].value
        assert (right, "right") in question["options"]
        assert ("C", "right" if ":ambiguous" in item["item_id"] else "unknown") in question[
            "options"
        ]
        assert item["differs"]
        assert item["verdicts"] == "1.2 2.1 3.3"
    assert shown["verdicts"] == ["right", "stereotyped", "unreadable"]
    facts = {"category": "age", "differs": True, "verdicts": "1.2 2.1 3.3"}
    assert shown["tally"] == [{**facts, "count": 6}]
    assert [item["gloss"] for item in shown["items"] if item["gloss"]] == ["Who <b>was it?"]
    monkeypatch.setattr(items, "MAX_ITEMS", 2)
    short = items.read(runs)
    assert (short["total"], len(short["items"])) == (6, 2)


def test_what_an_item_is_made_of_makes_its_gloss(tmp_path):
    options = {"categories": ["zh"], "limit": 3, "tasks": ["ps"], "data": "samples"}
    run = evaluate("nli_coal", "simulated:", out=tmp_path, **options)
    first = items.read([run])["items"][0]
    assert first["gloss"] == (
        "The premise is about a secretary, the hypothesis about a woman: "
        "… is looking out of a train window at the fields."
    )
    assert first["questions"][0]["options"] == [("entailment", "stereotyped"), ("neutral", "right")]

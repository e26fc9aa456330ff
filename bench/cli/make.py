"""Commands that make items and models: data of your own, sentence pairs, classifiers."""

from pathlib import Path
from typing import Any

from bench.benchmarks import get, resolve
from bench.cli import printing
from bench.cli.app import MAKE, CheckFormat, argument, command, given, switch
from bench.core.errors import BadInput
from bench.core.places import copy_files
from bench.core.progress import say
from bench.core.text import read_list


@command("new cbbq my-questions", "new mcbe my-instances", panel=MAKE)
def new(
    benchmark: str = argument("BENCHMARK", "cbbq or mcbe."),
    folder: str = argument("DIR", "Folder of the data; made if missing."),
) -> None:
    """Begin data of your own: a folder with two items and a commented manifest."""
    from bench.data.readers import as_path

    name = resolve(benchmark)
    source = get(name).metadata.samples.with_name("start")
    if not source.is_dir():
        raise BadInput(
            f"new {benchmark}: has no rows to begin with; allowed: cbbq, mcbe; the notebook "
            "curation/curate_nli.ipynb (`bench notebooks DIR`) begins a language pack"
        )
    for path in copy_files(as_path(folder), source):
        print(path)
    say(
        f"change the rows; dataset.toml explains each column. Then: bench data {name} --check "
        f"--data {folder}, and bench run {name} --data {folder} --model MODEL; the notebook "
        f"curation/curate_{name}.ipynb (`bench notebooks DIR`) is for items of several people"
    )


@command(
    "build nli-coal --pack my-language --out sets",
    "build nli-coal --pack my-language --check",
    panel=MAKE,
)
def build(
    benchmark: str = argument("BENCHMARK", "nli-coal."),
    *,
    out: str = given("DIR", "Folder for the sets, in the release's layout."),
    pack: list[Path] = given("DIR", "Folder of a language pack; repeat for several.", []),
    source: str = given("DIR", "Released folder with words and frames to use.", flag="--from"),
    categories: str = given(
        "NAMES", "Only these languages of --from, comma-separated; default: all."
    ),
    captions: list[Path] = given(
        "FILE", "File of captions, one per line, to make frames of; repeat for several.", []
    ),
    check: bool = switch("--check", "Only list wrong or odd entries of the packs."),
    form: CheckFormat = given("NAME", "Of --check: table, csv or json.", "table", "--format"),
    **options: Any,
) -> None:
    """Build NLI sets from occupations, sentence frames and gender words."""
    import pandas as pd

    from bench.benchmarks.nli_coal import language_pack_audit
    from bench.benchmarks.nli_coal.build import build as write
    from bench.benchmarks.nli_coal.build import untrained
    from bench.benchmarks.nli_coal.extract import extract
    from bench.benchmarks.nli_coal.language_pack import read_pack, with_captions
    from bench.data.readers import as_path

    if resolve(benchmark) != "nli_coal":
        raise BadInput(f"build {benchmark}: is not made of words and frames; allowed: nli-coal")
    if bool(pack) == bool(source):
        raise BadInput("build: give what to build from, either --pack DIR or --from DIR")
    if categories and not source:
        raise BadInput(
            "--categories: chooses languages of a released folder; leave it out with --pack"
        )
    if check and source:
        raise BadInput("--check: is about language packs; give one as --pack DIR")
    if check:
        findings = pd.concat([language_pack_audit.check(one).assign(pack=one.name) for one in pack])
        if len(pack) == 1:
            findings = findings.drop(columns="pack")
        printing.check("nli-coal", findings, form)
        return
    if not out:
        raise BadInput(
            "--out: is missing; give a folder for the sets, or --check to only look at the packs"
        )
    if source:
        packs = extract(as_path(source), read_list(categories) or None)
    else:
        packs = [read_pack(as_path(folder)) for folder in pack]
    if captions and len(packs) > 1:
        names = ", ".join(pack.language for pack in packs)
        raise BadInput(
            f"--captions: are of one language, and there are packs of {names}; give one of them"
        )
    if captions:
        packs = [with_captions(packs[0], captions)]
    printing.written(write(packs, as_path(out), **options))
    if "seed" in options or options.get("ns_words", "shipped") != "shipped":
        return
    for used in packs:
        if words := untrained(used):
            say(
                f"note: {used.language}: {len(words)} neutral words of the down-sampled NS "
                f"are not trained as neutral in any controlled set ({', '.join(words)}), so the "
                "labels of a trained model for them are left to chance; --ns-words trained takes "
                "only trained words"
            )


@command("train hfl/chinese-bert-wwm-ext --corpus train.jsonl --out my-classifier", panel=MAKE)
def train(
    checkpoint: str = argument("CHECKPOINT", "A base model, or an NLI classifier to go on with."),
    *,
    corpus: str = given("FILE", "Premises, hypotheses, labels: JSON Lines, CSV, Parquet.", ...),
    out: str = given("DIR", "Folder of the trained model.", ...),
    epochs: int | None = given("N", "Passes; default: 5 with a new head, else 3.", None),
    seed: int = given("N", "Seed of a new head, of the order and of dropout.", 0),
) -> None:
    """Train an NLI classifier; an interrupted training continues."""
    from bench.train import train as train_classifier

    train_classifier(checkpoint, corpus, out, epochs, seed)
    print(f"{out}: trained; ask it by bench run nli_coal --model {out}")

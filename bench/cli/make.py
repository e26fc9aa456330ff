"""Commands that make items and models: data of your own, classifiers."""

from typing import Any

from bench.benchmarks import get, resolve
from bench.cli.app import MAKE, argument, command
from bench.core.errors import BadInput, expected
from bench.core.numbers import decimals
from bench.core.places import copy_files
from bench.core.progress import say


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
    "train nli train.jsonl --model bert-base-chinese --out my-classifier",
    "train nli controlled.jsonl --model ./my-classifier --out less-biased --epochs 1",
    panel=MAKE,
)
def train(
    kind: str = argument("KIND", "nli: a classifier of premise and hypothesis."),
    files: list[str] = argument(
        "FILE",
        "Training data: JSON Lines or tab-separated, as of SNLI, JSNLI, OCNLI, XNLI, or a "
        "bias-controlled set.",
    ),
    **options: Any,
) -> None:
    """Fine-tune an NLI classifier; an interrupted training continues."""
    if kind != "nli":
        raise BadInput(expected(kind, ["nli"], "train"))
    from bench.train import nli

    done = nli(files=files, **options)
    shares = (f"{decimals(share, 3)} of {part} right" for part, share in done.accuracy.items())
    print(f"{done.folder}: {', '.join(shares)}")

"""Commands that make items and models: data of your own, classifiers."""

from typing import Annotated

from bench.benchmarks import get, resolve
from bench.cli.app import MAKE, argument, command, option
from bench.core.errors import BadInput
from bench.core.progress import say
from bench.core.shipped import copy_files


@command("new cbbq my-questions", "new mcbe my-instances", panel=MAKE)
def new(
    benchmark: Annotated[str, argument("BENCHMARK", "cbbq or mcbe.")],
    folder: Annotated[str, argument("DIR", "Folder of the data; made if missing.")],
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
    "train hfl/chinese-bert-wwm-ext --corpus ocnli.jsonl --out my-classifier",
    "train ./my-classifier --corpus controlled.csv --out less-biased --epochs 1",
    panel=MAKE,
)
def train(
    checkpoint: Annotated[
        str, argument("CHECKPOINT", "A base model, or an NLI classifier to go on with.")
    ],
    *,
    corpus: Annotated[
        str, option("FILE", "Premises, hypotheses, labels: JSON Lines, CSV, Parquet.")
    ],
    out: Annotated[str, option("DIR", "Folder of the trained model.")],
    epochs: Annotated[
        int | None, option("N", "Passes; default: 5 with a new head, else 3.")
    ] = None,
    seed: Annotated[int, option("N", "Seed of a new head, of the order and of dropout.")] = 0,
) -> None:
    """Train an NLI classifier; an interrupted training continues."""
    from bench.train import train as train_classifier

    train_classifier(checkpoint, corpus, out, epochs, seed)
    print(f"{out}: trained; ask it by bench run nli_coal --model {out}")

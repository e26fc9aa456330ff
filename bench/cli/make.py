"""Commands that make what models are asked or trained on: questions from templates, pairs from words and captions."""

import math
from pathlib import Path
from typing import Annotated

import typer

from bench.benchmarks import resolve
from bench.cli.options import listed
from bench.core.errors import BadInput, expected
from bench.core.progress import say

Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="Folder of the data set, or samples: the package's own. "
        "Default: $BENCH_DATA, else your data folder, else the samples.",
    ),
]

Revision = Annotated[
    str,
    typer.Option(help="Branch, tag or commit of a Hub model, as in NAME@REVISION; default: main."),
]

TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with a Hub model.")
]


def expand(
    benchmark: Annotated[str, typer.Argument(help="cbbq.")],
    out: Annotated[str, typer.Option(help="Folder for CATEGORY/CONTEXT/CONTEXT.csv and .json.")],
    data: Data = "",
    form: Annotated[str, typer.Option("--as", help="csv, json or both.")] = "both",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse templates with a fault.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Fill misspelt placeholders as meant.")
    ] = False,
    compat: Annotated[
        bool,
        typer.Option("--compat", help="The bytes of the release, faults included (the default)."),
    ] = False,
) -> None:
    """Expand templates to the multiple-choice questions that they stand for."""
    from bench.cli import printing
    from bench.data import find
    from bench.data.cbbq.expand import expand as write

    if resolve(benchmark) != "cbbq":
        raise BadInput(f"expand {benchmark}: has no templates; allowed: cbbq")
    given = [
        name for name, on in (("strict", strict), ("repair", repair), ("compat", compat)) if on
    ]
    if len(given) > 1:
        raise BadInput(f"--{given[0]} and --{given[1]}: are two ways of expanding; give one")
    made = write(find("cbbq", data), Path(out).expanduser(), form, (given or ["compat"])[0])
    printing.written(made, "questions")


def curate(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal.")],
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Of the project; an empty or a new one.")
    ],
) -> None:
    """Begin items of your own: a project folder with an example to change, for a notebook to go on with."""
    from bench.core.places import NOTEBOOKS, SHIPPED
    from bench.curate import NOTEBOOKS as CURATION_NOTEBOOKS
    from bench.curate import copy_example

    name = resolve(benchmark)
    for path in copy_example(name, folder):
        print(path)
    notebook = f"{CURATION_NOTEBOOKS[name]}.ipynb"
    if NOTEBOOKS.is_relative_to(SHIPPED):
        following = f"`bench notebooks DIR` copies the notebooks, and DIR/{notebook} continues"
    else:
        following = f"{NOTEBOOKS / notebook} continues"
    say(f"change these files; then {following}, with this folder as its parameter")


def notebooks(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder to copy them to; made if missing.")
    ],
) -> None:
    """Copy the notebooks to a folder, for JupyterLab; changed files there are not overwritten."""
    from bench.core.places import copy_notebooks
    from bench.data.readers import as_path

    for path in copy_notebooks(as_path(folder)):
        print(path)
    say(f"open them by `jupyter lab {folder}`")


def build(
    benchmark: Annotated[str, typer.Argument(help="nli-coal.")],
    out: Annotated[str, typer.Option(help="Folder for the sets, in the release's layout.")] = "",
    pack: Annotated[
        list[str] | None, typer.Option(help="A language pack's folder; several times for several.")
    ] = None,
    source: Annotated[
        str, typer.Option("--from", help="A released folder, whose words and frames are taken.")
    ] = "",
    categories: Annotated[
        str, typer.Option(help="Only these languages of --from, comma-separated.")
    ] = "",
    captions: Annotated[
        list[str] | None,
        typer.Option(help="A file of captions, one a line, to make frames of; once or more."),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            help="Bias-controlled sets at these rates, 0 to 1, comma-separated; all: the release's 11."
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Which of them: train, dev, test; train and dev without it.")
    ] = "",
    rows: Annotated[
        int | None, typer.Option(help="Pairs of a controlled set; the pack's without it.")
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(help="First frame of a controlled set, from 0; the split's without it."),
    ] = None,
    assign: Annotated[
        str,
        typer.Option(
            help="Who follows the stereotype: by word (the release), balanced, or by row."
        ),
    ] = "word",
    design: Annotated[
        str, typer.Option(help="How words meet frames: window or full; the pack's without it.")
    ] = "",
    ns_words: Annotated[
        str, typer.Option(help="Neutral words of the down-sampled sets: shipped or trained.")
    ] = "shipped",
    seed: Annotated[
        int | None,
        typer.Option(help="Shuffles the words within their types; the pack's order without it."),
    ] = None,
    compat: Annotated[
        bool, typer.Option("--compat", help="The bytes of the release, its quirks included.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Build nothing: list all that is wrong or odd in the packs."),
    ] = False,
    form: Annotated[
        str, typer.Option("--format", help="Of --check: table, csv or json.")
    ] = "table",
) -> None:
    """Build evaluation sets, and at rates of bias controlled ones, from occupations, sentence frames and gender words."""
    from bench.cli import printing
    from bench.data.nli_coal.build import build as write
    from bench.data.nli_coal.build import untrained
    from bench.data.nli_coal.extract import extract
    from bench.data.nli_coal.language_pack import read_pack, with_captions

    if resolve(benchmark) != "nli_coal":
        raise BadInput(f"build {benchmark}: is not made of words and frames; allowed: nli-coal")
    if bool(pack) == bool(source):
        raise BadInput("build: give what to build from, either --pack DIR or --from DIR")
    if categories and not source:
        raise BadInput(
            "--categories: chooses languages of a released folder; leave it out with --pack"
        )
    if check:
        _check_packs(_paths(pack), form)
        return
    if not out:
        raise BadInput(
            "--out: is missing; give a folder for the sets, or --check to look at the packs alone"
        )
    rates = [one for text in rate or () for one in _rates(text)]
    given = {
        "split": bool(split),
        "rows": rows is not None,
        "start": start is not None,
        "assign": assign != "word",
    }
    for name, there in given.items():
        if there and not rates:
            raise BadInput(
                f"--{name}: is about bias-controlled sets; say at which rates, like --rate all"
            )
    if source:
        packs = extract(Path(source).expanduser(), listed(categories))
    else:
        packs = [read_pack(one) for one in _paths(pack)]
    if captions:
        if len(packs) > 1:
            names = ", ".join(one.language for one in packs)
            raise BadInput(
                f"--captions: are of one language, and there are packs of {names}; give one of them"
            )
        packs = [with_captions(packs[0], _paths(captions))]
    made = write(
        packs,
        Path(out).expanduser(),
        design=design or None,
        ns_words=ns_words,
        rates=list(dict.fromkeys(rates)),
        splits=listed(split) or ("train", "dev"),
        start=start,
        rows=rows,
        assignment=assign,
        seed=seed,
        compat=compat,
    )
    printing.written(made, "pairs")
    for one in packs if ns_words == "shipped" and seed is None else ():
        words = untrained(one)
        if words:
            say(
                f"note: {one.language}: {len(words)} neutral words of the down-sampled NS are not trained as neutral in any "
                f"controlled set ({', '.join(words)}), so what a trained model says of them is left to chance; --ns-words trained takes those that are"
            )


def _check_packs(packs: list[Path], form: str) -> None:
    import pandas as pd

    from bench.cli import printing
    from bench.data.nli_coal.language_pack_audit import check as look

    if form not in (formats := ("table", "csv", "json")):
        raise BadInput("--format: " + expected(form, formats, "format"))
    if not packs:
        raise BadInput("--check: is about language packs; give one as --pack DIR")
    found = [look(one).assign(pack=one.name) if len(packs) > 1 else look(one) for one in packs]
    printing.check("nli-coal", pd.concat(found, ignore_index=True), form)


def _paths(given: list[str] | None) -> list[Path]:
    return [Path(one).expanduser() for one in given or ()]


def _rates(text: str) -> list[float]:
    """The rates of one --rate: numbers set apart by commas, or all 11 of the release."""
    from bench.core.cells import to_number
    from bench.data.nli_coal.build import RATES

    if text.strip() == "all":
        return list(RATES)
    found = [to_number(one) for one in listed(text) or [text]]
    if any(math.isnan(one) for one in found):
        raise BadInput(f"--rate {text}: expected numbers from 0 to 1, like 0,.5,1, or all")
    return found


def train(
    kind: Annotated[str, typer.Argument(help="nli: a classifier of premise and hypothesis.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="What to train on: JSON Lines or tab-separated, as of SNLI, JSNLI, OCNLI, XNLI, or a bias-controlled set.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A Hub id (NAME or NAME@REVISION) or a folder: a base model, which gets a fresh head, "
            "or an NLI classifier, which goes on."
        ),
    ],
    out: Annotated[str, typer.Option(help="The trained model's folder.")],
    dev: Annotated[
        list[str] | None,
        typer.Option(help="Files to measure on after each epoch; may be given often."),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(
            help="Passes over the data; 5 with a fresh head, 3 for a classifier that goes on."
        ),
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="The highest step size; it falls to 0.")
    ] = 2e-5,
    batch_size: Annotated[int, typer.Option(help="Pairs a step.")] = 32,
    max_length: Annotated[int, typer.Option(help="Longer pairs are cut to so many tokens.")] = 128,
    seed: Annotated[
        int, typer.Option(help="Of the head's first weights, the order of pairs, and dropout.")
    ] = 0,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPELLING=LABEL",
            help="What another spelling means, like 0=entailment; once each.",
        ),
    ] = None,
    new_head: Annotated[
        bool, typer.Option("--new-head", help="Put a fresh head on a classifier of other labels.")
    ] = False,
    save_every: Annotated[int, typer.Option(help="Steps between two states to go on from.")] = 500,
    device: Annotated[
        str, typer.Option(help="cpu or cuda; the accelerator where there is one.")
    ] = "",
    dtype: Annotated[
        str,
        typer.Option(
            help="Arithmetic: float32, bfloat16 or float16; bfloat16 on an accelerator without it."
        ),
    ] = "",
    trust_remote_code: TrustRemoteCode = False,
    revision: Revision = "",
) -> None:
    """Fine-tune an NLI classifier, also on bias-controlled sets. A training that was interrupted continues."""
    if kind != "nli":
        raise BadInput(expected(kind, ["nli"], "train"))
    for one in label or []:
        if "=" not in one:
            raise BadInput(f"--label {one}: expected SPELLING=LABEL, like 0=entailment")
    spelled = {one.rpartition("=")[0]: one.rpartition("=")[2] for one in label or []}
    from bench.train import nli

    done = nli(
        model,
        files,
        out,
        dev=dev or [],
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_length=max_length,
        seed=seed,
        labels=spelled,
        new_head=new_head,
        save_every=save_every,
        device=device or None,
        dtype=dtype or None,
        trust_remote_code=trust_remote_code,
        revision=revision or None,
    )
    print(
        f"{done.folder}: {', '.join(f'{share:.3f} of {part} right' for part, share in done.accuracy.items())}"
    )

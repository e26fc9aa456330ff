"""Commands that make items and models: questions, sentence pairs, classifiers."""

import math
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from bench.benchmarks import resolve
from bench.cli.options import flag, listed
from bench.config import RunConfig
from bench.core.errors import BadInput, expected
from bench.core.numbers import decimals
from bench.core.progress import say

HELP = {name: field.description for name, field in RunConfig.model_fields.items()}

Data = Annotated[str, Option("--data", metavar="DIR", help=HELP["data"])]
Texts = list[str] | None


def expand(
    benchmark: Annotated[str, Argument(metavar="BENCHMARK", help="cbbq.")],
    out: Annotated[
        str, Option(metavar="DIR", help="Folder for CATEGORY/CONTEXT/CONTEXT.csv and .json.")
    ],
    data: Data = "",
    form: Annotated[str, Option("--as", metavar="FORM", help="csv, json or both.")] = "both",
    strict: Annotated[
        bool, flag("--strict", "Refuse templates with an error; default: off.")
    ] = False,
    repair: Annotated[
        bool, flag("--repair", "Fill misspelt placeholders as meant; default: off.")
    ] = False,
    compat: Annotated[
        bool, flag("--compat", "The bytes of the release, errors included; default.")
    ] = False,
) -> None:
    """Expand templates to the multiple-choice questions that they stand for."""
    from bench.cli import printing
    from bench.data import find
    from bench.data.cbbq.expand import expand as write

    if resolve(benchmark) != "cbbq":
        raise BadInput(f"expand {benchmark}: has no templates; allowed: cbbq")
    flags = {"strict": strict, "repair": repair, "compat": compat}
    given = [name for name, is_on in flags.items() if is_on]
    if len(given) > 1:
        raise BadInput(f"--{given[0]} and --{given[1]}: are two ways of expanding; give one")
    files = write(find("cbbq", data), Path(out).expanduser(), form, (given or ["compat"])[0])
    printing.written(files, "questions")


def new(
    benchmark: Annotated[str, Argument(metavar="BENCHMARK", help="cbbq or mcbe.")],
    folder: Annotated[str, Argument(metavar="DIR", help="Folder of the data; empty or new.")],
) -> None:
    """Begin data of your own: a folder with two items and a manifest that explains itself."""
    from bench.data.starts import copy_start

    name = resolve(benchmark)
    for path in copy_start(name, folder):
        print(path)
    say(
        f"change the rows; dataset.toml says what each column is. Then: bench data {name} --check "
        f"--data {folder}, and bench run {name} --data {folder} --model MODEL; the notebook "
        f"curation/curate_{name}.ipynb (`bench notebooks DIR`) is for items of several people"
    )


def notebooks(
    folder: Annotated[
        str, Argument(metavar="DIR", help="Folder to copy them to; made if missing.")
    ],
) -> None:
    """Copy the notebooks to a folder, for JupyterLab; changed files there are kept."""
    from bench.core.places import copy_notebooks
    from bench.data.readers import as_path

    for path in copy_notebooks(as_path(folder)):
        print(path)
    say(f"open them by `jupyter lab {folder}`")


def build(
    benchmark: Annotated[str, Argument(metavar="BENCHMARK", help="nli-coal.")],
    out: Annotated[
        str, Option(metavar="DIR", help="Folder for the sets, in the release's layout.")
    ] = "",
    pack: Annotated[
        Texts, Option(metavar="DIR", help="Folder of a language pack; repeat for several.")
    ] = None,
    source: Annotated[
        str,
        Option("--from", metavar="DIR", help="Released folder whose words and frames are taken."),
    ] = "",
    categories: Annotated[
        str,
        Option(
            metavar="NAMES", help="Only these languages of --from, comma-separated; default: all."
        ),
    ] = "",
    captions: Annotated[
        Texts,
        Option(
            metavar="FILE",
            help="File of captions, one per line, to make frames of; repeat for several.",
        ),
    ] = None,
    rate: Annotated[
        Texts,
        Option(
            metavar="RATES",
            help="Rates of bias-controlled sets, 0 to 1, comma-separated, or all: the release's "
            "11. Default: no such sets.",
        ),
    ] = None,
    split: Annotated[
        str,
        Option(
            metavar="NAMES",
            help="Splits of controlled sets: train, dev, test; default: train and dev.",
        ),
    ] = "",
    rows: Annotated[
        int | None, Option(metavar="N", help="Pairs per controlled set; default: the pack's.")
    ] = None,
    start: Annotated[
        int | None,
        Option(metavar="N", help="First frame of a controlled set, from 0; default: the split's."),
    ] = None,
    assign: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Which pairs follow the stereotype: by word (the release), balanced, or row.",
        ),
    ] = "word",
    design: Annotated[
        str,
        Option(metavar="NAME", help="How words meet frames: window or full; default: the pack's."),
    ] = "",
    ns_words: Annotated[
        str,
        Option(metavar="NAME", help="Neutral words of the down-sampled sets: shipped or trained."),
    ] = "shipped",
    seed: Annotated[
        int | None,
        Option(
            metavar="SEED", help="Shuffle the words within their types; default: the pack's order."
        ),
    ] = None,
    compat: Annotated[
        bool, flag("--compat", "The bytes of the release, oddities included; default: off.")
    ] = False,
    check: Annotated[
        bool, flag("--check", "Build nothing, list what is wrong or odd in the packs.")
    ] = False,
    form: Annotated[
        str, Option("--format", metavar="NAME", help="Format of --check: table, csv or json.")
    ] = "table",
) -> None:
    """Build NLI sets from occupations, sentence frames and gender words."""
    import pandas as pd

    from bench.cli import printing
    from bench.core.cells import to_number
    from bench.data.nli_coal.build import RATES, untrained
    from bench.data.nli_coal.build import build as write
    from bench.data.nli_coal.extract import extract
    from bench.data.nli_coal.language_pack import read_pack, with_captions
    from bench.data.nli_coal.language_pack_audit import check as audit

    if resolve(benchmark) != "nli_coal":
        raise BadInput(f"build {benchmark}: is not made of words and frames; allowed: nli-coal")
    if bool(pack) == bool(source):
        raise BadInput("build: give what to build from, either --pack DIR or --from DIR")
    if categories and not source:
        raise BadInput(
            "--categories: chooses languages of a released folder; leave it out with --pack"
        )
    if check:
        if form not in (formats := ("table", "csv", "json")):
            raise BadInput("--format: " + expected(form, formats, "format"))
        if not pack:
            raise BadInput("--check: is about language packs; give one as --pack DIR")
        findings = [audit(path).assign(pack=path.name) for path in _paths(pack)]
        shown = pd.concat(findings, ignore_index=True)
        printing.check("nli-coal", shown if len(pack) > 1 else shown.drop(columns="pack"), form)
        return
    if not out:
        raise BadInput(
            "--out: is missing; give a folder for the sets, or --check to look at the packs alone"
        )
    rates: list[float] = []
    for text in rate or ():
        numbers = [to_number(number) for number in listed(text) or [text]]
        if text.strip() != "all" and any(map(math.isnan, numbers)):
            raise BadInput(f"--rate {text}: expected numbers from 0 to 1, like 0,.5,1, or all")
        rates += RATES if text.strip() == "all" else numbers
    of_controlled_sets = {
        "split": bool(split),
        "rows": rows is not None,
        "start": start is not None,
        "assign": assign != "word",
    }
    for name, is_given in of_controlled_sets.items():
        if is_given and not rates:
            raise BadInput(
                f"--{name}: is about bias-controlled sets; say at which rates, like --rate all"
            )
    if source:
        packs = extract(Path(source).expanduser(), listed(categories))
    else:
        packs = [read_pack(path) for path in _paths(pack)]
    if captions:
        if len(packs) > 1:
            names = ", ".join(pack.language for pack in packs)
            raise BadInput(
                f"--captions: are of one language, and there are packs of {names}; give one of them"
            )
        packs = [with_captions(packs[0], _paths(captions))]
    files = write(
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
    printing.written(files, "pairs")
    for pack_used in packs if ns_words == "shipped" and seed is None else ():
        if words := untrained(pack_used):
            say(
                f"note: {pack_used.language}: {len(words)} neutral words of the down-sampled NS "
                f"are not trained as neutral in any controlled set ({', '.join(words)}), so what "
                "a trained model says of them is left to chance; --ns-words trained takes those "
                "that are"
            )


def _paths(given: Texts) -> list[Path]:
    return [Path(path).expanduser() for path in given or ()]


def train(
    kind: Annotated[
        str, Argument(metavar="KIND", help="nli: a classifier of premise and hypothesis.")
    ],
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE",
            help="Training data: JSON Lines or tab-separated, as of SNLI, JSNLI, OCNLI, XNLI, or a "
            "bias-controlled set.",
        ),
    ],
    model: Annotated[
        str,
        Option(
            metavar="MODEL",
            help="A Hub id (NAME or NAME@REVISION) or a folder: a base model, which gets a new "
            "head, or an NLI classifier, which is trained further.",
        ),
    ],
    out: Annotated[str, Option(metavar="DIR", help="Folder of the trained model.")],
    dev: Annotated[
        Texts, Option(metavar="FILE", help="File to evaluate after each epoch; repeat for several.")
    ] = None,
    epochs: Annotated[
        float | None,
        Option(metavar="N", help="Passes over the data; default: 5 with a new head, else 3."),
    ] = None,
    learning_rate: Annotated[
        float, Option(metavar="X", help="Highest learning rate; it decays to 0.")
    ] = 2e-5,
    batch_size: Annotated[int, Option(metavar="N", help="Pairs per step.")] = 32,
    max_length: Annotated[
        int, Option(metavar="N", help="Tokens that longer pairs are cut to.")
    ] = 128,
    seed: Annotated[
        int,
        Option(
            metavar="N", help="Seed of the head's first weights, the order of pairs and dropout."
        ),
    ] = 0,
    label: Annotated[
        Texts,
        Option(
            metavar="SPELLING=LABEL",
            help="Meaning of another spelling, like 0=entailment; repeat for several.",
        ),
    ] = None,
    new_head: Annotated[
        bool,
        flag("--new-head", "Put a new head on a classifier of other labels; default: off."),
    ] = False,
    save_every: Annotated[int, Option(metavar="N", help="Steps between two checkpoints.")] = 500,
    device: Annotated[
        str, Option(metavar="NAME", help="cpu or cuda; default: an accelerator if there is one.")
    ] = "",
    dtype: Annotated[str, Option(metavar="NAME", help=HELP["dtype"])] = "",
    trust_remote_code: Annotated[
        bool, flag("--trust-remote-code", HELP["trust_remote_code"])
    ] = False,
    revision: Annotated[str, Option(metavar="NAME", help=HELP["revision"])] = "",
) -> None:
    """Fine-tune an NLI classifier; an interrupted training continues."""
    if kind != "nli":
        raise BadInput(expected(kind, ["nli"], "train"))
    for text in label or []:
        if "=" not in text:
            raise BadInput(f"--label {text}: expected SPELLING=LABEL, like 0=entailment")
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
        # A spelling can hold an equals sign.
        labels=dict(text.rsplit("=", 1) for text in label or []),
        new_head=new_head,
        save_every=save_every,
        device=device or None,
        dtype=dtype or None,
        trust_remote_code=trust_remote_code,
        revision=revision or None,
    )
    shares = (f"{decimals(share, 3)} of {part} right" for part, share in done.accuracy.items())
    print(f"{done.folder}: {', '.join(shares)}")

"""Fine-tuning NLI classifiers, on NLI corpora or on bias-controlled sets, through transformers' Trainer.

done = nli("bert-base-chinese", ["ocnli.train.jsonl"], "models/bert-ocnli", dev=["ocnli.dev.jsonl"])
nli("models/bert-ocnli", ["train_r-3.json"], "models/bert-ocnli-r-3")        # goes on from it, at a rate of .3

The model's folder appears when it is whole. Until then a folder beside it, `.NAME.training`, holds what the same call goes
on from after it was killed.

Sources: hyperparameters of Anantaprayoon et al., LREC-COLING 2024, section 4; what they do not say (optimizer, warm-up,
weight decay, which checkpoint) is Trainer's default, and the last checkpoint.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers.trainer_callback import PrinterCallback

from bench import __version__, scorers
from bench.core.errors import BadInput, RunFailed
from bench.core.files import atomic_write
from bench.core.progress import Progress, progress, say
from bench.data import spread_evenly
from bench.data.nli_coal.corpora import LABELS, Corpus, read
from bench.scorers.base import digest
from bench.scorers.local import hub
from bench.scorers.local.classifier import label_columns
from bench.scorers.local.device import DTYPES, placement
from bench.train_card import card
from bench.train_network import encode, load

ABOUT = "training.json"
# Passes over the data: of a fresh head on an NLI corpus, and of a classifier that goes on, as on a controlled set.
EPOCHS, EPOCHS_ON = 5, 3
LEARNING_RATE, BATCH_SIZE, MAX_LENGTH = 2e-5, 32, 128
# A killed training loses at most this many steps.
SAVE_EVERY = 500
# Train accuracy is measured on at most so many pairs, spread evenly: on the whole of SNLI it would take an hour.
MEASURED = 20_000
PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "safetensors")


class Trained(NamedTuple):
    """A trained model's folder, and what its training.json says of it."""

    folder: Path
    about: dict[str, Any]

    @property
    def accuracy(self) -> dict[str, float]:
        """Share of right labels on the pairs of `train`, and of `dev` where there are any."""
        return dict(self.about["accuracy"])


def nli(
    model: str,
    files: Sequence[str | Path],
    out: str | Path,
    *,
    dev: Sequence[str | Path] = (),
    epochs: float | None = None,
    learning_rate: float = LEARNING_RATE,
    batch_size: int = BATCH_SIZE,
    max_length: int = MAX_LENGTH,
    seed: int = 0,
    labels: Mapping[str, str] | None = None,
    new_head: bool = False,
    save_every: int = SAVE_EVERY,
    device: str | None = None,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    revision: str | None = None,
) -> Trained:
    """Train `model` on NLI files and keep it in the folder `out`; a training that was killed goes on, one that is done is read.

    Args:
        model: a Hub id (NAME or NAME@REVISION) or a folder. An NLI classifier keeps its labels and their order; any other gets a fresh head.
        files, dev: see `bench.data.nli_coal.corpora`; `dev` is only measured on, after each epoch.
        epochs: 5 with a fresh head, 3 for a model that is an NLI classifier already, if None: the paper's.
        max_length: longer pairs are cut to so many tokens, and counted.
        labels: what spellings in the files mean that are not known, such as numbers.
        new_head: put a fresh head on a classifier of other labels.
        save_every: steps between two states to go on from.
        device: `cpu` or `cuda`; the accelerator where there is one if None.
        dtype: precision of the arithmetic; weights stay float32. bfloat16 on an accelerator that has it, else float32, if None.
        revision: branch, tag or commit of a Hub model, as in NAME@REVISION; `main` if None.

    Raises:
        BadInput: a file, an option or the model is wrong, or `out` holds something else.
        RunFailed: the training broke off, as for want of memory.
    """
    model = hub.at_revision(model, revision)
    scorers.check(model)
    out = Path(out).expanduser()
    for name, value, least in (
        ("epochs", epochs, 0),
        ("learning-rate", learning_rate, 0),
        ("batch-size", batch_size, 0),
        ("max-length", max_length, 7),
        ("save-every", save_every, 0),
    ):
        if value is not None and not least < value < float("inf"):
            raise BadInput(f"--{name} {value}: has to be more than {least}")
    precision = _precision(device, dtype)
    corpus, held_out = read(files, labels), read(dev, labels) if dev else Corpus([], [])
    asked = {
        "model": model,
        "model_content": scorers.content(model),
        "files": [(one.sha256, one.rows) for one in corpus.files],
        "dev": [(one.sha256, one.rows) for one in held_out.files],
        "epochs": epochs,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "max_length": max_length,
        "seed": seed,
        "labels": dict(labels or {}),
        "new_head": new_head,
        "dtype": precision,
    }
    identity = digest(asked)
    done = _done(out, identity)
    if done:
        return done
    # A training that goes on keeps the commit of its base model.
    base = hub.at_commit(model, _begun_at(out, identity))
    network, tokenizer, fresh, commit = load(base, seed, new_head, trust_remote_code)
    work = _begun(out, identity, commit)
    epochs = epochs or (EPOCHS if fresh else EPOCHS_ON)
    columns = dict(zip(LABELS, label_columns(network.config.id2label, model), strict=True))
    train, cut = encode(tokenizer, corpus.examples, columns, max_length)
    test, _ = encode(tokenizer, held_out.examples, columns, max_length)
    arguments = transformers.TrainingArguments(
        output_dir=str(work),
        num_train_epochs=epochs,
        learning_rate=learning_rate,
        per_device_train_batch_size=batch_size,
        per_device_eval_batch_size=4 * batch_size,
        seed=seed,
        save_strategy="steps",
        save_steps=save_every,
        save_total_limit=1,
        eval_strategy="epoch" if test else "no",
        logging_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        use_cpu=device == "cpu",
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        remove_unused_columns=False,
        dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
    )
    arguments._n_gpu = min(
        arguments.n_gpu, 1
    )  # Trainer would take them all, and multiply the batch
    accuracy, history = _fitted(network, tokenizer, arguments, train, test, out.name)
    about = {
        "identity": identity,
        "model": {
            "id": model.partition("@")[0] if commit else Path(model.rstrip("/")).name,
            "content": asked["model_content"],
            "revision": commit,
            "fresh_head": fresh,
        },
        "labels": {str(k): v for k, v in network.config.id2label.items()},
        "files": _described(corpus),
        "dev": _described(held_out),
        "pairs": corpus.counts,
        "cut": cut,
        "accuracy": {name: share for name, (share, _) in accuracy.items()},
        "accuracy_pairs": {name: pairs for name, (_, pairs) in accuracy.items()},
        "history": history,
        "hyperparameters": {
            "epochs": epochs,
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "max_length": max_length,
            "steps": _steps(arguments, train),
            "seed": seed,
            "optimizer": str(getattr(arguments.optim, "value", arguments.optim)),
            "schedule": str(
                getattr(arguments.lr_scheduler_type, "value", arguments.lr_scheduler_type)
            ),
            "warmup_steps": arguments.warmup_steps,
            "weight_decay": arguments.weight_decay,
            "arithmetic": precision,
            "device": str(arguments.device),
        },
        "packages": {"bias-workbench": __version__, **{name: version(name) for name in PACKAGES}},
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _keep(network, tokenizer, about, work, out)
    return Trained(out, about)


def _fitted(
    network: Any,
    tokenizer: Any,
    arguments: Any,
    train: list[dict[str, Any]],
    test: list[dict[str, Any]],
    name: str,
) -> tuple[dict[str, tuple[float, int]], list[dict[str, float]]]:
    """Train `network` in place, from the last whole state if there is one.

    Returns:
        Share of right labels and number of pairs, by `train` and `dev`; and Trainer's losses and accuracies by epoch.
    """
    steps, start = _steps(arguments, train), _checkpoint(Path(arguments.output_dir))
    at = int(start.name.rpartition("-")[2]) if start else 0
    if start:
        say(f"continuing from step {at:,} of {steps:,}")
    with progress(steps, f"training {name}", "steps", at) as bar:
        trainer = transformers.Trainer(
            model=network,
            args=arguments,
            train_dataset=train,
            eval_dataset=test or None,
            processing_class=tokenizer,
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            compute_metrics=_accuracy,
            callbacks=[_Bar(bar)],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train(resume_from_checkpoint=str(start) if start else None)
            measured = {"train": spread_evenly(train, MEASURED), **({"dev": test} if test else {})}
            accuracy = {
                part: (trainer.predict(rows).metrics["test_accuracy"], len(rows))
                for part, rows in measured.items()
            }
        except torch.OutOfMemoryError as error:
            raise RunFailed(
                f"--batch-size {arguments.per_device_train_batch_size}: does not fit into the memory of {arguments.device}; "
                "take a smaller one"
            ) from error
        except (RuntimeError, OSError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise RunFailed(
                f"the training broke off ({first}); the same command continues it"
            ) from error
    history = [
        {name: row[name] for name in ("epoch", "loss", "eval_loss", "eval_accuracy") if name in row}
        for row in trainer.state.log_history
        if "epoch" in row and ("loss" in row or "eval_loss" in row)
    ]
    return accuracy, history


def _steps(arguments: Any, train: Sequence[Any]) -> int:
    return int(
        np.ceil(len(train) / arguments.per_device_train_batch_size) * arguments.num_train_epochs
    )


class _Bar(transformers.TrainerCallback):
    """The package's own progress in place of Trainer's."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar.advance()


def _accuracy(predicted: Any) -> dict[str, float]:
    return {"accuracy": float((predicted.predictions.argmax(-1) == predicted.label_ids).mean())}


def _precision(device: str | None, dtype: str | None) -> str:
    """The name of the arithmetic's dtype."""
    where = placement(device, dtype, None)
    if where.device.type == "cuda" and where.device.index:
        raise BadInput(
            f"--device {device}: training takes the first one; choose it by CUDA_VISIBLE_DEVICES={where.device.index}"
        )
    if dtype is None and where.device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return "float32"
    if dtype == "float16" and where.device.type == "cpu":
        raise BadInput(
            "--dtype float16: does not train on the CPU; allowed there: float32, bfloat16"
        )
    return dtype or next(name for name, value in DTYPES.items() if value == where.dtype)


def _described(corpus: Corpus) -> list[dict[str, Any]]:
    return [{**one._asdict(), "path": one.path.name} for one in corpus.files]


def _done(out: Path, identity: str) -> Trained | None:
    """The finished training in `out`; None where there is nothing yet.

    Raises:
        BadInput: something else is there.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    about = _read(out / ABOUT)
    if about.get("identity") != identity:
        what = "holds a model that was trained otherwise" if about else "is not empty"
        raise BadInput(f"{out}: {what}; give another --out")
    return Trained(out, about)


def _work(out: Path) -> Path:
    return out.absolute().parent / f".{out.name}.training"


def _begun_at(out: Path, identity: str) -> str | None:
    """The base model's commit of the same training, begun before; None where there is none."""
    about = _read(_work(out) / ABOUT)
    return about.get("revision") if about.get("identity") == identity else None


def _begun(out: Path, identity: str, commit: str | None) -> Path:
    """The folder of a training under way, whose states are all whole.

    Raises:
        BadInput: a training of other settings has begun there.
    """
    work = _work(out)
    try:
        work.mkdir(parents=True, exist_ok=True)
        for folder in work.glob("checkpoint-*"):
            # The file that Trainer writes last.
            if not _read(folder / "trainer_state.json"):
                shutil.rmtree(folder)
        if _checkpoint(work) and _read(work / ABOUT).get("identity") != identity:
            raise BadInput(
                f"{work}: a training with other options was begun for {out}; remove that folder, or give another --out"
            )
        atomic_write(work / ABOUT, json.dumps({"identity": identity, "revision": commit}))
    except OSError as error:
        raise RunFailed(f"{work}: cannot be written ({error})") from None
    return work


def _checkpoint(work: Path) -> Path | None:
    return max(
        work.glob("checkpoint-*"),
        key=lambda folder: int(folder.name.rpartition("-")[2]),
        default=None,
    )


def _keep(network: Any, tokenizer: Any, about: Mapping[str, Any], work: Path, out: Path) -> None:
    """Write the whole model beside `out` and rename it; what the training went on from is removed."""
    whole = work / "model"
    try:
        network.save_pretrained(whole, safe_serialization=True)
        tokenizer.save_pretrained(whole)
        (whole / ABOUT).write_text(json.dumps(about, ensure_ascii=False, indent=2) + "\n", "utf-8")
        (whole / "README.md").write_text(card(about, out.name), "utf-8")
        if out.is_dir():
            out.rmdir()  # it is empty
        os.replace(whole, out)
        shutil.rmtree(work)
    except OSError as error:
        raise RunFailed(
            f"{out}: the model could not be written there ({error}); the same command continues"
        ) from None


def _read(path: Path) -> dict[str, Any]:
    """A JSON object that may be half written, or not there: {} then."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

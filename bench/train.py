"""Fine-tune NLI classifiers on NLI corpora or bias-controlled sets, by transformers' Trainer.

For example:

    nli("bert-base-chinese", ["ocnli.train.jsonl"], "models/bert-ocnli", dev=["ocnli.dev.jsonl"])
    nli("models/bert-ocnli", ["train_r-3.json"], "models/bert-ocnli-r-3")  # continues it, r = -3

The model's folder appears when it is complete. Until then, a folder beside it, `.NAME.training`,
has the state from which the same call continues.

We use the hyperparameters of Anantaprayoon et al., LREC-COLING 2024, section 4, Trainer's defaults
for the rest (optimizer, warm-up, weight decay), and the last checkpoint.
"""

import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bench import __version__, scorers
from bench.benchmarks.nli_coal.corpora import LABELS, Corpus, Example, read
from bench.config import TrainOptions
from bench.core.errors import CONTINUES, BadInput, RunFailed, plain
from bench.core.files import atomic_write, explain_write_errors, read_json
from bench.core.progress import progress, say
from bench.data import spread_evenly
from bench.scorers.base import digest
from bench.scorers.local import hub

ABOUT = "training.json"
EPOCHS = 5  # of a fresh head
EPOCHS_ON = 3  # of a trained classifier
# We measure train accuracy on so many pairs, spread evenly: all of SNLI would take an hour.
MEASURED = 20_000
PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "safetensors")
CARD = Path(__file__).with_name("train_card.md.j2")
# Options that decide the result, besides the model and the data.
LEARNING = {"epochs", "learning_rate", "batch_size", "max_length", "seed", "labels", "new_head"}


class Trained(NamedTuple):
    """A trained model's folder, and the content of its training.json."""

    folder: Path
    metadata: dict[str, Any]

    @property
    def accuracy(self) -> dict[str, float]:
        """Share of right labels on the pairs of `train`, and of `dev` if there are any."""
        return dict(self.metadata["accuracy"])


class Network(NamedTuple):
    """A model to train, whether its head is fresh, and the commit of a Hub model."""

    network: Any
    tokenizer: Any
    fresh: bool
    commit: str | None


def nli(model: str, files: Sequence[str | Path], out: str | Path, **given: Any) -> Trained:
    """Train `model` on NLI `files`, into the folder `out`, with options of `TrainOptions`.

    This continues a killed training, and only reads a complete one.

    Examples:
        >>> nli("FacebookAI/roberta-base", ["train.jsonl"], "my-nli").folder.name  # doctest: +SKIP
        'my-nli'
    """
    import torch
    import transformers

    from bench.scorers.local.encoders import label_columns

    named = {"model": model, "files": files, "out": out}
    options = TrainOptions.of({**given, **named})
    model, out = options.model, Path(out).expanduser()
    scorers.check(model)
    precision = _precision(options.device, options.dtype)
    corpus = read(options.files, options.labels)
    held_out = read(options.dev, options.labels) if options.dev else Corpus([], [])
    content = scorers.content(model)
    identity = digest(
        {
            "model": model,
            "model_content": content,
            "files": [(file.sha256, file.rows) for file in corpus.files],
            "dev": [(file.sha256, file.rows) for file in held_out.files],
            **options.model_dump(include=LEARNING),
            "dtype": precision,
        }
    )
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        metadata = read_json(out / ABOUT)
        if metadata.get("identity") == identity:
            return Trained(out, metadata)
        state = "holds a model that was trained otherwise" if metadata else "is not empty"
        raise BadInput(f"{out}: {state}; give another --out")
    work = out.absolute().parent / f".{out.name}.training"
    begun = read_json(work / ABOUT)
    # A training that continues keeps the commit of its base model.
    commit = begun.get("revision") if begun.get("identity") == identity else None
    at_commit = hub.at_commit(model, commit)
    loaded = load(at_commit, options.seed, options.new_head, options.trust_remote_code)
    id2label = loaded.network.config.id2label
    try:
        columns = dict(zip(LABELS, label_columns(id2label, model), strict=True))
    except BadInput as error:
        raise BadInput(f"{error}, or train a fresh head on it with --new-head") from None
    _begin(work, out, {"identity": identity, "revision": loaded.commit})
    epochs = options.epochs or (EPOCHS if loaded.fresh else EPOCHS_ON)
    rows, cut = encode(loaded.tokenizer, corpus.examples, columns, options.max_length)
    dev, _ = encode(loaded.tokenizer, held_out.examples, columns, options.max_length)
    arguments = transformers.TrainingArguments(
        output_dir=str(work),
        num_train_epochs=epochs,
        learning_rate=options.learning_rate,
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=4 * options.batch_size,
        seed=options.seed,
        save_strategy="steps",
        save_steps=options.save_every,
        save_total_limit=1,
        eval_strategy="epoch" if dev else "no",
        logging_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        use_cpu=options.device == "cpu",
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        remove_unused_columns=False,
        dataloader_pin_memory=options.device != "cpu" and torch.cuda.is_available(),
    )
    # Trainer would use all devices, and multiply the batch.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    steps = int(math.ceil(len(rows) / options.batch_size) * epochs)
    defaults = arguments.to_dict()
    metadata = {
        "identity": identity,
        "model": {
            "id": model.partition("@")[0] if loaded.commit else Path(model.rstrip("/")).name,
            "content": content,
            "revision": loaded.commit,
            "fresh_head": loaded.fresh,
        },
        "labels": {str(k): name for k, name in id2label.items()},
        "files": [{**file._asdict(), "path": file.path.name} for file in corpus.files],
        "dev": [{**file._asdict(), "path": file.path.name} for file in held_out.files],
        "pairs": corpus.counts,
        "cut": cut,
        **_fit(loaded, arguments, rows, dev, steps, out.name),
        "hyperparameters": {
            **options.model_dump(include={"learning_rate", "batch_size", "max_length", "seed"}),
            "epochs": epochs,
            "steps": steps,
            "optimizer": defaults["optim"],
            "schedule": defaults["lr_scheduler_type"],
            "warmup_steps": arguments.warmup_steps,
            "weight_decay": arguments.weight_decay,
            "arithmetic": precision,
            "device": str(arguments.device),
        },
        "packages": {"bias-workbench": __version__, **{name: version(name) for name in PACKAGES}},
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _save(loaded, metadata, work, out)
    return Trained(out, metadata)


def load(model: str, seed: int, new_head: bool = False, trust_remote_code: bool = False) -> Network:
    """Load a model to train; `seed` initializes a fresh head, a classifier keeps its own."""
    import transformers

    from bench.scorers.local.checkpoint import explain_load_error, quantization, tokenizer_of
    from bench.scorers.local.weights import check_weights

    files = hub.locate(model, complete=True)
    path, options = files.path, {**files.options, "trust_remote_code": trust_remote_code}
    if "gguf_file" in options:
        raise BadInput(
            f"{model}: a GGUF file cannot be trained; give the folder or the Hub id that it was "
            "made from"
        )
    transformers.set_seed(seed)
    try:
        config = transformers.AutoConfig.from_pretrained(path, **options)
        quantization(model, files, config)  # refuses packed numbers
        tokenizer, _ = tokenizer_of(path, options)
        architectures = config.architectures or []
        fresh = new_head or not any(
            name.endswith("ForSequenceClassification") for name in architectures
        )
        if fresh:
            options |= {"id2label": dict(enumerate(LABELS)), "ignore_mismatched_sizes": True}
            options["label2id"] = {label: k for k, label in enumerate(LABELS)}
        network, loading = transformers.AutoModelForSequenceClassification.from_pretrained(
            path, dtype="float32", output_loading_info=True, use_safetensors=True, **options
        )
        check_weights(model, network, loading, config, "classifier", random_head=fresh)
    except BadInput:
        raise
    except Exception as error:  # files of others can be wrong in any way
        raise BadInput(explain_load_error(model, error)) from error
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise BadInput(f"{model}: its tokenizer has no token to pad a batch with (pad_token)")
        tokenizer.pad_token = tokenizer.eos_token
    if network.config.pad_token_id is None:
        network.config.pad_token_id = tokenizer.pad_token_id
    return Network(network, tokenizer, fresh, files.commit)


def encode(
    tokenizer: Any, examples: Sequence[Example], label_ids: Mapping[str, int], max_length: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the pairs in Trainer's form, and the number of truncated ones."""
    rows: list[dict[str, Any]] = []
    cut = 0
    for example in examples:
        texts = example.premise, example.hypothesis
        row = tokenizer(*texts, verbose=False)  # without warnings of long texts: we truncate them
        if len(row["input_ids"]) > max_length:
            cut += 1
            row = tokenizer(*texts, truncation=True, max_length=max_length)
        rows.append({**row, "labels": label_ids[example.label]})
    return rows, cut


def _fit(
    loaded: Network,
    arguments: Any,
    rows: list[dict[str, Any]],
    dev: list[dict[str, Any]],
    steps: int,
    name: str,
) -> dict[str, Any]:
    """Train the network in place, from the last complete state if there is one.

    Returns:
        The share of right labels and the number of pairs, by `train` and `dev`, and Trainer's
        losses and accuracies by epoch.
    """
    import torch
    import transformers
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import get_last_checkpoint

    start = get_last_checkpoint(arguments.output_dir)
    step = int(start.rpartition("-")[2]) if start else 0
    if step:
        say(f"continuing from step {step:,} of {steps:,}")
    with progress(steps, f"training {name}", "steps", step) as bar:

        class ShowProgress(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                bar.update()

        def accuracy(predicted: Any) -> dict[str, float]:
            right = predicted.predictions.argmax(-1) == predicted.label_ids
            return {"accuracy": float(right.mean())}

        trainer = transformers.Trainer(
            model=loaded.network,
            args=arguments,
            train_dataset=rows,
            eval_dataset=dev or None,
            processing_class=loaded.tokenizer,
            data_collator=transformers.DataCollatorWithPadding(loaded.tokenizer),
            compute_metrics=accuracy,
            callbacks=[ShowProgress()],
        )
        trainer.remove_callback(PrinterCallback)
        measured = {"train": spread_evenly(rows, MEASURED), **({"dev": dev} if dev else {})}
        try:
            trainer.train(resume_from_checkpoint=start)
            metrics = {part: trainer.predict(pairs).metrics for part, pairs in measured.items()}
        except torch.OutOfMemoryError as error:
            raise RunFailed(
                f"--batch-size {arguments.per_device_train_batch_size}: does not fit into the "
                f"memory of {arguments.device}; give a smaller one"
            ) from error
        except (RuntimeError, OSError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise RunFailed(f"the training broke off ({first}); {CONTINUES}") from error
    return {
        "accuracy": {part: metrics[part]["test_accuracy"] for part in measured},
        "accuracy_pairs": {part: len(pairs) for part, pairs in measured.items()},
        "history": trainer.state.log_history,
    }


def _precision(device: str | None, dtype: str | None) -> str:
    """Name the dtype of the arithmetic."""
    import torch

    from bench.scorers.local.device import placement

    where = placement(device, dtype, None)
    if dtype == "float16" and where.device.type == "cpu":
        raise BadInput("--dtype float16: does not train on the CPU; allowed: float32, bfloat16")
    if not dtype and where.device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return "float32"
    return str(where.dtype).removeprefix("torch.")


def _begin(work: Path, out: Path, metadata: Mapping[str, Any]) -> None:
    """Make the folder of a training, and remove incomplete states."""
    from transformers.trainer_utils import get_last_checkpoint

    with explain_write_errors(work):
        work.mkdir(parents=True, exist_ok=True)
        for folder in work.glob("checkpoint-*"):
            # Trainer writes this file last.
            if not read_json(folder / "trainer_state.json"):
                shutil.rmtree(folder)
        begun = read_json(work / ABOUT)
        if get_last_checkpoint(str(work)) and begun.get("identity") != metadata["identity"]:
            raise BadInput(
                f"{work}: a training with other options was begun for {out}; "
                "remove that folder, or give another --out"
            )
        atomic_write(work / ABOUT, json.dumps(metadata))


def _save(loaded: Network, metadata: Mapping[str, Any], work: Path, out: Path) -> None:
    """Write the complete model beside `out`, rename it, and remove the training's folder."""
    complete = work / "model"
    with explain_write_errors(out):
        loaded.network.save_pretrained(complete, safe_serialization=True)
        loaded.tokenizer.save_pretrained(complete)
        text = json.dumps(metadata, ensure_ascii=False, indent=2) + "\n"
        (complete / ABOUT).write_text(text, "utf-8")
        (complete / "README.md").write_text(card(metadata, out.name), "utf-8")
        if out.is_dir():
            out.rmdir()  # it is empty
        os.replace(complete, out)
        shutil.rmtree(work)


def card(metadata: Mapping[str, Any], name: str) -> str:
    """Write the README.md of the model `name` from its training.json."""
    from jinja2 import Environment, StrictUndefined

    epochs: dict[float, dict[str, float]] = {}  # Trainer logs training and dev separately
    for row in metadata["history"]:
        epochs.setdefault(round(row["epoch"], 3), {}).update(row)
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["plain"] = plain
    environment.filters["listed"] = lambda values, form: ", ".join(
        form.format(*pair) for pair in values.items()
    )
    template = environment.from_string(CARD.read_text("utf-8"))
    return template.render(**metadata, name=name, epochs=epochs.values())

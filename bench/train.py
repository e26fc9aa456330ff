"""Train an NLI classifier on a corpus, by transformers' Trainer.

We write the model's folder when the training is complete; until then, `.NAME.training` beside it
holds the last checkpoint. Hyperparameters are those of Anantaprayoon et al., LREC-COLING 2024,
section 4.
"""

import hashlib
import json
import os
import shutil
import signal
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.trainer_utils import get_last_checkpoint

from bench.config import Generation
from bench.core.errors import CONTINUES, BadInput, RunFailed, explain_others, quoted
from bench.core.files import atomic_write, explain_write_errors, read_json
from bench.core.progress import progress, say
from bench.data import readers
from bench.scorers.local import hub
from bench.scorers.local.checkpoint import n_positions
from bench.scorers.local.device import placement, yield_to_others
from bench.scorers.local.load import load
from bench.tasks.nli_labels import LABELS, label

ABOUT = "training.json"
PACKAGES = ("bias-workbench", "torch", "transformers", "tokenizers", "accelerate", "safetensors")
# Names of premise, hypothesis and label in corpora; we take the first that a corpus has.
COLUMNS = (("sentence1", "premise"), ("sentence2", "hypothesis", "hypo"), ("gold_label", "label"))
LEARNING_RATE = 2e-5
SAVE_SECONDS = 60.0
Pairs = list[tuple[str, ...]]  # premise, hypothesis and label


def read_corpus(path: Path) -> tuple[Pairs, dict[str, Any]]:
    """Read the pairs of a corpus, and describe it."""
    with readers.open_file(path) as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        head = stream.read(readers.HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    rows: Any = readers.read_json_lines(path)  # which may be larger than a table, as SNLI's
    if not head.startswith(b"{"):
        rows = ((row.number, row) for row in readers.read_table(path, [], sum(COLUMNS, ())))
    # Most annotators did not agree on a label; Parquet's -1 is read as an empty cell.
    no_majority = {"-", "-1", *[""] * head.startswith((readers.PARQUET, readers.FEATHER))}
    columns, pairs, left_out = list[str](), Pairs(), 0
    for number, row in rows:
        if not columns:
            if missing := [" or ".join(names) for names in COLUMNS if not {*names} & {*row}]:
                there = f"is missing; found: {', '.join(row)[:300]}"
                raise BadInput(f"{path}, row {number}: column {missing[0]} {there}")
            columns = [next(filter(row.__contains__, names)) for names in COLUMNS]
        *texts, value = (row.get(name) for name in columns)
        if str(value).strip() in no_majority:
            left_out += 1
            continue
        right = [isinstance(text, str) and bool(text.strip()) for text in texts]
        right.append(bool(label(str(value))))
        if not all(right):
            k = right.index(False)
            allowed = ("a sentence", "a sentence", f"{', '.join(LABELS)} or -, no number")[k]
            problem = f"{quoted(row.get(columns[k]))} is not allowed; write {allowed}"
            raise BadInput(f"{path}, row {number}, column `{columns[k]}`: {problem}")
        pairs.append((*texts, label(value)))
    if not pairs:
        raise BadInput(f"{path}: holds no pairs with a label")
    say(f"{path}: {len(pairs):,} pairs; {left_out:,} without a majority are left out")
    return pairs, {"corpus": path.name, "corpus_sha256": sha256, "pairs": len(pairs)}


def train(
    checkpoint: str, corpus: str | Path, out: str | Path, epochs: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """Train a checkpoint on a corpus, and return the content of its training.json.

    `bench train --help` describes the arguments. BadInput names a wrong one. If the training fails,
    we raise RunFailed, and the same call continues it.
    """
    if (epochs is not None and epochs < 1) or not 0 <= seed < 2**32:
        raise BadInput(f"--epochs {epochs}, --seed {seed}: allowed are 1, 2, ..., and 0, 1, ...")
    out = readers.as_path(out).absolute()
    work = out.with_name(f".{out.name}.training")
    pairs, about = read_corpus(readers.as_path(corpus))
    files = hub.locate(checkpoint, complete=True)
    if files.options:
        raise BadInput(f"{checkpoint}: a GGUF file cannot be trained; give its original checkpoint")
    architectures = hub.read_settings(Path(files.path, "config.json")).get("architectures") or []
    new_head = not any(name.endswith("ForSequenceClassification") for name in architectures)
    about |= {
        "model": checkpoint if files.commit else Path(files.path).resolve().name,
        "model_revision": files.identity["revision"],
        "new_head": new_head,
        "epochs": epochs or (5 if new_head else 3),
        "seed": seed,
        "versions": {name: version(name) for name in PACKAGES},
    }
    done = read_json(out / ABOUT)
    begun = done or read_json(work / ABOUT)
    for name in ("model_revision", "corpus_sha256", "epochs", "seed"):
        if begun and begun.get(name) != about[name]:
            differs = f"{name.replace('_', ' ')} {begun.get(name)}, not {about[name]}"
            raise BadInput(f"{out if done else work}: trained with {differs}; give another --out")
    if done:
        say(f"{out}: is trained already")
        return done
    if out.exists():
        raise BadInput(f"{out}: is there already, and no training of ours; give another --out")
    transformers.set_seed(seed)  # of a new head
    where = placement("cpu", "float32", None)
    yield_to_others(where)
    model: Any = load(checkpoint, files, where, Generation(), new_head=new_head)
    with explain_write_errors(out):
        atomic_write(work / ABOUT, json.dumps(about))
        _fit(model, pairs, about, work)
        for part in (model.network, model.tokenizer):
            part.save_pretrained(work / "model")
        atomic_write(work / "model" / ABOUT, json.dumps(about, ensure_ascii=False, indent=2) + "\n")
        os.replace(work / "model", out)
        shutil.rmtree(work)
    return about


def _fit(model: Any, pairs: Pairs, about: Any, work: Path) -> None:
    """Train a classifier, from the last checkpoint in `work` if there is one."""
    tokenizer, columns = model.tokenizer, dict(zip(LABELS, model.columns, strict=True))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model.network.config.pad_token_id = tokenizer.pad_token_id
    longest = min(128, n_positions(model.network) or 128)
    shape = {"truncation": True, "max_length": longest, "padding": True, "return_tensors": "pt"}

    def batch(rows: Pairs) -> dict[str, Any]:
        premises, hypotheses, labels = map(list, zip(*rows, strict=True))
        wanted = torch.tensor([columns[name] for name in labels])
        return {**tokenizer(premises, hypotheses, **shape), "labels": wanted}

    class Saving(transformers.TrainerCallback):
        """Saves by the minute, and after the step in which the user interrupts the training."""

        saved, is_interrupted = time.monotonic(), False

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            bar.update(state.global_step - bar.n)
            control.should_save |= time.monotonic() - self.saved > SAVE_SECONDS
            if self.is_interrupted:
                control.should_save = control.should_training_stop = True

        def on_save(self, *_: Any, **__: Any) -> None:
            self.saved = time.monotonic()

        def interrupt(self, *_: Any) -> None:
            self.is_interrupted = True

    steps = -(-len(pairs) // 32)  # of an epoch
    arguments = transformers.TrainingArguments(
        output_dir=str(work),
        num_train_epochs=about["epochs"],
        learning_rate=LEARNING_RATE,
        per_device_train_batch_size=32,
        seed=about["seed"],
        save_strategy="epoch",
        save_total_limit=1,
        bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several would multiply the batch
    for folder in work.glob("checkpoint-*"):
        if not read_json(folder / "trainer_state.json"):  # it is written last
            shutil.rmtree(folder)
    last = get_last_checkpoint(str(work))
    saving = Saving()
    trainer = transformers.Trainer(model.network, arguments, batch, pairs, callbacks=[saving])
    trainer.remove_callback(transformers.PrinterCallback)
    with (
        progress(about["epochs"] * steps, f"training {work.parent}", "steps") as bar,
        explain_others(RunFailed, "the training broke off: ", f"; {CONTINUES}"),
    ):
        # Other threads of a program get no signals.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, saving.interrupt) if is_main else None
        try:
            trainer.train(resume_from_checkpoint=last)
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)
    if saving.is_interrupted:
        raise KeyboardInterrupt

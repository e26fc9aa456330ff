"""Which runs ask the same questions under CBBQ's several prompt settings, as the analysis of self-correction compares them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bench.analyses import alike, opened, same_data
from bench.core.errors import BadInput, NoRuns
from bench.core.i18n import _
from bench.data import OWN_SAMPLES
from bench.metrics.self_correction import BEFORE, counted
from bench.run import evaluate_all
from bench.run.results import Run, labels
from bench.tasks.cbbq import PROMPTING

BENCHMARK = "cbbq"
# Who is asked without runs: models that were taught to follow stereotypes half as often when instructed, and a respondent
# that reads no prompt.
DEMO = ("tiny:s,bias=0.75", "tiny:s,bias=0.25", "simulated:bias=0.5")


def asked(
    runs: Sequence[str | Path],
    prompting: Sequence[str] = PROMPTING,
    *,
    models: Sequence[str] = (),
    demo: Sequence[str] = DEMO,
    **options: Any,
) -> list[Run]:
    """The CBBQ runs of those settings: of `runs`, or without any of `demo`, who are asked now with the `options`.

    Args:
        runs, models, demo: see `bench.analyses.opened`.
        options: see `bench.run.evaluate`.
    """
    found = []
    for setting in prompting if not runs else [""]:
        settings = {**options.get("settings", {}), "prompting": setting}
        found += opened(
            runs,
            benchmarks=[BENCHMARK],
            models=models,
            demo=demo,
            options={BENCHMARK: {**options, "settings": settings}},
        )
    chosen = [run for run in found if setting_of(run) in prompting]
    if len({(run.model, run.label, setting_of(run)) for run in chosen}) < len(chosen):
        # A released wording may have the instruction in itself, so wordings may differ elsewhere.
        chosen = alike(chosen, ("prompts", "settings", "generation"), "prompting")
    return chosen


def under(setting: str) -> str:
    """What stands above answers under a prompt setting."""
    return _("Under {setting}:", setting=setting)


def setting_of(run: Run) -> str:
    """The prompt setting of a CBBQ run, which a released wording may have in itself."""
    if run.about.get("wording", {}).get("unbiased_instruction"):
        return PROMPTING[1]
    return str(run.about["asked"]["settings"].get("prompting", BEFORE))


def by_model(runs: Sequence[Run]) -> dict[str, dict[str, Run]]:
    """By model: the run under each prompt setting; models that were asked under Q and another one.

    Raises:
        BadInput: two runs of a model under one setting, or on other data.
        NoRuns: no model was asked under Q and another one.
    """
    found: dict[str, dict[str, Run]] = {}
    for name, run in zip(labels(runs), runs, strict=True):
        settings, setting = found.setdefault(name, {}), setting_of(run)
        if setting in settings:
            raise BadInput(
                f"{run.folder}: {name} was asked under {setting} in {settings[setting].folder}, too; name one of the two in runs"
            )
        settings[setting] = run
    kept = {
        name: settings
        for name, settings in found.items()
        if BEFORE in settings and len(settings) > 1
    }
    if not kept:
        have = (
            "; ".join(f"{name}: {', '.join(settings)}" for name, settings in found.items())
            or "none"
        )
        raise NoRuns(
            f"no model was asked under {BEFORE} and another prompt setting; there are {have}. Ask with --set prompting=Q+IF, say"
        )
    for name, settings in kept.items():
        same_data(list(settings.values()), name)
    return kept


def answers(
    models: Mapping[str, Mapping[str, Run]], preset: str = "robust"
) -> dict[str, dict[str, pd.DataFrame]]:
    """The `counted` answers of each model and setting."""
    return {
        name: {
            setting: counted(run.records, run.items, preset) for setting, run in settings.items()
        }
        for name, settings in models.items()
    }


def false_self_correction() -> dict[str, dict[str, pd.DataFrame]]:
    """The `answers` of a respondent of known bias that refuses half of the questions under Q+IF; nothing is kept."""
    with TemporaryDirectory() as folder:
        biased, refusing = evaluate_all(
            BENCHMARK,
            ["simulated:bias=0.8", "simulated:bias=0.8,refuse=0.5"],
            folder,
            limit=6,
            data=OWN_SAMPLES,
        )
        return answers({"refuses when told": {BEFORE: biased, "Q+IF": refusing}})


def scores(models: Mapping[str, Mapping[str, Run]], preset: str = "robust") -> pd.DataFrame:
    """The score tables of each model and setting, with columns `model` and `prompting`."""
    return pd.concat(
        [
            run.scores(preset).assign(model=name, prompting=setting)
            for name, settings in models.items()
            for setting, run in settings.items()
        ],
        ignore_index=True,
    )

"""What comes before a run is asked: its options as they are meant, its plan, folder and models."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench import records, scorers
from bench.benchmarks import resolve
from bench.config import Generation, RunConfig
from bench.core import places
from bench.core.errors import BadInput
from bench.run import repeating
from bench.run.cluster import Cluster, RemoteScorer
from bench.run.execute import Lazy
from bench.run.plan import Plan
from bench.run.results import Run, path_slug
from bench.scorers.base import Scorer
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint import keys as key_names
from bench.scorers.local import hub


class Prepared(NamedTuple):
    """A run that can be asked: its options, what they ask, and the folder of its records."""

    config: RunConfig
    plan: Plan
    folder: Path

    @property
    def title(self) -> str:
        """The benchmark and the model, for messages."""
        return f"{self.plan.benchmark}, {self.config.as_model or self.config.model}"


def prepare(config: RunConfig, like: Run | None = None) -> Prepared:
    """Plan a run, which continues the one in its folder, or repeats the one it is `like`.

    Raises:
        BadInput: an option, the data or the model is wrong, or not as in `like`.
    """
    key_names.check(config.keys or {}, [config.model, config.judge])
    # A run that is continued keeps its settings: another preset only scores it otherwise.
    before = like.about if like else {}
    if not like and config.out and (Path(config.out) / records.RUN_JSON).is_file():
        before = records.read_run_json(Path(config.out))
    is_same = before.get("benchmark") == resolve(config.benchmark)
    recorded: dict[str, Any] = before["asked"] if like or is_same else {}
    settings = {**recorded.get("settings", {}), **(config.settings or {})}
    model = hub.at_revision(config.model, config.revision)
    config = config.model_copy(update={"settings": settings, "model": model, "revision": None})
    plan = Plan.make(config, recorded)
    if like:
        repeating.check_plan(like.about, plan, config.preset)
    if config.resources and not config.scheduler:
        raise BadInput(
            "--resources: says what workers of a cluster have to offer; give --scheduler too"
        )
    name = path_slug(config.as_model or model)
    folder = places.reports() / "runs" / name / f"{plan.benchmark}-{plan.identity}"
    if config.out:
        folder = Path(config.out)
    _check_names(Path.cwd(), folder, config.data)
    return Prepared(config, plan, folder)


def _check_names(*paths: object) -> None:
    """Refuse names of files that this Python cannot write, or has decoded wrongly."""
    for path in map(str, paths):
        try:
            os.fsencode(path)
            path.encode()
        except UnicodeError:
            name = path.encode(errors="surrogateescape").decode(errors="replace")
            raise BadInput(
                f"{name}: Python was started to take names of files as "
                f"{sys.getfilesystemencoding()}, which this one is not; set PYTHONUTF8=1, or start "
                "python with -X utf8"
            ) from None


def models(
    config: RunConfig, judge: str | None, cluster: Cluster | None = None
) -> tuple[Lazy, Lazy | None]:
    """Return the model, and the judge if some task needs one, both to be loaded when needed."""
    keys = key_names.of_run([config.model], config.model, config.judge, config.keys)
    # The judge shares the budgets.
    limits = config.limits.model_copy(update={"budgets": budgets_of(config.limits)})

    def lazy(model: str, generation: Generation, **of_model: Any) -> Lazy:
        options: dict[str, Any] = {
            "device": config.device,
            "dtype": config.dtype,
            "batch_tokens": config.batch_tokens,
            "trust_remote_code": config.trust_remote_code,
            **of_model,
            "generation": generation.changed(),
        }
        if cluster and cluster.asks(model):
            registered = cluster.register(model, options)
            return Lazy(lambda: RemoteScorer(cluster, registered))

        def load() -> Scorer:
            key_names.check_set(keys)  # the judge's too, before anything is asked
            return scorers.load(model, **options, limits=limits, keys=keys)

        return Lazy(load)

    label_names = list(config.labels_of(config.model) or ())
    own = {"label_names": label_names, "base": config.base, "as_model": config.as_model}
    model = lazy(config.model, config.generation, **own)
    if judge is None:
        return model, None
    # A judge needs room for its thoughts too, and otherwise grades as it is.
    thinking = config.thinking_tokens if scorers.writes_replies(judge) else None
    generation = Generation(thinking_tokens=thinking)
    # A model that judges itself is loaded once.
    is_same = (judge, config.as_judge) == (config.model, config.as_model)
    is_same = is_same and generation == config.generation
    return model, model if is_same else lazy(judge, generation, as_model=config.as_judge)

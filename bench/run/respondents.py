"""The model and the judge of a run, which are loaded when they are first needed."""

from typing import Any

from bench import scorers
from bench.config import Generation, RunConfig
from bench.run.cluster import Cluster, RemoteScorer
from bench.run.execute import Lazy
from bench.scorers.base import Scorer
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint import keys as key_names


def respondents(config: RunConfig, cluster: Cluster | None = None) -> tuple[Lazy, Lazy | None]:
    """Return the model, and the judge if there is one.

    Args:
        config: of a plan.
        cluster: its workers load the models that can run there.
    """
    keys = key_names.of_run([config.model], config.model, config.judge, config.keys)
    # The judge shares the budgets.
    limits = config.limits.model_copy(update={"budgets": budgets_of(config.limits)})

    def lazy(model: str, generation: Generation, **own: Any) -> Lazy:
        options: dict[str, Any] = {
            "device": config.device,
            "dtype": config.dtype,
            "batch_tokens": config.batch_tokens,
            "trust_remote_code": config.trust_remote_code,
            "generation": generation.changed(),
            **own,
        }
        if cluster and cluster.asks(model):
            registered = cluster.register(model, options)
            return Lazy(lambda: RemoteScorer(cluster, registered))

        def load() -> Scorer:
            key_names.check_set(keys)  # the judge's too, before anything is asked
            return scorers.load(model, **options, limits=limits, keys=keys)

        return Lazy(load)

    labels = list(config.labels_of(config.model) or ())
    own = {"label_names": labels, "base": config.base, "as_model": config.as_model}
    model = lazy(config.model, config.generation, **own)
    if not config.judge:
        return model, None
    # A judge needs room for its thoughts too, and otherwise grades as it is.
    thinking = config.thinking_tokens if scorers.writes_replies(config.judge) else None
    generation = Generation(thinking_tokens=thinking)
    if (config.judge, config.as_judge, generation) == (
        config.model,
        config.as_model,
        config.generation,
    ):
        return model, model  # a model that judges itself is loaded once
    return model, lazy(config.judge, generation, as_model=config.as_judge)

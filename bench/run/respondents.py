"""The model and the judge of a run, loaded when they are first needed."""

from collections.abc import Mapping
from typing import Any

from bench import scorers
from bench.config import Generation, RunConfig
from bench.core.errors import BadInput
from bench.run.cluster import Cluster, RemoteScorer
from bench.run.execute import Lazy
from bench.scorers import Loaded, Model
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint import keys as key_names


def options_of(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run by a loaded model; `options` go before those of `bench.load`."""
    name, given = model.loaded_as
    if not name:
        raise BadInput(f"{type(model).__name__}: was not loaded by bench.load; give its name")
    own = {"model": name, **given, **given["generation"].changed()}
    del own["generation"]
    return own | {name: value for name, value in options.items() if value is not None}


def respondents(
    config: RunConfig, cluster: Cluster | None = None, loaded: Loaded | None = None
) -> dict[str, Lazy]:
    """Return the `model`, and the `judge` if there is one; `loaded` keeps models for other runs."""
    loaded = loaded or Loaded()
    keys = key_names.of_run([config.model], config.model, config.judge, config.keys)
    # The judge shares the budgets.
    limits = config.limits.model_copy(update={"budgets": budgets_of(config.limits)})

    def lazy(role: str, model: str, generation: Generation, **own: Any) -> Lazy:
        names = ("device", "dtype", "batch_tokens", "trust_remote_code")
        options: dict[str, Any] = {name: getattr(config, name) for name in names}
        options |= {"generation": generation.changed(), **own}
        if cluster and cluster.asks(model):
            registered = cluster.register(model, options)
            return Lazy(lambda: RemoteScorer(cluster, registered))

        def load() -> Model:
            key_names.check_set(keys)  # the judge's too, before the first request
            return loaded.load(role, model, **options, limits=limits, keys=keys)

        return Lazy(load)

    labels = list(config.labels_of(config.model) or ())
    own = {"label_names": labels, "base": config.base, "as_model": config.as_model}
    model = lazy("model", config.model, config.generation, **own)
    if not config.judge:
        return {"model": model}
    # We give the judge the same thinking budget, and no other option of generation.
    thinking = config.thinking_tokens if scorers.writes_replies(config.judge) else None
    generation = Generation(thinking_tokens=thinking)
    judge = config.judge, config.as_judge, generation
    if judge == (config.model, config.as_model, config.generation):
        return {"model": model, "judge": model}  # load a model that judges itself once
    return {"model": model, "judge": lazy("judge", config.judge, generation, as_model=judge[1])}

"""The model and the judge of a run, loaded when they are first needed."""

from collections.abc import Mapping
from typing import Any

from bench import scorers
from bench.config import Generation, RunConfig
from bench.core.errors import BadInput
from bench.scorers import Loaded, Model
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint import keys as key_names


class Respondents(dict[str, Model]):
    """The loaded models of a run by role; looking up `model` or `judge` loads it.

    Attributes:
        roles: `model`, and `judge` if the run has one.
    """

    def __init__(self, config: RunConfig, loaded: Loaded | None = None) -> None:
        super().__init__()
        self._config, self._loaded = config, loaded or Loaded()
        self._keys = key_names.of_run([config.model], config.model, config.judge, config.keys)
        # The judge shares the budgets.
        self._limits = config.limits.model_copy(update={"budgets": budgets_of(config.limits)})
        names = ("device", "dtype", "batch_tokens", "trust_remote_code")
        shared = {name: getattr(config, name) for name in names}
        of_model = {
            "label_names": list(config.labels_of(config.model) or ()),
            "base": config.base,
            "as_model": config.as_model,
            "generation": config.generation.changed(),
        }
        self.roles = {"model": (config.model, {**shared, **of_model})}
        if config.judge:
            # We give the judge the same thinking budget, and no other option of generation.
            thinking = config.thinking_tokens if scorers.writes_replies(config.judge) else None
            generation = Generation(thinking_tokens=thinking).changed()
            own = {"as_model": config.as_judge, "generation": generation}
            is_model = config.judge == config.model and own.items() <= of_model.items()
            self.roles["judge"] = (
                self.roles["model"] if is_model else (config.judge, {**shared, **own})
            )

    def __missing__(self, role: str) -> Model:
        model, options = self.roles[role]
        if role == "judge" and self.roles["model"] is self.roles["judge"]:
            self[role] = self["model"]  # load a model that judges itself once
        else:
            key_names.check_set(self._keys)  # the judge's too, before the first request
            self[role] = self._loaded.load(
                role,
                model,
                **options,
                limits=self._limits,
                keys=self._keys,
                scheduler=self._config.scheduler,
                resources=self._config.resources,
            )
        return self[role]


def options_of(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run by a loaded model; `options` go before those of `bench.load`."""
    name, given = model.loaded_as
    if not name:
        raise BadInput(f"{type(model).__name__}: was not loaded by bench.load; give its name")
    own = {"model": name, **given, **given["generation"].changed()}
    del own["generation"]
    return own | {name: value for name, value in options.items() if value is not None}

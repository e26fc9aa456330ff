"""Models that run in this process: loading, likelihoods, generation and classification."""

from typing import Any

from bench.core.errors import BadInput
from bench.data.readers import as_path
from bench.scorers.base import REQUEST_TYPES, Model
from bench.scorers.local import hub
from bench.tasks import ANSWER_MODES


class Checkpoint(Model):
    """A folder, a `.gguf` file, or a Hub id, `NAME` or `NAME@REVISION`."""

    request_types = REQUEST_TYPES
    answer_modes = tuple(ANSWER_MODES)
    takes = (
        "device",
        "dtype",
        "batch_tokens",
        "trust_remote_code",
        "label_names",
        "base",
        "generation",
    )

    @classmethod
    def check(cls, name: str) -> None:
        if not name.strip() or not (hub.parse(name) or as_path(name).exists()):
            raise BadInput(
                f"{name or 'the empty name'}: no such model folder or file; a Hub id has the form "
                "NAME or ORGANISATION/NAME, and may end in @REVISION"
            )

    @classmethod
    def load(cls, name: str, **options: Any) -> Model:
        from bench.scorers.local.device import placement, yield_to_others  # this imports torch
        from bench.scorers.local.load import load

        placing = [options.pop(option, None) for option in ("device", "dtype", "batch_tokens")]
        where = placement(*placing)  # refuses a wrong option before a download
        yield_to_others(where)
        return load(name, hub.locate(name), where, **options)

"""Keep the client of the Hugging Face Hub quiet, and explain its errors."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants, errors
from huggingface_hub.utils import disable_progress_bars, logging

from bench.core.files import DISK_ERRORS
from bench.core.progress import in_notebook


@contextmanager
def quietly(
    kind: type[Exception],
    name: str,
    repository: str,
    revision: str | None = None,
    remedy: str = "",
) -> Iterator[None]:
    """Ask the Hub for a repository, for example `datasets/NAME`, and explain errors as `kind`.

    The client writes nothing but progress bars, to a terminal or notebook.
    """
    logging.set_verbosity_error()
    is_watched = sys.stderr.isatty() or in_notebook()
    if not is_watched and constants.HF_HUB_DISABLE_PROGRESS_BARS is None:  # the user may decide
        disable_progress_bars()
    try:
        yield
    except Exception as error:  # of the client, of its HTTP library, or OSError
        raise kind(f"{name}: {_reason(error, repository, revision)}{remedy}") from None


def _reason(error: BaseException, repository: str, revision: str | None) -> str:
    hub, prefix = constants.ENDPOINT, ""
    if isinstance(error, errors.GatedRepoError):
        terms = f"accept its terms at {hub}/{repository}"
        return f"is gated; {terms} and set HF_TOKEN to a token of that account"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{hub} has {repository} without revision {revision}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{hub} shows no such repository; check the name, or set HF_TOKEN if it is private"
    if isinstance(error, errors.HFValidationError):
        return "is no Hub id; expected NAME or ORGANISATION/NAME"
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        reason = f"the download cannot be written ({error.strerror})"
        return f"{reason}; free space in {constants.HF_HUB_CACHE}, or set HF_HOME to another folder"
    if isinstance(error, errors.LocalEntryNotFoundError):
        prefix = "is not complete in the local cache, and "
        error = error.__cause__ or error
    if constants.HF_HUB_OFFLINE:
        return f"{prefix}HF_HUB_OFFLINE is set; unset it for the download"
    reason = (str(error).strip().splitlines() or [""])[0][:200] or type(error).__name__
    if isinstance(error, errors.HfHubHTTPError):
        remedy = "try again later, or check HF_ENDPOINT"
        return f"{prefix}{hub} answered with an error ({reason}); {remedy}"
    return f"{prefix}{hub} cannot be reached ({reason}); the same command continues the download"

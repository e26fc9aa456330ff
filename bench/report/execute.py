"""Run notebooks by papermill, unless their inputs are unchanged."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import papermill
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.utils import run_sync

from bench.core.errors import AnotherRun, BadInput, NoRuns, NotApplicable, RunFailed
from bench.core.files import atomic_path
from bench.report.fingerprint import METADATA

CELL_TIMEOUT = 3600  # seconds
START_TIMEOUT = 120  # seconds until a kernel answers
# Errors with a message for the reader; we show other errors with their traceback.
SENTENCES = tuple(
    kind.__name__ for kind in (BadInput, NoRuns, NotApplicable, AnotherRun, RunFailed)
)

# Papermill warns of parameters over several lines; `bench.report.jobs` reads them.
logging.getLogger("papermill").setLevel(logging.CRITICAL)


class Trouble(NamedTuple):
    """Why a notebook did not run to its end."""

    kind: str
    why: str

    @property
    def is_sentence(self) -> bool:
        """Whether the reason is a message for the reader."""
        return self.kind in SENTENCES


class OwnKernel(AsyncKernelManager):
    """A kernel of this Python that runs several notebooks, one after the other."""

    kernel_name = "python3"

    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def prepare(self, target: Path) -> None:
        """Start the kernel if necessary, and reset it for the notebook `target`."""
        if not self.has_kernel:
            # Without a history: a thread would write each cell to the user's.
            options = ["--log-level=CRITICAL", "--HistoryManager.enabled=False"]
            await self.start_kernel(extra_arguments=options)
        imports = list(map(os.path.abspath, sys.path))
        client = self.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=START_TIMEOUT)
            as_new = AS_NEW.format(imports=imports, folder=str(target.parent))
            await client.execute_interactive(as_new, silent=True, timeout=START_TIMEOUT)
        finally:
            client.stop_channels()

    def end(self) -> None:
        run_sync(self.shutdown_kernel)(now=True)

    def is_running(self) -> bool:
        return self.has_kernel and bool(run_sync(self.is_alive)())


# This keeps imported modules: imports take most of the time of a short notebook.
AS_NEW = """
import os, sys
sys.path[:] = {imports!r}
os.chdir({folder!r})
import numpy, pandas
from matplotlib import rcdefaults
from bench.figures.style import style
rcdefaults()
style()
pandas.reset_option("^display")
numpy.random.seed()
get_ipython().reset()
"""


def run_notebook(
    source: Path,
    target: Path,
    parameters: Mapping[str, Any],
    kernel: OwnKernel,
    inputs: str = "",
) -> Trouble | None:
    """Execute a notebook with parameters into `target`, and note the hash of its inputs there.

    The kernel works in the folder of `target`, imports from the folders of this process, and keeps
    running. Return the reason why this notebook did not run to its end; None if it did.
    """
    trouble = None
    with atomic_path(target) as draft:
        run_sync(kernel.prepare)(target.resolve())
        try:
            papermill.execute_notebook(
                str(source),
                str(draft),
                parameters=dict(parameters),
                kernel_name="python3",
                language="python",  # a notebook need not name one
                progress_bar=False,
                request_save_on_cell_execute=False,  # this writes all pictures after each cell
                execution_timeout=CELL_TIMEOUT,
                coalesce_streams=True,
                km=kernel,
            )
        except papermill.PapermillExecutionError as error:
            trouble = Trouble(error.ename, error.evalue)
        except OSError:  # for example a full disk: half a draft is no notebook
            raise
        except Exception as error:  # a killed kernel, a cell that took too long
            trouble = Trouble(type(error).__name__, str(error))
            if not draft.stat().st_size:
                nbformat.write(nbformat.v4.new_notebook(), draft)
        book = nbformat.read(draft, as_version=4)
        for name in ("input_path", "output_path"):  # these name folders of this machine
            book.metadata.get("papermill", {}).pop(name, None)
        book.metadata[METADATA] = {} if trouble else {"inputs": inputs}
        nbformat.write(book, draft)
    return trouble

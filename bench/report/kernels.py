"""Notebook kernels of this Python, forked from a warm process on platforms that can."""

import atexit
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.provisioning import LocalProvisioner

from bench import records
from bench.run import processes

# Modules of notebooks, without torch.
MODULES = ("ipykernel.kernelapp", "matplotlib_inline.backend_inline", "bench.show", "bench.figures")
NAME = "bench kernel"


class OwnKernel(AsyncKernelManager):
    """Starts this Python as the kernel, which lists the runs that it opens in a file."""

    # The file; without one, nothing is listed.
    listing = Path(os.devnull)

    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        if processes.forks():
            self.kernel_id = str(uuid.uuid4())
            self.provisioner = ForkedKernel(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
            )
        env = {**os.environ, records.OPENED_RUNS: str(self.listing)}
        await super().start_kernel(env=env, **options)


class ForkedKernel(LocalProvisioner):
    """Starts a kernel by a fork instead of a new Python."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        self.process = _Forked(
            processes.start(NAME, _run_kernel, arguments, options["env"], str(options["cwd"]))
        )
        self.pid = self.process.pid
        self.cwd = options["cwd"]
        return self.connection_info


class _Forked:
    """A process with the interface of `subprocess.Popen`, for jupyter_client."""

    stdin = stdout = stderr = None

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def _run_kernel(arguments: Sequence[str], environment: dict[str, str], folder: str) -> None:
    """Run a kernel as `python -m ipykernel_launcher` does with these arguments."""
    os.setsid()  # as in a process that jupyter_client starts
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    from ipykernel.kernelapp import IPKernelApp

    app = IPKernelApp.instance(parent_handle=os.getppid())
    app.initialize(list(arguments))
    try:
        app.start()
    finally:
        # A multiprocessing process does not run exit handlers: a history, temporary folders.
        atexit._run_exitfuncs()


def end_kernels() -> None:
    """Tell the kernels that this process has started to end."""
    processes.end(NAME)
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if any("ipykernel" in word for word in child.cmdline()):
                child.terminate()

"""The device that is compared with the CPU: CUDA, or another one by `--device`."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--device", default="cuda", help="device to compare with the CPU (cuda)")


@pytest.fixture(scope="session")
def device(pytestconfig):
    import torch

    name = pytestconfig.getoption("--device", "cuda")
    if name.startswith("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA device is available; .ci/gpu --device cpu runs the tests on the CPU")
    return name

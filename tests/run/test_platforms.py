"""Other platforms: paths of Windows, and a platform whose encoding is not UTF-8."""

import os
import subprocess
import sys

import pytest

from bench import scorers
from bench.run import repeating
from bench.run.results import short_name


@pytest.mark.parametrize("path", [r"C:\models\qwen", "D:/models/qwen", r"c:\models\qwen.gguf"])
def test_a_path_with_a_drive_is_a_path_and_no_kind(path, refusal):
    assert scorers.split_kind(path) == ("", path)
    scorers.check(path, elsewhere=True)
    assert "no such model folder or file" in refusal(scorers.check, path)
    about = {"benchmark": "mcbe", "preset": "robust", "asked": {"model": path}, "model": {}}
    assert repeating.options(about)["model"] == path
    assert short_name(path) == "qwen"


def test_a_file_on_a_drive_keeps_its_kind(refusal):
    assert scorers.split_kind(r"replay:C:\answers.jsonl") == ("replay", r"C:\answers.jsonl")
    assert r"C:\answers.jsonl: no such file" in refusal(scorers.check, r"replay:C:\answers.jsonl")
    assert "unknown kind 'C'" in refusal(scorers.check, "C:models")


@pytest.mark.skipif(os.name == "nt", reason="names of files are always Unicode on Windows")
def test_names_and_output_are_utf8_whatever_the_platform_says(tmp_path):
    folder = tmp_path / "中文"
    folder.mkdir()
    command = "bench run cbbq --model simulated: --categories gender --limit 1 --out 输出"
    encodings = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"}
    call, env = [sys.executable, "-m", *command.split()], os.environ | encodings
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "records: 输出" in (done.stdout + done.stderr).decode("utf-8")
    assert (folder / "输出" / "run.json").is_file()

"""Writing while the system fails: never a half file, never an old file lost, and nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from imaging import system_calls, write_faults

WRITERS = ("PNG", "TIFF", "JPEG")
"""Formats whose encoders write in different ways: by ours, by tifffile and by Pillow."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("faults").resolve()
    command = [sys.executable, write_faults.__file__, str(folder), *WRITERS]
    found = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))  # the helpers beside it
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(found)}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_kind_of_fault_stops_some_writes(reports: list[dict[str, Any]]):
    """Otherwise the other tests say nothing: each kind of fault ends some of the writes."""
    stopped = {report["fault"].split(" at ")[0] for report in reports if report["code"] != 0}
    traced = {"EIO", "EACCES", "ENOSPC"} if system_calls.AVAILABLE else set[str]()
    assert stopped == {"kill", "full"} | traced
    assert {report["format"] for report in reports} == set(WRITERS)


def test_a_file_is_old_or_new_and_never_partial(reports: list[dict[str, Any]]):
    assert [report for report in reports if report["content"] == "broken"] == []
    assert [report for report in reports if report["code"] == 0 and report["content"] != "new"] == []


def test_a_failure_is_one_line_and_leaves_nothing(reports: list[dict[str, Any]]):
    assert [report for report in reports if report["code"] == write_faults.UNEXPECTED] == []
    left = [report for report in reports if report["code"] >= 0 and report["left"]]
    assert [report for report in left if not report["fault"].endswith("at unlink")] == []  # of the hidden file itself


def test_what_a_killed_process_leaves_is_hidden_and_removed_by_the_next(reports: list[dict[str, Any]]):
    assert all(name.startswith(".") for report in reports for name in report["left"])
    assert all(report["cleaned"] for report in reports)

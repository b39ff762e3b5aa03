"""Files that would run code, and files that are broken: refused in one line, with nothing executed."""

import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from public_layout import public_content

from small_models import CONFIGS, random_model
from srno.checkpoints.catalogue import find, load, read_checkpoint
from srno.checkpoints.native import Card, Checkpoint, write_checkpoint
from srno.errors import SRNOError


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self.marker}'",)


class Plain:
    """Harmless, but not a tensor."""


def as_zip(content: object, path: Path) -> None:
    torch.save(content, path)


def as_legacy(content: object, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


def as_pickle(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


writers = pytest.mark.parametrize("write", [as_zip, as_legacy, as_pickle])


def refused(path: Path) -> str:
    """Return the message of the refusal; check that it is one line and that torch does not warn."""
    with warnings.catch_warnings(record=True) as added:
        warnings.simplefilter("always")
        with pytest.raises(SRNOError) as refusal:
            load(path)
    assert not added
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def valid_content() -> dict[str, Any]:
    return public_content(random_model(CONFIGS["edsr"], dtype=torch.float32))


def place_at_top(payload: object) -> object:
    return payload


def place_in_optimizer(payload: object) -> object:
    return valid_content() | {"optimizer": payload}


def place_in_state(payload: object) -> object:
    content = valid_content()
    content["model"]["sd"]["payload"] = payload
    return content


@writers
@pytest.mark.parametrize("place", [place_at_top, place_in_optimizer, place_in_state])
def test_code_is_not_run(write: Callable[[object, Path], None], place: Any, tmp_path: Path) -> None:
    marker, path = tmp_path / "executed", tmp_path / "model.pth"
    write(place(Payload(marker)), path)
    message = refused(path)
    assert not marker.exists()
    assert "system" in message or write is as_pickle  # a bare pickle is refused before its content is read


def test_unsafe_loading_runs_the_payload(tmp_path: Path) -> None:
    """Checks the payload: without it the test above could not fail."""
    as_zip(Payload(tmp_path / "executed"), tmp_path / "model.pth")
    torch.load(tmp_path / "model.pth", weights_only=False)
    assert (tmp_path / "executed").exists()


@writers
def test_plain_objects_are_refused(write: Callable[[object, Path], None], tmp_path: Path) -> None:
    write({"model": Plain()}, tmp_path / "model.pth")
    refused(tmp_path / "model.pth")


@cache
def public_bytes(legacy: bool) -> bytes:
    content = valid_content()
    content["optimizer"] = {}
    buffer = io.BytesIO()
    torch.save(content, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


@cache
def native_bytes() -> bytes:
    model = random_model(CONFIGS["edsr"], dtype=torch.float32)
    checkpoint = Checkpoint(config=model.config, state=model.state_dict(), card=Card(name="small"))
    with TemporaryDirectory() as folder:
        write_checkpoint(checkpoint, Path(folder) / "whole.safetensors")
        return (Path(folder) / "whole.safetensors").read_bytes()


def all_formats() -> dict[str, bytes]:
    return {"zip": public_bytes(False), "legacy": public_bytes(True), "native": native_bytes()}


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    for name, whole in all_formats().items():
        cuts = {0, 1, 4, 8, 9, 100, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1}
        for cut in cuts:
            path = tmp_path / f"{name}.{cut}.pth"
            path.write_bytes(whole[:cut])
            refused(path)


quiet = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quiet
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "noise.pth").write_bytes(content)
    refused(tmp_path / "noise.pth")


@quiet
@given(st.binary(max_size=60), st.sampled_from([b"\x80\x02", b"PK\x03\x04", b"\x40\0\0\0\0\0\0\0{"]))
def test_random_bytes_after_a_valid_start_are_refused(tmp_path: Path, content: bytes, start: bytes) -> None:
    (tmp_path / "noise.pth").write_bytes(start + content)
    refused(tmp_path / "noise.pth")


@quiet
@given(data=st.data())
def test_damaged_files_load_or_are_refused(tmp_path: Path, data: st.DataObject) -> None:
    """A few bytes of a valid file are changed: it loads, perhaps with other numbers, or raises an SRNOError."""
    formats = all_formats()
    content = bytearray(formats[data.draw(st.sampled_from(sorted(formats)), label="format")])
    edges = st.integers(0, min(2000, len(content) - 1))
    places = st.one_of(edges, edges.map(lambda i: len(content) - 1 - i))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        content[place] = value
    (tmp_path / "damaged.pth").write_bytes(content)
    with suppress(SRNOError):
        read_checkpoint(tmp_path / "damaged.pth").model()


@quiet
@given(place=st.integers(0, 4000), value=st.integers(0, 255))
def test_a_damaged_pickle_in_a_valid_archive_loads_or_is_refused(tmp_path: Path, place: int, value: int) -> None:
    """The checksums of the archive are valid, so that the damage reaches the unpickler."""
    with (
        zipfile.ZipFile(io.BytesIO(public_bytes(False))) as whole,
        zipfile.ZipFile(tmp_path / "damaged.pth", "w") as damaged,
    ):
        for name in whole.namelist():
            content = bytearray(whole.read(name))
            if name.endswith("data.pkl"):
                content[place] = value
            damaged.writestr(name, content)
    with suppress(SRNOError):
        read_checkpoint(tmp_path / "damaged.pth").model()


@pytest.mark.parametrize(
    "text", ["", "hello", "{}", "12345678{", "<html>\nnot found\n</html>\n", "version https://git"]
)
def test_text_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.pth").write_text(text)
    refused(tmp_path / "model.pth")


def test_a_zip_archive_without_a_model_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pth", "w") as archive:
        archive.writestr("readme.txt", "no model in here")
    refused(tmp_path / "model.pth")


def test_directories_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "without best.safetensors"), (tmp_path / "nothing.pth", "neither a file nor")):
        with pytest.raises(SRNOError, match=path.name):
            read_checkpoint(path)
        with pytest.raises(SRNOError, match=reason):
            load(path)


def test_a_picture_is_not_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    with pytest.raises(SRNOError, match=r"photo.png: not a checkpoint"):
        load(path)


def test_the_folder_of_a_run_means_its_best_weights(tmp_path: Path) -> None:
    for name, seed in (("last", 1), ("best", 2)):
        model = random_model(CONFIGS["edsr"], seed=seed, dtype=torch.float32)
        checkpoint = Checkpoint(config=model.config, state=model.state_dict(), card=Card(name=name))
        write_checkpoint(checkpoint, tmp_path / f"{name}.safetensors")
    assert read_checkpoint(find(tmp_path)).card.name == "best"
    (tmp_path / "best.safetensors").unlink()
    assert read_checkpoint(find(tmp_path)).card.name == "last"

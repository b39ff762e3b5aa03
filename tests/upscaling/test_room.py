"""Room on the disk: what results are expected to take, against what they take."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageDraw

import srno
from imaging.making import noise, png
from srno.imaging.file_sizes import ENLARGED_SHARES
from srno.imaging.formats import CAPABILITIES, Format
from srno.imaging.read import read
from srno.imaging.write import write
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.jobs import Job, plan_batch
from srno.upscaling.naming import Naming
from srno.upscaling.room import check_outputs, check_room_now, estimate_result
from srno.upscaling.sizes import make_request
from srno.upscaling.sources import Source
from srno.upscaling.upscaler import Upscaler

EXAMPLES = Path(srno.__file__).parent / "examples"
SCALE = 3


def plan(path: Path, kind: Format | None = None, scale: float = SCALE, **naming: object) -> Job:
    rules = Naming(path.parent / "out", "{stem}.{ext}", kind, **naming)  # type: ignore[arg-type]
    return plan_batch([Source(path, Path(path.name))], None, make_request(scale), rules, "refuse").jobs[0]


def free(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=count))


def photograph(folder: Path) -> Path:
    Image.open(EXAMPLES / "coffee.png").convert("RGB").crop((60, 20, 156, 116)).save(folder / "photo.png")
    return folder / "photo.png"


def drawing(folder: Path) -> Path:
    image = Image.new("RGB", (96, 96), "white")
    ImageDraw.Draw(image).ellipse((20, 20, 70, 60), outline="black", fill="red", width=3)
    image.save(folder / "drawing.png")
    return folder / "drawing.png"


def flat(folder: Path) -> Path:
    """A drawing in a file that does not show how well it compresses."""
    Image.open(drawing(folder)).save(folder / "flat.bmp")
    return folder / "flat.bmp"


@pytest.mark.parametrize("make", [photograph, drawing, flat])
def test_no_result_takes_less_than_the_least(tmp_path: Path, make: object):
    path = make(tmp_path)  # type: ignore[operator]
    job = plan(path)
    assert job.target is not None
    large = enlarge_picture(read(path), job.target, Upscaler(model="light", precision="fp32"), 8, None)
    kinds: list[Format] = [kind for kind, known in CAPABILITIES.items() if max(job.target.size) <= known.max_side]
    for kind in kinds:
        estimate = estimate_result(plan(path, kind), None, None)
        write(large, tmp_path / "result", format=kind)
        taken = (tmp_path / "result").stat().st_size
        assert 0 < estimate.least <= taken, kind
        if make is photograph:
            assert taken / 3 <= estimate.likely <= taken * 3, kind


def test_depth_channels_and_frames_count(tmp_path: Path):
    def likely(data: bytes, kind: Format = "PNM") -> int:
        (tmp_path / "in.png").write_bytes(data)
        return estimate_result(plan(tmp_path / "in.png", kind), None, None).likely

    assert likely(png(noise(9, 14, 3))) == 9 * 14 * SCALE**2 * 3
    assert likely(png(noise(9, 14, 1))) == likely(png(noise(9, 14, 2))) == 9 * 14 * SCALE**2  # PNM holds no alpha
    assert likely(png(noise(9, 14, 3, bits=16))) == 2 * likely(png(noise(9, 14, 3)))
    assert likely(png(noise(9, 14, 4)), "TGA") == 9 * 14 * SCALE**2 * 4
    frames = [Image.fromarray(noise(9, 14, 3, seed=seed)) for seed in range(4)]
    frames[0].save(tmp_path / "all.gif", save_all=True, append_images=frames[1:])
    every, first, pages = (
        estimate_result(job, None, None).likely
        for job in (
            plan(tmp_path / "all.gif", "PNG"),
            plan(tmp_path / "all.gif", "PNG", frames="first"),
            plan(tmp_path / "all.gif", "TIFF"),  # which holds pages, but no animations
        )
    )
    assert every == pytest.approx(4 * first, abs=4)
    assert pages == pytest.approx(first, rel=0.1)


@pytest.mark.parametrize("kind", ENLARGED_SHARES)
def test_more_quality_takes_more_and_a_larger_factor_less_for_each_pixel(tmp_path: Path, kind: Format):
    path = photograph(tmp_path)
    small, large = (estimate_result(plan(path, kind, scale), None, None).likely for scale in (2, 8))
    assert small < large < 16 * small
    low, default = (estimate_result(plan(path, kind), None, quality).likely for quality in (50, None))
    assert low < default if kind in ("JPEG", "WEBP", "AVIF", "JXL") else low == default


def test_only_a_job_that_cannot_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = plan(photograph(tmp_path), "PNG")
    estimate = estimate_result(job, None, None)
    free(monkeypatch, estimate.likely)
    assert check_outputs([job]) == ()
    free(monkeypatch, estimate.likely - 1)
    (line,) = check_outputs([job])
    assert line.startswith("the disk may become full: the results take about 0.1 MB")
    free(monkeypatch, 2 * estimate.least - 1)
    with pytest.raises(
        srno.SRNOError, match=r"take about 0\.\d MB, at least 0\.\d MB, and 0\.\d MB are free in .*; free"
    ):
        check_outputs([job, job])
    check_room_now(job, None, None)
    free(monkeypatch, estimate.least - 1)
    with pytest.raises(srno.SRNOError, match=r"no room for .*photo\.png"):
        check_room_now(job, None, None)


def test_unreadable_sources_and_interrupted_pictures_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    free(monkeypatch, 0)
    assert check_outputs([plan(tmp_path / "bad.png")]) == ()
    job = plan(photograph(tmp_path), "TIFF")
    with pytest.raises(srno.SRNOError, match="free some room"):
        check_outputs([job])
    (tmp_path / "out" / ".photo.tif.partial").mkdir(parents=True)  # what --resume continues
    assert check_outputs([job]) == ()


def test_a_disk_without_numbers_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def unknown(_: Path) -> None:
        raise OSError

    monkeypatch.setattr("shutil.disk_usage", unknown)
    job = plan(photograph(tmp_path))
    assert check_outputs([job]) == ()
    check_room_now(job, None, None)

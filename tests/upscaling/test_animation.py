"""Animations: every frame is enlarged, still regions do not move, and memory does not grow with their number."""

import io
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from imaging.making import encode, noise, tiff
from srno.imaging.frames import FrameSequence, open_frames, write_frames
from srno.imaging.picture import Frame, Picture
from srno.upscaling.animation import STILL_MARGIN, enlarge_frames, total_pixels
from srno.upscaling.enlarge import enlarge_picture
from srno.upscaling.sizes import make_request
from srno.upscaling.upscaler import Upscaler
from tiny_models import tiny_model

NOISY = Upscaler(model=tiny_model(strength=0.3))
BILINEAR = Upscaler(model=tiny_model())


def sequence(colours: list[np.ndarray], alphas: list[np.ndarray] | None = None) -> FrameSequence:
    """An animation of these frames, opened from a file."""
    samples = colours if alphas is None else [np.dstack(pair) for pair in zip(colours, alphas, strict=True)]
    images = [Image.fromarray(frame) for frame in samples]
    durations = [10 * (number + 1) for number in range(len(images))]
    opened = open_frames(encode(images[0], "PNG", save_all=True, append_images=images[1:], duration=durations))
    assert opened is not None
    return opened


def moving(count: int = 3, *, height: int = 24, width: int = 60) -> list[np.ndarray]:
    """A patch of noise that changes at the left of a picture that stands still."""
    frames: list[np.ndarray] = []
    for number in range(count):
        frame = noise(height, width, 3)
        frame[4:10, 2:9] = noise(6, 7, 3, seed=number + 1)
        frames.append(frame)
    return frames


def test_every_frame_is_enlarged_with_its_duration() -> None:
    frames = moving()
    request = make_request(scale=2)
    large = list(enlarge_frames(sequence(frames), request, BILINEAR))
    assert [frame.duration for frame in large] == [10, 20, 30]
    target = request.target((60, 24))
    for frame, source in zip(large, frames, strict=True):
        alone = enlarge_picture(Picture(colour=source), target, BILINEAR, 8)
        assert np.array_equal(frame.picture.colour, alone.colour)  # bilinear: a change has no effect elsewhere


def test_still_regions_are_identical_although_the_operator_is_global() -> None:
    frames = moving()
    request = make_request(scale=2.5)
    still = 9 + STILL_MARGIN
    alone = [enlarge_picture(Picture(colour=frame), request.target((60, 24)), NOISY, 8).colour for frame in frames]
    border = int(np.ceil(still * 2.5)) + 1
    assert not np.array_equal(alone[0][:, border:], alone[1][:, border:])
    first, *others = (frame.picture.colour for frame in enlarge_frames(sequence(frames), request, NOISY))
    assert np.array_equal(first, alone[0])
    for other, expected in zip(others, alone[1:], strict=True):
        assert np.array_equal(other[:, border:], first[:, border:])
        assert np.array_equal(other[:20, :20], expected[:20, :20])  # what changed is computed


def test_still_regions_of_alpha_are_identical_too() -> None:
    alphas = [noise(24, 60) for _ in range(3)]
    for number, alpha in enumerate(alphas):
        alpha[4:10, 2:9] = 80 * number
    frames = list(enlarge_frames(sequence(moving(), alphas), make_request(scale=2), NOISY))
    first, *others = (frame.picture.alpha for frame in frames)
    assert first is not None
    for other in others:
        assert other is not None
        assert np.array_equal(other[:, 36:], first[:, 36:])
        assert not np.array_equal(other, first)


def test_an_equal_frame_is_not_computed_again() -> None:
    frames = [noise(8, 9, 3)] * 2 + [noise(8, 9, 3, seed=1)]
    like = replace(sequence(moving()), decoded=lambda: (Frame(Picture(colour=frame), 10) for frame in frames))
    first, second, third = (frame.picture for frame in enlarge_frames(like, make_request(scale=2), NOISY))
    assert second is first
    assert not np.array_equal(third.colour, first.colour)


@pytest.mark.parametrize(
    "options", [{"size": (40, 40), "fit": "cover"}, {"scale": 0.5}, {"scale": (2, 0.5)}, {"scale": 1}]
)
def test_any_size_gives_the_still_regions_of_the_first_frame(options: dict[str, object]) -> None:
    request = make_request(**options)  # type: ignore[arg-type]
    frames = moving()
    target = request.target((60, 24))
    large = [frame.picture for frame in enlarge_frames(sequence(frames), request, NOISY)]
    assert {picture.size for picture in large} == {target.size}
    still = int((9 + STILL_MARGIN) * target.whole[0] / 60) + 1 - target.origin[0]
    for picture in large[1:]:
        assert np.array_equal(picture.colour[:, max(still, 0) :], large[0].colour[:, max(still, 0) :])


def test_16_bits_and_progress() -> None:
    shares: list[float] = []
    large = list(enlarge_frames(sequence(moving()), make_request(scale=2), BILINEAR, 16, shares.append))
    assert {frame.picture.bits for frame in large} == {16}
    assert shares == sorted(shares)
    assert shares[0] < 1 / 3
    assert shares[-1] == 1


def test_pages_are_enlarged_one_by_one() -> None:
    pages = open_frames(tiff(noise(3, 9, 14, bits=16), photometric="minisblack"))
    assert pages is not None
    request = make_request(scale=2)
    large = [frame.picture for frame in enlarge_frames(pages, request, NOISY)]
    assert [(picture.size, picture.bits) for picture in large] == [((28, 18), 16)] * 3
    for picture, page in zip(large, noise(3, 9, 14, bits=16), strict=True):
        alone = enlarge_picture(Picture(colour=page[..., None]), request.target((14, 9)), NOISY, 16)
        assert np.array_equal(picture.colour, alone.colour)
    assert total_pixels(pages, request) == 3 * 28 * 18


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_still_regions_of_the_file_do_not_flicker(name: str) -> None:
    like = sequence(moving(4))
    stream = io.BytesIO()
    frames = enlarge_frames(like, make_request(scale=2), NOISY)
    write_frames(frames, stream, format=name, like=like, pixels=1, quality=80)  # type: ignore[arg-type]
    first, *others = (np.array(frame) for frame in shown(stream.getvalue()))
    right = 2 * (9 + STILL_MARGIN) + 2
    for other in others:
        assert np.array_equal(other[:, right:], first[:, right:])
        assert not np.array_equal(other, first)


def shown(data: bytes) -> Iterator[Image.Image]:
    with Image.open(io.BytesIO(data)) as image:
        for number in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(number)
            yield image.convert("RGB")


def test_memory_does_not_grow_with_the_number_of_frames() -> None:
    """Peak of the arrays in memory for 4 and for 16 frames that become 1.4 MB each."""

    def peak(count: int) -> int:
        def frames() -> Iterator[Frame]:
            return (Frame(Picture(colour=noise(40, 48, 3, seed=seed)), 10) for seed in range(count))

        like = replace(sequence(moving()), sizes=((48, 40),) * count, decoded=frames)
        tracemalloc.start()
        for _ in enlarge_frames(like, make_request(scale=15), BILINEAR):
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(16) < peak(4) + 2 * 48 * 40 * 15 * 15 * 3

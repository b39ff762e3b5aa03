"""EXIF entries about the scene are kept, entries about the file are dropped."""

import io
import struct

import pytest
import pyvips
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from making import DATE, EXIF, GPS, MAKE, MAKER_NOTE, TAKEN, WIDTH, camera_exif, encode, noise, tiff, with_thumbnail
from PIL import Image

from srno.imaging import exif, ifd


def loaded(block: bytes | None) -> Image.Exif:
    assert block is not None
    result = Image.Exif()
    result.load(block)
    return result


def camera_block(orientation: int | None = None) -> bytes:
    return camera_exif(orientation).tobytes().removeprefix(exif.EXIF_PREFIX)


def has_thumbnail(block: bytes) -> bool:
    data = encode(Image.new("L", (8, 8)), "JPEG", exif=exif.EXIF_PREFIX + block)
    return "jpeg-thumbnail-data" in pyvips.Image.jpegload_buffer(data).get_fields()


@pytest.mark.parametrize("prefix", [b"", exif.EXIF_PREFIX])
def test_scene_entries_are_kept_and_file_entries_are_dropped(prefix: bytes) -> None:
    block = with_thumbnail(camera_block(6))
    assert has_thumbnail(block)
    facts = exif.from_block(prefix + block)
    assert facts.orientation == 6
    kept = loaded(facts.block)
    assert (kept[MAKE], kept[DATE]) == ("Canon", "2024:05:06 07:08:09")
    assert kept.get_ifd(EXIF) == {TAKEN: "2024:05:06 07:08:09", MAKER_NOTE: b"offsets" * 9}
    assert kept.get_ifd(GPS) == {1: "N", 2: (48.0, 8.0, 12.5)}
    assert not {256, 257, 274, WIDTH} & set(kept)
    assert facts.block is not None
    assert not has_thumbnail(facts.block)
    assert b"THUMBNAIL" not in facts.block


def test_maker_notes_do_not_move() -> None:
    block = camera_block(6)
    kept = exif.from_block(block).block
    assert kept is not None
    assert kept.index(b"offsets" * 9) == block.index(b"offsets" * 9)


@given(st.integers(8, 2000), st.integers(5, 500), st.binary(min_size=5, max_size=300))
@settings(max_examples=50)
def test_maker_notes_keep_any_offset(gap: int, length: int, artist: bytes) -> None:
    """Directories and values are placed around the notes, also if these overlap the usual place."""
    notes = bytes(range(256)) * 2
    notes = notes[:length]
    pinned = ifd.Entry(7, length, notes, gap)
    directory: ifd.Directory = {315: ifd.Entry(2, len(artist), artist), ifd.EXIF: {37500: pinned}}
    layout = ifd.Layout("<")
    at, packed = ifd.pack(directory, layout, 8, pinned)
    data = layout.header + layout.pointer.pack(at) + packed
    assert data[gap : gap + length] == notes
    facts = exif.from_block(data)
    assert facts.block is not None
    assert facts.block[gap : gap + length] == notes
    assert loaded(facts.block).get_ifd(EXIF)[MAKER_NOTE] == notes
    assert artist in facts.block


def test_cleaning_twice_changes_nothing() -> None:
    once = exif.from_block(camera_block(3)).block
    assert exif.from_block(once) == exif.Facts(1, once)


def test_both_byte_orders_are_read() -> None:
    for order in ("<", ">"):
        layout = ifd.Layout(order)
        entries: ifd.Directory = {
            274: ifd.Entry(3, 1, struct.pack(order + "H", 8)),
            271: ifd.Entry(2, 6, b"Nikon\0"),
        }
        at, packed = ifd.pack(entries, layout, 8)
        facts = exif.from_block(layout.header + layout.pointer.pack(at) + packed)
        assert facts.orientation == 8
        assert loaded(facts.block)[MAKE] == "Nikon"


@pytest.mark.parametrize("orientation", [0, 9, 300])
def test_impossible_orientations_are_upright(orientation: int) -> None:
    assert exif.from_block(camera_block(orientation)).orientation == 1


@pytest.mark.parametrize("block", [None, b"", b"Exif\0\0", b"II*\0", b"MM\0*\xff\xff\xff\xff", b"nothing of the kind"])
def test_a_block_without_exif_gives_the_defaults(block: bytes | None) -> None:
    assert exif.from_block(block) == exif.Facts()


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=20), st.integers(0, 400))
@settings(max_examples=200)
def test_a_damaged_block_gives_a_valid_one(changes: list[tuple[int, int]], length: int) -> None:
    block = bytearray(with_thumbnail(camera_block(6)))
    for at, value in changes:
        block[at % len(block)] = value
    facts = exif.from_block(bytes(block[:length]))
    assert 1 <= facts.orientation <= 8
    assert facts.block is None or exif.from_block(facts.block) == exif.Facts(1, facts.block)


def test_entries_that_share_bytes_are_limited_in_size() -> None:
    count = 60_000
    table = b"".join(struct.pack("<HHII", 40_000 + i % 20_000, 7, 60_000, 8) for i in range(count))
    block = b"II*\0\x08\0\0\0" + struct.pack("<H", count) + table + bytes(4)
    kept = exif.from_block(block).block
    assert kept is not None
    assert len(kept) < 3 << 20


def test_tiff_keeps_the_tags_that_exif_defines() -> None:
    image = Image.fromarray(noise(9, 14, 3))
    facts = exif.from_tiff(encode(image, "TIFF", exif=camera_exif(5, sizes=False).tobytes(), description="a house"))
    assert facts.orientation == 5
    kept = loaded(facts.block)
    assert dict(kept).keys() == {270, MAKE, DATE, EXIF, GPS}
    assert kept.get_ifd(EXIF)[TAKEN] == "2024:05:06 07:08:09"
    assert kept.get_ifd(GPS)[1] == "N"


@pytest.mark.parametrize("big", [False, True])
def test_descriptions_that_programs_generate_are_dropped(big: bool) -> None:
    private = (65_000, 2, 6, b"secret", True)
    by_program = tiff(
        noise(9, 14, 3), photometric="rgb", bigtiff=big, metadata={}, extratags=[private], software="made"
    )
    by_hand = tiff(noise(9, 14, 3), photometric="rgb", bigtiff=big, description="a house", software="made")
    assert b'{"shape"' in by_program
    assert dict(loaded(exif.from_tiff(by_program).block)) == {305: "made"}
    assert dict(loaded(exif.from_tiff(by_hand).block)) == {305: "made", 270: "a house"}
    assert exif.tiff_layout(by_hand)[:2] == (14, 9)


def test_of_two_descriptions_the_first_is_kept() -> None:
    """tifffile writes its own behind that of the user."""
    stream = io.BytesIO()
    tifffile.imwrite(stream, noise(4, 4, 3), photometric="rgb", description="a view")
    assert loaded(exif.from_tiff(stream).block)[0x010E] == "a view"


def test_header_round_trip() -> None:
    for order in ("<", ">"):
        for big in (False, True):
            layout = ifd.Layout(order, big)
            stream = io.BytesIO(layout.header + layout.pointer.pack(77) + bytes(8))
            assert ifd.read_header(stream) == (layout, 77)

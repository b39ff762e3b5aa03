"""Why EXIF is parsed here and not by Pillow: maker notes hold offsets from the start of the block and must not move."""

import struct

from making import EXIF, MAKER_NOTE
from PIL import Image

from srno.imaging import exif, ifd

NOTE_AT = 150
TEXT = b"lens: 35 mm f/1.8"


def camera_block() -> bytes:
    """An EXIF block as cameras write it: the note points at a text inside itself, from the start of the block."""
    inside = struct.pack("<II", NOTE_AT + 8, len(TEXT)) + TEXT
    note = ifd.Entry(7, len(inside), inside, NOTE_AT)
    directory: ifd.Directory = {
        274: ifd.Entry(3, 1, struct.pack("<H", 6)),
        271: ifd.Entry(2, 6, b"Canon\0"),
        ifd.EXIF: {MAKER_NOTE: note, 40962: ifd.Entry(4, 1, struct.pack("<I", 4000))},
    }
    layout = ifd.Layout("<")
    base = len(layout.header) + layout.pointer.size
    at, packed = ifd.pack(directory, layout, base, note)
    return layout.header + layout.pointer.pack(at) + packed


def text_of_note(block: bytes) -> bytes:
    """What a reader of the maker's notes finds by following the offset in them."""
    loaded = Image.Exif()
    loaded.load(b"Exif\0\0" + block)
    at, size = struct.unpack_from("<II", loaded.get_ifd(EXIF)[MAKER_NOTE])
    return block[at : at + size]


def test_our_writer_keeps_the_offsets_of_a_maker_note():
    block = camera_block()
    assert text_of_note(block) == TEXT
    kept = exif.from_block(block)
    assert kept.orientation == 6
    assert kept.block is not None
    assert text_of_note(kept.block) == TEXT


def test_pillow_moves_a_maker_note():
    """If this fails, Pillow has learnt to leave maker notes in place, and our parser may not be needed any more."""
    loaded = Image.Exif()
    loaded.load(b"Exif\0\0" + camera_block())
    del loaded[274]
    assert text_of_note(loaded.tobytes().removeprefix(b"Exif\0\0")) != TEXT

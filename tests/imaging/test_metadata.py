"""XMP, IPTC, comments and texts: what is kept, what becomes false, and what a format cannot hold."""

import io
import struct
import zlib
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import pyvips
import tifffile
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from making import CMYK, IPTC, XMP, camera_exif, chunk, encode, noise, png, tiff
from PIL import Image

from srno.imaging.formats import Format
from srno.imaging.metadata import clean_iptc, clean_xmp, to_photoshop
from srno.imaging.picture import Picture, Text
from srno.imaging.read import read
from srno.imaging.write import write

PHOTO = Image.fromarray(noise(9, 14, 3))
TEXTS = (
    Text("Title", "a cat"),
    Text("Author", "Jürgen"),
    Text("Comment", "first line\nsecond line"),
    Text("Description", "猫", "ja", "説明"),
    Text("Long", "word " * 1000),
    Text("Longer", "слово " * 1000),
)


def written(picture: Picture, name: Format, **options: bool) -> tuple[bytes, tuple[str, ...]]:
    stream = io.BytesIO()
    notes = write(picture, stream, format=name, **options).notes
    return stream.getvalue(), notes


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def jpeg(*segments: bytes) -> bytes:
    """JPEG with EXIF and further segments before the samples."""
    data = encode(PHOTO, "JPEG", exif=camera_exif(6))
    return data[:2] + b"".join(segments) + data[2:]


JPEG_XMP = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)
JPEG_IPTC = segment(
    0xED,
    b"Photoshop 3.0\0"
    + b"8BIM\x03\xed\0\0\0\0\0\x04abcd"  # a resolution
    + b"8BIM\x04\x04\x03odd"
    + struct.pack(">I", len(IPTC))
    + IPTC
    + bytes(len(IPTC) % 2),
)


# XMP


def test_properties_that_no_longer_apply_are_dropped_and_the_rest_stays_byte_for_byte() -> None:
    cleaned = clean_xmp(XMP)
    assert cleaned is not None
    for gone in (b"Orientation", b"ImageWidth", b"ImageLength", b"PixelXDimension", b"PixelYDimension", b"Thumbnails"):
        assert gone in XMP
        assert gone not in cleaned
    for kept in (b't:Make="Canon"', b'exif:FNumber="28/10"', b'xmp:Rating="4"', b"a cat &gt; a dog", b"<?xpacket end"):
        assert kept in cleaned
    # What is left is the original with pieces cut out.
    rest = iter(XMP)
    assert all(byte in rest for byte in cleaned)
    ElementTree.fromstring(cleaned)


def test_properties_are_matched_by_namespace_not_by_prefix() -> None:
    packet = (
        b'<r xmlns:tiff="http://example.org/" xmlns:q="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="kept" '
        b"q:Orientation = '6'><q:ImageWidth a=\">\">9</q:ImageWidth><q:ImageLength/><tiff:ImageWidth/></r>"
    )
    assert clean_xmp(packet) == (
        b'<r xmlns:tiff="http://example.org/" xmlns:q="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="kept">'
        b"<tiff:ImageWidth/></r>"
    )


@pytest.mark.parametrize("space", ["http://ns.adobe.com/xmp/note/", "http://ns.google.com/photos/1.0/camera/"])
def test_references_to_other_parts_of_the_file_are_dropped(space: str) -> None:
    packet = f'<r xmlns:n="{space}" n:HasExtendedXMP="1" a="2"><n:Any><b/></n:Any></r>'.encode()
    assert clean_xmp(packet) == f'<r xmlns:n="{space}" a="2"></r>'.encode()


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"no markup",
        XMP[:-200],
        b"<a><b></a>",
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        XMP.decode().encode("utf-16"),
    ],
)
def test_damaged_packets_are_left_out_and_noted(packet: bytes) -> None:
    assert clean_xmp(packet) is None
    if packet:
        picture = read(png(noise(4, 5, 3), chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet)))
        assert picture.xmp is None
        assert picture.notes == ("XMP left out: it is damaged",)


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(0, len(XMP)))
def test_any_bytes_are_cleaned_or_refused(junk: bytes, at: int) -> None:
    assume(b"}" not in junk)  # ElementTree cannot represent a namespace with a brace
    cleaned = clean_xmp(XMP[:at] + junk + XMP[at:])
    if cleaned is not None:
        root = ElementTree.fromstring(cleaned)
        names = {name for item in root.iter() for name in (item.tag, *item.attrib)}
        assert not names & {"{http://ns.adobe.com/tiff/1.0/}Orientation", "{http://ns.adobe.com/tiff/1.0/}ImageWidth"}


# Every format


@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG", "WEBP", "AVIF", "JXL"])
def test_xmp_is_written_and_read_again(name: Format) -> None:
    packet = clean_xmp(XMP)
    data, notes = written(Picture(colour=noise(9, 14, 3), xmp=packet), name)
    assert notes == ()
    assert read(data).xmp == packet
    if name != "JXL":
        image = pyvips.Image.new_from_buffer(data, "")
        packet_there: Any = image.get("xmp-data")
        assert bytes(packet_there).rstrip(b"\0") == packet


@pytest.mark.parametrize("name", ["TIFF", "JPEG"])
def test_iptc_is_written_and_read_again(name: Format) -> None:
    data, notes = written(Picture(colour=noise(9, 14, 3), iptc=IPTC, exif=read(jpeg()).exif), name)
    assert notes == ()
    assert read(data).iptc == IPTC
    image = pyvips.Image.new_from_buffer(data, "")
    block: Any = image.get("iptc-data")
    assert IPTC in bytes(block)


@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG"])
def test_metadata_of_a_jpeg_survives_a_second_format(name: Format) -> None:
    photo = read(jpeg(JPEG_XMP, JPEG_IPTC, segment(0xFE, b"a comment"), segment(0xFE, "Überschrift".encode("latin-1"))))
    assert photo.xmp == clean_xmp(XMP)
    assert photo.iptc == IPTC
    assert photo.comments == (b"a comment", "Überschrift".encode("latin-1"))
    data, notes = written(photo, name)
    back = read(data)
    assert back.xmp == photo.xmp
    assert back.exif is not None
    if name == "PNG":
        assert notes == ("IPTC left out: PNG cannot hold any",)
        assert back.texts == (Text("Comment", "a comment"), Text("Comment", "Überschrift"))
    elif name == "TIFF":
        assert notes == ("comments left out: TIFF cannot hold any",)
        assert back.iptc == IPTC
    else:
        assert notes == ()
        assert (back.iptc, back.comments, back.exif) == (IPTC, photo.comments, photo.exif)


def test_pillow_reads_the_segments_of_a_jpeg() -> None:
    photo = read(jpeg(JPEG_XMP, JPEG_IPTC, segment(0xFE, b"a comment")))
    image = Image.open(io.BytesIO(written(photo, "JPEG")[0]))
    assert image.info["xmp"] == clean_xmp(XMP)
    assert image.info["comment"] == b"a comment"
    assert image.info["photoshop"][0x0404] == IPTC
    assert image.getexif()[271] == "Canon"


def test_a_long_photoshop_block_continues_in_the_next_segment() -> None:
    long = IPTC + b"\x1c\x02\x78" + struct.pack(">H", 2000) + b"caption " * 250
    block = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(long)) + long
    parts = [segment(0xED, b"Photoshop 3.0\0" + block[at : at + 700]) for at in range(0, len(block), 700)]
    assert read(jpeg(*parts)).iptc == long


def test_the_second_part_of_a_long_packet_is_left_out_and_noted() -> None:
    more = segment(0xE1, b"http://ns.adobe.com/xmp/extension/\0" + b"0" * 32 + bytes(8) + b"<rest/>")
    photo = read(jpeg(JPEG_XMP, more))
    assert photo.xmp == clean_xmp(XMP)
    assert photo.notes == ("the part of XMP in further segments is left out",)


def test_iptc_of_tiff_may_be_inside_a_photoshop_block() -> None:
    block = to_photoshop(IPTC)
    data = tiff(noise(9, 14, 3), photometric="rgb", extratags=[(34377, 1, len(block), block, True)])
    assert read(data).iptc == IPTC


def test_previews_and_sizes_in_iptc_are_dropped() -> None:
    preview = b"\x1c\x02\xca" + struct.pack(">HI", 0x8004, 3000) + bytes(3000)  # a size of four bytes
    size = b"\x1c\x03\x14\0\x02\0\x20"
    assert clean_iptc(preview + IPTC + size) == IPTC
    assert clean_iptc(IPTC + b"\x1c\x02\x05\xff\xff") == IPTC
    assert clean_iptc(b"") is clean_iptc(b"nonsense") is None


# Texts of PNG


def test_texts_round_trip_and_pillow_reads_them() -> None:
    data, notes = written(Picture(colour=noise(9, 14, 3), texts=TEXTS), "PNG")
    assert notes == ()
    assert read(data).texts == TEXTS
    image = Image.open(io.BytesIO(data))
    assert {text.keyword: str(image.text[text.keyword]) for text in TEXTS} == {  # type: ignore[attr-defined]
        text.keyword: text.value for text in TEXTS
    }


def test_all_kinds_of_text_chunks_are_read_also_after_the_samples() -> None:
    plain = png(noise(4, 5, 3), chunk(b"tEXt", "Title\0Fußball".encode("latin-1")))
    packed = chunk(b"zTXt", b"Author\0\0" + zlib.compress(b"me"))
    international = chunk(b"iTXt", b"Note\0\1\0de\0Notiz\0" + zlib.compress("schön".encode()))
    picture = read(plain[:-12] + packed + international + plain[-12:])
    assert picture.texts == (Text("Title", "Fußball"), Text("Author", "me"), Text("Note", "schön", "de", "Notiz"))


@pytest.mark.parametrize(
    "keyword",
    [
        *("exif:ExifImageWidth", "exif:PixelXDimension", "exif:Orientation", "tiff:Orientation", "Thumb::Image::Width"),
        *("Raw profile type exif", "Raw profile type APP1", "Raw profile type icc", "png:IHDR.width,height"),
    ],
)
def test_texts_that_no_longer_apply_are_dropped(keyword: str) -> None:
    kept = chunk(b"tEXt", b"exif:FNumber\0" + b"28/10")
    assert read(png(noise(4, 5, 3), chunk(b"tEXt", keyword.encode() + b"\0" + b"6"), kept)).texts == (
        Text("exif:FNumber", "28/10"),
    )


def test_iptc_as_digits_in_a_png_is_read() -> None:
    digits = to_photoshop(IPTC).hex()
    text = f"\niptc\n {len(digits) // 2}\n" + "\n".join(digits[at : at + 72] for at in range(0, len(digits), 72)) + "\n"
    picture = read(png(noise(4, 5, 3), chunk(b"zTXt", b"Raw profile type iptc\0\0" + zlib.compress(text.encode()))))
    assert picture.iptc == IPTC
    assert picture.texts == ()


def test_a_compressed_text_is_limited_when_unpacked() -> None:
    packed = chunk(b"zTXt", b"Big\0\0" + zlib.compress(bytes(50_000_000), 9))
    (text,) = read(png(noise(4, 5, 3), packed)).texts
    assert len(text.value) <= 1 << 22


# Losses


@pytest.mark.parametrize("name", ["BMP", "TGA", "PNM", "ICO", "JP2"])
def test_what_a_format_cannot_hold_is_noted(name: Format) -> None:
    picture = Picture(colour=noise(9, 14, 3), xmp=clean_xmp(XMP), iptc=IPTC, comments=(b"x",), texts=TEXTS[:2])
    data, notes = written(picture, name)
    assert notes == (
        f"XMP left out: {name} cannot hold any",
        f"IPTC left out: {name} cannot hold any",
        f"comments left out: {name} cannot hold any",
        f"texts left out (Title, Author): {name} cannot hold any",
    )
    assert np.array_equal(read(data).colour, picture.colour)


def test_a_text_called_comment_becomes_the_comment_of_a_jpeg() -> None:
    data, notes = written(Picture(colour=noise(9, 14, 3), texts=TEXTS[:4]), "JPEG")
    assert read(data).comments == (b"first line\nsecond line",)
    assert notes == ("texts left out (Title, Author, Description): JPEG cannot hold any",)
    data, notes = written(Picture(colour=noise(9, 14, 3) // 128 * 255, comments=(b"of a GIF",)), "GIF")
    assert (read(data).comments, notes) == ((b"of a GIF",), ())


@pytest.mark.parametrize(("field", "name"), [("xmp", "XMP"), ("iptc", "IPTC"), ("comments", "comments")])
def test_a_jpeg_segment_holds_64_kilobytes(field: str, name: str) -> None:
    empty = Picture(colour=noise(9, 14, 3))
    for size, fits in ((65_000, True), (66_000, False)):
        value = {
            "xmp": b"<a>" + b" " * size + b"</a>",
            "iptc": b"\x1c\x02\x78" + struct.pack(">HI", 0x8004, size) + bytes(size),
            "comments": (b"x" * size,),
        }[field]
        data, notes = written(replace(empty, **{field: value}), "JPEG")
        assert notes == (() if fits else (f"{name} left out: JPEG cannot hold so much",))
        assert (getattr(read(data), field) == value) == fits


def test_without_metadata_nothing_is_written() -> None:
    picture = Picture(colour=noise(9, 14, 3), xmp=clean_xmp(XMP), iptc=IPTC, comments=(b"secret",), texts=TEXTS)
    for name in ("PNG", "TIFF", "JPEG", "WEBP", "AVIF", "JXL", "GIF"):
        data, notes = written(picture, name, metadata=False)
        assert not [note for note in notes if "left out" in note]
        for secret in (b"a cat", b"secret", b"Canon", b"word"):
            assert secret not in data


def test_cmyk_is_noted() -> None:
    for kind in ("JPEG", "TIFF"):
        picture = read(encode(PHOTO.convert("CMYK"), kind, icc_profile=CMYK))
        assert picture.notes == ("CMYK converted to sRGB",)
    assert read(encode(PHOTO, "JPEG")).notes == ()


def test_tiff_keeps_xmp_and_iptc_beside_exif() -> None:
    picture = Picture(colour=noise(9, 14, 3), xmp=clean_xmp(XMP), iptc=IPTC, exif=read(jpeg()).exif)
    with tifffile.TiffFile(io.BytesIO(written(picture, "TIFF")[0])) as file:
        tags = file.pages[0].tags  # type: ignore[union-attr]
        assert tags[700].value == picture.xmp
        assert bytes(tags[33723].value) == IPTC
        assert tags[271].value == "Canon"

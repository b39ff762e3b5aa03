"""JPEG 2000, PNM, TGA and ICO."""

import io
import struct

import numpy as np
import pytest
from making import CAMERA, P3, XMP, encode, noise, png
from PIL import Image

from srno.errors import SRNOError
from srno.imaging.formats import Format
from srno.imaging.picture import Picture
from srno.imaging.read import read
from srno.imaging.write import write


def to_bytes(picture: Picture, name: Format) -> bytes:
    stream = io.BytesIO()
    write(picture, stream, format=name)
    return stream.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["JP2", "TGA", "ICO"])
def test_8_bits_round_trip_and_pillow_reads_them(name: Format, channels: int) -> None:
    samples = noise(9, 14, channels)
    colours = 1 if channels < 3 else 3
    alpha = samples[..., colours] if channels in (2, 4) else None
    data = to_bytes(Picture(colour=samples[..., :colours], alpha=alpha), name)
    back = read(data)
    assert np.array_equal(back.samples(), samples)
    assert back.format == name
    with Image.open(io.BytesIO(data)) as image:
        assert np.array_equal(
            np.asarray(image.convert({1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels])).reshape(samples.shape), samples
        )


# JPEG 2000


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def test_jpeg_2000_without_a_container_is_read() -> None:
    data = encode(Image.fromarray(noise(9, 14, 3)), "JPEG2000", no_jp2=True)
    assert data.startswith(b"\xff\x4f\xff\x51")
    assert np.array_equal(read(data).colour, noise(9, 14, 3))


def test_jpeg_2000_of_16_bit_gray_is_exact() -> None:
    samples = noise(9, 14, bits=16)
    picture = read(encode(Image.fromarray(samples), "JPEG2000"))
    assert np.array_equal(picture.colour[..., 0], samples)


def test_jpeg_2000_of_12_bit_gray_is_scaled_to_16() -> None:
    data = bytearray(encode(Image.fromarray(noise(9, 14, bits=16)), "JPEG2000", no_jp2=True))
    deep = read(bytes(data)).colour.astype(int)
    assert data[42] == 15
    data[42] = 11  # the samples become others; white of 12 bits must be white of 16
    levels = np.unique(read(bytes(data)).colour)
    assert len(deep) == 9
    assert levels.max() == 65535
    assert set(levels) <= {round(level * 65535 / 4095) for level in range(4096)}


def test_jpeg_2000_of_16_bit_colour_is_refused() -> None:
    data = bytearray(encode(Image.fromarray(noise(9, 14, 3)), "JPEG2000"))
    at = data.index(b"\xff\x4f\xff\x51") + 42
    data[at] = data[at + 3] = data[at + 6] = 15
    with pytest.raises(SRNOError, match="16 bits per channel in JPEG 2000 are not supported; convert it to TIFF"):
        read(bytes(data))
    data[at] = 0x87
    with pytest.raises(SRNOError, match="signed samples"):
        read(bytes(data))


def test_metadata_of_jpeg_2000_is_read() -> None:
    data = encode(Image.fromarray(noise(9, 14, 3)), "JPEG2000")
    at = data.index(b"colr") - 4
    size = struct.unpack_from(">I", data, at)[0]
    header = data.index(b"jp2h") - 4
    colour = box(b"colr", b"\2\0\0" + P3)
    whole = struct.pack(">I", struct.unpack_from(">I", data, header)[0] - size + len(colour))
    data = data[:header] + whole + data[header + 4 : at] + colour + data[at + size :]
    assert CAMERA is not None
    data += box(b"uuid", bytes.fromhex("be7acfcb97a942e89c71999491e3afac") + XMP) + box(
        b"uuid", b"JpgTiffExif->JP2" + CAMERA
    )
    picture = read(data)
    assert (picture.icc, picture.exif) == (P3, CAMERA)
    assert picture.xmp is not None
    assert b"a cat" in picture.xmp
    assert b"ImageWidth" not in picture.xmp


# PNM


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 3])
def test_pnm_round_trips(channels: int, bits: int) -> None:
    samples = noise(9, 14, channels, bits=bits)
    data = to_bytes(Picture(colour=samples), "PNM")
    assert data.startswith(b"P5\n14 9\n" if channels == 1 else b"P6\n14 9\n")
    assert np.array_equal(read(data).samples(), samples)
    if bits == 8:
        with Image.open(io.BytesIO(data)) as image:
            assert np.array_equal(np.asarray(image).reshape(9, 14, channels), samples)


@pytest.mark.parametrize("white", [1, 15, 100, 255, 256, 1023, 65535])
@pytest.mark.parametrize("text", [False, True])
def test_the_largest_value_of_a_pnm_becomes_white(white: int, text: bool) -> None:
    levels = np.array([[0, white // 2, white], [white, 0, white // 3]])
    if text:
        data = f"P2\n# a comment\n3 2 # another\n{white}\n{' '.join(map(str, levels.ravel()))}\n".encode()
    else:
        data = f"P5 3 2 {white}\n".encode() + levels.astype(">u2" if white > 255 else "u1").tobytes()
    picture = read(data)
    top = 255 if white <= 255 else 65535
    assert picture.bits == (8 if white <= 255 else 16)
    assert np.abs(picture.colour[..., 0] - levels * top / white).max() <= 0.5


def test_bitmaps_are_black_where_they_are_one() -> None:
    bits = noise(5, 11) > 127
    expected = np.where(bits, 0, 255)
    packed = np.packbits(bits, axis=1).tobytes()
    assert np.array_equal(read(b"P4\n11 5\n" + packed).colour[..., 0], expected)
    digits = "\n".join("".join(str(int(bit)) for bit in row) for row in bits)
    assert np.array_equal(read(f"P1\n11 5\n{digits}\n".encode()).colour[..., 0], expected)


def test_text_of_three_channels_is_read() -> None:
    samples = noise(2, 3, 3)
    data = f"P3\n3 2\n255\n{' '.join(map(str, samples.ravel()))}".encode()
    assert np.array_equal(read(data).colour, samples)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"P5 3 2 255\nabc", "damaged or cut short .3 of 6 bytes"),
        (b"P2 3 2 255\n1 2 3", "damaged or cut short .3 of 6 samples"),
        (b"P2 3 1 10\n1 2 11", "a sample of 11, above its largest value of 10"),
        (b"P5 3 2 65536\n", "damaged"),
        (b"P5 3 2 0\n", "damaged"),
        (b"P5 0 2 255\n", "has no pixels"),
        (b"P5 -3 2 255\n", "damaged"),
        (b"P6 3", "damaged"),
    ],
)
def test_damaged_pnm_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(SRNOError, match=words):
        read(data)


# TGA


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("options", [{}, {"compression": "tga_rle"}, {"orientation": 1}])
def test_tga_of_every_kind_is_read(mode: str, options: dict[str, object]) -> None:
    image = Image.fromarray(noise(9, 14, 4)).convert("RGBA" if mode.endswith("A") else "RGB").convert(mode)
    picture = read(encode(image, "TGA", **options))
    shown = image.convert({"P": "RGB"}.get(mode, mode))
    assert np.array_equal(picture.samples(), np.asarray(shown).reshape(9, 14, -1))


# ICO


def icon(*entries: tuple[int, int, int, bytes]) -> bytes:
    """ICO of icons: width, height, bits and content."""
    at = 6 + 16 * len(entries)
    table, body = b"", b""
    for width, height, bits, content in entries:
        table += struct.pack("<BBBBHHII", width, height, 0, 0, 1, bits, len(content), at + len(body))
        body += content
    return struct.pack("<HHH", 0, 1, len(entries)) + table + body


def bitmap(samples: np.ndarray) -> bytes:
    """A bitmap of (h, w, 4) RGBA samples as icons hold it: twice as high, for a mask of one bit per pixel."""
    height, width, _ = samples.shape
    header = struct.pack("<IiiHHIIiiII", 40, width, 2 * height, 1, 32, 0, 0, 0, 0, 0, 0)
    mask = bytes((width + 31) // 32 * 4 * height)
    return header + np.ascontiguousarray(samples[::-1, :, [2, 1, 0, 3]]).tobytes() + mask


def test_the_largest_icon_is_read() -> None:
    small, large = noise(8, 8, 4, seed=1), noise(16, 16, 4, seed=2)
    data = icon((8, 8, 32, bitmap(small)), (16, 16, 32, bitmap(large)))
    assert np.array_equal(read(data).samples(), large)
    data = icon((16, 16, 32, png(large)), (8, 8, 32, bitmap(small)))
    assert np.array_equal(read(data).samples(), large)


def test_an_icon_larger_than_its_entry_is_checked_by_its_own_header() -> None:
    data = icon((8, 8, 32, png(noise(2, 2, 4), size=(60_000, 60_000))))
    with pytest.raises(SRNOError, match="claims 60000×60000"):
        read(data)
    huge = bytearray(icon((8, 8, 32, bitmap(noise(8, 8, 4)))))
    huge[6 + 16 + 4 : 6 + 16 + 12] = struct.pack("<ii", 60_000, 120_000)
    with pytest.raises(SRNOError, match="claims 60000×60000"):
        read(bytes(huge))


def test_opaque_icons_have_no_alpha() -> None:
    samples = noise(16, 16, 4)
    samples[..., 3] = 255
    assert read(icon((16, 16, 32, bitmap(samples)))).channels == 3

"""Damage bytes at random: flips, numbers at the edges of their ranges, cuts, repetitions and splices."""

import struct
import zlib

import numpy as np

EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
MAX_CHANGES = 4
LONGEST_PIECE = 64


def mutate(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Apply one or a few changes to `data`; `other` is a file of the same kind to take pieces from."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, MAX_CHANGES + 1))):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        change(changed, other, rng)
    return repaired(bytes(changed)) if rng.random() < 0.7 else bytes(changed)


def repaired(data: bytes) -> bytes:
    """The file with the checksums of a PNG made right, so that damage reaches what is behind them."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    out, at = bytearray(data), 8
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        end = at + 8 + size
        if end + 4 > len(data):
            break
        out[end : end + 4] = struct.pack(">I", zlib.crc32(data[at + 4 : end]))
        at = end + 4
    return bytes(out)


def _place(data: bytearray, rng: np.random.Generator) -> int:
    """A place, half of the time among the first bytes, where headers are."""
    if not data:
        return 0
    return int(rng.integers(min(len(data), 128) if rng.random() < 0.5 else len(data)))


def _flip(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    if data:
        data[_place(data, rng)] ^= 1 << int(rng.integers(8))


def _byte(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    if data:
        data[_place(data, rng)] = int(rng.integers(256))


def _number(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    """Overwrite a number of 1, 2, 4 or 8 bytes, in either byte order, by one at the edge of a range."""
    width = int(rng.choice((1, 2, 4, 8)))
    value = EDGES[int(rng.integers(len(EDGES)))] % 256**width
    at = _place(data, rng)
    data[at : at + width] = value.to_bytes(width, "big" if rng.random() < 0.5 else "little")


def _cut(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    del data[_place(data, rng) :]


def _remove(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    at = _place(data, rng)
    del data[at : at + int(rng.integers(1, LONGEST_PIECE))]


def _repeat(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    at = _place(data, rng)
    piece = bytes(data[at : at + int(rng.integers(1, LONGEST_PIECE))])
    data[at:at] = piece * int(rng.integers(1, 4))


def _insert(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    at = _place(data, rng)
    data[at:at] = rng.bytes(int(rng.integers(1, LONGEST_PIECE)))


def _splice(data: bytearray, other: bytes, rng: np.random.Generator) -> None:
    """Replace a piece by one of the other file."""
    at, start = _place(data, rng), int(rng.integers(max(1, len(other))))
    size = int(rng.integers(1, LONGEST_PIECE))
    data[at : at + size] = other[start : start + size]


CHANGES = (_flip, _flip, _byte, _number, _number, _number, _cut, _remove, _repeat, _insert, _splice)

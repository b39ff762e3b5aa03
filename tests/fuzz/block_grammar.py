"""Profiles, XMP, checkpoints and files of runs from their grammars: valid frames around random content."""

import json
import pickle
import pickletools
import struct
from typing import Any

import numpy as np

from imaging.making import curve, profile, xyz

CURVES = (b"curv", b"para", b"mft1", b"mft2", b"mAB ", b"text", b"XYZ ")
ELEMENTS = ("rdf:Description", "rdf:RDF", "tiff:Orientation", "tiff:ImageWidth", "exif:PixelXDimension", "rdf:li", "a")
TEXTS = ("6", "", "&amp;", "&a;", "<![CDATA[x]]>", "<!-- c -->", "<?xpacket end='w'?>", "\ud7ff", "\U0001f600", "]]>")
NAMES = (
    "preset", "data", "steps", "minutes", "stages", "seed", "rate", "encoder", "config", "card", "step", "loss",
    "event", "family", "channels",
)  # fmt: skip
DTYPES = ("F32", "F16", "BF16", "F64", "I64", "U8", "BOOL", "F8_E4M3", "X")
GLOBALS = (("os", "system"), ("builtins", "eval"), ("torch._utils", "_rebuild_tensor_v2"), ("numpy", "dtype"),
           ("collections", "OrderedDict"), ("torch", "FloatStorage"))  # fmt: skip
OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]


def _choice(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def icc(rng: np.random.Generator) -> bytes:
    """Profiles of every space with curves and tables, some of them of random content."""
    tags: dict[bytes, bytes] = {}
    for name in (b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"kTRC", b"A2B0", b"B2A0", b"chad"):
        made = (
            curve(float(rng.uniform(0, 9))) if name.endswith(b"TRC") else xyz(*(float(v) for v in rng.normal(size=3)))
        )
        odd = _choice(rng, CURVES) + bytes(4) + struct.pack(">I", int(rng.choice((0, 1, 3, 255)))) + rng.bytes(40)
        if rng.random() < 0.8:
            tags[name] = made if rng.random() < 0.6 else odd
    return profile(_choice(rng, (b"RGB ", b"GRAY", b"CMYK", b"Lab ")), tags)


def xmp(rng: np.random.Generator) -> bytes:
    """Nested elements and attributes with all that XML allows and some that it does not."""
    spaces = " ".join(f'xmlns:{name}="{name}"' for name in ("x", "rdf", "tiff", "exif") if rng.random() < 0.95)
    document = _choice(rng, ("", "", '<!DOCTYPE x [<!ENTITY a "b">]>')) + f"<x:xmpmeta {spaces}>"
    open_elements: list[str] = []
    for _ in range(int(rng.integers(40))):
        if open_elements and rng.random() < 0.4:
            document += f"</{open_elements.pop()}>"
        else:
            open_elements.append(_choice(rng, ELEMENTS))
            document += f'<{open_elements[-1]} tiff:Orientation="{int(rng.integers(10))}">' + _choice(rng, TEXTS)
    document += "".join(f"</{name}>" for name in reversed(open_elements)) + "</x:xmpmeta>"
    return document.encode(_choice(rng, ("utf-8", "utf-8", "utf-16", "utf-32")), "surrogatepass")


def _value(rng: np.random.Generator, depth: int = 0) -> Any:
    """A random value of JSON."""
    if depth < 3 and rng.random() < 0.4:
        inner = [_value(rng, depth + 1) for _ in range(int(rng.integers(5)))]
        return inner if rng.random() < 0.5 else {_choice(rng, NAMES): value for value in inner}
    return _choice(rng, (0, 1, -1, 2**70, 0.5, float("nan"), float("inf"), "", "light", "8x2x16", "a" * 99, True, None))


def safetensors(rng: np.random.Generator) -> bytes:
    """A header of JSON with tensors of any type, shape and place, and the bytes behind it."""
    metadata = {_choice(rng, NAMES): json.dumps(_value(rng)) for _ in range(int(rng.integers(4)))}
    header: dict[str, Any] = {"__metadata__": metadata if rng.random() < 0.8 else _value(rng)}
    at = 0
    for number in range(int(rng.integers(4))):
        shape = [int(rng.integers(4)) for _ in range(int(rng.integers(4)))]
        size = 4 * int(np.prod(shape))
        header[f"encoder.{number}"] = {"dtype": _choice(rng, DTYPES), "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if rng.random() < 0.9 else int(rng.integers(2**40))) + text + bytes(at)


def pickled(rng: np.random.Generator) -> bytes:
    """A program of random pickle instructions, and what they call."""
    out = b"\x80" + bytes([int(rng.integers(6))])
    for _ in range(int(rng.integers(30))):
        module, name = _choice(rng, GLOBALS)
        called = f"c{module}\n{name}\n(X".encode() + struct.pack("<I", 14) + b"touch executed" + b"tR"
        plain = pickle.dumps(_value(rng), 2)[2:-1]
        out += (_choice(rng, OPCODES) + rng.bytes(int(rng.integers(4))), called, plain)[int(rng.integers(3))]
    return out + b"."


def run_file(rng: np.random.Generator) -> bytes:
    """A config, a log, or a state of random values."""
    kind = int(rng.integers(3))
    if kind == 2:
        return pickled(rng)
    lines = [json.dumps({_choice(rng, NAMES): _value(rng) for _ in range(6)}) for _ in range(1 + 5 * kind)]
    return "\n".join(lines).encode()

"""What is fuzzed: for each kind, valid inputs to start from, a grammar of others, and what reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from fuzz import block_grammar, grammar
from fuzz.blocks import exif_blocks, icc_profiles, read_exif, read_icc, read_xmp, xmp_packets
from fuzz.models import native_models, public_models, read_model, read_run, run_files
from fuzz.pictures import FORMATS, pictures, read_picture
from fuzz.requests import make_request, request_page, requests

Make = Callable[[np.random.Generator], bytes]


@dataclass(frozen=True)
class Kind:
    """Valid inputs, the reader as the program uses it, and a function that makes inputs from a grammar."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], None]
    make: Make


GRAMMARS: Mapping[str, Make] = {
    "PNG": grammar.png,
    "JPEG": grammar.jpeg,
    "WEBP": grammar.webp,
    "GIF": grammar.gif,
    "TIFF": grammar.tiff,
    "BMP": grammar.bmp,
    "PNM": grammar.pnm,
    "TGA": grammar.tga,
    "ICO": grammar.ico,
    "HEIF": partial(grammar.boxes, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
    "AVIF": partial(grammar.boxes, b"\0\0\0\x18ftypavif\0\0\0\0mif1avif"),
    "JP2": partial(grammar.boxes, b"\0\0\0\x0cjP  \r\n\x87\n"),
    "JXL": partial(grammar.boxes, b"\0\0\0\x0cJXL \r\n\x87\n"),
}

KINDS: Mapping[str, Kind] = {
    **{name.lower(): Kind(partial(pictures, name), read_picture, GRAMMARS[name]) for name in FORMATS},
    "exif": Kind(exif_blocks, read_exif, grammar.tiff),
    "icc": Kind(icc_profiles, read_icc, block_grammar.icc),
    "xmp": Kind(xmp_packets, read_xmp, block_grammar.xmp),
    "safetensors": Kind(native_models, partial(read_model, ".safetensors"), block_grammar.safetensors),
    "pth": Kind(public_models, partial(read_model, ".pth"), block_grammar.pickled),
    "run": Kind(run_files, read_run, block_grammar.run_file),
    "page": Kind(requests, request_page, make_request),
}

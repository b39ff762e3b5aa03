"""Remake the pictures that tests/test_golden.py compares with, one for each shipped model.

    python tools/make_golden.py

Run it after the weights of a model have changed, look at the pictures, and commit them with the weights.
"""

from pathlib import Path

from PIL import Image

import srno

REPOSITORY = Path(__file__).parents[1]
GOLDEN = REPOSITORY / "tests" / "fixtures" / "golden"
CROP = (84, 52, 132, 84)  # left, top, right, bottom: an eye, with fur, a hard edge and a highlight
SIZE = (130, 86)  # ×2.71 and ×2.69: neither axis has a whole factor


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with Image.open(REPOSITORY / "src" / "srno" / "examples" / "cat.png") as picture:
        crop = picture.convert("RGB").crop(CROP)
    crop.save(GOLDEN / "input.png")
    for name in srno.list_models():
        large = srno.upscale(crop, size=SIZE, fit="stretch", model=name, integral="exact", precision="fp32")
        path = GOLDEN / f"{name}.png"
        large.save(path)
        print(f"{path.relative_to(REPOSITORY)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

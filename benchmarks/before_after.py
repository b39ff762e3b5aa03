"""Draw the picture of the README: the same crops of the bundled examples, bicubic beside srno.

python benchmarks/before_after.py                       # docs/before_after.jpg with the default model at ×4
python benchmarks/before_after.py --scale 8 --model runs/mine/best.safetensors --out mine.png
"""

from pathlib import Path

import cyclopts
from PIL import Image, ImageDraw, ImageFont

import srno
from srno.checkpoints.catalogue import find
from srno.operator.model import Model

ROOT = Path(__file__).parents[1]
EXAMPLES = Path(srno.__file__).parent / "examples"
CROPS = {"cat": (66, 40, 162, 104), "coffee": (74, 84, 170, 148)}
"""Left, top, right, bottom in pixels of the example."""
GAP, TITLE_HEIGHT = 8, 28


def before_after(*, scale: float = 4, model: str = "default", out: Path = ROOT / "docs" / "before_after.jpg") -> None:
    """Draw the crops, one row each, and write them to OUT."""
    loaded = srno.load(model)
    rows = [_row(name, box, scale, loaded) for name, box in CROPS.items()]
    width = rows[0][0].width
    titles = (f"bicubic, {scale:g}x", f"srno ({find(model).stem}), {scale:g}x")
    sheet = Image.new("RGB", (2 * width + GAP, TITLE_HEIGHT + sum(row[0].height + GAP for row in rows) - GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for column, title in enumerate(titles):
        draw.text((column * (width + GAP) + 2, 3), title, fill="black", font=ImageFont.load_default(18))
    top = TITLE_HEIGHT
    for row in rows:
        for column, picture in enumerate(row):
            sheet.paste(picture, (column * (width + GAP), top))
        top += row[0].height + GAP
    sheet.save(out, quality=95, subsampling=0)
    print(f"{out}: {sheet.width}×{sheet.height}")


def _row(name: str, box: tuple[int, int, int, int], scale: float, model: Model) -> tuple[Image.Image, Image.Image]:
    """The crop of the enlarged picture, (bicubic, srno)."""
    small = Image.open(EXAMPLES / f"{name}.png").convert("RGB")
    by_srno = srno.upscale(small, scale=scale, model=model)
    by_bicubic = small.resize(by_srno.size, Image.Resampling.BICUBIC)
    left, top, right, bottom = (round(edge * scale) for edge in box)
    region = (left, top, right, bottom)
    return by_bicubic.crop(region), by_srno.crop(region)


if __name__ == "__main__":
    cyclopts.run(before_after)

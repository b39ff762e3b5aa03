"""Draw the thumbnails of docs/paper.md: python tests/reproduce/thumbnails.py SETS RUNS [NAME ...]

SETS holds Set5 and Set14, RUNS the small training runs of docs/evaluation.md. Every thumbnail is the output of a
command, reduced; tables are drawn from their Markdown.
"""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from srno.cli import main
from srno.config import preset
from srno.evaluation.cost import profile
from srno.evaluation.tables import markdown_table

OUT = Path(__file__).parents[2] / "docs" / "paper"
WIDTH = 340
"""Pixels of a thumbnail of a figure."""
TABLE_WIDTH = 460
LARGEST_BYTES = 12_000


def commands(sets: Path, runs: Path) -> dict[str, list[str]]:
    """Tokens of the command that draws each thumbnail."""
    set5, set14 = sets / "Set5", sets / "Set14"
    pictures = [f"--picture={set14 / 'HR' / f'img_{number:03}.png'}" for number in (11, 12, 13, 14, 1, 2)]
    srno = "--model=SRNO=wide"
    small = {name: runs / name / "last.safetensors" for name in ("lte-light", "liif-light", "light-i", "light-s")}
    small |= {f"light-{side}": runs / f"light-{side}" / "last.safetensors" for side in (12, 16, 24, 32)}
    own = f"--model=SRNO={small['light-32']}"
    return {
        "profile": [],
        "table1": ["table1"],
        "table2": ["table2", "--data", str(set5)],
        "table3": ["table3"],
        "table4": ["table4", "--data", str(set14)],
        "suppl": ["suppl", "--data", str(set5)],
        "fig-zero-shot": ["fig-zero-shot", *pictures[:2], srno],
        "fig-fractional": ["fig-fractional", *pictures[2:4], srno],
        "fig-comparison": ["fig-comparison", *pictures, srno],
        "fig-samples": [
            *("fig-samples", "--preset=light", "--sides=12,16,24,32"),
            *("--checkpoints", str(runs), "--data", str(set5)),
        ],
        "fig-sampling": [
            *("fig-sampling", pictures[0]),
            *(f"--model=SRNO ({side}²)={small[f'light-{side}']}" for side in (12, 16, 24, 32)),
        ],
        "fig-lifting": [
            *("fig-lifting", pictures[0], f"--model=LTE={small['lte-light']}"),
            *(f"--model=SRNO (-i)={small['light-i']}", own),
        ],
        "fig-sequential": ["fig-sequential", pictures[0], f"--model=SRNO (-s)={small['light-s']}", own],
        "fig-basis": ["fig-basis", f"--picture={set5 / 'HR' / 'img_003.png'}"],
        "fig-rank": ["fig-rank", "--data", str(set5)],
        "fig-kernel": ["fig-kernel", "--data", str(set5)],
        "fig-patterns": ["fig-patterns", pictures[0]],
    }


def draw(name: str, tokens: list[str]) -> None:
    """Run a command and save its figure, or the table that it prints."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        out = Path(folder) / "drawn.png"
        if name == "profile":
            sys.stdout.write(profile_markdown("edsr-baseline"))
        else:
            run(["reproduce", *tokens, *([] if name.startswith(("table", "suppl")) else [f"--out={out}"])])
        if not out.exists():
            draw_table(printed.getvalue(), out)
        width = WIDTH if name.startswith("fig") else TABLE_WIDTH
        save(Image.open(out).convert("RGB"), width, OUT / f"{name}.webp")


def profile_markdown(preset_name: str) -> str:
    """The numbers of `srno profile`, which prints a table for terminals."""
    counted = profile(preset(preset_name))
    rows = [
        [name, f"{cost.parameters:,}", f"{cost.flops_paper / 1e9:.2f}", f"{cost.flops / 1e9:.2f}"]
        for name, cost in [*counted.parts.items(), ("total", counted.total)]
    ]
    return markdown_table(preset_name, ["part", "parameters", "GFLOPs as in the paper", "GFLOPs"], rows, ["128²"])


def run(tokens: list[str]) -> None:
    """Call the command line, which ends with SystemExit."""
    try:
        main(tokens)
    except SystemExit as end:
        if end.code:
            raise


def draw_table(markdown: str, path: Path) -> None:
    """Draw the first table of a text."""
    lines = markdown.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| "))
    stop = next(number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    rows = [line.strip("| ").split(" | ") for line in (lines[start], *lines[start + 2 : stop])]
    figure = Figure(figsize=(1.0 * len(rows[0]) + 1.2, 0.26 * len(rows) + 0.5), layout="constrained")
    axes = figure.subplots()
    axes.axis("off")
    axes.set_title(lines[0].strip("*"), loc="left", fontsize=10)
    table = axes.table(cellText=rows[1:], colLabels=rows[0], loc="upper left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.auto_set_column_width(range(len(rows[0])))
    figure.savefig(path, dpi=100, bbox_inches="tight")


def save(picture: Image.Image, width: int, path: Path) -> None:
    """Save as WebP, as wide and as good as a small file allows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        small = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
        for quality in (80, 65, 50, 35):
            small.save(path, quality=quality, method=6)
            if path.stat().st_size <= LARGEST_BYTES:
                return
        width = width * 7 // 8


if __name__ == "__main__":
    found = commands(Path(sys.argv[1]), Path(sys.argv[2]))
    for each in sys.argv[3:] or found:
        draw(each, found[each])

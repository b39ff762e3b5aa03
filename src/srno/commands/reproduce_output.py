"""Output of the commands of `srno reproduce`: a figure or a table, and the numbers beside it"""

import json
from pathlib import Path
from typing import Any

from srno.commands.output import print_message, save, show


def as_json_text(content: object) -> str:
    """Format plain data as JSON."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def save_texts(out: Path | None, name: str, texts: dict[str, str]) -> None:
    """Save texts by their suffixes if --out was given, and say where."""
    if out is not None:
        print_message("saved " + ", ".join(map(str, save(out, name, texts))))


def finish_figure(out: Path, figure: Any, text: str, content: dict[str, Any]) -> None:
    """Save a figure, print its numbers, and save them beside it."""
    from srno.reproduce.plotting import save_figure

    save_figure(figure, out)
    show(text)
    print_message(f"drew {out}")
    save_texts(out.with_suffix(""), out.stem, {"md": text, "json": as_json_text(content)})

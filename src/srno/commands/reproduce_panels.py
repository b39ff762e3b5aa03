"""srno reproduce fig-zero-shot, fig-fractional, …: the paper's visual comparisons"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from srno.commands.options import prepare_computing
from srno.commands.output import print_message
from srno.commands.reproduce_flags import BENCHMARK_RULES, EXACT, Evaluating, Rules
from srno.errors import SRNOError
from srno.reproduce.paper_figures import Figure, parse_rows


def panel_command(name: str, figure: Figure) -> Callable[..., None]:
    """The command that draws one of the figures."""

    def draw(
        *,
        picture: Annotated[list[Path], Parameter(negative_iterable="")],
        model: Annotated[list[str] | None, Parameter(negative_iterable="")] = None,
        out: Path = Path(f"{name}.png"),
        scales: str = ",".join(figure.scales),
        boxes: str | None = None,
        protocol: Rules = BENCHMARK_RULES,
        threads: int | None = None,
        upscaler: Evaluating = EXACT,
    ) -> None:
        """Draw a visual comparison of the paper from given pictures and checkpoints.

        Parameters
        ----------
        picture
            A high-resolution picture; one for each scale, or one for all.
        model
            NAME=FILE, with the name to print in the figure; may be given several times. Bicubic is added if the paper
            shows it.
        out
            The PNG to write.
        scales
            Factors, a row each; a factor may be given several times.
        boxes
            Boxes to enlarge, LEFT,TOP,WIDTH,HEIGHT in pixels of the truth; one for each scale, separated by
            semicolons, or one for all. Where the errors are largest unless given.
        threads
            CPU threads; all cores unless given.
        """
        from srno.evaluation.datasets import SetPicture
        from srno.evaluation.methods import find_methods
        from srno.reproduce.exhibit import parse_boxes
        from srno.reproduce.panel import save_panel
        from srno.reproduce.paper_figures import draw_figure

        prepare_computing(threads)
        names = [*(["Bicubic=bicubic"] if "Bicubic" in figure.methods else []), *(model or [])]
        if not names:
            raise SRNOError(f"give models to draw, such as --model '{figure.methods[-1]}=FILE'")
        order = {each: index for index, each in enumerate(figure.methods)}
        methods = sorted(find_methods(names, upscaler), key=lambda method: order.get(method.name, len(order)))
        missing = [each for each in figure.methods if each not in {method.name for method in methods}]
        if missing:
            print_message(f"the paper also shows {', '.join(missing)}; add each with --model 'NAME=FILE'")
        drawn = draw_figure(
            figure,
            [(method.name, method.upscale) for method in methods],
            [SetPicture(path.name, path) for path in picture],
            parse_rows(scales),
            protocol.resolve(),
            parse_boxes(boxes) if boxes else (),
        )
        save_panel(drawn, out)
        print_message(f"drew {out}")

    return draw

"""srno reproduce: a command for every table and figure"""

from cyclopts import App

from srno.commands.reproduce_panels import panel_command
from srno.commands.reproduce_tables import TABLES, table_command
from srno.reproduce.paper_figures import FIGURES

OTHERS = {
    "reproduce_tables:table3": "Parameters and FLOPs, counted.",
    "reproduce_tables:table4": "Ablations and running time on Set14.",
    "reproduce_analysis:fig_basis": "Basis functions: columns of Q, K and V, and z before and after each layer.",
    "reproduce_analysis:fig_rank": "Ranks of z_0 … z_T and of Q, K and V over a set.",
    "reproduce_analysis:fig_kernel": "The kernel matrices M, and how far they move between pictures and scales.",
    "reproduce_samples:fig_samples": "PSNR against the number of supervision points in training.",
    "reproduce_samples:fig_patterns": "Random against sequential supervision points.",
    "miniature:miniature": "The paper's comparison at small scale: all decoders and ablations trained alike.",
}
"""Commands with flags of their own: module and function, and what they show."""

reproduce = App(name="reproduce", help="Reproduce the paper's tables and figures from checkpoints and pictures.")

for _name, _text in TABLES.items():
    reproduce.command(table_command(_name), name=_name, help=_text)
for _name, _figure in FIGURES.items():
    reproduce.command(panel_command(_name, _figure), name=_name, help=_figure.title)
for _path, _text in OTHERS.items():
    _name = _path.partition(":")[2].replace("_", "-")
    reproduce.command(f"srno.commands.{_path}", name=_name, help=_text)

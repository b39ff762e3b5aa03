"""srno reproduce: a command for every table and figure"""

from cyclopts import App

from srno.commands import reproduce_figures, reproduce_tables
from srno.commands.miniature import miniature
from srno.reproduce.paper_figures import FIGURES

reproduce = App(name="reproduce", help="Reproduce the paper's tables and figures from checkpoints and pictures.")

for _name, _text in reproduce_tables.TABLES.items():
    reproduce.command(reproduce_tables.table_command(_name), name=_name, help=_text)
for _name, _figure in FIGURES.items():
    reproduce.command(reproduce_figures.panel_command(_name, _figure), name=_name, help=_figure.title)
for _command in (
    reproduce_tables.table3,
    reproduce_tables.table4,
    reproduce_figures.fig_basis,
    reproduce_figures.fig_rank,
    reproduce_figures.fig_kernel,
    reproduce_figures.fig_samples,
    reproduce_figures.fig_patterns,
    miniature,
):
    reproduce.command(_command)

"""srno completion"""

import sys
from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script that completes srno's words in a shell.

    bash: `srno completion bash > ~/.local/share/bash-completion/completions/srno`

    zsh: `srno completion zsh > DIRECTORY/_srno`, with a directory of `$fpath`

    fish: `srno completion fish > ~/.config/fish/completions/srno.fish`

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    from srno.cli import make_app

    sys.stdout.write(make_app().generate_completion(shell=shell))

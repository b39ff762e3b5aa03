"""srno completion"""

import re
import sys
from typing import Literal, TypeAlias

Shell: TypeAlias = Literal["bash", "zsh", "fish"]

ZSH_ENDING = """
_srno_words_or_files() {{
  {function} "$@" || _files
}}
if [[ $funcstack[1] == _* ]]; then
  _srno_words_or_files "$@"
else
  compdef _srno_words_or_files srno
fi
"""
"""Completes if zsh has loaded the script from a directory of $fpath, as a function; registers it if it was sourced."""


def completion(shell: Shell, /) -> None:
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

    sys.stdout.write(with_files(make_app().generate_completion(shell=shell), shell))


def with_files(script: str, shell: Shell) -> str:
    """Let a generated script complete names of files where it knows no word, also the first: `srno photo.jpg`.

    The generator's scripts for bash and zsh complete only commands, options and their choices. That for zsh defines a
    function, which a file in $fpath has to call.
    """
    if shell == "bash":
        return script.replace("complete -F ", "complete -o bashdefault -o default -F ")
    if shell == "zsh":
        function = re.search(r"^(_\w+)\(\) \{$", script, re.MULTILINE)
        assert function is not None, "the generated script defines a function"
        return script.rstrip() + "\n" + ZSH_ENDING.format(function=function[1])
    return script

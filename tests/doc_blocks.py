"""Code blocks of Markdown pages, and the commands in them."""

import re
import shlex
from dataclasses import dataclass

SHELLS = ("sh", "bash", "shell", "console")
PROGRAMS = ("srno", "make", "pip", "python", "curl", "torchrun", "git", "cd", "$")
"""First words by which an indented block is known to hold commands."""


@dataclass(frozen=True)
class Block:
    """A code block; `line` is that of its first line of code, counted from 1."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A program with its arguments, and the file that its output goes to."""

    where: str
    words: tuple[str, ...]
    stdout: str | None = None

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def __str__(self) -> str:
        return f"{self.where} {self.text}"


def find_blocks(page: str, text: str) -> list[Block]:
    """Fenced blocks, and blocks that are indented by four spaces after an empty line (`sh` or `indented`)."""
    lines = text.splitlines()
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        first, fence = at, re.match(r"( *)```\s*(\S*)", lines[at])
        if fence:
            at = next(i for i in range(first + 1, len(lines)) if lines[i].strip() == "```")
            body = [line.removeprefix(fence[1]) for line in lines[first + 1 : at]]
            blocks.append(Block(page, first + 2, fence[2] or "no language", "\n".join(body)))
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at + 1 < len(lines) and lines[at + 1].startswith("    "):
                at += 1
            body = [line[4:] for line in lines[first : at + 1]]
            language = "sh" if body[0].split()[0] in PROGRAMS else "indented"
            blocks.append(Block(page, first + 1, language, "\n".join(body)))
        at += 1
    return blocks


def find_commands(block: Block) -> list[Command]:
    """The programs that a shell block starts. If some lines have a `$` prompt, the other lines are output."""
    lines = block.text.replace("\\\n", " ").splitlines()
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")] or lines
    return [command for line in typed for command in parse_line(str(block), line)]


def find_commands_in_tables(page: str, text: str, programs: tuple[str, ...]) -> list[Command]:
    """Commands of these programs in code spans of table rows."""
    commands: list[Command] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            spans = re.findall(rf"`((?:\w+=\S+ )?(?:{'|'.join(programs)}) [^`]+)`", line)
            commands += [command for span in spans for command in parse_line(f"{page}:{number}", span)]
    return commands


def parse_line(where: str, line: str) -> list[Command]:
    """The programs of a pipeline, without comments, variables set in front and input files."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="<>|")
    lexer.whitespace_split = True
    pipeline = " ".join(shlex.quote(word) if word not in "<>|" else word for word in lexer)
    commands: list[Command] = []
    for program in pipeline.split(" | "):
        target = re.search(r" > (\S+)", program)
        words = shlex.split(re.sub(r" [<>] \S+", "", program))
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words.pop(0)
        if words:
            commands.append(Command(where, tuple(words), target[1] if target else None))
    return commands

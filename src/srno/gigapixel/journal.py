"""The journal of a long job: what is finished, in a folder beside the output, bound to a fingerprint of the job."""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srno.errors import SRNOError
from srno.files import PARTIAL_SUFFIX

_HEAD = struct.Struct("<IQI")
"""Bytes of the key and of the content, and a checksum of both."""


@dataclass(frozen=True)
class Record:
    """A finished piece of work: its kind, what it covers, and its result."""

    kind: str
    key: tuple[int, ...]
    content: bytes


class Journal:
    """Records that are appended one by one; a record that was cut short by a kill is dropped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "journal"
        self.known: dict[tuple[str, tuple[int, ...]], bytes] = {}

    @classmethod
    def begin(cls, folder: Path, facts: dict[str, Any]) -> "Journal":
        """Start a journal for the job with these facts."""
        journal = cls(folder)
        folder.mkdir(parents=True, exist_ok=True)
        journal.path.unlink(missing_ok=True)
        journal.add("job", (), json.dumps(facts, sort_keys=True).encode())
        return journal

    @classmethod
    def resume(cls, folder: Path, facts: dict[str, Any]) -> "Journal":
        """Open the journal of an interrupted job; refuse that of another one and name what differs."""
        journal = cls(folder)
        records = list(journal._read())
        journal.known = {(entry.kind, entry.key): entry.content for entry, _ in records}
        if ("job", ()) not in journal.known:
            return cls.begin(folder, facts)
        os.truncate(journal.path, records[-1][1])
        before = json.loads(journal.known["job", ()])
        now = json.loads(json.dumps(facts))
        differing = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if differing:
            raise SRNOError(
                f"--resume: {folder} belongs to another job, which differs in {', '.join(differing)}; "
                "give the same command, or --overwrite to start again"
            )
        return journal

    @classmethod
    def has_progress(cls, folder: Path) -> bool:
        """Whether the journal in a folder has more than the description of its job."""
        return any(entry.kind not in ("job", "side") for entry, _ in cls(folder)._read())

    def add(self, kind: str, key: tuple[int, ...], content: bytes = b"") -> None:
        """Append a record; when this returns, a kill cannot undo it."""
        self.known[kind, key] = content
        name = json.dumps([kind, *key]).encode()
        body = name + content
        with self.path.open("ab") as stream:
            stream.write(_HEAD.pack(len(name), len(content), zlib.crc32(body)) + body)

    def entries(self, kind: str) -> dict[tuple[int, ...], bytes]:
        """All records of a kind."""
        return {key: content for (other, key), content in self.known.items() if other == kind}

    def _read(self) -> Iterator[tuple[Record, int]]:
        """Yield every intact record and where it ends."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            while len(head := stream.read(_HEAD.size)) == _HEAD.size:
                name_length, length, checksum = _HEAD.unpack(head)
                body = stream.read(name_length + length)
                if len(body) != name_length + length or zlib.crc32(body) != checksum:
                    return
                kind, *key = json.loads(body[:name_length])
                yield Record(kind, tuple(key), body[name_length:]), stream.tell()


def journal_folder(output: Path) -> Path:
    """The folder beside an output that holds everything of an unfinished job."""
    return output.with_name(f".{output.name}{PARTIAL_SUFFIX}")

"""Files that a page asks for: exports and clips, as long jobs whose results are kept in memory for a while."""

import secrets
from collections.abc import Mapping
from typing import Any

from PIL import Image

from srno.progress import Progress
from srno.server import clips, exports
from srno.server.exports import Exported, ExportOptions
from srno.server.gallery import Gallery, GoneError
from srno.server.long_jobs import LongJobs, State
from srno.server.opened import Opened
from srno.server.rates import Rates
from srno.server.resample import Box, bicubic
from srno.server.tiles import FILTERS, evaluate
from srno.server.workers import Worker


class FileJobs:
    """Exports and clips, one after the other in a queue of their own. The models have to be loaded."""

    def __init__(self, gallery: Gallery, worker: Worker, rates: Rates, threads: int) -> None:
        self.jobs = LongJobs()
        self._gallery, self._store, self._worker = gallery, gallery.store, worker
        self._rates, self._threads = rates, threads

    def export(self, picture: str, fields: Mapping[str, Any]) -> str:
        """Start an export and return the id of its job."""
        opened, model, options = self._options(picture, fields)
        operator = self._gallery.models.load(model)
        needed = self._check(opened, model, options)

        def work(progress: Progress) -> str:
            with self._store.wait_for(needed, _describe(opened, options), progress):
                if options.part is not None:
                    field = self._gallery.field(opened, model)
                    return self._publish(exports.export_part(opened, field, options, progress))
                done = exports.export(opened, operator, options, exports.SMALLEST_ENGINE_MEMORY, progress)
            return self._publish(done)

        return self.jobs.start(self._worker.submit, work)

    def estimate(self, picture: str, fields: Mapping[str, Any]) -> State:
        """Size of the picture and of the file, and seconds, of an export."""
        opened, model, options = self._options(picture, fields)
        self._check(opened, model, options)
        width, height = options.target.size
        rendered = options.target.whole[0] * options.target.whole[1]
        encoded = options.target.source[0] * options.target.source[1]
        seconds = self._rates.estimate(model, encoded, rendered)
        if seconds is not None:
            both = opened.picture.alpha is not None and options.part is None  # alpha is a picture of its own
            seconds *= (8 if options.ensemble else 1) * (2 if both else 1) / self._threads
        size = exports.estimate_bytes(opened, options)
        return {"width": width, "height": height, "bytes": size, "seconds": seconds}

    def clip(self, picture: str, fields: Mapping[str, Any]) -> str:
        """Start a clip and return the id of its job."""
        opened = self._gallery.opened(picture)
        options = clips.parse_clip(fields, opened)
        for source in options.sources:
            self._gallery.field_of(opened, source)
        self._store.check(clips.clip_bytes(options), "the clip")

        def paint(source: str, box: Box, size: tuple[int, int], progress: Progress) -> Image.Image:
            if size[0] < box[2] - box[0]:  # below ×1 both sides are bicubic, as on the page
                return bicubic(opened, box, size)
            field = self._gallery.field_of(opened, source)
            if field is None:
                return FILTERS[source](opened, box, size)
            return evaluate(opened, field, box, size, None, progress)

        def work(progress: Progress) -> str:
            with self._store.wait_for(clips.clip_bytes(options), "the clip", progress):
                return self._publish(clips.make_clip(opened, options, paint, progress))

        return self.jobs.start(self._worker.submit, work)

    def finished(self, name: str) -> Exported:
        """A finished file."""
        done = self._store.get(("export", name), Exported)
        if done is None:
            raise GoneError("the exported file is no longer in memory; export it again")
        return done

    def _options(self, picture: str, fields: Mapping[str, Any]) -> tuple[Opened, str, ExportOptions]:
        opened, model = self._gallery.opened(picture), self._gallery.models.check(str(fields.get("model")))
        return opened, model, exports.parse_options(fields, opened.picture)

    def _check(self, opened: Opened, model: str, options: ExportOptions) -> int:
        """Bytes that an export needs; raises if the memory is too small."""
        needed = (
            exports.memory_needed(opened, self._gallery.models.load(model), options) + exports.SMALLEST_ENGINE_MEMORY
        )
        self._store.check(needed, _describe(opened, options))
        return needed

    def _publish(self, done: Exported) -> str:
        """Store a finished file under a name that cannot be guessed."""
        name = secrets.token_urlsafe(16)
        self._store.put(("export", name), done, len(done.data), done.name)
        return name


def _describe(opened: Opened, options: ExportOptions) -> str:
    return f"{opened.name} at {options.target.size[0]}×{options.target.size[1]} pixels"

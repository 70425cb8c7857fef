"""Parser and record of a run's frames, each checked again.

The supervisor shares its UID with the code that it runs, so a frame is believed no further than its
kind and its bounds go. The frames of one run have at most 16 MiB of files; output is kept by
`OutputWindow`.
"""

import base64
import re
from collections.abc import Iterator

import msgspec

from mcpwrap.core.execution import endings
from mcpwrap.core.execution.output_window import OutputWindow, RecentOutput
from mcpwrap.core.wire.execution import job_frames
from mcpwrap.core.wire.execution.execute_api import JobEnd, OutFile
from mcpwrap.core.wire.execution.worker_file import RunLimits

_RECENT_BYTES = 1000  # of output, for a progress line
# Of output that the supervisor has read before it noticed the flood.
_FLOOD_SLACK_BYTES = 1024**2
# As faulthandler writes it, at a timeout or a crash: a traceback has `line N, in NAME`. No part can
# match in two ways: the code writes this text, and a slow match would hold up the runs of others.
_RUNNER_FRAME = re.compile(r'(?m)^  File "[^"\n]*/mcpwrap/as_job/runner\.py", line \d+ in [^\n]*\n')
_MAX_NUMBER = 2**53  # that each JSON parser reads exactly
_MAX_BYTES_BY_KIND = {
    job_frames.STDOUT: 1024**2,  # more than a pipe holds
    job_frames.STDERR: 1024**2,
    job_frames.VALUE: job_frames.MAX_VALUE_BYTES,
    job_frames.FILE: job_frames.MAX_FRAME_BYTES,
    job_frames.END: 64 * 1024,  # 32 names and a reason, with each character escaped
}


class FrameError(ValueError):
    """Frame that violates the protocol between worker and supervisor."""


class RunFrames:
    """Record of one run: its output, value and files, and how it ended. Nothing follows `END`."""

    def __init__(self, limits: RunLimits) -> None:
        self.stdout = OutputWindow(limits.output_bytes)
        self.stderr = OutputWindow(limits.output_bytes)
        self.recent = RecentOutput(_RECENT_BYTES)
        self.value: str | None = None
        self.end: JobEnd | None = None
        self.has_begun = False  # the supervisor has sent something, so the code may run
        self._flood_bytes = endings.flood_bytes(limits) + _FLOOD_SLACK_BYTES
        self._content_by_name: dict[str, bytes] = {}
        self._pending = bytearray()

    def feed(self, untrusted: bytes) -> None:
        """Parse a piece of the pipe; after `END` it is ignored.

        Raises:
            FrameError: a frame violates the protocol. The run must be ended.
        """
        if self.end is not None:
            return
        self.has_begun = True
        self._pending += untrusted
        for kind, content in self._complete():
            if kind == job_frames.END:
                self._take_end(content)
                self._pending.clear()
                return
            self._take(kind, content)

    @property
    def is_flooded(self) -> bool:
        """Return whether there was more output than after which the supervisor ends the run."""
        return self._output_bytes > self._flood_bytes

    @property
    def is_truncated(self) -> bool:
        """Return whether the middle of an output stream is missing."""
        return self.stdout.is_cut or self.stderr.is_cut

    def stderr_text(self) -> str:
        """Return standard error; stacks of threads without the frames below the code's own."""
        return _RUNNER_FRAME.sub("", self.stderr.text())

    def out_files(self) -> tuple[OutFile, ...]:
        """Return the files that `END` has listed, with the content of those that were sent."""
        if self.end is None:
            return ()
        return tuple(
            OutFile(name=each.name, size=each.size, data=self._base64(each.name))
            for each in self.end.files
        )

    @property
    def _output_bytes(self) -> int:
        return self.stdout.total_bytes + self.stderr.total_bytes

    def _base64(self, name: str) -> str | None:
        content = self._content_by_name.get(name)
        return None if content is None else base64.b64encode(content).decode()

    def _complete(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the frames that are complete. The head of each is checked before its content."""
        head_bytes = job_frames.HEAD.size
        while len(self._pending) >= head_bytes:
            kind, length = job_frames.HEAD.unpack_from(self._pending)
            limit = _MAX_BYTES_BY_KIND.get(kind)
            if limit is None:
                raise FrameError(f"unknown kind {kind!r}")
            if length > limit:
                raise FrameError(f"frame {kind!r} of {length} bytes; at most {limit} are allowed")
            if len(self._pending) < head_bytes + length:
                return
            content = bytes(self._pending[head_bytes : head_bytes + length])
            del self._pending[: head_bytes + length]
            yield kind, content

    def _take(self, kind: bytes, content: bytes) -> None:
        match kind:
            case job_frames.STDOUT:
                self.stdout.feed(content)
                self.recent.feed(content)
            case job_frames.STDERR:
                self.stderr.feed(content)
                self.recent.feed(content)
            case job_frames.VALUE:
                self._take_value(content)
            case _:
                self._take_file(content)

    def _take_value(self, content: bytes) -> None:
        if self.value is not None:
            raise FrameError("a second value")
        self.value = content.decode(errors="replace")

    def _take_file(self, content: bytes) -> None:
        untrusted_name, separator, data = content.partition(b"\0")
        name = _file_name(untrusted_name)
        if not separator or name in self._content_by_name:
            raise FrameError("a file without content, or for the second time")
        if len(data) > job_frames.MAX_FILE_BYTES:
            raise FrameError(f"a file of {len(data)} bytes")
        total = sum(map(len, self._content_by_name.values())) + len(data)
        if (
            total > job_frames.MAX_OUT_BYTES
            or len(self._content_by_name) == job_frames.MAX_FILES_OUT
        ):
            raise FrameError("more files, or longer ones, than a run may return")
        self._content_by_name[name] = data

    def _take_end(self, content: bytes) -> None:
        try:
            end = msgspec.json.decode(content, type=JobEnd)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError("the last frame is not what it should be") from error
        size_by_name = {each.name: each.size for each in end.files}
        if len(size_by_name) < len(end.files) or not all(
            map(job_frames.is_file_name, size_by_name)
        ):
            raise FrameError("the last frame lists a file twice, or with an invalid name")
        for name, data in self._content_by_name.items():
            if size_by_name.get(name) != len(data):
                raise FrameError("a file that the last frame does not list with this size")
        numbers = (end.duration_ms, end.cpu_ms, end.peak_memory_bytes, end.left_out)
        if max(*numbers, *size_by_name.values()) > _MAX_NUMBER:
            raise FrameError("the last frame has a number that is too large")
        if end.ending == "start" and (self._output_bytes or self.value is not None or end.files):
            raise FrameError("output of a run that was not started")
        self.end = end


def _file_name(untrusted_name: bytes) -> str:
    try:
        name = untrusted_name.decode()
    except UnicodeDecodeError as error:
        raise FrameError("a file name that is not UTF-8") from error
    if not job_frames.is_file_name(name):
        raise FrameError("an invalid file name")
    return name

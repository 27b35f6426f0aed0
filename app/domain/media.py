"""What people send along with their words, as far as it can be taken in: pictures to look at, voice to listen to.

Owns the kinds, the caps, and how a file is known by its first bytes: neither a name nor a declared type is believed. Knows
no platform, and decodes nothing.
"""

import base64
import math
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["picture", "voice"]

MB = 1_000_000
MAX_BYTES = {"picture": 5 * MB, "voice": 16 * MB}
"""What WhatsApp lets through. A Telegram bot may fetch 20 MB."""
MAX_PICTURES = 4
"""Of one message."""
MAX_PIXELS = 24_000_000
"""Of one picture as it came: decoded, four bytes each."""
LONGEST_SIDE = 1024
"""Of a picture as the model sees it, in pixels."""
# The models that see cut a picture into squares of 28 to 32 pixels, a token each.
_PIXELS_PER_TOKEN = 28
_MARKS_AROUND = 8

PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
VOICES = {
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/wav": "wav",
    "audio/amr": "amr",
    "audio/aac": "aac",
    "audio/3gpp": "3gp",
}
"""Kinds of sound, with the ending of a file's name by which transcribers know them."""
_HEADS = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"#!AMR", "audio/amr"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# The first two bytes of a frame: eleven ones, two bits of version, two of layer, one of protection. MP3 is layer III.
_MP3, _MP3_BITS = 0xFFE2, 0xFFE6
_ADTS, _ADTS_BITS = 0xFFF0, 0xFFF6
_FRAME_BYTES = 3
_NO_BITRATE = 0xF
_NO_RATE = 0x3


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that can be fetched: by `ref`, the platform's own name or address of it, which anyone may have forged.

    `size` in bytes and `content_type` are what the platform says, where it does; `lasting` is its name that stays the same
    where `ref` may change.
    """

    kind: Kind
    ref: str = field(repr=False)
    size: int | None = None
    content_type: str | None = None
    lasting: str | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """By what it is known to be the same file again."""
        return self.lasting or self.ref

    @property
    def too_big(self) -> bool:
        """Whether it need not be fetched to know that it is too big."""
        return self.size is not None and self.size > self.most

    @property
    def most(self) -> int:
        """The bytes of it that are taken in, at most."""
        return MAX_BYTES[self.kind]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture made fit to be shown to a model and kept: pixels alone, `body` being a whole JPEG or PNG file."""

    content_type: str
    body: bytes = field(repr=False)
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """A careful estimate of the tokens that it takes in a prompt."""
        across, down = (math.ceil(side / _PIXELS_PER_TOKEN) for side in (self.width, self.height))
        return across * down + _MARKS_AROUND

    @property
    def data_url(self) -> str:
        """The picture as an address that holds it."""
        return f"data:{self.content_type};base64,{base64.b64encode(self.body).decode()}"


def sniff(head: bytes) -> str | None:
    """Return the content type that a file's first bytes (16 are enough) tell; None for what is neither picture nor sound.

    https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern, RFC 4867 (AMR), 3GPP TS 26.244 and ISO 14496-12 (`ftyp`)
    """
    known = next((kind for mark, kind in _HEADS if head.startswith(mark)), None)
    if known:
        return known
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return "audio/3gpp" if head[8:10] == b"3g" else "audio/mp4"
    return _framed(head) if len(head) >= _FRAME_BYTES else None


def _framed(head: bytes) -> str | None:
    """Return which sound begins with a frame, without anything before it."""
    first, third = int.from_bytes(head[:2], "big"), head[2]
    if first & _ADTS_BITS == _ADTS:
        return "audio/aac"
    bitrate, rate = third >> 4, third >> 2 & _NO_RATE
    return "audio/mpeg" if first & _MP3_BITS == _MP3 and bitrate != _NO_BITRATE and rate != _NO_RATE else None


def is_kind(content_type: str | None, kind: Kind) -> bool:
    """Whether a file of this content type is what it was sent as."""
    return content_type in (PICTURES if kind == "picture" else VOICES)

"""From a file that somebody sent to a picture that may be shown to a model and kept: decoded, scaled down, written anew.

What is written is pixels and nothing else: where a picture was taken, by what and when stays behind, and so does whatever
hid behind them in a file that is two things at once. Pillow is imported with the first picture: a gateway of words alone
does without its memory.
"""

import asyncio
import struct
import warnings
from io import BytesIO
from typing import TYPE_CHECKING

from app.domain.media import LONGEST_SIDE, MAX_PIXELS, Picture, is_kind, sniff
from app.errors import AttachmentTooBigError, AttachmentUnreadableError

if TYPE_CHECKING:
    from PIL import Image

# Decoders by the kind that the first bytes tell; no other is asked, whatever else Pillow knows.
_DECODERS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}
# Few colours and sharp edges, as of a screen, are kept as they are; what a camera took is as good as JPEG.
_SHARP = frozenset({"PNG", "GIF"})
_QUALITY = 88
_DEEP = frozenset({"I", "I;16", "I;16B", "I;16L"})
_TO_EIGHT_BITS = 256
# What decoders of damaged files raise: https://pillow.readthedocs.io/en/stable/reference/Image.html#PIL.Image.open
_DAMAGED = (OSError, ValueError, SyntaxError, EOFError, LookupError, TypeError, OverflowError, struct.error)


class Eyes:
    """Makes pictures of files, one at a time: what one of them takes while it is decoded is all there is."""

    def __init__(self) -> None:
        self._one = asyncio.Semaphore(1)

    async def picture(self, raw: bytes) -> Picture:
        """Return what a file shows. Raises `AttachmentTooBigError` and `AttachmentUnreadableError`."""
        async with self._one:
            decoding = asyncio.ensure_future(asyncio.to_thread(clean, raw))
            try:
                return await asyncio.shield(decoding)
            except asyncio.CancelledError:
                await asyncio.wait([decoding])  # a thread is not stopped: until it ends, nobody else begins
                raise


def clean(raw: bytes) -> Picture:
    """Return the picture in a file, of an animation its first: upright, `LONGEST_SIDE` pixels at most, nothing else in it.

    Raises:
        AttachmentTooBigError: it has more pixels than are decoded.
        AttachmentUnreadableError: it is no picture, or damaged.
    """
    content_type = sniff(raw)
    if content_type is None or not is_kind(content_type, "picture"):
        raise AttachmentUnreadableError
    from PIL import Image  # noqa: PLC0415 - 20 MB that a gateway of words alone should not pay

    # Beyond this the library refuses by itself, also for frames that are larger than their picture.
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        with Image.open(BytesIO(raw), formats=[_DECODERS[content_type]]) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise AttachmentTooBigError
            return _written(_upright(opened), "PNG" if opened.format in _SHARP else "JPEG")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise AttachmentTooBigError from error
    except _DAMAGED as error:
        raise AttachmentUnreadableError from error


def _upright(opened: "Image.Image") -> "Image.Image":
    """Return the picture as it was meant to be looked at, scaled down."""
    from PIL import ImageOps  # noqa: PLC0415 - with the rest of it

    # A camera's picture is decoded at a half, a quarter or an eighth of its size, where that is still large enough.
    opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
    upright = _in_eight_bits(ImageOps.exif_transpose(opened))
    # Colours of a palette cannot be mixed, so they become real ones first.
    whole = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    whole.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return whole


def _in_eight_bits(picture: "Image.Image") -> "Image.Image":
    """Return greys of 16 bits, as of scanners, in 8: the library's own conversion makes all but the darkest white."""
    if picture.mode not in _DEEP:
        return picture
    grey = picture.point(lambda level: level / _TO_EIGHT_BITS).convert("L")
    grey.info.pop("transparency", None)  # a level of the 16 bits
    return grey


def _written(picture: "Image.Image", form: str) -> Picture:
    bare = picture if form == "PNG" else _opaque(picture)
    bare.info = {}  # profiles, comments and resolutions would be written along
    file = BytesIO()
    bare.save(file, form, quality=_QUALITY)
    return Picture(f"image/{form.lower()}", file.getvalue(), bare.width, bare.height)


def _opaque(picture: "Image.Image") -> "Image.Image":
    """Return a picture as on white paper; what lies under the transparent, mostly black, was not to be seen."""
    if picture.mode != "RGBA":
        return picture
    from PIL import Image  # noqa: PLC0415 - with the rest of it

    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")

"""Pictures and sounds as people send them, made on the spot."""

import io
import wave

from PIL import Image

VOICE = b"OggS\x00\x02" + bytes(22) + b"OpusHead" + bytes(200)
"""As much of a voice note as tells what it is."""


def picture(
    width: int = 800, height: int = 600, form: str = "JPEG", colour: tuple[int, int, int] = (200, 40, 30)
) -> bytes:
    """Return a picture as a phone sends it; a JPEG says where it was taken."""
    image = Image.new("RGB", (width, height), colour)
    file = io.BytesIO()
    if form != "JPEG":
        image.save(file, form)
        return file.getvalue()
    exif = image.getexif()
    exif[0x010F] = "Secret Camera"
    exif.get_ifd(0x8825).update({1: "N", 2: (37.0, 33.0, 58.0)})
    image.save(file, form, exif=exif, comment=b"hidden words")
    return file.getvalue()


def sound(seconds: float = 0.1) -> bytes:
    """Return silence as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(8000)
        made.writeframes(bytes(int(16000 * seconds)))
    return file.getvalue()


PICTURE = picture()

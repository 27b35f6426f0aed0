"""What people send along: known by its first bytes, cleaned of everything but pixels, and shown by a stated rule."""

import base64
import io
import zlib
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from app.domain.media import (
    LONGEST_SIDE,
    MAX_BYTES,
    MAX_PIXELS,
    PICTURES,
    VOICES,
    Attachment,
    Picture,
    is_kind,
    sniff,
)
from app.domain.memory import Example, MemoryLine
from app.domain.prompt import PastTurn, build, estimate_tokens, has_pictures, text_of
from app.domain.turn import Origin
from app.errors import AttachmentTooBigError, AttachmentUnreadableError
from app.services.sight import clean
from tests.support.media import PICTURE, VOICE, picture, sound

ORIENTATION = 0x0112


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PICTURE, "image/jpeg"),
        (picture(form="PNG"), "image/png"),
        (picture(form="GIF"), "image/gif"),
        (picture(form="WEBP"), "image/webp"),
        (VOICE, "audio/ogg"),
        (sound(), "audio/wav"),
        (b"ID3\x04\x00\x00\x00\x00\x00\x00", "audio/mpeg"),
        (b"\xff\xfb\x90\x64\x00\x00", "audio/mpeg"),
        (b"\xff\xf3\x44\xc4\x00\x00", "audio/mpeg"),
        (b"\xff\xf1\x50\x80\x02\x1f", "audio/aac"),
        (b"\xff\xf9\x50\x80\x02\x1f", "audio/aac"),
        (b"#!AMR\n\x3c", "audio/amr"),
        (b"\x00\x00\x00\x18ftypM4A ", "audio/mp4"),
        (b"\x00\x00\x00\x18ftypmp42", "audio/mp4"),
        (b"\x00\x00\x00\x18ftyp3gp4", "audio/3gpp"),
        (b"", None),
        (b"\xff\xd8", None),
        (b"\xff\xfe<\x00h\x00", None),  # the mark before a text in UTF-16
        (b"\xff\xff\xff\xff", None),
        (b"RIFF\x00\x00\x00\x00AVI ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
        (b"%PDF-1.7", None),
        (b"MZ\x90\x00", None),
        (b"BM6\x00", None),
        (b"II*\x00", None),
    ],
)
def test_a_file_is_known_by_its_first_bytes(head: bytes, kind: str | None) -> None:
    assert sniff(head[:16]) == kind


def test_a_kind_is_either_seen_or_heard() -> None:
    assert PICTURES.isdisjoint(VOICES)
    assert [is_kind("image/png", "picture"), is_kind("image/png", "voice"), is_kind(None, "picture")] == [
        True,
        False,
        False,
    ]
    assert is_kind("audio/ogg", "voice")


@given(st.binary(max_size=40))
def test_any_bytes_are_told_apart_without_an_error(head: bytes) -> None:
    kind = sniff(head)
    assert kind is None or kind in PICTURES or kind in VOICES


@pytest.mark.parametrize("kind", ["picture", "voice"])
def test_what_says_that_it_is_too_big_is_believed(kind: str) -> None:
    most = MAX_BYTES[kind]
    sizes = (most, most + 1, None)
    assert [Attachment(kind, "x", size).too_big for size in sizes] == [False, True, False]  # type: ignore[arg-type]


def test_nothing_of_what_was_sent_is_printed() -> None:
    assert "secret" not in repr(Attachment("picture", "https://secret"))
    assert "secret" not in repr(Picture("image/png", b"secret", 1, 1))


def opened(found: Picture) -> Image.Image:
    return Image.open(io.BytesIO(found.body))


def test_where_and_with_what_it_was_taken_stays_behind() -> None:
    with Image.open(io.BytesIO(PICTURE)) as before:
        assert before.getexif().get_ifd(0x8825)
        assert before.info["comment"] == b"hidden words"
    with opened(clean(PICTURE)) as after:
        assert dict(after.getexif()) == {}
        assert after.getexif().get_ifd(0x8825) == {}
        assert set(after.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_what_other_formats_carry_stays_behind_too(form: str) -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    more = {"dpi": (300, 300)} if form == "PNG" else {"xmp": b"<x>Secret Camera</x>"}
    Image.new("RGB", (40, 30)).save(file, form, exif=exif, icc_profile=b"Secret Camera profile", **more)
    assert b"Secret Camera" in file.getvalue()
    found = clean(file.getvalue())
    assert b"Secret" not in found.body
    with opened(found) as after:
        assert {"exif", "icc_profile", "dpi", "xmp"}.isdisjoint(after.info)


def test_it_stands_upright_and_is_no_larger_than_the_model_sees() -> None:
    image = Image.new("RGB", (3000, 1500), (255, 0, 0))
    image.paste((0, 0, 255), (0, 0, 1500, 1500))
    exif = image.getexif()
    exif[ORIENTATION] = 6  # to be turned clockwise: what is left comes to the top
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif)
    found = clean(file.getvalue())
    assert (found.width, found.height) == (512, LONGEST_SIDE)
    with opened(found) as after:
        assert after.size == (512, LONGEST_SIDE)
        top, bottom = after.getpixel((256, 100)), after.getpixel((256, 900))
        assert isinstance(top, tuple)
        assert isinstance(bottom, tuple)
        assert (top[2] > 200, bottom[0] > 200) == (True, True)


def test_a_small_one_is_not_made_larger() -> None:
    found = clean(picture(30, 20))
    assert (found.width, found.height) == (30, 20)


@pytest.mark.parametrize("form", ["GIF", "PNG"])
def test_what_has_sharp_edges_stays_sharp_and_see_through(form: str) -> None:
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.paste((250, 0, 0, 255), (0, 0, 10, 20))
    file = io.BytesIO()
    image.save(file, form)
    found = clean(file.getvalue())
    assert found.content_type == "image/png"
    with opened(found) as after:
        assert after.mode == "RGBA"
        assert after.getpixel((15, 10))[3] == 0  # type: ignore[index]


@pytest.mark.parametrize("level", [0, 7, 100, 200, 255])
def test_a_scanners_grey_of_sixteen_bits_keeps_its_levels(level: int) -> None:
    file = io.BytesIO()
    Image.new("I;16", (20, 20), level * 257).save(file, "PNG", transparency=level * 257)
    with opened(clean(file.getvalue())) as after:
        assert after.convert("RGBA").getpixel((10, 10)) == (level, level, level, 255)


def test_black_on_nothing_is_not_black_on_black() -> None:
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 10, 20))
    file = io.BytesIO()
    image.save(file, "WEBP", lossless=True)
    with opened(clean(file.getvalue())) as after:
        levels = [after.convert("L").getpixel((x, 10)) for x in (3, 17)]
    assert levels[0] < 30
    assert levels[1] > 220


def test_of_an_animation_the_first_picture_is_seen() -> None:
    frames = [Image.new("RGB", (10, 10), colour) for colour in ((250, 0, 0), (0, 250, 0))]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    with opened(clean(file.getvalue())) as after:
        assert getattr(after, "n_frames", 1) == 1
        assert after.convert("RGB").getpixel((5, 5)) == (250, 0, 0)


def bomb(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes that says how large it is."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)

    head = width.to_bytes(4) + height.to_bytes(4) + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(6000, 4001), (20_000, 20_000), (2**31 - 1, 1), (100_000, 100_000)])
def test_a_bomb_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    assert size[0] * size[1] > MAX_PIXELS
    with pytest.raises(AttachmentTooBigError):
        clean(bomb(*size))


def test_what_is_two_things_at_once_becomes_one() -> None:
    page = b"<html><script>alert(1)</script></html>"
    assert page not in clean(PICTURE + page).body
    archive = PICTURE + b"PK\x03\x04" + page
    assert b"PK\x03\x04" not in clean(archive).body


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xd8\xff",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        PICTURE[:500],
        bomb(10, 10),
        b"RIFF....WEBP",
        VOICE,
    ],
    ids=range(8),
)
def test_what_is_no_whole_picture_is_refused(raw: bytes) -> None:
    with pytest.raises(AttachmentUnreadableError):
        clean(raw)


@pytest.mark.filterwarnings("ignore::UserWarning")  # what the decoder remarks about damaged EXIF
@given(st.sampled_from([PICTURE, picture(60, 40, "PNG"), picture(60, 40, "GIF"), picture(60, 40, "WEBP")]), st.data())
def test_damage_is_refused_or_shown_and_nothing_else(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = clean(bytes(damaged))
    except (AttachmentUnreadableError, AttachmentTooBigError):
        return
    assert max(found.width, found.height) <= LONGEST_SIDE


# --------------------------------------------------------------------------------------------------------- the prompt

SHOWN = Picture("image/jpeg", b"\xff\xd8\xff", 1024, 1024)
OTHER = Picture("image/png", b"\x89PNG", 28, 28)


def test_a_picture_comes_before_its_words_in_the_servers_own_form() -> None:
    last = build("Be kind.", [], [], "what is this?", budget_tokens=8000, pictures=[SHOWN, OTHER])[-1]
    urls = [f"data:image/jpeg;base64,{base64.b64encode(SHOWN.body).decode()}"]
    urls.append(f"data:image/png;base64,{base64.b64encode(OTHER.body).decode()}")
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert last == {"role": "user", "content": [*shown, {"type": "text", "text": "what is this?"}]}
    assert text_of(last) == "what is this?"


def test_words_alone_stay_words_alone() -> None:
    messages = build("Be kind.", [], [PastTurn("a", "b")], "c", budget_tokens=8000)
    assert [m["content"] for m in messages] == ["Be kind.", "a", "b", "c"]
    assert not has_pictures(messages)


def test_marks_are_broken_beside_a_picture_too() -> None:
    last = build("", [], [], "no<|im_end|>", budget_tokens=8000, pictures=[OTHER])[-1]
    assert text_of(last) == "no<\u200b|im_end|>"


def test_a_line_stands_beneath_a_picture_without_words() -> None:
    line = MemoryLine(uuid4(), uuid4(), "preference", "Be brief", "active", 0, 0, 0, (Example("a", "b"),))
    last = build("", [line], [], "", budget_tokens=8000, pictures=[OTHER])[-1]
    assert text_of(last) == "Be brief"


def past(*shown: Picture) -> PastTurn:
    return PastTurn("look", "I see", 1, uuid4(), shown)


def test_of_earlier_pictures_the_model_sees_what_it_is_given_and_reads_of_the_others() -> None:
    messages = build("", [], [past(), PastTurn("", "Nice", 2), past(OTHER)], "and now?", budget_tokens=8000)
    contents = [m["content"] for m in messages]
    assert contents[1:4:2] == ["(1 picture, not shown again)\nlook", "(2 pictures, not shown again)"]
    assert has_pictures(messages[5:6])
    assert not has_pictures(messages[:5])


def test_pictures_count_and_one_that_does_not_fit_is_named_instead() -> None:
    room = sum(estimate_tokens(text) for text in ("", "(1 picture, not shown again)\nlook", "I see", "and now?"))
    assert SHOWN.tokens > 1000
    for budget, seen in ((room, False), (room + SHOWN.tokens, True)):
        messages = build("", [], [past(SHOWN)], "and now?", budget_tokens=budget)
        assert len(messages) == 4
        assert has_pictures(messages) is seen
    assert len(build("", [], [past(SHOWN)], "and now?", budget_tokens=room - 1)) == 2


def test_a_turn_with_media_is_not_its_persons_own_words_alone() -> None:
    assert Origin().own_words
    assert not Origin(media=True).own_words

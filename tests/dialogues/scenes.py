"""The scenes: what somebody does, in both languages, and what has to go wrong for them to be told so.

Each is played on a phone of its own by somebody whom the bot does not know yet.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import select, update

from app.store import webchat
from app.store.tables.feedback import memory_lines as lines
from app.store.tables.learning import releases
from tests.dialogues.phones import Phone, TelegramPhone, WhatsAppPhone
from tests.fakes.model import Call, Reply, faults
from tests.fakes.model.replies import EMPTY, LENGTH_CUT
from tests.support.media import PICTURE
from tests.support.releases import live_release

Play = Callable[[Phone], Awaitable[None]]
CODE = "Bakery_2468-go"
_LONG = ("A baguette needs flour, water, salt and yeast.", "바게트에는 밀가루, 물, 소금, 효모가 들어가요.")
_MORE = (
    " Let the dough *rest* overnight. Bake it hot: **240 °C**, with steam.",
    " 반죽은 하룻밤 *쉬게* 하고, **240 °C**에서 증기와 함께 뜨겁게 구우세요.",
)
_WISHES = ("one sentence", "한 문장")


@dataclass(frozen=True, slots=True)
class Scene:
    """A dialogue; `settings` are those of its gateway, `on` the platforms where it can happen, `hears`: voices are
    written down.
    """

    name: str
    play: Play
    settings: Mapping[str, object] = field(default_factory=dict)
    on: tuple[str, ...] = ("Telegram", "WhatsApp")
    hears: bool = False


def baker(call: Call) -> Reply | str:
    """Answer like a model that knows about bread, in the language of the question, short where it was taught to be."""
    if call.last_user in {"Say nothing", "아무 말도 하지 마세요"}:
        return EMPTY
    if call.last_user in {"Tell me everything", "전부 알려 주세요"}:
        return LENGTH_CUT
    told = "\n".join(str(message.get("content")) for message in call.messages)
    korean = any("가" <= sign <= "힣" for sign in call.last_user or told)
    short = any(wish in told for wish in _WISHES)
    return _LONG[korean] + ("" if short else _MORE[korean])


async def ask(phone: Phone) -> None:
    await phone.say("How do I make a baguette?", "바게트는 어떻게 만들어요?")


async def allow_memory(phone: Phone) -> None:
    await ask(phone)
    await phone.command("/learn on")


async def first_words(phone: Phone) -> None:
    await phone.say("Hi", "안녕하세요")
    await phone.press("consent_memory")
    await phone.say("How do I make a baguette?", "바게트는 어떻게 만들어요?")
    await phone.thumb("👍")


async def commands(phone: Phone) -> None:
    for words in ("/start", "/help", "/whoami", "/bogus", "/new", "/language", "/language en", "/language ko"):
        await phone.command(words)
    if isinstance(phone, TelegramPhone):
        await phone.menu()


async def a_taught_wish(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.thumb("👎")
    await phone.say("Answer in one sentence", "한 문장으로 답해 줘")
    await phone.press("button_yes_like_this")


async def a_wish_in_words(phone: Phone) -> None:
    await a_taught_wish(phone)
    await phone.say("And rye bread?", "그럼 호밀빵은요?")
    await phone.command("/memory")
    await phone.command("/undo")
    await phone.command("/undo")


async def a_wish_it_cannot_fulfil(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.say("Answer in one sentence", "한 문장으로 답해 줘", to_last=True)
    await phone.press("button_not_this")
    await phone.say("First one. Second one. Third one.", "첫째예요. 둘째예요. 셋째예요.")
    await phone.say("One. Two. Three.", "하나예요. 둘이에요. 셋이에요.")


async def a_wish_with_an_own_example(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.say(
        "Always end with a proverb about patience", "항상 인내에 관한 속담으로 마무리해 주세요", to_last=True
    )
    await phone.say("Knead, rest, bake. All in good time.", "치대고, 쉬게 하고, 구우세요. 급할수록 돌아가세요.")
    await phone.command("/memory")


async def learnt(phone: Phone) -> None:
    await a_taught_wish(phone)
    await _released(phone, "first")
    await ask(phone)
    await phone.press("button_keep")
    await phone.command("/undo")


async def learnt_and_taken_back(phone: Phone) -> None:
    await a_taught_wish(phone)
    await _released(phone, "second")
    await ask(phone)
    await phone.command("/memory")
    await phone.press("button_go_back")
    await phone.command("/memory")


async def _released(phone: Phone, number: str) -> None:
    """Do what training, gates and release do to the last wish that was taught, and begin a new conversation."""
    name = f"{number}-{phone.platform}-{phone.language}".lower()
    async with phone.road.store.begin() as tx:
        newest = select(lines.c.id, lines.c.person_id).order_by(lines.c.created_at.desc()).limit(1)
        line_id, person_id = (await tx.execute(newest)).one()
        release_id = await live_release(tx, person_id, name)
        checkpoint = select(releases.c.checkpoint_id).where(releases.c.id == release_id).scalar_subquery()
        graduated = update(lines).where(lines.c.id == line_id)
        await tx.execute(graduated.values(state="graduated", checkpoint_id=checkpoint))
    phone.model.adapters.loaded[name] = name
    await phone.command("/new")


async def what_was_wrong(phone: Phone) -> None:
    await allow_memory(phone)
    for key in ("reason_style", "reason_once", "reason_topic", "reason_fact"):
        await phone.thumb("👎")
        await phone.press(key)
        await phone.thumb("👍")
    await ask(phone)
    await phone.thumb("👍")
    await phone.thumb("👍")
    await phone.say("Thank you, nice", "고마워요", to_last=True)


async def a_wrong_fact(phone: Phone) -> None:
    await ask(phone)
    for number in range(2):
        if number and isinstance(phone, TelegramPhone):
            await phone.press("consent_shared_training")
            await phone.press("consent_human_review")
        await phone.say(
            "No, that is wrong: it takes no yeast at all", "아니요, 틀렸어요. 효모는 안 들어가요", to_last=True
        )


async def no_example(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.say("Always end with a proverb", "항상 속담으로 마무리해 주세요", to_last=True)
    await phone.press("button_never_mind")
    await phone.say("Answer in one sentence", "한 문장으로 답해 줘", to_last=True)
    await phone.command("/undo")
    await phone.press("button_yes_like_this")


async def unclear_words(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.say("Hmm, bread with holes then", "음, 구멍 뚫린 빵이요", to_last=True)
    await phone.press("button_new_question")


async def without_memory(phone: Phone) -> None:
    await ask(phone)
    await phone.say("Answer in one sentence", "한 문장으로 답해 줘", to_last=True)
    await phone.press("button_allow")
    await phone.press("button_yes_like_this")
    await phone.command("/memory")


async def about_me(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.say("I am allergic to nuts", "저는 견과류 알레르기가 있어요", to_last=True)
    await phone.press("button_undo")
    await phone.command("/memory")


async def choices(phone: Phone) -> None:
    await phone.command("/privacy")
    await phone.press("consent_human_review")
    await phone.press("consent_human_review")
    for words in ("/learn", "/learn on", "/learn off", "/memory"):
        await phone.command(words)
    await ask(phone)
    await phone.say("I am allergic to nuts", "저는 견과류 알레르기가 있어요", to_last=True)
    await phone.press("consent_memory")
    await phone.command("/memory")


async def choices_with_a_judge(phone: Phone) -> None:
    await phone.command("/privacy")


async def again_and_stop(phone: Phone) -> None:
    for words in ("/retry", "/stop"):
        await phone.command(words)
    await ask(phone)
    await phone.command("/retry")
    phone.model.next(faults.Slow(first_token_s=60.0))
    await phone.begin("How do I make a baguette?", "바게트는 어떻게 만들어요?")
    await phone.command("/stop")
    phone.model.next(faults.Slow(per_token_s=0.2))
    await phone.begin("And rye bread?", "그럼 호밀빵은요?")
    await phone.command("/stop")


async def the_model_fails(phone: Phone) -> None:
    await ask(phone)
    for fault in (faults.Refuse(500), faults.Refuse(400), faults.Garbage()):
        phone.model.next(fault)
        await ask(phone)
    await phone.command("👍")
    await phone.say("Say nothing", "아무 말도 하지 마세요")
    await phone.say("Tell me everything", "전부 알려 주세요")


async def not_words(phone: Phone) -> None:
    await phone.picture()
    await phone.picture(phone.either("What bread is this?", "이건 무슨 빵이에요?"))
    await phone.voice()
    for kind in ("audio", "video", "sticker", "document", "place", "contact", "poll", "other"):
        await phone.attachment(kind)
    if isinstance(phone, WhatsAppPhone):
        await phone.say("\u200b", "\u200b")


async def pictures(phone: Phone) -> None:
    await phone.picture(phone.either("What bread is this?", "이건 무슨 빵이에요?"))
    for damaged in (b"MZ" + bytes(2000), b"", PICTURE + bytes(5_000_000)):
        await phone.picture(data=damaged)
    await phone.attachment("sticker")
    if isinstance(phone, TelegramPhone):
        await phone.album(6)
        await phone.file(b"%PDF-1.7", "application/pdf", phone.either("Read this", "읽어 주세요"))


async def voices(phone: Phone) -> None:
    phone.ears.words = phone.either("How do I make a baguette?", "바게트는 어떻게 만들어요?")
    await phone.voice()
    await phone.say("Always end with a proverb", "항상 속담으로 마무리해 주세요", to_last=True)
    await phone.press("button_allow")
    await phone.voice()
    phone.ears.words = " "
    await phone.voice()
    phone.ears.status = 500
    await phone.voice()
    await phone.command("/privacy")
    phone.ears.status = 200


async def asked_how_it_was(phone: Phone) -> None:
    for _ in range(3):
        await ask(phone)
    await phone.command("👍")


async def too_long(phone: Phone) -> None:
    await phone.say("bread " * 20, "빵 " * 50)


async def export(phone: Phone) -> None:
    await ask(phone)
    await phone.command("/export")


async def forget(phone: Phone) -> None:
    await allow_memory(phone)
    await phone.command("/forget")
    await phone.press("forget_no")
    await phone.command("/forget")
    await phone.press("forget_chat")
    await phone.command("/forget")
    await phone.press("forget_learnt")
    await phone.command("/forget")
    await phone.press("forget_all")


async def a_human(phone: Phone) -> None:
    await ask(phone)
    if isinstance(phone, WhatsAppPhone):
        await phone.say("talk to a person", "상담원")
        await phone.say("bot", "봇")
    else:
        await phone.command("/human")
        await phone.say("Anybody there?", "누구 있나요?")
        await phone.command("/bot")


async def a_human_without_contact(phone: Phone) -> None:
    await phone.road.store_execute("update bot_identities set contact = null")
    await ask(phone)
    await phone.command("/human")


async def among_others(phone: Phone) -> None:
    assert isinstance(phone, TelegramPhone)
    await phone.open_group()
    await phone.say_in_group("How do I make a baguette?", "바게트는 어떻게 만들어요?")
    await phone.command_in_group("/memory")


async def leaving(phone: Phone) -> None:
    await ask(phone)
    phone.model.next(faults.Slow(first_token_s=60.0))
    await phone.begin("How do I make a baguette?", "바게트는 어떻게 만들어요?")
    await phone.command("stop")
    await phone.press("leave_no")
    await phone.say("Stop", "수신거부")
    await phone.say("Hello?", "여보세요?")
    await phone.say("Start", "시작")
    await phone.say("end", "end")
    await phone.press("leave_no")


async def too_much(phone: Phone) -> None:
    for _ in range(3):
        await ask(phone)


async def all_of_a_day(phone: Phone) -> None:
    for _ in range(2):
        await ask(phone)


async def a_private_bot(phone: Phone) -> None:
    digest = hashlib.sha256(f"{CODE}{phone.platform}{phone.language}".encode()).digest()
    async with phone.road.store.begin() as tx:
        await webchat.add_invitation(tx, digest, 7, "operator")
    await ask(phone)
    await phone.command("/start Nobody-knows-1")
    await phone.command(f"/start {CODE}{phone.platform}{phone.language}")


SCENES = (
    Scene("First words", first_words),
    Scene("Commands", commands),
    Scene("A wish in words", a_wish_in_words),
    Scene("A wish that is not met", a_wish_it_cannot_fulfil),
    Scene("An example of one's own", a_wish_with_an_own_example),
    Scene("Learnt, and kept", learnt),
    Scene("Learnt, and taken back", learnt_and_taken_back),
    Scene("What was wrong", what_was_wrong),
    Scene("A wrong fact", a_wrong_fact),
    Scene("No example", no_example),
    Scene("Unclear words", unclear_words),
    Scene("Without memory", without_memory),
    Scene("About me", about_me),
    Scene("Choices", choices),
    Scene("Again, and stop", again_and_stop),
    Scene("The model fails", the_model_fails),
    Scene("Not words", not_words),
    Scene("Pictures", pictures, {"model": "qwen3-vl-4b"}),
    Scene("Voices", voices, hears=True),
    Scene("How was it?", asked_how_it_was, {"ask_after_silent_replies": 2}),
    Scene("Too long", too_long, {"max_input_chars": 60}),
    Scene("Export", export),
    Scene("Forget", forget),
    Scene("A human", a_human),
    Scene("A human, without a contact", a_human_without_contact),
    Scene("Among others", among_others, on=("Telegram",)),
    Scene("With an outside judge", choices_with_a_judge, {"judge_base_url": "http://127.0.0.1:1", "judge_model": "j"}),
    Scene("Leaving and coming back", leaving, on=("WhatsApp",)),
    Scene("Too much in a minute", too_much, {"quota_replies_per_minute": 2}),
    Scene("All of a day", all_of_a_day, {"quota_tokens_per_day": 5}),
    Scene("A private bot", a_private_bot, {"private_bots": True}),
)

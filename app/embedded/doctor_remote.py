"""The doctor's questions to servers that are not ours: judge, transcriber, and the model server's adapters. Channels ask
their own.

Each answers with what is wrong as a short text, or with nothing. A token never appears in it.
"""

import wave
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import aiohttp

from app.clients.transcribe import TranscribeClient
from app.clients.vllm import VllmClient
from app.config import Settings
from app.domain.profiles import BaseProfile
from app.embedded.messages import Texts
from app.errors import TranscriptionError

TIMEOUT = aiohttp.ClientTimeout(total=30)
SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["good", "bad"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
QUESTION = "Is '2 + 2 = 4' good or bad arithmetic? Answer in JSON."
OK = 200
TRANSCRIBE_S = 60.0
RATE_HZ = 16_000


async def judge(settings: Settings, texts: Texts) -> str | None:
    """Ask the judge one question with a schema; return what is wrong with the answer."""
    key = settings.judge_api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    body = {
        "model": settings.judge_model,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 200,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
        },
    }
    url = f"{str(settings.judge_base_url).rstrip('/').removesuffix('/v1')}/v1/chat/completions"
    try:
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT, headers=headers) as session,
            session.post(url, json=body) as answer,
        ):
            if answer.status != OK:
                return f"HTTP {answer.status}"
            content = (await answer.json())["choices"][0]["message"]["content"]
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return type(error).__name__
    except (ValueError, LookupError, TypeError):
        return texts.say("doctor.judge.form")
    return None if '"verdict"' in str(content) else texts.say("doctor.judge.free")


async def transcriber(settings: Settings) -> str | None:
    """Have a second of silence written down; return what is wrong with the answer. Whatever was heard in it does not matter."""
    key = settings.transcribe_api_key.get_secret_value() if settings.transcribe_api_key else None
    named = (str(settings.transcribe_base_url), str(settings.transcribe_model))
    client = TranscribeClient(*named, api_key=key, timeout_s=TRANSCRIBE_S)
    try:
        await client.words(_silence(), "audio/wav")
    except TranscriptionError as error:
        return str(error)
    finally:
        await client.close()
    return None


def _silence() -> bytes:
    """Return a second of silence as a WAV file: 16 kHz, 16 bits, one channel."""
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE_HZ)
        sound.writeframes(bytes(2 * RATE_HZ))
    return file.getvalue()


async def lora(model: VllmClient, base: BaseProfile, model_dir: Path, scratch: Path) -> None:
    """Load a marked adapter, see that it changes the answers, unload it.

    Raises:
        MenteeError: one of the three failed.
    """
    from learner.serve.bring_up import sentinel
    from learner.serve.probe import write_marked_adapter

    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch, prefix="doctor-") as folder:
        name = f"mentee-doctor-{uuid4().hex[:8]}"
        # The server may run under another account than this command.
        Path(folder).chmod(0o755)
        await model.load_adapter(name, str(write_marked_adapter(Path(folder) / name, model_dir, seed=3)))
        try:
            await sentinel(model, name, base.key)
        finally:
            await model.unload_adapter(name)


async def isolation(model: VllmClient, base: BaseProfile, model_dir: Path, scratch: Path) -> str:
    """Run the isolation probe and return its verdict (`ok` or why not).

    Its two adapters stay loaded, as after the reconciler's own probe; that one leaves a third, `mentee-proven-…`, by whose
    absence it knows a server that was restarted, and this one does not touch it.

    Raises:
        MenteeError: the server went away, or the base's files cannot be read.
    """
    from learner.serve.probe import ProbeBase, probe_server

    served = ProbeBase(base.key, model_dir, "float32" if base.dtype == "float32" else "lower")
    return (await probe_server(model, served, scratch)).reason

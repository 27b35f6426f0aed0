"""Generation requests of the fake model: what is accepted, and vLLM's error bodies for what is not.

Owns validation and defaults. The sentences were taken from a running vLLM 0.32.
"""

import json
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from tests.fakes.model.tokens import JSON, VOCABULARY, Tokenizer, render_chat

MAX_LOGPROBS: Final = 20


class ModelError(Exception):
    """A refused request."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: JSON = {"error": {"message": message, "type": kind, "param": param, "code": status}}


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a generation request asks for, defaults filled in."""

    model: str
    chat: bool
    prompts: list[list[int]]
    limit: int
    choices: int
    stops: list[str]
    top_logprobs: int | None
    prompt_logprobs: int | None
    stream: bool
    usage: bool
    usage_always: bool
    token_ids: bool
    names_as_ids: bool


def bad(message: str, param: str | None = None, value: object = None) -> ModelError:
    """400 of the engine; the parameter and its value are repeated in the sentence."""
    shown = f" (parameter={param}{'' if value is None else f', value={value}'})" if param else ""
    return ModelError(400, message + shown, param=param)


def invalid(kind: str, where: str, text: str, given: object) -> ModelError:
    """400 of the request's schema."""
    shown = f"<dict of {len(given)} items>" if isinstance(given, dict) else given
    detail = f"{{'type': '{kind}', 'loc': '{where}', 'msg': '{text}', 'input': '{shown}'}}"
    return ModelError(400, f"1 validation error:\n  {detail}", "Bad Request", where)


def unknown_model(name: str, base: str) -> ModelError:
    """404 for a name that is neither the base nor a loaded adapter."""
    text = f"The model `{name}` does not exist. Valid aliases: {base}."
    return ModelError(404, text, "NotFoundError", "model")


async def read_json(request: web.Request) -> JSON:
    """The body as an object; raises `ModelError` as FastAPI and vLLM word it."""
    if request.content_type != "application/json":
        text = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise ModelError(400, text, "Bad Request")
    try:
        body = json.loads(await request.read())
    except ValueError as error:
        place = getattr(error, "pos", 0)
        raise invalid("json_invalid", f"body.{place}", "JSON decode error", {}) from error
    if not isinstance(body, dict):
        text = "Input should be a valid dictionary or object to extract fields from"
        raise invalid("model_attributes_type", "body", text, body)
    return body


def need(body: JSON, name: str, kind: type) -> object:
    """A required field of a type; raises the schema's error."""
    if name not in body:
        raise invalid("missing", f"body.{name}", "Field required", body)
    if not isinstance(body[name], kind):
        word = "string" if kind is str else kind.__name__
        raise invalid(f"{word}_type", f"body.{name}", f"Input should be a valid {word}", body[name])
    return body[name]


def encode(text: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of `text`; half a surrogate pair is no text to a tokenizer."""
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        message = "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
        raise ModelError(400, message)
    return tokenizer.encode(text)


def chat_prompt(body: JSON, tokenizer: Tokenizer) -> list[list[int]]:
    """Ids of the rendered chat."""
    messages = need(body, "messages", list)
    if not messages or not isinstance(messages, list):
        raise ModelError(400, "Cannot apply chat template to an empty conversation. Provide at least one message.")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or "role" not in message:
            raise invalid("missing", f"body.messages.{place}.role", "Field required", message)
    tail = "<|im_start|>assistant\n" if body.get("add_generation_prompt", True) else ""
    return [encode(render_chat(messages, tail), tokenizer)]


def completion_prompts(body: JSON, tokenizer: Tokenizer) -> list[list[int]]:
    """Ids of one or more plain prompts, given as text or as ids."""
    prompt = body.get("prompt")
    if prompt is None or prompt == "":
        raise bad("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if prompt == []:
        raise ModelError(400, "You must pass at least one prompt")
    several = prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
    prompts = [encode(item, tokenizer) if isinstance(item, str) else [int(token) for token in item] for item in several]
    outside = [token for ids in prompts for token in ids if token >= VOCABULARY]
    if outside:
        raise ModelError(400, f"Token id {outside[0]} is out of vocabulary")
    return prompts


def sampling(body: JSON, model: str, prompts: list[list[int]], window: int) -> Sampling:
    """Check and fill in what both generation routes share; `window` is the context length in tokens."""
    _check_ranges(body)
    options = body.get("stream_options") or {}
    if options and not body.get("stream"):
        raise bad("Stream options can only be defined when `stream=True`.", "stream_options")
    stops = body.get("stop") or []
    return Sampling(
        model=model,
        chat="messages" in body,
        prompts=prompts,
        limit=_limit(body, prompts, window),
        choices=_choices(body),
        stops=[stops] if isinstance(stops, str) else list(stops),
        top_logprobs=_top_logprobs(body),
        prompt_logprobs=_prompt_logprobs(body),
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        usage_always=bool(options.get("continuous_usage_stats")),
        token_ids=bool(body.get("return_token_ids")),
        names_as_ids=bool(body.get("return_tokens_as_token_ids")),
    )


def _check_ranges(body: JSON) -> None:
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if temperature is not None and temperature < 0:
        raise bad(f"temperature must be non-negative, got {float(temperature)}.", "temperature", float(temperature))
    if top_p is not None and not 0 < top_p <= 1:
        raise bad(f"top_p must be in (0, 1], got {float(top_p)}.", "top_p", float(top_p))
    if body.get("cache_salt") == "":
        raise bad("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt")
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema" and not wanted.get("json_schema"):
        text = "When response_format type is 'json_schema', the 'json_schema' field must be provided."
        raise bad(text, "response_format")


def _limit(body: JSON, prompts: list[list[int]], window: int) -> int:
    longest = max(map(len, prompts))
    if longest > window:
        text = f"This model's maximum context length is {window} tokens. However, your prompt contains at least "
        text += f"{window + 1} input tokens, which exceeds this limit even without any output tokens. "
        raise bad(text + "Please reduce the length of the input prompt.", "input_tokens", window + 1)
    default = window if "messages" in body else 16
    name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    asked = body.get(name)
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int)):
        text = "Input should be a valid integer, unable to parse string as an integer"
        raise invalid("int_parsing", f"body.{name}", text, asked)
    if asked is not None and asked < 1:
        raise bad(f"max_tokens must be at least 1, got {asked}.", "max_tokens", asked)
    if asked is not None and asked > window:
        text = f"{name}={asked} cannot be greater than max_model_len={window}. Please request fewer output tokens."
        raise bad(text, name, asked)
    return max(1, min(asked or default, window - longest))


def _choices(body: JSON) -> int:
    count = body.get("n") if body.get("n") is not None else 1
    if not isinstance(count, int) or count < 1:
        raise ModelError(400, f"n must be at least 1, got {count}.")
    if count > 1 and body.get("temperature") == 0:
        raise ModelError(400, f"n must be 1 when using greedy sampling, got {count}.")
    return count


def _top_logprobs(body: JSON) -> int | None:
    asked = body.get("logprobs")
    if "messages" in body:
        if body.get("top_logprobs") and not asked:
            raise bad("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")
        asked = (body.get("top_logprobs") or 0) if asked else None
    if isinstance(asked, int) and asked > MAX_LOGPROBS:
        text = f"Requested sample logprobs of {asked}, which is greater than max allowed: {MAX_LOGPROBS}"
        raise bad(text, "logprobs", asked)
    return asked if asked is None else int(asked)


def _prompt_logprobs(body: JSON) -> int | None:
    asked = body.get("prompt_logprobs")
    if body.get("echo"):
        raise ModelError(400, "The fake model does not speak `echo`; ask for `prompt_logprobs`.")
    if asked is not None and body.get("stream"):
        raise bad("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs")
    return asked if asked is None else int(asked)

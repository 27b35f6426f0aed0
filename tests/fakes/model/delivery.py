"""How an answer of the fake model travels: whole or as events, at a pace, through the scripted faults.

Owns the HTTP response and the moments at which faults strike; knows neither routes nor texts.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from aiohttp import web

from tests.fakes.model import faults
from tests.fakes.model.generate import Generation
from tests.fakes.model.request import ModelError, Sampling
from tests.fakes.model.tokens import JSON
from tests.fakes.model.wire import Wire


class _CutConnectionError(Exception):
    """The scripted moment at which the connection breaks."""


@dataclass(slots=True)
class Plan:
    """The faults that hit one request."""

    pace: faults.Slow
    faults: list[faults.Fault]

    def __post_init__(self) -> None:
        self.pace = next((item for item in self.faults if isinstance(item, faults.Slow)), self.pace)

    def refuse(self) -> None:
        """Raise the scripted error answer."""
        for fault in self.faults:
            if isinstance(fault, faults.Refuse):
                kind = "ServiceUnavailableError" if fault.status == 503 else "InternalServerError"
                raise ModelError(fault.status, fault.message, kind)

    def adjust(self, asked: Sampling) -> Sampling:
        """The request without what the faults leave out."""
        for fault in self.faults:
            if isinstance(fault, faults.NoLogprobs):
                asked = replace(asked, top_logprobs=None)
            if isinstance(fault, faults.NoTokenIds):
                asked = replace(asked, token_ids=False)
        return asked

    def shape(self, body: JSON) -> JSON:
        """The answer or event with the fields that the faults replace."""
        for fault in self.faults:
            if isinstance(fault, faults.Misshapen):
                for place in [body] if fault.of == "answer" else body["choices"]:
                    place[fault.field] = fault.value
        return body

    def after(self, tokens: int) -> str | None:
        """What to write instead of going on after so many tokens; raises where the connection breaks."""
        for fault in self.faults:
            if isinstance(fault, faults.Cut) and tokens >= fault.after_tokens:
                raise _CutConnectionError
            if isinstance(fault, faults.Garbage) and tokens >= 1:
                return f"data: {fault.body}\n\n"
            if isinstance(fault, faults.BrokenStream) and tokens >= fault.after_tokens:
                error = ModelError(500, fault.message, "InternalServerError")
                return f"data: {json.dumps(error.body)}\n\ndata: [DONE]\n\n"
        return None


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def send(request: web.Request, wire: Wire, made: list[Generation], plan: Plan) -> web.Response:
    """One JSON body after the time that its tokens take."""
    await asyncio.sleep(plan.pace.per_token_s * max(len(item.tokens) for item in made))
    for fault in plan.faults:
        if isinstance(fault, faults.Cut):
            _cut(request)
        if isinstance(fault, faults.Garbage):
            return web.Response(text=fault.body, content_type="application/json")
        if isinstance(fault, faults.BrokenStream):
            raise ModelError(500, fault.message, "InternalServerError")
    return web.json_response(plan.shape(wire.answer(made)))


async def stream(request: web.Request, wire: Wire, made: list[Generation], plan: Plan) -> web.StreamResponse:
    """Server-sent events, one a token, closed by [DONE]."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    try:
        async for event in _events(wire, made, plan):
            await response.write(event.encode())
    except _CutConnectionError:
        _cut(request)
        return response
    await response.write_eof()
    return response


def _event(chunk: JSON) -> str:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n"


async def _events(wire: Wire, made: list[Generation], plan: Plan) -> AsyncIterator[str]:
    if wire.chat:
        for index in range(len(made)):
            yield _event(plan.shape(wire.first_chunk(index)))
    sent = 0
    for index, generation in enumerate(made):
        for at in range(len(generation.tokens)):
            instead = plan.after(sent)
            if instead is not None:
                yield instead
                return
            sent += 1
            yield _event(plan.shape(wire.chunk(index, generation, at, sent)))
            await asyncio.sleep(plan.pace.per_token_s)
    if wire.sampling.usage:
        yield _event(wire.usage_chunk(made))
    yield "data: [DONE]\n\n"

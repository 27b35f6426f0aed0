"""vLLM's JSON for answers and stream events: which field is where, and which are null.

Owns shapes only. Field order and nulls follow a running vLLM 0.32, since clients depend on both by accident.
"""

import secrets
import time
from itertools import pairwise
from typing import Final

from tests.fakes.model.generate import Generation
from tests.fakes.model.request import Sampling
from tests.fakes.model.tokens import JSON, Tokenizer, alternatives, logprob

FINGERPRINT: Final = "vllm-0.32.0-fake"


class Wire:
    """Builds the objects of one request, of a chat or of a plain completion."""

    def __init__(self, sampling: Sampling, tokenizer: Tokenizer) -> None:
        self.sampling = sampling
        self.tokenizer = tokenizer
        self.chat = sampling.chat
        chat_kind = "chat.completion.chunk" if sampling.stream else "chat.completion"
        self.head: JSON = {
            "id": f"{'chatcmpl' if self.chat else 'cmpl'}-{secrets.token_hex(8)}",
            "object": chat_kind if self.chat else "text_completion",
            "created": int(time.time()),
            "model": sampling.model,
        }

    def usage(self, generations: list[Generation], finished: int | None = None) -> JSON:
        """Token counts; `finished` replaces the count of generated tokens while a stream runs."""
        prompt = sum(map(len, self.sampling.prompts))
        made = sum(len(item.tokens) for item in generations) if finished is None else finished
        return {"prompt_tokens": prompt, "total_tokens": prompt + made, "completion_tokens": made}

    def answer(self, generations: list[Generation]) -> JSON:
        """The body of an answer that is not streamed."""
        choices = [self._choice(index, item) for index, item in enumerate(generations)]
        body: JSON = {**self.head, "choices": choices, "service_tier": None, "system_fingerprint": FINGERPRINT}
        body["usage"] = self.usage(generations) | {"prompt_tokens_details": None, "completion_tokens_details": None}
        if self.chat:
            body["prompt_logprobs"] = self.prompt_logprobs(0)
            body["prompt_token_ids"] = self.sampling.prompts[0] if self.sampling.token_ids else None
            body["prompt_text"] = None
        return {**body, "kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}

    def _choice(self, index: int, made: Generation) -> JSON:
        if self.chat:
            content: JSON = {"message": _message(made.text)}
        else:
            content = {"text": made.text}
        choice: JSON = {"index": index, **content, "logprobs": self.logprobs(index, made, 0, len(made.tokens))}
        choice |= {"finish_reason": made.finish_reason, "stop_reason": made.stop_reason}
        choice["token_ids"] = made.tokens if self.sampling.token_ids else None
        if not self.chat:
            place = index // self.sampling.choices
            choice["prompt_logprobs"] = self.prompt_logprobs(place)
            choice["prompt_token_ids"] = self.sampling.prompts[place] if self.sampling.token_ids else None
        return {**choice, "routed_experts": None}

    def first_chunk(self, index: int) -> JSON:
        """The event that opens a choice of a chat: the role, and the prompt's ids where asked."""
        delta: JSON = {"role": "assistant", "content": ""}
        choice: JSON = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk: JSON = {**self.head, "choices": [choice]}
        if self.sampling.usage_always:
            chunk["usage"] = self.usage([], 0) | {"completion_tokens_details": None}
        chunk["prompt_token_ids"] = self.sampling.prompts[0] if self.sampling.token_ids else None
        return {**chunk, "prompt_text": None}

    def chunk(self, index: int, made: Generation, at: int, sent: int) -> JSON:
        """The event of token `at`; `sent` counts the tokens of all choices so far."""
        last = at == len(made.tokens) - 1
        choice: JSON = {"index": index}
        choice |= {"delta": {"content": made.pieces[at]}} if self.chat else {"text": made.pieces[at]}
        choice["logprobs"] = self.logprobs(index, made, at, at + 1)
        choice["finish_reason"] = made.finish_reason if last else None
        if last or not self.chat:
            choice["stop_reason"] = made.stop_reason if last else None
        if not self.chat:
            prompt = self.sampling.prompts[index // self.sampling.choices]
            choice["prompt_token_ids"] = prompt if self.sampling.token_ids and at == 0 else None
        choice["token_ids"] = [made.tokens[at]] if self.sampling.token_ids else None
        chunk: JSON = {**self.head, "choices": [choice]}
        if self.sampling.usage_always:
            chunk["usage"] = self.usage([], sent) | {"completion_tokens_details": None}
        if last and not self.sampling.usage:
            chunk["system_fingerprint"] = FINGERPRINT
        return chunk

    def usage_chunk(self, generations: list[Generation]) -> JSON:
        """The event after the last token where usage was asked for."""
        return {**self.head, "choices": [], "usage": self.usage(generations), "system_fingerprint": FINGERPRINT}

    def logprobs(self, index: int, made: Generation, start: int, end: int) -> JSON | None:
        """Log probabilities of tokens `start` to `end` of a choice; None where they were not asked for."""
        if self.sampling.top_logprobs is None:
            return None
        prompt = self.sampling.prompts[index // self.sampling.choices]
        before = [prompt[-1] if prompt else 0, *made.tokens][start:end]
        pairs = list(zip(before, made.tokens[start:end], strict=True))
        if self.chat:
            return {"content": [self._chat_logprob(*pair) for pair in pairs]}
        return self._text_logprobs(pairs, sum(map(len, made.pieces[:start])))

    def _name(self, token: int) -> str:
        return f"token_id:{token}" if self.sampling.names_as_ids else self.tokenizer.word(token)

    def _chat_logprob(self, before: int, token: int) -> JSON:
        count = self.sampling.top_logprobs or 0
        top = [self._plain(other, value) for other, value in alternatives(self.sampling.model, before, token, count)]
        return {**self._plain(token, logprob(self.sampling.model, before, token)), "top_logprobs": top}

    def _plain(self, token: int, value: float) -> JSON:
        data = list(self.tokenizer.word(token).encode("utf-8", "replace"))
        return {"token": self._name(token), "logprob": value, "bytes": data}

    def _text_logprobs(self, pairs: list[tuple[int, int]], offset: int) -> JSON:
        offsets, model, count = [], self.sampling.model, max(1, self.sampling.top_logprobs or 0)
        for _, token in pairs:
            offsets.append(offset)
            offset += len(self.tokenizer.word(token))
        return {
            "text_offset": offsets,
            "token_logprobs": [logprob(model, *pair) for pair in pairs],
            "tokens": [self._name(token) for _, token in pairs],
            "top_logprobs": [
                {self._name(other): value for other, value in alternatives(model, *pair, count)} for pair in pairs
            ],
        }

    def prompt_logprobs(self, place: int) -> list[JSON | None] | None:
        """One object per prompt token, None for the first, which nothing precedes."""
        if self.sampling.prompt_logprobs is None:
            return None
        prompt, model = self.sampling.prompts[place], self.sampling.model
        count = max(1, self.sampling.prompt_logprobs)
        return [None, *(self._ranked(model, *pair, count) for pair in pairwise(prompt))]

    def _ranked(self, model: str, before: int, token: int, count: int) -> JSON:
        ranked = enumerate(alternatives(model, before, token, count), start=1)
        return {
            str(other): {"logprob": value, "rank": rank, "decoded_token": self.tokenizer.word(other)}
            for rank, (other, value) in ranked
        }


def _message(text: str) -> JSON:
    nulls = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    return {"role": "assistant", "content": text, **nulls}

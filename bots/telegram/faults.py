"""What the Bot API's refusals mean for a delivery: later, never, perhaps already done, somewhere else.

sending                          editing (the same edit again does no harm)
429                   DeliveryRetryError(retry_after)  the same
no connection         DeliveryRetryError               DeliveryRetryError
answer lost, 5xx      DeliveryUncertainError           DeliveryRetryError
403, chat not found   RecipientGoneError               the same
group became super…   ChatMovedError(new_chat_id)      the same
not modified          -                                no error at all
message not found     -                                MessageGoneError
other 400             DeliveryError                    DeliveryError
token refused         TokenRefusedError, a retry       the same: nothing is lost until there is another token
"""

from datetime import timedelta
from typing import Literal

from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, NetworkError, RetryAfter, TelegramError

from app.errors import (
    ChatMovedError,
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    MessageGoneError,
    RecipientGoneError,
)
from bots.telegram.http import UNSENT

Action = Literal["send", "edit"]
_GONE = ("chat not found", "user is deactivated", "peer_id_invalid", "bot was kicked", "user not found")
_THREAD = ("message thread not found", "topic_deleted", "topic_closed", "topic_id_invalid")
_UNEDITABLE = ("message to edit not found", "message can't be edited", "message_id_invalid")
_RETRY_NETWORK_S = 2.0
_TOKEN_S = 60.0


class TokenRefusedError(DeliveryRetryError):
    """Telegram refuses TELEGRAM_BOT_TOKEN: check it with @BotFather."""


def meaning(error: TelegramError, action: Action) -> DeliveryError:
    """Return what `error` means for `action`. The words of network errors are left out: they can hold addresses."""
    match error:
        case RetryAfter():
            return DeliveryRetryError("Telegram asks to wait", wait_of(error))
        case ChatMigrated():
            return ChatMovedError(str(error.new_chat_id))
        case Forbidden():
            return RecipientGoneError()
        case InvalidToken():
            return TokenRefusedError(retry_after_s=_TOKEN_S)
        case BadRequest():
            return _refusal(error, action)
        case NetworkError():
            return _network(error, action)
        case _:
            return DeliveryError("Telegram refuses it")


def _refusal(error: BadRequest, action: Action) -> DeliveryError:
    if _says(error, _GONE):
        return RecipientGoneError()
    if action == "edit" and _says(error, _UNEDITABLE):
        return MessageGoneError()
    return DeliveryError(f"Telegram refuses it: {error.message}")


def wait_of(error: RetryAfter) -> float:
    """Return the seconds to wait; the library gives a number or a timedelta, by its setting."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def is_markup_fault(error: BadRequest) -> bool:
    """Whether the formats are refused, so that the plain text may pass."""
    return _says(error, ("parse entities", "entity", "entities"))


def is_thread_fault(error: BadRequest) -> bool:
    """Whether the topic is gone or closed, so that the chat itself may take the message."""
    return _says(error, _THREAD)


def is_unmodified(error: BadRequest) -> bool:
    """Whether the message already shows this."""
    return _says(error, ("message is not modified",))


def _says(error: BadRequest, phrases: tuple[str, ...]) -> bool:
    message = error.message.lower()
    return any(phrase in message for phrase in phrases)


def _network(error: NetworkError, action: Action) -> DeliveryError:
    """Tell a request that never left from one whose answer was lost."""
    if isinstance(error.__cause__, UNSENT) or action == "edit":
        return DeliveryRetryError("Telegram cannot be reached", _RETRY_NETWORK_S)
    return DeliveryUncertainError()

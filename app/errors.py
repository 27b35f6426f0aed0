"""The exception tree. A class's docstring is its default message; `status` is its HTTP answer and
`retryable` says whether the same call may succeed later. Knows nothing of the layers that raise it.
"""

from typing import ClassVar
from uuid import UUID


class MenteeError(Exception):
    """Something went wrong in Mentee."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(MenteeError):
    """A setting is missing or contradicts another; the message says what to set."""


class NotFoundError(MenteeError):
    """There is no such thing, or it is not yours: both look the same."""

    status = 404


class ForbiddenError(MenteeError):
    """You may not do this."""

    status = 403


class UnauthenticatedError(MenteeError):
    """Please sign in first."""

    status = 401


class InvalidInputError(MenteeError):
    """The input cannot be used; the message names what is wrong with it."""

    status = 400


class ConflictError(MenteeError):
    """Somebody else changed this first."""

    status = 409


class PausedError(MenteeError):
    """This step is paused by an operator."""

    status = 503
    retryable = True


class StoreUnavailableError(MenteeError):
    """The database cannot be reached."""

    status = 503
    retryable = True


class StoreFullError(StoreUnavailableError):
    """The database's disk is full, so nothing new can be kept; free some space, and everything goes on by itself."""


class ModelError(MenteeError):
    """The model server gave no usable answer."""

    status = 502
    retryable = True


class ModelUnavailableError(ModelError):
    """The model server cannot be reached or did not answer in time."""

    status = 503


class ModelAwayError(ModelUnavailableError):
    """Nothing takes connections where the model server should be; it may still be starting."""


class ModelBadAnswerError(ModelError):
    """The model server answered, but not in the form its API promises."""


class ModelRequestError(ModelError):
    """The model server refused the request as wrong; sending it again will not help."""

    retryable = False


class AdapterUnknownError(ModelError):
    """The model server does not have this adapter loaded."""

    status = 404


class JudgeUnavailableError(MenteeError):
    """The judge gave no verdict; the item stays unscored."""

    status = 503
    retryable = True


class NotWholeError(MenteeError):
    """The rest of what was sent together is still on its way."""

    retryable = True


class ReceiptAwaitedError(MenteeError):
    """What a platform says of a message waits until our own receipt of that message is stored."""

    retryable = True


class ReplyUnfinishedError(MenteeError):
    """What was said of a reply waits until the reply is written."""

    retryable = True

    def __init__(self, turn_id: UUID) -> None:
        super().__init__()
        self.turn_id = turn_id


class ChannelAwayError(MenteeError):
    """The channel is not connected yet; what came in through it waits."""

    status = 503
    retryable = True


class AttachmentError(MenteeError):
    """What was sent along cannot be taken in."""

    status = 422


class AttachmentTooBigError(AttachmentError):
    """What was sent along is bigger than is taken in."""


class AttachmentGoneError(AttachmentError):
    """The platform does not have it any more."""


class AttachmentRefusedError(AttachmentError):
    """It lies where nothing is fetched from, or is not given to this account."""


class AttachmentUnreadableError(AttachmentError):
    """It is not what it was sent as, or damaged."""


class AttachmentAwayError(AttachmentError):
    """The platform that has it cannot be reached, or is too slow."""

    status = 503
    retryable = True


class TranscriptionError(MenteeError):
    """The transcription endpoint is away, refuses the recording, or answers in another form."""

    status = 502


class DeliveryError(MenteeError):
    """The platform did not take the message; `code` is its own reason, where it gave one."""

    retryable = False

    def __init__(self, message: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class DeliveryRetryError(DeliveryError):
    """The platform asks to try again later."""

    retryable = True

    def __init__(self, message: str | None = None, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeliveryUncertainError(DeliveryError):
    """The platform may have taken the message, but its answer was lost; sending again may double it."""


class WindowClosedError(DeliveryError):
    """The platform takes nothing freely written in this chat until its person writes again."""


class RecipientGoneError(DeliveryError):
    """The person blocked the bot or the chat is gone."""


class MessageGoneError(DeliveryError):
    """The message to be changed is not there any more: somebody deleted it, or its chat moved and left it behind."""


class ChatMovedError(DeliveryError):
    """The chat has another id on its platform now."""

    def __init__(self, new_chat_id: str) -> None:
        super().__init__()
        self.new_chat_id = new_chat_id


class ArtifactError(MenteeError):
    """An adapter directory is truncated, foreign, of the wrong base or rank, or badly named."""


class StorageFullError(MenteeError):
    """The disk is full; free some space, and what waits for it goes on by itself."""

    status = 507
    retryable = True


class GateError(MenteeError):
    """A gate could not be measured, so the candidate is not served."""


class GateDelayedError(GateError):
    """A gate could not be measured just now; the candidate waits and is measured again."""

    retryable = True


class TrainingStoppedError(MenteeError):
    """A training run stopped before a checkpoint was written; the message says why."""


class PartError(MenteeError):
    """An embedded part could not be started; the message says what to do."""

"""What a chat shows and which votes count, told in a page: the reference that the whole road is held against.

Knows no platform and no database. Talks are apart: nothing that happens in one changes another.
"""

from dataclasses import dataclass, field

STOPPED = "Stopped."


@dataclass
class Reply:
    """One reply: whom it answers, to which of their messages and words, and the vote in force with how it was given."""

    asker: str
    message: object
    words: str
    shown: str
    state: str = "done"
    first: "Reply | None" = None
    """The first reply to the same message; None where this is the first."""
    vote: int = 0
    source: str | None = None
    changes: int = 0
    kept: bool = True
    """Whether its words are still kept: its conversation goes on."""


@dataclass
class Talk:
    """One chat, private or a group."""

    private: bool
    replies: list[Reply] = field(default_factory=list)
    corrected: Reply | None = None
    """The reply that a 👎 asked about: the next words are its correction."""
    corrections: int = 0

    @property
    def last(self) -> Reply | None:
        """The newest reply, whatever it answers."""
        return self.replies[-1] if self.replies else None

    def say(self, asker: str, message: object, words: str) -> None:
        """A message is answered once; in private the words after a 👎 are its correction and get no reply."""
        if self.corrected:
            self.corrected, self.corrections = None, self.corrections + 1
            return
        self.replies.append(Reply(asker, message, words, f"You said: {words}"))

    def say_and_stop(self, asker: str, message: object, words: str) -> None:
        """A reply that is stopped before its first word says so."""
        self.replies.append(Reply(asker, message, words, STOPPED, "stopped"))

    def edit(self, message: object, words: str) -> None:
        """An edit of the newest message is answered beside its first reply; others change nothing, nor any in a group."""
        newest = self.last
        if self.private and newest and newest.message is message and newest.words != words:
            self._again(newest, words)

    def retry(self, asker: str) -> None:
        """The newest message is answered once more, for who said it."""
        newest = self.last
        if newest and newest.asker == asker:
            self._again(newest, newest.words)

    def new(self) -> None:
        """A new conversation: nothing of the old one is asked about or kept."""
        self.corrected = None
        for reply in self.replies:
            reply.kept = False

    def vote(self, reply: Reply, voter: str, value: int, source: str) -> None:
        """A vote is a state: set, switched, taken back; only the asker's counts."""
        if voter != reply.asker or value == reply.vote:
            return
        reply.vote, reply.source, reply.changes = value, source, reply.changes + 1
        if self.private and value < 0:
            self.corrected = reply
        elif self.corrected is reply:
            self.corrected = None

    def react(self, reply: Reply, voter: str, value: int) -> None:
        """A reaction is a vote; one without a thumb takes back what was given by a reaction, never by a button."""
        if value or (reply.vote and reply.source == "reaction"):
            self.vote(reply, voter, value, "reaction")

    def _again(self, before: Reply, words: str) -> None:
        first = before.first or before
        self.replies.append(Reply(before.asker, before.message, words, f"You said: {words}", first=first))

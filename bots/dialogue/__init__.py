"""The dialogue, the same for every channel: what a message, a button, a reaction or a command leads to.

Knows no platform and no SQL; a channel states what it can do and the dialogue adapts.
"""

from bots.dialogue.dialogue import Dialogue
from bots.dialogue.parts import Parts

__all__ = ["Dialogue", "Parts"]

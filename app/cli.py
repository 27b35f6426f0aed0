"""The `mentee` command: reads its arguments, loads what the subcommand needs, and turns errors into one sentence.

Subcommands load lazily: `mentee --help` imports neither the store nor a web framework.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

from app import config
from app.errors import MenteeError

INTERRUPTED = 130
DELEGATED = frozenset({"demo", "bench"})
Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit code.

    This is the last-resort handler of the command line: a MenteeError becomes its sentence and exit code 1.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    # What reads its own arguments gets them untouched: argparse would take a leading option for one of ours.
    own = words[1:] if words[:1] and words[0] in DELEGATED else []
    arguments = parser().parse_args(words[: len(words) - len(own)])
    arguments.rest = own
    command: Command = arguments.command
    try:
        return command(arguments)
    except MenteeError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """Return the parser of every subcommand."""
    top = argparse.ArgumentParser(prog="mentee", description="A chat bot that learns from the people who talk to it.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "run", _run, "start everything and stay until Ctrl-C")
    _add(commands, "doctor", _doctor, "check every configured part and say what to do")
    _add(commands, "demo", _demo, "show that it learns: four cells on held-out prompts")
    _add(commands, "bench", _bench, "measure; `mentee bench road` prints the ratios of one run")
    invite = _add(commands, "invite", _invite, "make a code that lets one newcomer in, on every channel")
    invite.add_argument("--days", type=int, default=7, help="how long it works (default: 7)")
    admin = _add(commands, "admin", _admin, "make a one-time link to the panel")
    admin.add_argument("action", choices=("reset", "first"), help="reset: always; first: only where there is no admin")
    admin.add_argument("--address", help="address of the panel (default: PUBLIC_URL or this machine)")
    whatsapp = _add(commands, "whatsapp", _whatsapp, "set up WhatsApp at Twilio: templates, addresses, what is missing")
    whatsapp.add_argument("action", choices=("setup",), help="setup: make what is missing; what stands stays")
    return top


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, command: Command, summary: str
) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=summary, description=summary, add_help=name not in DELEGATED)
    added.set_defaults(command=command)
    return added


def _run(_: argparse.Namespace) -> int:
    from app.embedded.messages import Texts, language_of
    from app.embedded.run import run

    settings = config.load()
    run(settings, Texts(language_of(settings)))
    return 0


def _doctor(_: argparse.Namespace) -> int:
    from app.embedded.doctor import doctor

    return doctor()


def _demo(arguments: argparse.Namespace) -> int:
    return _delegate("app.demo.cli", arguments.rest)


def _bench(arguments: argparse.Namespace) -> int:
    return _delegate("app.bench.cli", arguments.rest)


def _delegate(module: str, rest: Sequence[str]) -> int:
    """Hand the remaining words to a module that reads them itself."""
    return int(importlib.import_module(module).main(rest))


def _admin(arguments: argparse.Namespace) -> int:
    from app.embedded.admin_link import make
    from app.embedded.messages import Texts, language_of, spoken
    from app.embedded.run import address_of

    settings = config.load()
    with spoken(Texts(language_of(settings))):
        link = make(settings, arguments.action, arguments.address or settings.public_url or address_of(settings))
    if link:
        print(link)
    return 0


def _whatsapp(_: argparse.Namespace) -> int:
    from app.embedded.lines import Lines
    from app.embedded.messages import Texts, language_of, spoken
    from app.embedded.whatsapp_setup import set_up
    from bots.whatsapp.settings import WhatsAppSettings

    settings = config.load()
    texts = Texts(language_of(settings))
    with spoken(texts):
        return set_up(settings, config.read(WhatsAppSettings), Lines(texts))


def _invite(arguments: argparse.Namespace) -> int:
    from app.embedded.invite import make
    from app.embedded.messages import Texts, language_of, spoken

    settings = config.load()
    with spoken(Texts(language_of(settings))):
        print(make(settings, arguments.days))
    return 0


if __name__ == "__main__":
    sys.exit(main())

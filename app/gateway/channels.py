"""Which channels there are: the three that come with the house, and whatever installed packages bring by entry point.

    [project.entry-points."mentee.channels"]
    parrot = "parrot:PACKAGE"

The house's own are listed here and not in its metadata: metadata is written when something is installed, and a checkout
that was updated since would be without its web chat. They are loaded in the same way as all others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from app import config
from app.config import ChannelSettings, Settings
from app.domain.consent import DataUse
from app.errors import ConfigError
from bots.package import ChannelPackage

GROUP = "mentee.channels"
BUILT_IN = tuple(EntryPoint(name, f"bots.{name}.package:PACKAGE", GROUP) for name in ("web", "telegram", "whatsapp"))
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# What the settings of different packages are is known to themselves only.
AnyPackage = ChannelPackage[Any]


@dataclass(frozen=True, slots=True)
class Installed:
    """A channel package with what was set for it."""

    package: AnyPackage
    settings: ChannelSettings


def find() -> Sequence[AnyPackage]:
    """Return the packages of the house and all others, in the order of their names.

    Raises:
        ConfigError: one cannot be imported, is no channel package, or claims a name or a setting that is taken.
    """
    others = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    packages: dict[str, AnyPackage] = {}
    for point in (*BUILT_IN, *others):
        package = _load(point)
        if package.name in packages:
            raise ConfigError(f"{_named(point)}: there is another channel package named {package.name}; uninstall one")
        packages[package.name] = package
    _settings_apart(packages.values())
    return tuple(packages.values())


def read(packages: Iterable[AnyPackage], house: Settings) -> Sequence[Installed]:
    """Return the packages with their settings, from the environment and `.env`.

    Raises:
        ConfigError: a setting is missing, malformed or contradicts another.
    """
    return checked([Installed(package, config.read(package.settings)) for package in packages], house)


def checked(channels: Sequence[Installed], house: Settings) -> Sequence[Installed]:
    """Return the channels as they are once their settings and the house's fit together.

    Raises:
        ConfigError: they do not; the sentence says what to set.
    """
    for channel in channels:
        if lacking := channel.settings.lacking(house):
            raise ConfigError(lacking)
    _known_people(house, {channel.package.name: channel.package for channel in channels})
    return channels


def data_use(channels: Iterable[Installed]) -> Mapping[str, DataUse]:
    """Return what the things said on each channel may serve."""
    return {channel.package.name: channel.package.data_use for channel in channels}


def telling_arrival(channels: Iterable[Installed]) -> frozenset[str]:
    """Return the names of the channels that tell how far a message came."""
    return frozenset(channel.package.name for channel in channels if channel.package.tells_arrival)


def _load(point: EntryPoint) -> AnyPackage:
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # somebody else's module, which may fail in any way
        raise ConfigError(f"{_named(point)} cannot be imported ({type(error).__name__}: {error})") from error
    if not isinstance(loaded, ChannelPackage) or not _NAME.fullmatch(loaded.name):
        raise ConfigError(f"{_named(point)} is no ChannelPackage with a name in small letters")
    if not (isinstance(loaded.settings, type) and issubclass(loaded.settings, ChannelSettings)):
        raise ConfigError(f"{_named(point)}: its settings are no ChannelSettings")
    return loaded


def _named(point: EntryPoint) -> str:
    distribution = f" of {point.dist.name}" if point.dist else ""
    return f"channel package {point.name} ({point.value}{distribution})"


def _settings_apart(packages: Iterable[AnyPackage]) -> None:
    """See that no variable of the environment means two things."""
    taken = dict.fromkeys(_variables(Settings), "the house")
    for package in packages:
        for variable in _variables(package.settings):
            if variable in taken:
                raise ConfigError(
                    f"channel package {package.name}: {variable} is a setting of {taken[variable]} already"
                )
            taken[variable] = package.name


def _variables(kind: type[Settings | ChannelSettings]) -> Sequence[str]:
    prefix = str(kind.model_config.get("env_prefix") or "")
    return [f"{prefix}{name}".upper() for name in kind.model_fields]


def _known_people(house: Settings, packages: Mapping[str, AnyPackage]) -> None:
    for listed in sorted(house.allowed):
        channel, _, name = listed.partition(":")
        rule = packages[channel].identity if channel in packages else None
        if rule is None:
            examples = [package.identity.example for package in packages.values() if package.identity]
            raise ConfigError(f"ALLOWED_PEOPLE: nobody is named by {channel}:, but as in {', '.join(examples)}")
        if not rule.listed.fullmatch(name):
            raise ConfigError(f"ALLOWED_PEOPLE: name people of {channel} as in {rule.example}")

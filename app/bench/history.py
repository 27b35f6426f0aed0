"""People who have talked before: so many private chats of a bot, each with the same past, written straight into the tables.

Each asked `TURNS` times, in one conversation that is over, and voted once. What is written is what the road leaves behind.
"""

import asyncpg

TURNS = 5
FIRST_PERSON = 5_000_000_001
TIMEOUT_S = 120.0

_PEOPLE = """
    with made as (
        insert into people (id, language, asked_consent, last_seen_at)
        select gen_random_uuid(), 'en', true, now() - interval '1 day' from generate_series(1, $2)
        returning id
    ),
    numbered as (select id, row_number() over () - 1 + $3 as address from made),
    known as (
        insert into accounts (person_id, bot_id, external_id) select id, $1, address::text from numbered returning 1
    )
    insert into chats (bot_id, external_id, thread, kind, person_id) select $1, address::text, '', 'private', id from numbered
"""
_SESSIONS = """
    insert into sessions (chat_id, person_id, number, started_at, last_at, ended_at)
    select id, person_id, 1, day, day, day from chats, (select now() - interval '1 day' as day) as past where bot_id = $1
"""
_INBOX = """
    insert into inbox (bot_id, lane, state, attempts, finished_at)
    select c.bot_id, c.bot_id::text || ':' || c.external_id || ':', 'done', 1, now() - interval '1 day'
    from generate_series(1, $2) as n, chats c where c.bot_id = $1
"""
_KEYS = """
    insert into dedupe_keys (key)
    select sha256((c.id::text || ':' || n || ':' || part)::bytea)
    from generate_series(1, $2) as n, generate_series(1, 2) as part, chats c where c.bot_id = $1
"""
_ASKED = """
    insert into turns (session_id, chat_id, person_id, state, user_text, user_message_id, reply_text, base_id, prompt_version,
                       finish_reason, finished_at, created_at, flags)
    select s.id, s.chat_id, s.person_id, 'done', 'What about number ' || n || '?', n::text, 'You said: What about number ' || n || '?',
           'bench', 'bench', 'stop', s.last_at, s.last_at, '{"consents": {}}'
    from generate_series(1, $2) as n, sessions s join chats c on c.id = s.chat_id where c.bot_id = $1
"""
_SHOWN = """
    insert into outbox (chat_id, turn_id, kind, content, version, sent_version, state, provider_message_id, sent_at)
    select t.chat_id, t.id, 'reply', jsonb_build_object('text', t.reply_text), 2, 2, 'sent', '-' || t.number, t.finished_at
    from turns t join chats c on c.id = t.chat_id where c.bot_id = $1
"""
_VOTED = """
    insert into votes (turn_id, person_id, value, source)
    select distinct on (t.chat_id) t.id, t.person_id, 1, 'button' from turns t join chats c on c.id = t.chat_id where c.bot_id = $1
"""


async def write(url: str, channel: str, people: int) -> list[int]:
    """Write `people` people with a past to the bot of `channel`; return their numbers at the platform."""
    connection = await asyncpg.connect(url, timeout=10, command_timeout=TIMEOUT_S)
    try:
        async with connection.transaction():
            bot = await connection.fetchval("select id from bots where channel = $1", channel)
            await connection.execute(_PEOPLE, bot, people, FIRST_PERSON)
            await connection.execute(_SESSIONS, bot)
            for statement in (_INBOX, _KEYS, _ASKED):
                await connection.execute(statement, bot, TURNS)
            await connection.execute(_SHOWN, bot)
            await connection.execute(_VOTED, bot)
        # What the server knows of its tables, it would have learnt while they grew.
        await connection.execute("vacuum analyze")
    finally:
        await connection.close()
    return list(range(FIRST_PERSON, FIRST_PERSON + people))

"""Pure rules of Mentee: no aiohttp, telegram, twilio, celery, sqlalchemy or torch in here."""

"""`python -m app.bench.unpaced`: the gateway, but for the pace that Telegram asks of every bot.

That pace (about thirty messages a second of one bot) is a rule of the platform and not a cost of ours: kept, it would be
all that a bench of turns per second measures.
"""

from app.main import main
from bots.telegram import pace

if __name__ == "__main__":
    pace.PRIVATE_GAP_S = pace.GROUP_GAP_S = 0.0
    pace.ALL_PER_S = 1_000_000
    main()

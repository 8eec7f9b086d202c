"""The process that serves the model: `python -m agent.models.local.server WEIGHTS ALIAS`.

It listens on a free port of this machine, prints its address, and ends when its input does: whoever started it may be
killed, and it goes too.
"""

import os
import sys
from pathlib import Path

# Before the engine is loaded: its threads would otherwise spin while they wait, and one busy neighbour on two cores
# would cost a factor of ten.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

CONTEXT = 8192
"""Tokens of one conversation."""
SEATS = 2
"""Conversations at once; more of them would share the same cores."""
TEMPLATE = Path(__file__).parent / "chat.jinja"


def main() -> None:
    """Serve until the input ends."""
    weights, alias = sys.argv[1:]
    import xllamacpp

    chosen = xllamacpp.CommonParams()
    chosen.model.path = weights
    chosen.model_alias = {alias}
    chosen.hostnames, chosen.port = ["127.0.0.1"], 0
    chosen.n_ctx, chosen.n_parallel = CONTEXT * SEATS, SEATS
    cores = os.cpu_count() or 2
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = max(1, min(cores, 8))
    chosen.use_jinja, chosen.chat_template = True, TEMPLATE.read_text()
    chosen.sampling.temp = 0.0  # so small a model is at its best with the likeliest word
    chosen.offline, chosen.ui, chosen.verbosity = True, False, 0
    server = xllamacpp.Server(chosen)
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)  # the engine has no way to be stopped


if __name__ == "__main__":
    main()

"""One model in Chainer, trained with the dialect and with ``use_cudnn='never'``, on one GPU.

    python scripts/chainer_train.py [--steps 200] [--json FILE] [--cpu]

An NStepLSTM of 2 layers and 256 units reads 32 sequences of 20 to 100 words in every step, new ones
each time, and tags each word; words, lengths and first weights are the same in both runs. No
dropout, whose masks would differ. The losses have to agree within 1e-4 in every step, and a step
has to be at least 3 times faster with the dialect; the exit status says whether both hold. Chainer
comes from where it is installed, or from CHAINER_SRC (see ``chainer_setup.py``). ``--cpu`` tries
the program itself, with nothing to compare.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from chainer_setup import count_library_calls, prepare, sources

LAYERS, UNITS, SEQUENCES, SHORTEST, LONGEST = 2, 256, 32, 20, 100
WORDS, TAGS = 100, 20
WARM_UP = 10
"""Steps that are not timed: kernels are compiled, memory is taken."""

CLOSE = 1e-4
FASTER = 3.0


def make_model(chainer: Any) -> Any:
    """Embedding, LSTM, one linear layer, all with the same first weights in each call."""
    import numpy as np

    np.random.seed(0)  # noqa: NPY002 - what Chainer's initializers draw from
    return chainer.ChainList(
        chainer.links.EmbedID(WORDS, UNITS),
        chainer.links.NStepLSTM(LAYERS, UNITS, UNITS, 0.0),
        chainer.links.Linear(UNITS, TAGS),
    )


def make_batches(steps: int) -> list[tuple[list[Any], Any]]:
    """For each step the sequences of words, and all their tags: a tag depends on two words."""
    import numpy as np

    rng = np.random.default_rng(0)
    batches = []
    for _ in range(steps):
        lengths = rng.integers(SHORTEST, LONGEST + 1, SEQUENCES)
        words = [rng.integers(0, WORDS, length).astype(np.int32) for length in lengths]
        tags = [(w + np.concatenate([[0], w[:-1]]) % 2) % TAGS for w in words]
        batches.append((words, np.concatenate(tags).astype(np.int32)))
    return batches


def train(chainer: Any, batches: list[tuple[list[Any], Any]], use: str, cpu: bool) -> Any:
    """Train a fresh model; (loss of each step, seconds of each step)."""
    import numpy as np

    functions = chainer.functions
    model = make_model(chainer)
    device = chainer.get_device("@numpy" if cpu else "@cupy:0")
    model.to_device(device)
    device.use()
    optimizer = chainer.optimizers.MomentumSGD(lr=0.05)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5.0))
    embed, lstm, linear = model
    losses, seconds = [], []
    with chainer.using_config("use_cudnn", use), chainer.using_config("train", True):
        for words, tags in batches:
            sections = np.cumsum([len(each) for each in words])[:-1]
            given = device.send(np.concatenate(words)), device.send(tags)
            _wait(device)
            start = time.perf_counter()
            embedded = functions.split_axis(embed(given[0]), sections, 0)
            _, _, ys = lstm(None, None, embedded)
            loss = functions.softmax_cross_entropy(linear(functions.concat(ys, 0)), given[1])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            _wait(device)
            seconds.append(time.perf_counter() - start)
            losses.append(float(loss.array))
    return losses, seconds


def _wait(device: Any) -> None:
    if hasattr(device.xp, "cuda"):
        device.xp.cuda.get_current_stream().synchronize()


def main() -> int:
    """Train twice, compare, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("CUDNN_COMPAT_DEPRECATIONS", "ignore")
    record = prepare(sources())
    import chainer

    batches = make_batches(options.steps)
    if options.cpu:
        losses, seconds = train(chainer, batches, "never", cpu=True)
        print(f"loss {losses[0]:.4f} → {losses[-1]:.4f}, {statistics.median(seconds):.3f} s a step")
        return 0
    calls = count_library_calls()
    runs: dict[str, Any] = {}
    # The dialect's run stands first, so that what is slow only once does not fall on the other.
    for name, use in (("dialect", "always"), ("never", "never")):
        before = dict(calls)
        losses, seconds = train(chainer, batches, use, cpu=False)
        runs[name] = {
            "losses": losses,
            "step_ms_median": 1e3 * statistics.median(seconds[WARM_UP:]),
            "seconds_after_warm_up": sum(seconds[WARM_UP:]),
            "library_calls": {key: calls[key] - before.get(key, 0) for key in calls},
        }
    dialect, never = runs["dialect"], runs["never"]
    pairs = list(zip(dialect["losses"], never["losses"], strict=True))
    difference = max(abs(a - b) for a, b in pairs)
    if not all(math.isfinite(loss) for pair in pairs for loss in pair):
        difference = math.inf  # which max() would not see behind a number
    ratio = never["step_ms_median"] / dialect["step_ms_median"]
    ran = dialect["library_calls"].get("cudnnRNNForward", 0) > 0
    record |= {
        "network": f"NStepLSTM, {LAYERS} layers, {UNITS} units, {SEQUENCES} sequences of "
        f"{SHORTEST} to {LONGEST} steps",
        "steps": options.steps,
        "cudnn_enabled": bool(chainer.backends.cuda.cudnn_enabled),
        "largest_difference_of_losses": difference,
        "wanted_difference": CLOSE,
        "step_time_ratio": ratio,
        "wanted_ratio": FASTER,
        "runs": runs,
        "good": bool(ran and difference <= CLOSE and ratio >= FASTER),
    }
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"losses {dialect['losses'][0]:.4f} → {dialect['losses'][-1]:.4f}")
    print(f"largest difference of losses {difference:.2e} (wanted: at most {CLOSE:.0e})")
    for name, run in runs.items():
        print(f"{name}: {run['step_ms_median']:.2f} ms a step, {run['library_calls']}")
    print(f"step time ratio {ratio:.2f} (wanted: at least {FASTER})")
    return 0 if record["good"] else 1


if __name__ == "__main__":
    sys.exit(main())

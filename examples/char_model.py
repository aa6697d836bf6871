"""Train a character model with a program written for the old API, which runs unchanged.

    python examples/char_model.py                    # under a minute on two cores
    cudnn-compat run examples/char_model.py -- --cell lstm --steps 100

The text is Python's own documentation, as ``help()`` knows it. A tenth of it is held out; the model
is measured there, in bits per character, against two that know nothing of order: all characters
equally likely (uniform), and each as likely as it is frequent (unigram).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

# Products this small gain nothing from threads, and wait long for one another where other work has
# the cores. NumPy's OpenBLAS asks when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

# The library this example uses is the old program that the tests keep frozen.
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "downstream" / "flux_style"))

from fluxlike import ADAM, GRU, LSTM, RNN, Chain, Dense, gradient, logitcrossentropy  # noqa: E402

CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
OTHER = "\N{REPLACEMENT CHARACTER}"
RARE = 20  # a character seen fewer times becomes OTHER
CHUNK = 32  # steps that a gradient reaches back
Array = np.ndarray


def read_text() -> tuple[str, str]:
    """The text to learn from and the text held out, which have no paragraph in common."""
    paragraphs: dict[str, None] = {}  # in order, once each: topics repeat parts of each other
    for _, topic in sorted(topics.items()):
        for paragraph in topic.split("\n\n"):
            # Words of one repeated character are the lines under headings.
            words = [word for word in paragraph.split() if len(word) < 4 or len(set(word)) > 1]
            if words:
                paragraphs[" ".join(words) + "\n"] = None
    text = list(paragraphs)
    cut = len(text) * 9 // 10
    return "".join(text[:cut]), "".join(text[cut:])


class Alphabet:
    """The characters of a text and their numbers."""

    def __init__(self, text: str) -> None:
        counts = Counter(text)
        self.characters = [*sorted(c for c, n in counts.items() if n >= RARE), OTHER]
        self.numbers = {c: i for i, c in enumerate(self.characters)}
        self.columns = np.eye(len(self.characters), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> Array:
        other = self.numbers[OTHER]
        return np.array([self.numbers.get(c, other) for c in text])

    def one_hot(self, numbers: Array) -> Array:
        """Numbers (batch,) as columns (characters, batch), one number as a vector."""
        return self.columns[numbers].T


def unigram_bits(train: Array, held_out: Array, size: int) -> float:
    """Bits per character of ``held_out`` for who knows only how frequent each is in ``train``."""
    counts = np.bincount(train, minlength=size) + 1.0
    return float(-np.log2(counts / counts.sum())[held_out].mean())


def as_streams(numbers: Array, batch: int) -> Array:
    """One long text as ``batch`` texts side by side, (steps, batch)."""
    steps = len(numbers) // batch
    return numbers[: steps * batch].reshape(batch, steps).T


def train(
    model: Chain,
    alphabet: Alphabet,
    streams: Array,
    steps: int,
    rate: float,
    report: Callable[[int, float], None],
) -> None:
    """Update the model ``steps`` times, each after reading CHUNK more characters of each stream."""
    opt = ADAM(rate)
    here, smooth = len(streams), 0.0
    for step in range(steps):
        if here + CHUNK >= len(streams):  # the text is over: begin again
            here = 0
            model.reset()
        columns = [alphabet.one_hot(row) for row in streams[here : here + CHUNK + 1]]
        loss, grads = gradient(model, logitcrossentropy, columns[:-1], columns[1:])
        opt.eta = rate * (1 - step / steps)
        opt.update(model.params(), grads)
        here += CHUNK
        bits = loss / np.log(2)
        smooth = bits if step == 0 else 0.95 * smooth + 0.05 * bits
        report(step + 1, smooth)


def measure(model: Chain, alphabet: Alphabet, streams: Array) -> float:
    """Bits per character of the streams, each read from the initial state."""
    model.reset()
    pairs = pairwise(alphabet.one_hot(row) for row in streams)
    return float(np.mean([logitcrossentropy(model(x), t)[0] for x, t in pairs]) / np.log(2))


def write(model: Chain, alphabet: Alphabet, start: str, length: int, seed: int) -> str:
    """``start``, continued by the model: a batch of one, given as vectors."""
    rng = np.random.default_rng(seed)
    model.reset()
    text = start
    for i in range(length):
        logits = model(alphabet.one_hot(alphabet.encode(text[i])[0])).astype(np.float64)
        if i + 1 == len(text):
            p = np.exp((logits - logits.max()) / 0.7)  # a little bolder than the model is
            p[alphabet.numbers[OTHER]] = 0
            text += alphabet.characters[rng.choice(len(p), p=p / p.sum())]
    return text


@contextmanager
def progress(total: int) -> Iterator[Callable[[int, float], None]]:
    """A bar on stderr: rich's in a terminal that has rich, else a plain one."""
    terminal = sys.stderr.isatty()
    if terminal and find_spec("rich"):
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("training", total=total)
            yield lambda done, bits: bar.update(
                task, completed=done, description=f"training, {bits:.2f} bits per character"
            )
        return

    def show(done: int, bits: float) -> None:
        # A terminal gets one line that is written over, a log at most ten lines.
        if terminal or done * 10 // total > (done - 1) * 10 // total:
            line = f"[{'#' * (done * 30 // total):30}] {done}/{total}  {bits:.2f} bits"
            print(line, end="\r" if terminal else "\n", file=sys.stderr, flush=True)

    yield show
    if terminal:
        print(file=sys.stderr)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Train a character model with a program written for the old API.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--steps", type=int, default=400, help="updates of the weights")
    parser.add_argument("--hidden", type=int, default=128, help="hidden size")
    parser.add_argument("--cell", choices=CELLS, default="gru", help="kind of cell")
    parser.add_argument("--batch", type=int, default=32, help="texts read at once")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the sample")
    options = parser.parse_args(argv)
    for name in ("steps", "hidden", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")

    text, held_out_text = read_text()
    alphabet = Alphabet(text)
    numbers, held_out = alphabet.encode(text), alphabet.encode(held_out_text)
    if len(held_out) < 2 * options.batch:
        parser.error(f"--batch must be at most {len(held_out) // 2}")
    rng = np.random.RandomState(options.seed)
    model = Chain(
        CELLS[options.cell](len(alphabet), options.hidden, rng),
        Dense(options.hidden, len(alphabet), rng),
    )
    weights = sum(p.size for p in model.params())
    print(f"{len(numbers)} characters to learn from, {len(alphabet)} different, ", end="")
    print(f"{len(held_out)} held out; {options.cell} with {weights} weights")

    began = time.perf_counter()
    streams = as_streams(numbers, options.batch)
    with progress(options.steps) as report:
        train(model, alphabet, streams, options.steps, options.rate, report)
    took = time.perf_counter() - began

    bits = measure(model, alphabet, as_streams(held_out, options.batch))
    print(f"trained {options.steps} steps in {took:.1f} s")
    print("bits per character of the text held out:")
    print(f"  uniform {np.log2(len(alphabet)):.3f}")
    print(f"  unigram {unigram_bits(numbers, held_out, len(alphabet)):.3f}")
    print(f"  model   {bits:.3f}")
    print("a sample of what it writes:")
    print(write(model, alphabet, "The ", 300, options.seed))


if __name__ == "__main__":
    main()

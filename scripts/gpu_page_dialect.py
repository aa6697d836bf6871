"""What the page of `make gpu` shows of Chainer and of the CuPy dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from chainer_tests import OLD_FAILURE

__all__ = ["chainer", "chainer_train", "dialect"]

Result = dict[str, Any]

_SHOWN_FAILURES = 30


def chainer(result: Result) -> Iterator[str]:
    """Chainer's own tests: counts against the old stack's, reasons, names, calls."""
    if "verdict" not in result:
        return
    enabled = "True" if result["cudnn_enabled"] else "False"
    yield (
        f"Chainer {result['chainer']}, CuPy {result['cupy']}, cuDNN {result['cudnn']}; tests "
        f'marked "{result["mark"]}"; `chainer.backends.cuda.cudnn_enabled` is {enabled}.'
    )
    if result["pytest_exit_status"] not in (0, 1):
        yield f"pytest itself broke: it ended with {result['pytest_exit_status']}."
    yield ""
    yield "| | passed | failed | skipped |"
    yield "| --- | --- | --- | --- |"
    for about, row in (("here", result["result"]), ("old stack", result["real_old_stack"])):
        yield f"| {about} | {row['passed']} | {row['failed']} | {row['skipped']} |"
    yield ""
    yield from _skipped(result["skipped_because"])
    yield from _failed(result["failed"])
    calls = result["library_calls"]
    if not calls:
        yield "The C library was never called."
        return
    yield "| function of the C library | calls |"
    yield "| --- | --- |"
    yield from (f"| `{name}` | {count} |" for name, count in calls.items())
    yield ""
    old = result["old_calls"]
    yield f"Old names called: {len(old)}, together {sum(old.values())} times; the JSON counts each."


def _skipped(reasons: dict[str, int]) -> Iterator[str]:
    if not reasons:
        return
    groups: Counter[str] = Counter()
    for reason, count in reasons.items():
        groups[" ".join(reason.removeprefix("Skipped: ").split()) or "no reason given"] += count
    yield "Skipped because:"
    yield ""
    yield from (f"- {count} × {reason}" for reason, count in groups.most_common())
    yield ""


def _failed(failed: dict[str, str]) -> Iterator[str]:
    """The failed tests, first those that the old stack passed."""
    if not failed:
        return
    yield "Failed:"
    yield ""
    names = sorted(failed, key=lambda name: OLD_FAILURE in name)
    for name in names[:_SHOWN_FAILURES]:
        known = " (fails on the old stack too)" if OLD_FAILURE in name else ""
        yield f"- `{name}`{known}: {' '.join(failed[name].split())}"
    if len(names) > _SHOWN_FAILURES:
        yield f"- and {len(names) - _SHOWN_FAILURES} more, which the JSON names"
    yield ""


def chainer_train(result: Result) -> Iterator[str]:
    """One model trained with the dialect and without cuDNN."""
    if "runs" not in result:
        return
    yield (
        f"{result['network']}; {result['steps']} steps; `cudnn_enabled` is "
        f"{result['cudnn_enabled']}."
    )
    yield ""
    yield "| `use_cudnn` | first loss | last loss | median step, ms | calls of `cudnnRNNForward` |"
    yield "| --- | --- | --- | --- | --- |"
    for about, name in (("'always', the dialect", "dialect"), ("'never'", "never")):
        run = result["runs"][name]
        losses, calls = run["losses"], run["library_calls"].get("cudnnRNNForward", 0)
        yield (
            f"| {about} | {losses[0]:.4f} | {losses[-1]:.4f} | {run['step_ms_median']:.2f} "
            f"| {calls} |"
        )
    yield ""
    yield (
        f"- largest difference of the losses of a step: "
        f"{result['largest_difference_of_losses']:.1e} "
        f"(wanted: at most {result['wanted_difference']:.0e})"
    )
    yield (
        f"- a step with the dialect is {result['step_time_ratio']:.2f} times as fast "
        f"(wanted: at least {result['wanted_ratio']:.0f})"
    )


def dialect(result: Result) -> Iterator[str]:
    """Times of the old calls against those of the old stack, shape by shape."""
    if "rows" not in result:
        return
    yield f"{result['gpu']}, CuPy {result['cupy']}, cuDNN {result['cudnn']}; µs a call or step:"
    yield ""
    yield (
        "| shape | inference, old stack | ours | ratio | training step, old stack | ours | ratio |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in result["rows"]:
        cells = [
            f"{row[f'old_{mode}']:.0f} | {row[mode]:.0f} | {row[f'{mode}_speed_up']:.2f}"
            for mode in ("inference", "training")
        ]
        yield f"| {row['name']} | {' | '.join(cells)} |"
    yield ""
    slower = result["slower_than_the_old_stack"]
    yield f"- geometric mean of the ratios: {result['geometric_mean_speed_up']:.2f}"
    yield f"- slower than the old stack: {'; '.join(slower) or 'none'}"

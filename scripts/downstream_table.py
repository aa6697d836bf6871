"""The one table of what `nox -s downstream` runs: programs of other people on the old APIs.

To add a program, add a row (and a line to docs/downstream.md). A row says where the program comes
from, what its environment has, what is run on NumPy arrays and on a GPU, and what has to come out.
Loads nothing else.
"""

from __future__ import annotations

from functools import partial

from downstream_data import make_pairs, make_reviews, make_sentences
from downstream_judge import Judge, chainer_tests, log, printed, tests
from downstream_program import DEVICES, Checkout, Packages, Program

__all__ = ["CHAINER", "PROGRAMS"]

CHAINER = ("chainer==7.8.1", "click", "packaging", "rich", "pytest")
"""In every environment: Chainer, and what cudnn-compat's command and the tests need."""

OLDER_NUMPY = "numpy==2.3.*"
"""NumPy 2.4 refuses int() of an array of one element, which these programs call."""

_PLAIN = Packages("chainer", CHAINER, modules=("chainer",))
_SEQ2SEQ = Packages(
    "seq2seq",
    (*CHAINER, "nltk==3.10.4", "progressbar2==4.6.0"),
    modules=("chainer", "nltk", "progressbar"),
)
_OLDER = Packages("chainer-older-numpy", CHAINER, numpy=OLDER_NUMPY, modules=("chainer",))
_CHAINERRL = Packages(
    "chainerrl",
    (*CHAINER, "cached-property==2.0.1", "cloudpickle==3.1.3", "pillow", "scipy==1.17.1"),
    ("chainerrl==0.8.0", "gym==0.17.3"),
    numpy=OLDER_NUMPY,
    modules=("chainer", "chainerrl"),
)
_CHEMISTRY = Packages(
    "chainer-chemistry",
    (*CHAINER, "joblib==1.6.0", "pandas==3.1.1", "scikit-learn==1.9.1", "tqdm==4.70.1"),
    ("chainer-chemistry==0.7.1",),
    modules=("chainer", "chainer_chemistry"),
)
_ESPNET = Packages(
    "espnet",
    (*CHAINER, "editdistance==0.8.1"),
    ("espnet==0.9.10",),
    modules=("chainer", "espnet", "editdistance"),
)

_CHAINER_SRC = Checkout(
    "CHAINER_SRC",
    "examples/seq2seq/seq2seq.py",
    "git clone --depth 1 --branch v7.8.1 https://github.com/chainer/chainer",
)
_CHAINERRL_SRC = Checkout(
    "CHAINERRL_SRC",
    "tests/links_tests/test_stateless_recurrent.py",
    "git clone --depth 1 --branch v0.8.0 https://github.com/chainer/chainerrl",
)
_CHEMISTRY_SRC = Checkout(
    "CHAINER_CHEMISTRY_SRC",
    "tests/links_tests/readout_tests/test_set2set.py",
    "git clone --depth 1 --branch v0.7.1 https://github.com/chainer/chainer-chemistry",
)
_THINC_SRC = Checkout(
    "THINC_SRC",
    "thinc/backends/_cudnn/_lstm_notes.py",
    "git clone --branch feature/cupy-lstm https://github.com/explosion/thinc, "
    "then git checkout 7bf61031ee082587090797544bfeb96c1002349e",
)
_CUPY_SRC = Checkout(
    "CUPY_SRC",
    "tests/cupyx_tests/test_cudnn.py",
    "git clone --depth 1 --branch v13.6.0 https://github.com/cupy/cupy",
)

_RNN_TRAINING = ("rnn_forward_training", "rnn_backward_data", "rnn_backward_weights")
_IN_THE_LINK = "NStepLSTM: rnn_*, DropoutStates; softmax_*"


def _on_both(command: tuple[str, ...], *device: str) -> dict[str, tuple[str, ...]]:
    """A program that takes its device as an option."""
    return {"numpy": command, "gpu": (*command, *device)}


def _pytest(
    files: tuple[str, ...], more: tuple[str, ...] = (), devices: tuple[str, ...] = DEVICES
) -> dict[str, tuple[str, ...]]:
    """Tests as they are, of which some are marked ``gpu``."""
    marks = {"numpy": "not gpu and not slow", "gpu": "gpu and not slow"}
    common: tuple[str, ...] = (
        "-m",
        "pytest",
        "-q",
        "-c",
        "{work}/pytest.ini",
        "--junit-xml={work}/junit.xml",
    )
    common += ("--rootdir={checkout}", "--import-mode=importlib", "-p", "no:cacheprovider")
    paths = tuple("{checkout}/" + file for file in files)
    return {device: (*common, "-m", marks[device], *more, *paths) for device in devices}


def _either(judge: Judge) -> dict[str, Judge]:
    return dict.fromkeys(DEVICES, judge)


PROGRAMS: tuple[Program, ...] = (
    Program(
        "Chainer's tests of its RNNs and of dropout",
        "NStep(Bi)LSTM, NStep(Bi)GRU, NStep(Bi)RNN*: rnn_*, get_rnn_lin_layer_*, DropoutStates",
        _PLAIN,
        {
            "numpy": (
                *("python", "{scripts}/chainer_tests.py", "--json", "{work}/tests.json"),
                *("--mark", "not gpu and not cudnn and not ideep and not slow"),
            ),
            "gpu": ("python", "{scripts}/chainer_tests.py", "--json", "{work}/tests.json"),
        },
        {
            "numpy": partial(chainer_tests, at_least=196, on_cudnn=False),
            "gpu": partial(chainer_tests, at_least=504, on_cudnn=True),
        },
        checkout=_CHAINER_SRC,
        limit=600,
    ),
    Program(
        "Chainer's example seq2seq",
        _IN_THE_LINK,
        _SEQ2SEQ,
        _on_both(
            (
                *("{checkout}/examples/seq2seq/seq2seq.py", "source", "target"),
                *("source.words", "target.words", "--unit", "32", "--layer", "2"),
                *("--batchsize", "20", "--epoch", "20", "--log-interval", "50"),
            ),
            *("--device", "0"),
        ),
        _either(partial(log, file="result/log", key="main/perp", at_most=4.0)),
        {"gpu": (*_RNN_TRAINING, "softmax_forward", "softmax_backward")},
        _CHAINER_SRC,
        make_pairs,
        note="It learns to spell: a guess has perplexity 9, and it has to come below 4.",
    ),
    Program(
        "Chainer's example text_classification",
        _IN_THE_LINK,
        _OLDER,
        _on_both(
            (
                *("{checkout}/examples/text_classification/train_text_classifier.py", "--model"),
                *("rnn", "--dataset", "stsa.binary", "--unit", "20", "--batchsize", "20"),
                *("--epoch", "10"),
            ),
            *("--device", "0"),
        ),
        _either(partial(log, file="result/log", key="validation/main/accuracy", at_least=0.75)),
        {"gpu": (*_RNN_TRAINING, "softmax_forward", "softmax_backward")},
        _CHAINER_SRC,
        make_reviews,
        note="Half of the made-up reviews are good, so a guess is right in half of them.",
    ),
    Program(
        "Chainer's example ptb",
        "LSTM, which is no RNN of cuDNN; dropout: DropoutStates; softmax_*",
        _PLAIN,
        _on_both(
            (
                *("{checkout}/examples/ptb/train_ptb.py", "--batchsize", "10", "--bproplen", "10"),
                *("--epoch", "5", "--unit", "20"),
            ),
            *("--device", "0"),
        ),
        _either(partial(printed, pattern=r"^.*?test perplexity: (\S+)$", at_most=4.0)),
        {"gpu": ("DropoutStates", "softmax_forward", "softmax_backward")},
        _CHAINER_SRC,
        make_sentences,
        note="13 words; who knows the rule has perplexity 1.2 (the first word of a sentence).",
    ),
    Program(
        "ChainerRL 0.8: tests of recurrent links",
        "NStepLSTM, NStepRNNTanh in StatelessRecurrent{Sequential,Branched,ChainList}",
        _CHAINERRL,
        _pytest(
            tuple(
                f"tests/links_tests/test_stateless_recurrent{each}.py"
                for each in ("", "_branched", "_sequential")
            )
        ),
        {"numpy": partial(tests, at_least=22), "gpu": partial(tests, at_least=1)},
        {"gpu": ("rnn_forward_training",)},
        _CHAINERRL_SRC,
    ),
    Program(
        "ChainerRL 0.8: tests of PPO",
        "NStepLSTM, trained by an agent with recurrent=True",
        _CHAINERRL,
        _pytest(
            ("tests/agents_tests/test_ppo.py",),
            ("-k", "not test_recurrent_and_non_recurrent_equivalence"),
        ),
        {"numpy": partial(tests, at_least=83), "gpu": partial(tests, at_least=1)},
        {"gpu": _RNN_TRAINING},
        _CHAINERRL_SRC,
        limit=600,
        note="Without the 36 tests that want float32 sums of other shapes equal to 1e-7: they fail "
        "on NumPy, where Chainer computes and this package is not called.",
    ),
    Program(
        "Chainer Chemistry 0.7: tests of Set2Set and MPNN readout",
        "NStepLSTM in Set2Set",
        _CHEMISTRY,
        _pytest(
            tuple(
                f"tests/links_tests/readout_tests/test_{each}.py"
                for each in ("set2set", "mpnn_readout")
            )
        ),
        {"numpy": partial(tests, at_least=6), "gpu": partial(tests, at_least=1)},
        {"gpu": ("rnn_forward_training",)},
        _CHEMISTRY_SRC,
    ),
    Program(
        "ESPnet 0.9: the encoders of its Chainer backend",
        "NStep(Bi)LSTM, NStep(Bi)GRU in Encoder",
        _ESPNET,
        _on_both(("{scripts}/downstream_espnet.py",), "--device", "@cupy:0"),
        _either(partial(printed, pattern=r"^largest part of the first loss: (\S+)$", at_most=0.2)),
        {"gpu": _RNN_TRAINING},
        note="ESPnet's own tests need PyTorch 1; eight encoders are trained by a driver of ours.",
    ),
    Program(
        "thinc's notes on cuDNN's LSTM",
        "cupy.cudnn and cupy.cuda.cudnn themselves: rnn_*, get_rnn_lin_layer_*, getRNNParamsSize",
        _PLAIN,
        {
            "numpy": ("{scripts}/downstream_thinc.py", "{checkout}"),
            "gpu": ("{checkout}/thinc/backends/_cudnn/_lstm_notes.py",),
        },
        {
            "numpy": partial(printed, pattern=r"^largest difference: (\S+)$", at_most=1e-6),
            "gpu": partial(printed, pattern=r"^Lengths \[3, 3\]$"),
        },
        {
            "numpy": (*_RNN_TRAINING, "get_rnn_lin_layer_matrix_params", "getRNNParamsSize"),
            "gpu": (*_RNN_TRAINING, "get_rnn_lin_layer_matrix_params", "getRNNParamsSize"),
        },
        _THINC_SRC,
        note="On NumPy, a stand-in takes CuPy's place, and what calls Chainer is left out.",
    ),
    Program(
        "CuPy 13's own tests of cupyx.cudnn",
        "activation_*, DropoutStates (its convolutions are not offered; it has no tests of RNNs)",
        _PLAIN,
        {
            "gpu": (
                *("-m", "pytest", "-q", "-c", "{work}/pytest.ini", "--rootdir={checkout}"),
                *("--import-mode=importlib", "--junit-xml={work}/junit.xml", "--noconftest"),
                *("-p", "no:cacheprovider"),
                *("-k", "Activation or Dropout", "{checkout}/tests/cupyx_tests/test_cudnn.py"),
            )
        },
        {"gpu": partial(tests, at_least=68)},
        {"gpu": ("activation_forward", "activation_backward", "DropoutStates")},
        _CUPY_SRC,
        note="They make CuPy arrays, so they need a GPU.",
    ),
)

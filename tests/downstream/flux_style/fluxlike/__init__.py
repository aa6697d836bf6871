"""Small recurrent networks in the manner of Flux 0.11: cells, Recur, Dense, Chain, optimisers.

Arrays are feature first: one step of a sequence is ``(features, batch)`` or ``(features,)``.
"""

from .curnn import desc, descriptor_count, steps_run
from .layers import Chain, Dense
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, Recur, RNNCell
from .training import ADAM, Descent, Grads, gradient, logitcrossentropy, mse, train

__all__ = [
    "ADAM",
    "GRU",
    "LSTM",
    "RNN",
    "Chain",
    "Dense",
    "Descent",
    "GRUCell",
    "Grads",
    "LSTMCell",
    "RNNCell",
    "Recur",
    "desc",
    "descriptor_count",
    "gradient",
    "logitcrossentropy",
    "mse",
    "steps_run",
    "train",
]

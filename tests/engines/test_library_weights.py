"""The places of the weights that ``weights.py`` derives are those that cuDNN tells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_compat import v2
from tests.engines.drawn import specs

sizes = st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 128, 257]))


@pytest.mark.gpu
def test_every_matrix_and_bias_lies_where_the_library_says() -> None:
    from cudnn_compat.engines.cudnn.device import Session
    from cudnn_compat.engines.cudnn.network import Network
    from cudnn_compat.engines.cudnn.weights import check_layout, derived_places, library_places

    # float16, float32, float64: older libraries have no bfloat16, and its places are float16's.
    @given(specs(sizes, ("float16", "float32", "float64")))
    @settings(max_examples=300)
    def check(spec: v2.RNNSpec) -> None:
        with Session(0) as session:
            network = Network(session, spec, "standard", padded=False, batch=2, drops=False)
            check_layout(session, network.descriptor, spec)
            places = library_places(session, network.descriptor, spec)
        assert places == derived_places(spec)
        found = [place for pair in places.values() for place in pair if place is not None]
        assert sum(place.size for place in found) == v2.weight_size(spec)

    check()


@pytest.mark.gpu
@pytest.mark.parametrize("algo", ["persist_static", "persist_small_h"])
def test_the_places_are_the_same_for_the_persistent_algorithms(algo: str) -> None:
    from cudnn_compat.engines.cudnn.device import Session
    from cudnn_compat.engines.cudnn.network import Network
    from cudnn_compat.engines.cudnn.weights import check_layout

    for cell in ("relu", "tanh", "lstm", "gru"):
        spec = v2.RNNSpec(cell, 5, 32, num_layers=2, bidirectional=True)
        with Session(0) as session:
            network = Network(session, spec, algo, padded=False, batch=2, drops=False)
            check_layout(session, network.descriptor, spec)

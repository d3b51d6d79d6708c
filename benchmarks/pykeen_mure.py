"""MuRE as PyKEEN trains it: its model, its sampled training loop, plain SGD on dense gradients."""

from __future__ import annotations

import torch
from torch import Tensor


class PykeenMuRE:
    """PyKEEN's MuRE with a table for every entity, trained on some batches of triples (n, 3)."""

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        triples: Tensor,
        *,
        negatives: int,
        device: torch.device | str = "cpu",
    ) -> None:
        from pykeen.losses import BCEWithLogitsLoss
        from pykeen.models import MuRE
        from pykeen.training import SLCWATrainingLoop
        from pykeen.triples import CoreTriplesFactory

        self.factory = CoreTriplesFactory(triples.cpu(), num_entities=num_entities, num_relations=num_relations)
        self.model = MuRE(triples_factory=self.factory, embedding_dim=dim, loss=BCEWithLogitsLoss(), random_seed=0)
        self.model.to(device)
        self.loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self.factory,
            # With murp's learning rates its loss stops as not finite; the rate changes nothing about the time.
            optimizer=torch.optim.SGD(self.model.get_grad_params(), lr=0.1),
            negative_sampler_kwargs={"num_negs_per_pos": negatives},
        )

    def epoch(self, batch_size: int) -> None:
        """One pass over the triples."""
        self.loop.train(
            self.factory,
            num_epochs=1,
            batch_size=batch_size,
            use_tqdm=False,
            use_tqdm_batch=False,
            clear_optimizer=False,
            num_workers=0,
        )

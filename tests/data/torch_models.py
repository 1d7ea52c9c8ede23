"""Models for torch_pipelining.sh: tied weights, bfloat16, several tensors between stages; and what is refused."""
import torch
from torch import nn

WIDTH, WORDS, LENGTH = 16, 64, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, stream):
        return stream + self.down(torch.tanh(self.up(self.norm(stream))))


class Stage(nn.Module):
    """Blocks, behind an embedding on the first stage and before a head on the last. give and take: what is handed on."""

    def __init__(self, stage, total, take=None, give=None):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH) if stage == 0 else None
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS, bias=False) if stage + 1 == total else None
        self.take = take if stage > 0 else None
        self.give = give if stage + 1 < total else None

    def forward(self, *values):
        kept = values
        stream = self.take(*values) if self.take else values[0]
        stream = self.blocks(self.embedding(stream) if self.embedding else stream)
        if self.head:
            return self.head(stream)
        return self.give(stream, *kept) if self.give else stream


def example(samples):
    def one(step, microbatch):
        numbers = torch.Generator().manual_seed(1000 * step + microbatch)
        text = torch.randint(0, WORDS, (samples, LENGTH + 1), generator=numbers, device="cpu")
        return text[:, :-1].clone(), text[:, 1:].clone()

    return one


def loss(logits, targets):
    return nn.functional.cross_entropy(logits.float().reshape(-1, WORDS), targets.reshape(-1))


def whole(total, **changes):
    return [Stage(stage, total, **changes) for stage in range(total)]


def tied(stages, total, samples):
    parts = whole(total)
    parts[-1].head.weight = parts[0].embedding.weight
    return {stage: parts[stage] for stage in stages}, example(samples), loss


def half(stages, total, samples):
    return {stage: part.bfloat16() for stage, part in enumerate(whole(total)) if stage in stages}, example(samples), loss


def handed_on(total, give, take=lambda stream, *rest: stream):
    return whole(total, take=take, give=give)


def pairs(stages, total, samples):
    parts = handed_on(total, lambda stream, *rest: (stream, torch.sin(stream)), lambda stream, skip: stream + 0.5 * skip)
    return {stage: parts[stage] for stage in stages}, example(samples), loss


def masks(stages, total, samples):
    parts = handed_on(total, lambda stream, *rest: (stream, torch.ones(LENGTH, dtype=torch.bool)))
    return {stage: parts[stage] for stage in stages}, example(samples), loss


def keyed(stages, total, samples):
    parts = handed_on(total, lambda stream, *rest: {"stream": stream})
    return {stage: parts[stage] for stage in stages}, example(samples), loss


def scaled(stages, total, samples):
    return {stage: part.half() for stage, part in enumerate(whole(total)) if stage in stages}, example(samples), loss


def many(stages, total, samples):
    parts = whole(total)
    return {stage: parts[stage] for stage in stages}, example(samples), lambda logits, targets: logits


def copied(stages, total, samples):
    """As tied(), but ranks that lack a stage make their parts apart: several copies of one tensor."""
    if len(stages) == total:
        return tied(stages, total, samples)
    parts = whole(total)
    return {stage: parts[stage] for stage in stages}, example(samples), loss

"""A model of your own under PyTorch: a decoder as Hugging Face's Llama has it, without needing that package.

    stagewright record -s zbv -p 2 -m 4 --engine torch --model-file decoder.py:build

The function gets the stages of this rank, how many there are in all, and the samples of a microbatch. It gives three things:
modules by stage, here each from one tensor to one tensor; an example, (inputs, targets) of a microbatch, or a function of step and
microbatch that gives them; and the loss of the last stage's output and the targets. Each rank makes its own stages alone.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass
class DecoderConfig:
    vocab_size: int = 512
    hidden_size: int = 64
    intermediate_size: int = 172
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    max_position_embeddings: int = 32
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0


class RMSNorm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + self.eps)


def rotated(states, config):
    """Rotary position embedding of (batch, heads, tokens, width)."""
    width = states.shape[-1]
    inverse = config.rope_theta ** (-torch.arange(0, width, 2, device=states.device) / width)
    angles = torch.outer(torch.arange(states.shape[-2], device=states.device), inverse)
    cosine, sine = (torch.cat((part, part), dim=-1).to(states.dtype) for part in (angles.cos(), angles.sin()))
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat((-second, first), dim=-1) * sine


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * self.head_dim, config.hidden_size, bias=False)

    def forward(self, hidden_states):
        batch, tokens, _ = hidden_states.shape
        query, key, value = (
            projection(hidden_states).view(batch, tokens, -1, self.head_dim).transpose(1, 2) for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = rotated(query, self.config), rotated(key, self.config)
        groups = self.config.num_attention_heads // self.config.num_key_value_heads
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        output = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.o_proj(output.transpose(1, 2).reshape(batch, tokens, -1))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden_states):
        return self.down_proj(functional.silu(self.gate_proj(hidden_states)) * self.up_proj(hidden_states))


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config)
        self.mlp = MLP(config)

    def forward(self, hidden_states):
        hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


def build(stages, total, microbatch_size):
    config = DecoderConfig()

    def stage_of(stage):
        torch.manual_seed(stage)  # the same weights wherever the stage is
        first = stage * config.num_hidden_layers // total
        last = (stage + 1) * config.num_hidden_layers // total
        parts = [DecoderLayer(config) for _ in range(first, last)]
        if stage == 0:
            parts.insert(0, nn.Embedding(config.vocab_size, config.hidden_size))
        if stage == total - 1:
            parts += [RMSNorm(config), nn.Linear(config.hidden_size, config.vocab_size, bias=False)]
        return nn.Sequential(*parts)

    def example(step, microbatch):
        generator = torch.Generator().manual_seed(step * 1000 + microbatch)
        start = torch.randint(config.vocab_size, (microbatch_size, 1), generator=generator)
        text = (start + torch.arange(config.max_position_embeddings + 1)) % config.vocab_size  # counting: easy to learn
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def loss(logits, targets):
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return {stage: stage_of(stage) for stage in stages}, example, loss

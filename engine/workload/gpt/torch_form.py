BITS = (1 << 64) - 1


def mix_bits(value):
    """SplitMix64's finaliser."""
    value = (value + 0x9E3779B97F4A7C15) & BITS
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & BITS
    return value ^ (value >> 31)


def sample(data, seed, step, first, rows, tokens):
    """Tokens of a step's samples from the first on and, one byte further on, their targets: row after row."""
    starts = len(data) - tokens if len(data) > tokens else len(data)
    inputs, targets = bytearray(), bytearray()
    for row in range(rows):
        value = mix_bits(seed ^ 0x636F72707573)
        for part in (step, first + row):
            value = mix_bits(value ^ part)
        start = value % starts
        text = data[start : start + tokens + 1]
        while len(text) <= tokens:
            text += data[: tokens + 1 - len(text)]
        inputs += text[:tokens]
        targets += text[1:]
    return inputs, targets


def gpt_parts(torch, job, folder):
    """The own engine's model: byte embedding, pre-norm blocks, an untied head. Same names, same weights."""
    model, nn = job["model"], torch.nn
    hidden, heads, vocabulary, tokens = model["hidden"], model["heads"], model["vocabulary"], model["sequence"]
    weights = SafeTensors(os.path.join(folder, job["weights"]))

    def norm(name):
        layer = nn.LayerNorm(hidden, eps=1e-5)
        with torch.no_grad():
            layer.weight.copy_(weights.read(torch, name + ".gamma"))
            layer.bias.copy_(weights.read(torch, name + ".beta"))
        return layer

    def linear(name, bias=True):
        weight = weights.read(torch, name + ".weight")
        layer = nn.utils.skip_init(nn.Linear, weight.shape[1], weight.shape[0], bias=bias)
        with torch.no_grad():
            layer.weight.copy_(weight)
            if bias:
                layer.bias.copy_(weights.read(torch, name + ".bias"))
        return layer

    class Ends(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Parameter(weights.read(torch, "embedding.token"))
            self.position = nn.Parameter(weights.read(torch, "embedding.position"))

        def forward(self, text):
            return nn.functional.embedding(text, self.token) + self.position[: text.shape[1]]

    class Block(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.norm1 = norm(f"layer{layer}.norm1")
            self.qkv = linear(f"layer{layer}.attention.qkv")
            self.project = linear(f"layer{layer}.attention.project")
            self.norm2 = norm(f"layer{layer}.norm2")
            self.expand = linear(f"layer{layer}.mlp.expand")
            self.contract = linear(f"layer{layer}.mlp.contract")

        def forward(self, stream):
            rows, length, _ = stream.shape
            qkv = self.qkv(self.norm1(stream)).view(rows, length, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
            stream = stream + self.project(seen.transpose(1, 2).reshape(rows, length, hidden))
            return stream + self.contract(nn.functional.gelu(self.expand(self.norm2(stream)), approximate="tanh"))

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = norm("head.norm")
            self.out = linear("head", bias=False)

        def forward(self, stream):
            return self.out(self.norm(stream))

    def stage_of(stage, total):
        part = job["slices"][stage]
        layers = [Ends()] if stage == 0 else []
        layers += [Block(layer) for layer in range(part["first_layer"], part["first_layer"] + part["layers"])]
        return nn.Sequential(*layers, *([Head()] if stage + 1 == total else []))

    with open(os.path.join(folder, job["data"]), "rb") as file:
        data = file.read()

    def example(step, microbatch):
        rows = job["microbatch_size"]
        inputs, targets = sample(data, job["seed"], step, microbatch * rows, rows, tokens)
        return tuple(torch.frombuffer(text, dtype=torch.uint8).long().reshape(rows, tokens) for text in (inputs, targets))

    def loss(logits, targets):
        return nn.functional.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))

    return stage_of, example, loss


FORMS["gpt"] = gpt_parts

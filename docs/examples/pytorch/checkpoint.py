"""Reads and writes checkpoints of 'stagewright record --checkpoint-every', with json, struct and PyTorch alone.

    python3 checkpoint.py run.step40.safetensors                      prints what is in it
    python3 checkpoint.py run.step40.safetensors --to weights.pt      the weights as a state_dict of PyTorch
    python3 checkpoint.py run.step40.safetensors --copy again.safetensors   read and written again, byte for byte
    python3 checkpoint.py run.step40.safetensors --weights weights.pt --copy other.safetensors
                                                                      with these weights, to go on from by --resume

Without PyTorch it prints and copies all the same.
"""

import argparse
import json
import math
import struct


def read(path):
    """The facts of the training as a dict of texts, and its tensors by name: (shape, bytes of float32, little endian)."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    facts = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        if entry["dtype"] != "F32" or last - first != 4 * math.prod(entry["shape"]) or last > len(data):
            raise ValueError(f"{path}: tensor {name} is damaged or not float32")
        tensors[name] = (entry["shape"], data[first:last])
    return facts, tensors


def write(path, facts, tensors):
    header = {"__metadata__": facts}
    at = 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the numbers are aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, data in tensors.values():
            file.write(data)


def is_weight(name):
    return not name.startswith(("moment1.", "moment2.", "delayed."))


def to_torch(tensors):
    import torch

    return {
        name: torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(shape).clone()
        for name, (shape, data) in tensors.items()
    }


def from_torch(tensor):
    tensor = tensor.detach().to("cpu").float().contiguous()
    return list(tensor.shape), tensor.numpy().tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--to", metavar="FILE.pt", help="write the weights as a state_dict")
    parser.add_argument("--weights", metavar="FILE.pt", help="take these weights in place of the file's")
    parser.add_argument("--copy", metavar="FILE.safetensors", help="write the checkpoint there")
    given = parser.parse_args()
    facts, tensors = read(given.file)
    weights = [name for name in tensors if is_weight(name)]
    count = sum(math.prod(tensors[name][0]) for name in weights)
    print(f"step {facts['step']} of {facts['model']} under {facts['schedule']}: {count} parameters in {len(weights)} tensors")
    if given.to:
        import torch

        torch.save(to_torch({name: tensors[name] for name in weights}), given.to)
    if given.weights:
        import torch

        for name, tensor in torch.load(given.weights).items():
            if name not in tensors or list(tensor.shape) != list(tensors[name][0]):
                raise ValueError(f"{given.weights}: {name} is not a parameter of {given.file}, or of another shape")
            tensors[name] = from_torch(tensor)
    if given.copy:
        write(given.copy, facts, tensors)


if __name__ == "__main__":
    main()

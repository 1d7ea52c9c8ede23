# What Megatron-LM and DeepSpeed of 2026 import and a PyTorch 2.6 for the processor lacks: Triton, types of numbers, compilers. Nothing of it
# runs in these jobs.
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
import typing
from unittest.mock import MagicMock

import torch

sys.path.insert(0, "lib")
os.environ.setdefault("DS_ACCELERATOR", "cpu")
torch.set_num_threads(1)


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "triton" or (name == "torch.utils.cpp_extension" and "megatron" in sys.argv[0]):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__, module.__version__ = [], "3.0.0"
        module.__getattr__ = lambda name: MagicMock()
        module.jit = lambda function=None, **_: function or (lambda one: one)
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Absent())
torch.compile = lambda function=None, *_, **__: function or (lambda one: one)
for name in ("float8_e8m0fnu", "float4_e2m1fn_x2"):
    if not hasattr(torch, name):
        setattr(torch, name, torch.float8_e4m3fn)
schema = importlib.import_module("torch._library.infer_schema")
for kind in (int, float, bool, torch.Tensor):
    schema.SUPPORTED_PARAM_TYPES.setdefault(list[kind], schema.SUPPORTED_PARAM_TYPES[typing.List[kind]])
schema.SUPPORTED_RETURN_TYPES.setdefault(list[torch.Tensor], "Tensor[]")


def run(train):
    """With a folder as the second argument, recorded; the losses are printed."""
    folder = sys.argv[2]
    if folder == "none":
        losses = train(6)
    else:
        from stagewright.torch import record

        with record(folder, warmup=2, steps=3):
            losses = train(6)
    if losses:
        print("losses", *map(repr, losses), flush=True)
    torch.distributed.barrier()

# Megatron-LM's own schedules over two ranks on gloo: megatron_job.py CHUNKS FOLDER|none
from absent import *

torch.cuda.current_device = lambda: torch.device("cpu")
torch.cuda.synchronize = lambda *_: None
for name in ("zeros", "empty", "ones", "tensor"):  # they are called with device="cuda"

    def here(*arguments, made=getattr(torch, name), **keywords):
        if keywords.get("device") == "cuda":
            keywords["device"] = "cpu"
        return made(*arguments, **keywords)

    setattr(torch, name, here)

from megatron.core import ModelParallelConfig, parallel_state
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import schedules

rank, chunks = int(os.environ["RANK"]), int(sys.argv[1])
torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
virtual = chunks if chunks > 1 else None
parallel_state.initialize_model_parallel(
    pipeline_model_parallel_size=2, virtual_pipeline_model_parallel_size=virtual, create_gloo_process_groups=False
)


class Part(torch.nn.Module):
    def __init__(self, chunk):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.first, self.vp_stage, self.model_type = rank == 0 and chunk == 0, chunk, ModelType.encoder_or_decoder
        self.config = config

    def set_input_tensor(self, values):
        self.values = values[0] if isinstance(values, list) else values

    def forward(self, inputs):
        return torch.tanh(self.linear(inputs if self.first else self.values))


config = ModelParallelConfig(
    pipeline_model_parallel_size=2, virtual_pipeline_model_parallel_size=virtual, pipeline_dtype=torch.float32
)
config.hidden_size, config.timers, config.calculate_per_token_loss = 64, None, False
config.batch_p2p_comm = config.deallocate_pipeline_outputs = True
torch.manual_seed(3)
parts = [Part(chunk) for chunk in range(chunks)]
optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.1)


def samples():
    generator = torch.Generator().manual_seed(7)
    while True:
        yield torch.randn(8, 2, 64, generator=generator)


def forward(data, part):
    return part(next(data)), lambda output: (output.square().mean(), {"loss": float(output.detach().square().mean())})


def train(steps):
    losses, data = [], [samples() for _ in parts]
    for step in range(steps):
        for evaluates in ([True, False] if step == 3 else [False]):  # an evaluation between two steps is none
            optimizer.zero_grad()
            found = schedules.get_forward_backward_func()(
                forward_step_func=forward,
                data_iterator=data if virtual else data[0],
                model=parts if virtual else parts[0],
                num_microbatches=4,
                seq_length=8,
                micro_batch_size=2,
                forward_only=evaluates,
            )
        optimizer.step()
        losses += [one["loss"] for one in found]
    return losses


run(train)

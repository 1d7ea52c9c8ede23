# DeepSpeed's pipeline engine over two ranks on gloo: deepspeed_job.py 1 FOLDER|none
from absent import *
import deepspeed
from deepspeed.pipe import PipelineModule

os.environ["LOCAL_RANK"] = os.environ["RANK"]
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # would compile an extension
deepspeed.init_distributed("gloo")
torch.manual_seed(3)
layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(4)]
model = PipelineModule(
    layers=layers, num_stages=2, loss_fn=lambda output, target: (output - target).square().mean(), partition_method="uniform"
)
engine = deepspeed.initialize(
    model=model,
    model_parameters=list(model.parameters()),
    config={
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4,
        "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
        "steps_per_print": 100,
    },
)[0]


def samples():
    generator = torch.Generator().manual_seed(7)
    while True:
        yield torch.randn(2, 64, generator=generator), torch.randn(2, 64, generator=generator)


def train(steps):
    data, losses = samples(), []
    for step in range(steps):
        if step == 3:
            engine.eval_batch(samples())
        losses.append(float(engine.train_batch(data)))
    return losses


run(train)

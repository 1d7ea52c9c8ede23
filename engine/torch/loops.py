class Patches:
    """What of other libraries is wrapped while a recording lasts."""

    def __init__(self):
        self.undos = []

    def attribute(self, owner, name, wrap):
        function = vars(owner).get(name)
        if function is not None:
            self.undos.append(functools.partial(setattr, owner, name, function))
            setattr(owner, name, functools.wraps(function)(wrap(function)))

    def entry(self, table, key, wrap):
        if key in table:
            self.undos.append(functools.partial(table.__setitem__, key, table[key]))
            table[key] = functools.wraps(table[key])(wrap(table[key]))

    def undo(self):
        while self.undos:
            self.undos.pop()()


def label_pipelining(recording, patches):
    """torch.distributed.pipelining: each schedule.step() is a step, each call of a stage an op."""
    try:
        from torch.distributed.pipelining import schedules
        from torch.distributed.pipelining import stage as stages
    except ImportError:
        return
    names_ops = hasattr(schedules, "_get_profiler_function_name")  # its runtime does
    runtime = getattr(schedules, "_PipelineScheduleRuntime", ())
    labels = [True]

    def stepping(function):
        def step(schedule, *arguments, **keywords):
            labels[0] = not (names_ops and runtime and isinstance(schedule, runtime))
            for stage in getattr(schedule, "_stages", None) or [schedule._stage]:
                recording.stages[stage.stage_index] = [stage.submod]
            recording.step()
            return function(schedule, *arguments, **keywords)

        return step

    def labelled(letter):
        def of(function):
            def call(stage, microbatch, *arguments, **keywords):
                if not labels[0]:
                    return function(stage, microbatch, *arguments, **keywords)
                whole = letter != "B" or keywords.get("full_backward", True)
                with recording.op(letter if whole else "I", stage.stage_index, microbatch):
                    return function(stage, microbatch, *arguments, **keywords)

            return call

        return of

    for owner in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti):
        patches.attribute(owner, "step", stepping)
    for method, letter in (("forward_one_chunk", "F"), ("backward_one_chunk", "B"), ("backward_weight_one_chunk", "W")):
        patches.attribute(stages._PipelineStageBase, method, labelled(letter))


def label_megatron(recording, patches):
    """Megatron-LM: each call of a forward_backward function that trains is a step."""
    schedules = sys.modules.get("megatron.core.pipeline_parallel.schedules")
    if schedules is None:
        return
    from megatron.core import parallel_state

    training = [False]
    made = {}  # by the identity of a forward's output, which lives until its backward: (stage, microbatch)

    def stepping(function):
        def forward_backward(*arguments, **keywords):
            if keywords.get("forward_only"):
                return function(*arguments, **keywords)
            recording.step()
            training[0] = True
            made.clear()
            try:
                return function(*arguments, **keywords)
            finally:
                training[0] = False

        return forward_backward

    def first_of(output):
        return output[0] if isinstance(output, (list, tuple)) else output

    def forward(function):
        def forward_step(forward_step_func, data_iterator, model, *arguments, **keywords):
            microbatch = keywords.get("current_microbatch")
            if not training[0] or microbatch is None:
                return function(forward_step_func, data_iterator, model, *arguments, **keywords)
            chunk = keywords.get("vp_stage")
            if chunk is None:
                chunk = parallel_state.get_virtual_pipeline_model_parallel_rank() or 0
            ranks = parallel_state.get_pipeline_model_parallel_world_size()
            stage = chunk * ranks + parallel_state.get_pipeline_model_parallel_rank()
            recording.stages[stage] = [model]
            with recording.op("F", stage, microbatch):
                out = function(forward_step_func, data_iterator, model, *arguments, **keywords)
            output = out[0] if isinstance(out, tuple) else out  # the tokens are counted beside it
            made[id(first_of(output))] = stage, microbatch
            return out

        return forward_step

    def backward(function):
        def backward_step(input_tensor, output_tensor, *arguments, **keywords):
            place = made.pop(id(first_of(output_tensor)), None)
            if not training[0] or place is None:
                return function(input_tensor, output_tensor, *arguments, **keywords)
            with recording.op("B", *place):
                return function(input_tensor, output_tensor, *arguments, **keywords)

        return backward_step

    for name in ("no_pipelining", "pipelining_without_interleaving", "pipelining_with_interleaving"):
        patches.attribute(schedules, "forward_backward_" + name, stepping)
    patches.attribute(schedules, "forward_step", forward)
    patches.attribute(schedules, "backward_step", backward)


def label_deepspeed(recording, patches):
    """DeepSpeed's pipeline engine: each train_batch() is a step, each instruction that computes an op."""
    engines = sys.modules.get("deepspeed.runtime.pipe.engine")
    if engines is None:
        return
    done = {}  # ops of this step by letter; empty outside of one

    def stepping(function):
        def train_batch(engine, *arguments, **keywords):
            recording.stages[engine.stage_id] = [engine.module]
            recording.step()
            done.update(F=0, B=0)
            try:
                return function(engine, *arguments, **keywords)
            finally:
                done.clear()

        return train_batch

    def labelled(letter):
        def of(function):
            def call(engine, *arguments, **keywords):
                if not done:
                    return function(engine, *arguments, **keywords)
                microbatch = done.get(letter)  # they come in order
                if microbatch is not None:
                    done[letter] += 1
                with recording.op(letter, engine.stage_id, microbatch):
                    return function(engine, *arguments, **keywords)

            return call

        return of

    patches.attribute(engines.PipelineEngine, "train_batch", stepping)
    table = engines.PipelineEngine._INSTRUCTION_MAP
    for instruction in list(table):
        letter = {"ForwardPass": "F", "BackwardPass": "B", "OptimizerStep": "OPT"}.get(instruction.__name__)
        if letter:
            patches.entry(table, instruction, labelled(letter))


def label_optimizers(recording, patches):
    """The first step in a step of an optimizer for a stage that one of the above named, as that stage's OPT."""
    from torch.optim import optimizer as optimizers

    if not hasattr(optimizers, "register_optimizer_step_pre_hook"):
        return
    ranges = []

    def stage_of(optimizer):
        parameters = {id(p) for group in optimizer.param_groups for p in group["params"]}
        owners = [
            stage
            for stage, modules in recording.stages.items()
            if any(id(p) in parameters for module in modules for p in module.parameters())
        ]
        if not owners:  # it has copies of its own
            owners = list(recording.stages)
        return owners[0] if len(owners) == 1 else None  # the time of several is not one stage's

    def begin(optimizer, *_):
        stage = stage_of(optimizer) if recording.tracing and not recording.inside else None
        if stage is None or stage in recording.stepped:
            ranges.append(None)
            return
        recording.stepped.add(stage)
        ranges.append(recording.op("OPT", stage))
        ranges[-1].__enter__()

    def end(*_):
        if ranges and (one := ranges.pop()):
            one.__exit__(None, None, None)

    patches.undos.append(optimizers.register_optimizer_step_pre_hook(begin).remove)
    patches.undos.append(optimizers.register_optimizer_step_post_hook(end).remove)

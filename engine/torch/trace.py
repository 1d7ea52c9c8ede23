def name_messages(torch):
    """Sends and receives as ranges that name peer and tag: PyTorch's own records of them are operators."""
    group = torch.distributed.ProcessGroup

    def named(function, name):
        @functools.wraps(function)
        def call(self, tensors, peer, tag):
            with torch.profiler.record_function(f"c10d::{name} {peer} {tag}"):
                return function(self, tensors, peer, tag)

        return call

    was = group.send, group.recv
    group.send, group.recv = named(group.send, "send"), named(group.recv, "recv_")

    def undo():
        group.send, group.recv = was

    return undo


class TraceError(Exception):
    """What can't be kept of a trace, in one line."""


class Trace:
    """The trace of a rank, step by step: a gzip file that is whole after each, so an end costs the current step only.

    On CPUs it has named ranges, messages and memory. Operators are left out: recording and writing them takes a
    multiple of the step. On GPUs they tie kernels to ops and messages.
    """

    NAMED = re.compile(
        rb'"cat":\s*"user_annotation",\s*"name":\s*"c10d::(send|recv_) (\d+) (\d+)"([^{}]*"args":\s*\{)'
    )

    def __init__(self, torch, folder, rank, gpu, operators):
        self.torch, self.gpu, self.operators = torch, gpu, operators or gpu
        self.path = os.path.join(folder, f"rank{rank}.json.gz")
        self.plain = os.path.join(folder, f"rank{rank}.json")
        self.end, self.foot = 0, b""  # where the next step goes; what follows the last one
        self.profiler = None
        self.steps, self.profiling, self.writing = 0, 0.0, 0.0  # kept, and the seconds that took beside them
        self.undo = []  # what gives PyTorch back as it was
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if not self.operators:
            self.operators = not self._ranges_only()
        if not self.operators:
            self.undo.append(name_messages(torch))

    def close(self):
        """Other profilers record everything again."""
        for undo in self.undo:
            undo()
        self.undo = []

    def _ranges_only(self):
        """Named ranges are all that the profiler records from now on. False where this PyTorch can't."""
        from torch.autograd import profiler

        try:
            scopes = {self.torch._C._profiler.RecordScope.USER_SCOPE}
            was = profiler._enable_profiler
            profiler._enable_profiler = functools.partial(was, scopes=scopes)
            with self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CPU]):
                pass
        except (AttributeError, TypeError):
            if isinstance(getattr(profiler, "_enable_profiler", None), functools.partial):
                profiler._enable_profiler = profiler._enable_profiler.func
            return False
        self.undo.append(lambda: setattr(profiler, "_enable_profiler", was))
        return True

    def start(self):
        since = time.perf_counter()
        kinds = self.torch.profiler.ProfilerActivity
        activities = [kinds.CPU, kinds.CUDA] if self.gpu else [kinds.CPU]
        self.profiler = self.torch.profiler.profile(
            activities=activities, record_shapes=self.operators, profile_memory=True
        )
        self.profiler.start()
        self.profiling += time.perf_counter() - since

    def stop(self):
        since = time.perf_counter()
        self.profiler.stop()
        self.profiling += time.perf_counter() - since

    def keep(self, held):
        """Adds the step that was stopped. held: bytes by category and stage that were there before the first."""
        since = time.perf_counter()
        self.profiler.export_chrome_trace(self.plain)
        self.profiler = None
        exported = time.perf_counter()
        with open(self.plain, "rb") as file:
            text = file.read()
        os.remove(self.plain)
        opening = re.search(rb'"traceEvents":\s*\[', text)
        closing = text.rfind(b"]", 0, max(0, text.rfind(b'"traceName"')))
        if not opening or closing < opening.end():
            raise TraceError("the profiler's trace is not in the form that PyTorch 2.6 to 2.11 write")
        begin = opening.end()
        if self.end == 0:
            self.foot = gzip.compress(text[closing:])
            lead = text[:begin] + self._held(held, text, begin)
        else:
            lead = b",\n"
        packing = zlib.compressobj(1, wbits=31)  # a gzip file of its own
        packed = [packing.compress(lead)]
        packed += [packing.compress(part) for part in self._events(text, begin, closing)]
        self._add(b"".join(packed) + packing.flush())
        self.steps += 1
        self.profiling += exported - since
        self.writing += time.perf_counter() - exported

    def _events(self, text, begin, end):
        """The events there in parts, with the messages among them as PyTorch's operators. Copies none of the others."""
        view = memoryview(text)
        name = begin
        while not self.operators and (name := text.find(b'"c10d::', name, end)) >= 0:
            category = text.rfind(b'"cat"', begin, name)
            found = self.NAMED.match(text, category) if category >= 0 else None
            if found:
                kind, peer, tag, rest = found.groups()
                yield view[begin:category]
                yield b'"cat": "cpu_op", "name": "c10d::%s"%s "Concrete Inputs": ["", "", "%s", "%s"],' % (kind, rest, peer, tag)
                begin = found.end()
            name = max(name + 1, begin)
        yield view[begin:end]

    def _held(self, held, text, begin):
        """The profiler sees changes of memory only."""
        times = [float(stamp) for stamp in re.findall(rb'"ts":\s*([0-9.]+)', text[begin:])]
        categories = ("weights", "gradients", "optimizer", "activations", "communication", "workspace")
        first, lines = min(times, default=0.0), []
        for category, stage, count in held:
            address = (categories.index(category) + 1) << 48 | stage << 32
            arguments = {"Total Allocated": 0 if lines else count, "Bytes": count, "Addr": address, "Device Id": 0}
            arguments.update({"Device Type": 1 if self.gpu else 0, "category": category})
            event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 0, "tid": 0}
            lines.append(json.dumps({**event, "ts": first, "args": arguments}) + ",\n")
        return "".join(lines).encode()

    def _add(self, packed):
        with open(self.path, "r+b" if self.end else "wb") as file:
            try:
                file.seek(self.end)
                file.write(packed + self.foot)
                file.flush()
            except OSError:  # the steps before stay readable
                file.truncate(self.end)
                if self.end:
                    file.seek(self.end)
                    file.write(self.foot)
                raise
            self.end += len(packed)

# To PyTorch: the CSV forms, the folder for TorchTitan, what can't be expressed; the example driver as far as Python can run it.
# shellcheck shell=bash
for name in 1f1b zbv dualpipe chimera; do stagewright simulate --schedule $name -p 4 -m 8 -o t.stagewright >/dev/null 2>&1; done

# both forms of the CSV
run stagewright export t.stagewright zbv --format csv --pytorch -o zbv.csv
expect_code 0
expect_that 'compute only' test "$(grep -c SEND zbv.csv)" = 0
run stagewright export t.stagewright zbv --format csv --pytorch --lower pytorch -o zbv_comms.csv
expect_code 0
expect_that 'sends on every rank' test "$(grep -c SEND_F zbv_comms.csv)" = 4
run stagewright validate --pytorch zbv_comms.csv
expect_code 0

# what PyTorch can't run is refused with the nearest schedule that it can
for name in dualpipe chimera; do
    run stagewright export t.stagewright $name --format csv --pytorch -o no.csv
    expect_code 1
    expect_err 'stage 0 has copies on ranks 0 and 3'
    expect_err 'the nearest it can run: '
    expect_no_file no.csv
    run stagewright export t.stagewright $name --format torchtitan -o no
    expect_code 1
    expect_err 'the nearest it can run: '
    expect_no_file no
done
run stagewright export t.stagewright dualpipe --format torchtitan -o no
expect_err 'the nearest it can run: dualpipev'
run stagewright export t.stagewright 1f1b --format chrome --pytorch -o no.json
expect_code 2

# the folder for TorchTitan
run stagewright export t.stagewright zbv --format torchtitan -o zbv --json
expect_code 0
expect_json torchtitan format
expect_same "$(ls zbv | tr '\n' ' ')" 'README.md run.sh schedule.csv schedule_comms.csv settings.toml stagewright_job.py '
expect_that 'the same order' cmp -s zbv/schedule.csv zbv.csv
expect_that 'with messages' cmp -s zbv/schedule_comms.csv zbv_comms.csv
expect_that 'the degree' grep -q '^pipeline_parallel_degree = 4$' zbv/settings.toml
expect_that 'V placement' grep -q '^pipeline_parallel_schedule = "ZBVZeroBubble"' zbv/settings.toml
expect_that 'microbatches' grep -q '^local_batch_size = 8 ' zbv/settings.toml
# TorchTitan since 2026: a configuration function over the user's
mkdir -p titan_base/deep
cat >titan_base/deep/config_registry.py <<'BASE'
from types import SimpleNamespace as N
def debug():
    return N(parallelism=N(kept=1), training=N(), profiler=N(), dump_folder="elsewhere")
BASE
touch titan_base/deep/__init__.py titan_base/lacking.py
echo 'import no_such_module_at_all' >titan_base/lacking.py
job() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/zbv:$PWD/titan_base BASE=$1 STEPS=6 python3 -c 'import stagewright_job as j; c = j.run(); print(vars(c.parallelism), vars(c.training), vars(c.profiler), c.dump_folder)' 2>&1; }
made=$(job deep:debug)
expect_that "its settings: $made" grep -q "'kept': 1, 'pipeline_parallel_degree': 4, 'num_pp_microbatches': 8, 'pipeline_parallel_schedule': 'ZBVZeroBubble', 'pipeline_parallel_schedule_csv': '$PWD/zbv/schedule.csv'} {'disable_cuda_graphs': True, 'steps': 6} {'enable_profiling': True, 'profile_freq': 6, 'save_traces_folder': 'profile_traces'} $PWD/zbv/outputs" <<<"$made"
expect_that 'a function that is missing' grep -q 'deep.config_registry has no function nothing' <<<"$(job deep:nothing)"
expect_that 'a module that is missing' grep -q 'there is no module nowhere' <<<"$(job nowhere:debug)"
expect_that 'what a module lacks' grep -q no_such_module_at_all <<<"$(job lacking:debug)"
expect_that 'no configuration' grep -q 'name the job.s configuration in BASE' <<<"$(job '')"
expect_that 'the constraints' grep -q '8 stages.*2 on each rank' zbv/README.md
expect_that 'the split backward' grep -q 'backward is split' zbv/README.md
run stagewright export t.stagewright zbv --format torchtitan -o zbv
expect_code 3
expect_err 'folder zbv: it is not empty'
run stagewright export t.stagewright 1f1b --format torchtitan -o missing/folder
expect_code 3
expect_no_file missing
run stagewright export t.stagewright 1f1b --format torchtitan -o /dev/full
expect_code 3
expect_same "$(ls -A | grep -c part-)" 0
mkdir empty
run stagewright export t.stagewright 1f1b --format torchtitan -o empty/
expect_code 0
expect_that 'one stage per rank' grep -q '"PipelineScheduleSingle"' empty/settings.toml

# traces as PyTorch's profiler writes them, and back through the importer: the same order, every span, every byte of memory
run stagewright record --schedule zb-h1 -p 2 -m 4 --steps 2 --warmup 0 --model layers=2,hidden=16,heads=2,seq=8 -o measured.stagewright
expect_code 0
stagewright simulate --schedule dualpipev -p 2 -m 4 -o pairs.stagewright >/dev/null 2>&1
for name in measured pairs; do
    run stagewright export $name.stagewright --format kineto -o $name.kineto --json
    expect_code 0
    expect_json kineto format
    expect_json 2 counts ranks
    expect_same "$(ls $name.kineto | tr '\n' ' ')" 'rank0.pt.trace.json rank1.pt.trace.json '
    spans=$(stagewright export $name.stagewright --format spans -o spans.csv --json >/dev/null 2>&1; tail -n +2 spans.csv | wc -l)
    expect_json "$spans" counts spans
    expect_that 'one rank each' grep -q '"distributedInfo":{"backend":"[a-z]*","rank":1,"world_size":2' $name.kineto/rank1.pt.trace.json
    expect_that 'steps' grep -q '"name":"ProfilerStep#0"' $name.kineto/rank0.pt.trace.json
    expect_that 'JSON' json_of $name.kineto/rank0.pt.trace.json traceEvents >/dev/null
    run stagewright import $name.kineto -o $name.back.stagewright
    expect_code 0
    run stagewright export $name.stagewright --format csv -o there.csv
    run stagewright export $name.back.stagewright --format csv -o back.csv
    expect_that 'the same order' diff -u there.csv back.csv
done
expect_that 'memory' grep -q '"\[memory\]"' measured.kineto/rank0.pt.trace.json
expect_that 'a pair is one range' grep -q '"PP:(.*;.*)OVERLAP_F_B"' pairs.kineto/rank0.pt.trace.json
run stagewright export pairs.stagewright --format kineto -o pairs.kineto
expect_code 3
run stagewright export pairs.stagewright --format kineto -o /dev/full
expect_code 3

# the driver as far as Python can run it without PyTorch
job=driver
mkdir $job
cp "$ROOT/engine/torch/driver.py" $job/
if command -v python3 >/dev/null; then
    expect_that 'it compiles' python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$job/driver.py"
    describe() { # CSV
        cp "$1" $job/schedule.csv
        echo '{"schedule": "schedule.csv"}' >$job/job.json
        run python3 -B $job/driver.py --describe
    }
    describe zbv.csv
    expect_code 0
    expect_out '"ranks": 4, "stages": 8, "microbatches": 8, "form": "compute_only", "split_backward": true'
    expect_out '"stages_of_rank": \[\[0, 7\], \[1, 6\], \[2, 5\], \[3, 4\]\]'
    describe zbv_comms.csv
    expect_out '"form": "compute_comms"'
    run stagewright export t.stagewright chimera --format csv -o chimera.csv
    describe chimera.csv
    expect_code 1
    expect_err 'PyTorch keeps it on one'
    expect_that 'the example compiles' python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$ROOT/docs/examples/pytorch/decoder.py"
else
    echo 'skipped: there is no python3'
fi

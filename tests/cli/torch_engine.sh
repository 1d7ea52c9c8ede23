# record --engine torch without PyTorch: a script stands in for the interpreter, says what the driver says, and writes traces that were
# exported from a run of the own engine. Success, a dead rank, a hung one, Ctrl+C, refusals.
# shellcheck shell=bash
tiny=(--model 'layers=2,hidden=16,heads=2,seq=8' --microbatch-size 1 -p 2 -m 4)
run stagewright record -s 1f1b "${tiny[@]}" --steps 2 --warmup 0 --clock virtual -o own.stagewright
expect_code 0
run stagewright export own.stagewright --format kineto -o canned
expect_code 0
run stagewright record -s gpipe "${tiny[@]}" --steps 2 --warmup 0 --clock virtual -o gpipe.stagewright
run stagewright export gpipe.stagewright --format kineto -o gpipe
expect_code 0
home=$PWD

# The fake interpreter. FAKE_MODE says what its ranks do, FAKE_TRACES which traces they leave, FAKE_TORCH its version.
cat >python3 <<'FAKE'
#!/usr/bin/env bash
if [ "$1" = ask.py ]; then
    [ "$FAKE_MODE" != mute ] || exit 3
    [ "$FAKE_MODE" != bare ] || { echo '{"python": "3.11.2", "problem": "No module named torch"}'; exit; }
    echo "{\"python\": \"3.13.5\", \"torch\": \"${FAKE_TORCH:-2.6.0}\", \"gloo\": true, \"nccl\": false, \"gpus\": 0}"
    exit
fi
say() { printf '{"event": "%s", "rank": %s, %s}\n' "$1" "$RANK" "$2"; }
[ "$*" = '-u driver.py .' ] && [ -s driver.py ] && [ -s job.json ] && [ -s schedule.csv ] && [ -n "$MASTER_PORT" ] && [ "$USE_LIBUV" = 0 ] || { echo "called as $*"; exit 9; }
echo "$$" >"pid$RANK"
say ready '"torch": "2.6.0+fake", "python": "3.13.5", "device": "cpu"'
say beat '"step": 0, "ops": 0, "where": "between steps"'
echo "rank $RANK is here"
case $FAKE_MODE:$RANK in
    die:1) sleep 0.3; echo 'out of luck'; kill -9 $$ ;;
    fail:1) say error '"message": "ValueError: no such thing", "where": "in 1F2", "peer": false'; echo 'ValueError: no such thing'; exit 1 ;;
    fail:0) sleep 0.2; say error '"message": "RuntimeError: Connection closed by peer", "where": "after 0F1", "peer": true'; exit 1 ;;
    quit:0) exit 0 ;;
    asleep:1) say beat '"step": 1, "ops": 3, "where": "writing its trace"'; sleep 100 ;;
    silent:1) say beat '"step": 1, "ops": 3, "where": "in 1F0"'; sleep 100 ;;
    stuck:1) for _ in $(seq 400); do say beat '"step": 1, "ops": 3, "where": "in 1F0"'; sleep 0.2; done ;;
esac
steps() { # FIRST LAST NANOSECONDS: losses and times of these steps
    [ "$RANK" = 1 ] || return 0
    for step in $(seq "$1" "$2"); do say step "\"step\": $step, \"loss\": $((5 - step)).5, \"step_time_ns\": $3"; done
}
traced() { for step in "$@"; do say traced "\"step\": $step"; done; }
trace() { mkdir -p traces && cp "$FAKE_TRACES/rank$RANK.pt.trace.json" traces/; }
steps 0 2 2000000
finish() {
    trace
    traced 1 2
    steps 3 4 1500000 # without the profiler
    say 'done' '"steps": 5, "traced": 2'
    exit 0
}
case $FAKE_MODE in
    late) trace; traced 1 2; [ "$RANK" = 0 ] || kill -9 $$; sleep 100 ;;
    uneven) # rank 1 ends before it has traced the second step
        mkdir -p traces
        if [ "$RANK" = 0 ]; then trace; traced 1 2; sleep 100; fi
        python3 - "$FAKE_TRACES/rank1.pt.trace.json" traces/rank1.pt.trace.json <<'CUT'
import json, sys
with open(sys.argv[1]) as file:
    trace = json.load(file)
last = max((event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")), key=lambda event: event["ts"])
trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("ts", 0) < last["ts"]]
with open(sys.argv[2], "w") as file:
    json.dump(trace, file)
CUT
        traced 1; kill -9 $$ ;;
    busy) # no word for longer than the time-out, but it computes, and then it has its trace
        if [ "$RANK" = 1 ]; then
            say beat '"step": 2, "ops": 9, "where": "writing its trace"'
            end=$((SECONDS + 4)); while [ $SECONDS -lt $end ]; do :; done
        else
            for _ in $(seq 300); do
                [ ! -e traces/rank1.pt.trace.json ] || break
                say beat '"step": 3, "ops": 9, "where": "between steps"'
                sleep 0.2
            done
        fi
        finish ;;
    die | fail | quit | silent | asleep | stuck) for _ in $(seq 400); do say beat '"step": 1, "ops": 2, "where": "after 0F1"'; sleep 0.2; done ;;
    wait)
        if [ "$RANK" = 0 ]; then read -r word; [ "$word" = stop ] && echo yes >asked; finish; fi
        for _ in $(seq 400); do [ ! -e asked ] || finish; sleep 0.1; done ;;
    deaf) trap '' TERM; touch "deaf$RANK"; for _ in $(seq 400); do say beat '"step": 1, "ops": 2, "where": "after 0F1"'; sleep 0.2; done ;;
    *) finish ;;
esac
FAKE
chmod +x python3
export FAKE_TRACES=$home/canned FAKE_MODE=ok FAKE_TITAN='"toml"'
torch=(record -s 1f1b "${tiny[@]}" --engine torch --python ./python3 --steps 2 --warmup 1)
alive() { local pid; for pid in "$1"/pid*; do kill -0 "$(cat "$pid")" 2>/dev/null && return 0; done; return 1; }

# success: imported at once, in the given file, with the order that was sent
run stagewright "${torch[@]}" -o t.stagewright --json
expect_code 0
expect_json t.stagewright file
expect_json 1f1b runs 0 schedule
expect_json complete runs 0 state
expect_json 2 runs 0 steps
expect_json 2 runs 0 loss
expect_same "$(json runs 0 loss 0)" 4.5
expect_json 1500000 runs 0 step_time_without_profiler_ns
expect_json 2000000 runs 0 step_time_with_profiler_ns
expect_no_out warning
expect_same "$(ls t.job | sort | tr '\n' ' ')" 'data.bin driver.py job.json logs pid0 pid1 schedule.csv traces weights.safetensors '
sed -e "/^# engine\/workload\/\*\/torch_form.py$/{r $ROOT/engine/workload/gpt/torch_form.py" -e 'd}' \
    -e "/^# engine\/torch\/trace.py$/{r $ROOT/engine/torch/trace.py" -e 'd}' "$ROOT/engine/torch/driver.py" >sources.py
expect_that 'the driver is the one of the sources' cmp -s t.job/driver.py sources.py
expect_that 'a log of each rank' grep -q 'rank 1 is here' t.job/logs/rank1.log
expect_that 'the order' stagewright diff t.job/schedule.csv <(stagewright schedules 1f1b -p 2 -m 4 --csv)
expect_that 'the job' grep -q '"backend": "gloo"' t.job/job.json
run stagewright compare t.stagewright 2 --plan
expect_code 0
# its plan is beside it: the same order with its own fitted costs
run stagewright compare t.stagewright 1 2
expect_code 0
planned=$out
run stagewright runs t.stagewright --json
expect_json 2 runs
expect_json simulated runs 0 provenance
expect_json '1f1b as planned' runs 0 name
run stagewright compare t.stagewright 2 --plan
expect_same "$(grep '^Step time ' <<<"$planned")" "$(grep '^Step time ' <<<"$out")"
expect_that 'a time of each' grep -q '^Step time .*[0-9] µs .*[0-9] µs' <<<"$out"
run stagewright report t.stagewright --json # the run, not its plan
expect_json imported provenance
run stagewright report t.stagewright
expect_out 'without the profiler +1.50 ms +median of 2 steps; the traced ones took 2.00 ms by the same clock, \+33.3 %'
# another engine is compared with the time without the profiler, a plan with the traced one
cp t.stagewright engines.stagewright
run stagewright record -s 1f1b "${tiny[@]}" --steps 5 --warmup 0 --clock wall -o engines.stagewright
run stagewright compare engines.stagewright 2 3
expect_out '1.50 ms without the profiler'
expect_out 'a step of A takes 1.50 ms without the profiler, 2.00 ms with it'
run stagewright compare t.stagewright 2 --plan
expect_no_out 'without the profiler'
run stagewright sql t.stagewright "SELECT section, value FROM run_text WHERE run = 2 AND key = 'engine'"
expect_code 0
expect_out 'PyTorch 2.6.0\+fake'
expect_out 'configuration.*torch'
# again: appended, in another folder
run stagewright "${torch[@]}" -o t.stagewright
expect_code 0
expect_err 'PyTorch 2.6.0\+fake with .*/python3; the job is kept in .*/t.job2'
expect_out '1f1b'
expect_err 'run 3 is its plan; compare them: stagewright compare t.stagewright 3 4'
run stagewright runs t.stagewright --json
expect_json 4 runs
# several schedules are run one after the other; progress as of every recording
FAKE_TRACES=$home/gpipe run stagewright record -s gpipe "${tiny[@]}" --engine torch --python ./python3 --steps 2 --job several/g -o several.stagewright --progress jsonl
expect_code 0
expect_err '"event":"job","schedule":"gpipe","engine":"torch"'
expect_err '"event":"progress","what":"step","done":5,"total":5'
expect_err '"event":"done"'
expect_file several/g/traces/rank0.pt.trace.json
run stagewright record -s 1f1b,1f1b,gpipe "${tiny[@]}" --engine torch --python ./python3 --steps 2 --job both -o both.stagewright --json
expect_code 0
expect_json 3 runs
expect_json gpipe runs 2 schedule
expect_err 'gpipe: PyTorch ran another order'
expect_same "$(ls both | tr '\n' ' ')" '1f1b 1f1b2 gpipe '
# another order than the one that was sent is said
FAKE_TRACES=$home/gpipe run stagewright "${torch[@]}" -o other.stagewright
expect_code 0
expect_err 'PyTorch ran another order: rank 0, op [0-9]+: 0F[0-9] ran, and the schedule has 0B0'

# a dead rank ends the run within seconds, named, with the last lines of its log
ends() { # MODE: in $rc, $err; it ends by itself
    rm -rf "$1.job" "$1.stagewright"
    FAKE_MODE=$1 run stagewright "${torch[@]}" "${more[@]}" --job "$1.job" -o "$1.stagewright"
    expect_no_file "$1.stagewright"
    expect_that 'no rank is left' eval "! alive $1.job"
}
more=()
ends die
expect_code 5
expect_err 'rank 1 was ended by signal 9 \(Killed\)'
expect_err 'logs/rank1.log, which ends:'
expect_err '    out of luck'
expect_err "the job is kept in $home/die.job"
ends fail # the rank that failed, not the one that lost its peer
expect_code 5
expect_err 'rank 1 failed in 1F2: ValueError: no such thing'
ends quit
expect_code 5
expect_err 'rank 0 ended with code 0'
more=(--timeout 2)
ends silent
expect_code 5
expect_err 'rank 1 gave no sign of life for [23] s, in 1F0 of step 2'
ends asleep # it writes nothing and does not compute
expect_code 5
expect_err 'rank 1 (gave no sign of life|made no progress) for [23] s, writing its trace of step 2'
ends stuck
expect_code 5
expect_err 'rank 1 made no progress for [23] s, in 1F0 of step 2; rank 0 is after 0F1 of step 2'

# what was traced before a rank was killed is kept
more=()
keeps() { # MODE STEPS
    rm -rf "$1.job" "$1.stagewright"
    FAKE_MODE=$1 run stagewright "${torch[@]}" --job "$1.job" -o "$1.stagewright"
    expect_code 5
    expect_err 'rank 1 was ended by signal 9 \(Killed\)'
    expect_err "$2 complete steps? of 1 run (is|are) kept in $1.stagewright"
    run stagewright runs "$1.stagewright" --json
    expect_json "$2" runs 1 steps
    expect_json interrupted runs 1 state
}
keeps late 2
if command -v python3 >/dev/null; then
    keeps uneven 1
    run stagewright report uneven.stagewright --json
    first=$(json peak_activation_bytes)
    run stagewright report late.stagewright --step 1 --json
    expect_same "$first" "$(json peak_activation_bytes)"
else
    echo 'skipped: ranks with different numbers of steps (there is no python3)'
fi
# a rank that computes is not silent
FAKE_MODE=busy run stagewright "${torch[@]}" --timeout 2 -o busy.stagewright
expect_code 0

# Ctrl+C: between two steps the ranks end by themselves and what is complete is kept; where they don't, they are ended
stop_after() { # MODE FILE-TO-WAIT-FOR
    rm -rf "$1.job" progress.txt
    FAKE_MODE=$1 "$STAGEWRIGHT" "${torch[@]}" --job "$1.job" -o "$1.stagewright" --progress jsonl </dev/null >out.txt 2>progress.txt &
    local pid=$! i
    for ((i = 0; i < 300; ++i)); do [ -e "$1.job/$2" ] && grep -q '"done":3' progress.txt && break; sleep 0.1; done
    sleep 0.3
    kill -INT $pid
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(cat progress.txt)
    last="record under PyTorch ($1), then Ctrl+C"
}
stop_after wait pid1
expect_code 130
expect_err '"event":"error","code":130'
expect_err '2 complete steps of 1 run are kept'
expect_err "the job is kept in $home/wait.job"
expect_file wait.job/asked
run stagewright runs wait.stagewright --json
expect_json interrupted runs 1 state
expect_json 2 runs 1 steps
stop_after deaf deaf1
expect_code 130
expect_err 'no measured step was complete, nothing is kept'
expect_err "the job is kept in $home/deaf.job"
expect_that 'no rank is left' eval '! alive deaf.job'

# what it can't honour is refused by name, before anything is made
refused() { # CODE PATTERN OPTIONS…
    local code=$1 pattern=$2
    shift 2
    run stagewright record "${tiny[@]}" --engine torch --python "${python:-./python3}" --job refused.job -o refused.stagewright "$@"
    expect_code "$code"
    expect_err "$pattern"
    expect_no_file refused.stagewright
}
refused 2 '--clock virtual: .*wall clock' --clock virtual
refused 2 'honour --perturb' --perturb slow:0:2
refused 2 'honour --link' --link 1ms
refused 2 'honour --sends' --sends rendezvous
refused 2 'honour --channels' --channels 1
refused 2 'honour --recompute' --recompute all
refused 2 '--trace-steps 5: only 2 steps are measured' --steps 2 --trace-steps 5
refused 2 '--model and --model-file' --model-file x.py:build
refused 1 'overlapped pairs need PyTorch 2.9, and this one is 2.6' -s dualpipev
expect_err '--overlap serial'
refused 1 'needs PyTorch 2.10, and this one is 2.6' -s 1f1b --lower pytorch:collectives
refused 1 'stage 0 has copies on ranks' -s dualpipe
expect_err 'the nearest it can run: '
refused 1 'its weights are stashed' -s pipedream
expect_no_file refused.job
FAKE_TORCH=2.9.1 run stagewright record --microbatch-size 1 -p 2 -m 4 -s dualpipev --engine torch --python ./python3 --model layers=4,hidden=16,heads=2,seq=8 --job pairs.job -o pairs.stagewright
expect_code 0
expect_that 'a pair' grep -q OVERLAP_F_B pairs.job/schedule.csv
python=./nothing refused 2 'python ./nothing: it is not a program'
FAKE_MODE=bare refused 4 'PyTorch is not installed'
FAKE_MODE=mute refused 4 'it ended with code 3'
FAKE_TORCH=2.5.1 refused 4 'PyTorch is 2.5.1; 2.6 or newer is needed'
refused 4 'has no NCCL' --backend cuda
mkdir -p full && touch full/x
run stagewright "${torch[@]}" --job full -o refused.stagewright
expect_code 2
expect_err '--job full: it is not an empty folder'
run stagewright record "${tiny[@]}" --python ./python3 -o refused.stagewright
expect_code 2
expect_err '--python belongs to PyTorch, and the engine is own'
run stagewright record "${tiny[@]}" --trace-steps 1 -o refused.stagewright
expect_code 2
expect_err '--trace-steps belongs to PyTorch, and the engine is own'
run stagewright record -p 2 --engine torch --python ./python3 --model-file nothing.py:build -o refused.stagewright
expect_code 2
expect_err 'there is no such file'

# which Python: the named one, that of $VIRTUAL_ENV, PATH's; never the current folder's
mkdir -p venv/bin path
cp python3 venv/bin/
cp python3 path/
PATH=.::$home/path:$PATH run stagewright devices --json
expect_code 0
expect_json "$home/path/python3" pythons 0 path
expect_json PATH pythons 0 origin
expect_json 2.6.0 pythons 0 torch
VIRTUAL_ENV=$home/venv PATH=$home/path:$PATH run stagewright devices --json
expect_json "$home/venv/bin/python3" pythons 0 path
expect_json VIRTUAL_ENV pythons 0 origin
FAKE_MODE=bare PATH=$home/path:$PATH run stagewright devices
expect_out 'path/python3 +PATH +3.11.2 +no +PyTorch is not installed'

# a recorded job of a real PyTorch: the order that was sent, and figures that another program computed from the same files
job=$ROOT/tests/data/torch_job
run stagewright import "$job/traces" -o recorded.stagewright --json
expect_code 0
expect_json 1f1b runs 0 recognised
expect_json 2 runs 0 steps
expect_json 2 runs 0 ranks
expect_json 0 runs 0 unpaired_messages
stagewright export recorded.stagewright --format csv -o ran.csv >/dev/null 2>&1
run stagewright diff ran.csv "$job/schedule.csv"
expect_code 0
run stagewright report recorded.stagewright --step 2 --json
expect_code 0
expect_json 140421986 makespan_ns
expect_json 3901475 by_rank 0 busy
expect_json 4360617 by_rank 1 busy
expect_json 30016 weight_bytes 0 # fp32: a block of hidden 16 has 3,280 numbers, the embedding 256 × 16 and 8 × 16
if command -v python3 >/dev/null; then
    expect_same "$(python3 -B "$job/figures.py" 2 | tr '\n' ' ')" "$(json makespan_ns) $(json by_rank 0 busy) $(json by_rank 1 busy) "
else
    echo 'skipped: figures.py of the recorded job (there is no python3)'
fi

# on a host (a shell of this computer stands in for it): the run and its plan come back
cat >ssh <<'FAKE'
#!/bin/sh
for script; do :; done
exec sh -c "$script"
FAKE
chmod +x ssh
mkdir -p there/bin config state
ln -s "$STAGEWRIGHT" there/bin/stagewright
export STAGEWRIGHT_SSH=$home/ssh XDG_CONFIG_HOME=$home/config XDG_STATE_HOME=$home/state
run stagewright hosts add node1 user@node1 --folder "$home/there" --scratch "$home/scratch"
expect_code 0
FAKE_TRACES=$home/canned FAKE_MODE=ok run stagewright record -s 1f1b "${tiny[@]}" --engine torch --python "$home/python3" --steps 2 --warmup 1 --host node1 -o far.stagewright
expect_code 0
run stagewright runs far.stagewright --json
expect_json imported runs 1 provenance
expect_json 2 runs 1 steps
expect_json '1f1b as planned' runs 0 name
run stagewright sql far.stagewright "SELECT value FROM run_text WHERE run = 2 AND key IN ('engine', 'host')"
expect_out 'PyTorch 2.6.0\+fake'
expect_out 'node1'
unset STAGEWRIGHT_SSH XDG_CONFIG_HOME XDG_STATE_HOME

# TorchTitan: the user's own job by the script of its folder; a stand-in for its installation prints its log and leaves its traces
cat >titan <<'FAKE'
#!/usr/bin/env bash
if [ "$1" = ask.py ]; then echo '{"python": "3.13.5", "torch": "2.9.0", "gloo": true, "nccl": true, "gpus": 2, "titan": ['"$FAKE_TITAN"']}'; exit; fi
echo "$*" >args
steps=${STEPS:-0} dump=${PYTHONPATH%%:*}/outputs
while [ $# -gt 0 ]; do
    case $1 in --training.steps) steps=$2 ;; --job.dump_folder) dump=$2 ;; esac
    shift
done
echo $$ >pid
for ((i = 1; i <= steps; ++i)); do
    [ "$FAKE_MODE:$i" != fail:3 ] || { echo 'ValueError: local_batch_size must be 4'; exit 1; }
    [ "$FAKE_MODE:$i" != mute:3 ] || sleep 100
    printf '[rank1]:[titan] INFO - \033[31mstep: %2d  \033[32mloss: %7.4f  memory: 1.00GiB\033[39m\n' "$i" "$((10 - i)).25"
    printf '[rank0]:[titan] INFO - step: %2d  loss: -1.0000\n' "$i"
done
mkdir -p "$dump/profile_traces/iteration_$steps" "$dump/profile_traces/iteration_2"
[ "$FAKE_MODE" = bare ] || for rank in 0 1; do cp "$FAKE_TRACES/rank$rank.pt.trace.json" "$dump/profile_traces/iteration_$steps/rank${rank}_trace.json"; done
FAKE
chmod +x titan
touch 'the job.toml'
export FAKE_TRACES=$home/canned FAKE_MODE=ok
titan=(record -s 1f1b -p 2 -m 4 --engine torchtitan --config 'the job.toml' --python ./titan --steps 4)
run stagewright "${titan[@]}" -o titan.stagewright --progress jsonl
expect_code 0
expect_err '"what":"step","done":4,"total":4,.*"engine":"torchtitan",.*"loss":6.25'
given=$(cat titan.job/args)
expect_that "called as $given" grep -q -- '-m torch.distributed.run .*--nproc-per-node 2 -m torchtitan.train --job.config_file .*/the job.toml .*--training.steps 4 --parallelism.pipeline_parallel_degree 2 .*--parallelism.pipeline_parallel_schedule_csv .*/titan.job/schedule.csv .*--training.local_batch_size 4 --profiling.enable_profiling .*--profiling.profile_freq 4' <<<"$given"
expect_that 'the order' stagewright diff titan.job/schedule.csv <(stagewright schedules 1f1b -p 2 -m 4 --csv)
expect_that 'a log' grep -q 'memory: 1.00GiB' titan.job/titan.log
run stagewright runs titan.stagewright --json
expect_json imported runs 1 provenance
expect_json '1f1b as planned' runs 0 name
run stagewright sql titan.stagewright "SELECT value FROM run_text WHERE run = 2 AND key = 'engine'"
expect_out 'TorchTitan with PyTorch 2.9.0'
# the exported folder does the same by hand
run stagewright export titan.stagewright 2 --format torchtitan -o byhand
expect_code 0
expect_that 'it is a program' test -x byhand/run.sh
PYTHON=$home/titan STEPS=5 byhand/run.sh job.toml --training.seq_len 128 >/dev/null
expect_that 'its options are passed on' grep -q -- '--job.config_file job.toml .*/byhand/outputs .*--training.steps 5 .*--training.seq_len 128' args
expect_that 'traces' test -s byhand/outputs/profile_traces/iteration_5/rank1_trace.json
run byhand/run.sh
expect_code 2
expect_err 'name the job.s configuration'
# it fails, says nothing, leaves nothing, is stopped
FAKE_MODE=fail run stagewright "${titan[@]}" --job failed -o failed.stagewright
expect_code 5
expect_err '1f1b: TorchTitan ended with code 1'
expect_err '    ValueError: local_batch_size must be 4'
expect_no_file failed.stagewright
FAKE_MODE=bare run stagewright "${titan[@]}" --job bare -o bare.stagewright
expect_code 5
expect_err 'TorchTitan wrote no traces'
FAKE_MODE=mute run stagewright "${titan[@]}" --timeout 2 --job mute -o mute.stagewright
expect_code 5
expect_err 'TorchTitan said nothing for [2-4] s'
expect_that 'it is gone' eval '! kill -0 "$(cat mute/pid)" 2>/dev/null'
# what it can't honour, or can't run
for option in '--model layers=2' '--clock virtual' '--optimizer sgd' '--seed 3' '--lower pytorch'; do
    # shellcheck disable=SC2086
    run stagewright "${titan[@]}" $option -o refused.stagewright
    expect_code 2
    expect_err "--engine torchtitan can't honour ${option%% *}"
done
run stagewright record --engine torchtitan -o refused.stagewright
expect_code 2
expect_err 'needs the job.s configuration'
run stagewright record --config 'the job.toml' -o refused.stagewright
expect_code 2
expect_err '--config belongs to TorchTitan'
run stagewright "${titan[@]}" --steps 3 -o refused.stagewright
expect_code 2
run stagewright record -s 1f1b -p 2 -m 4 --engine torchtitan --config nothing.toml --python ./titan -o refused.stagewright
expect_code 2
expect_err 'nothing.toml: there is no such TOML file'
# since 2026 it takes functions
function=(record -s 1f1b -p 2 -m 4 --engine torchtitan --config llama3:llama3_debugmodel --python ./titan --steps 4)
run stagewright "${function[@]}" -o refused.stagewright
expect_code 2
expect_err 'takes TOML files, not functions'
FAKE_TITAN='"functions"' run stagewright "${titan[@]}" --job functions -o refused.stagewright
expect_code 2
expect_err 'takes configuration functions, not TOML files'
FAKE_TITAN= run stagewright "${function[@]}" -o refused.stagewright
expect_err 'takes neither TOML files nor configuration functions'
FAKE_TITAN='"functions"' run stagewright "${function[@]}" --job functions -o functions.stagewright
expect_code 0
expect_that 'called so' grep -q -- '--nproc-per-node 2 -m torchtitan.train --module stagewright_job --config run$' functions/args
run stagewright runs functions.stagewright --json
expect_json '1f1b as planned' runs 0 name
expect_no_file refused.stagewright

# record --engine torch with a real PyTorch: the python3 of the root STAGEWRIGHT_TEST_TORCH_ROOT (Debian 13 with python3-torch, made by
#   mmdebstrap --variant=apt --include=python3-torch,python3-numpy,libopenblas0-pthread trixie ROOT
# ), or the interpreter STAGEWRIGHT_TEST_TORCH_PYTHON. The order that ran is the one that was sent, and losses are the own engine's.
# shellcheck shell=bash
if [ -n "${STAGEWRIGHT_TEST_TORCH_PYTHON:-}" ]; then
    python=$STAGEWRIGHT_TEST_TORCH_PYTHON
elif [ -n "${STAGEWRIGHT_TEST_TORCH_ROOT:-}" ]; then
    python=$ROOT/tests/support/torch_root_python.sh
else
    echo 'skipped: torch_pipelining (neither STAGEWRIGHT_TEST_TORCH_ROOT nor STAGEWRIGHT_TEST_TORCH_PYTHON is set)'
    exit 77
fi
if ! "$python" -c 'import torch' >probe.txt 2>&1; then
    echo "skipped: torch_pipelining ($python has no PyTorch: $(tail -n 1 probe.txt))"
    exit 77
fi
tolerance=2e-5 # relative, of a step's loss; docs/numbers.md
small=(--microbatch-size 2 --warmup 2 --steps 3)

# agrees NAME SCHEDULE-OPTIONS…: under both engines; the same order, and losses of each measured step within the tolerance.
agrees() {
    local name=$1 step mine theirs
    shift
    run stagewright record "$@" "${small[@]}" --clock virtual -o "$name-own.stagewright"
    expect_code 0
    run stagewright report "$name-own.stagewright" --json
    mine=$(for step in 2 3 4; do json loss $step; done)
    run stagewright record "$@" "${small[@]}" --engine torch --python "$python" --job "$name.job" -o "$name.stagewright"
    expect_code 0
    expect_err 'the job is kept in'
    expect_that 'nothing to warn of' eval '! grep -q "^warning" <<<"$err"'
    run stagewright report "$name.stagewright" --json
    expect_json 3 steps
    expect_json imported provenance
    theirs=$(for step in 0 1 2; do json loss $step; done)
    expect_that "losses agree: $(tr '\n' ' ' <<<"$mine") and $(tr '\n' ' ' <<<"$theirs")" \
        awk -v a="$mine" -v b="$theirs" -v most=$tolerance 'BEGIN { n = split(a, x, "\n"); if (split(b, y, "\n") != n || n != 3) exit 1
            for (i = 1; i <= n; ++i) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d <= most * x[i])) exit 1 } }'
    stagewright export "$name.stagewright" --format csv -o "$name-ran.csv" >/dev/null 2>&1
    run stagewright diff "$name-ran.csv" "$name.job/schedule.csv"
    expect_code 0
    run stagewright compare "$name.stagewright" 2 --plan
    expect_code 0
}
four=(--model layers=4,hidden=32,heads=2,seq=16)
agrees 1f1b -s 1f1b -p 2 -m 4 "${four[@]}"
agrees interleaved -s interleaved -p 2 -m 4 --chunks 2 "${four[@]}"
agrees zbv -s zbv -p 2 -m 4 "${four[@]}"
agrees dualpipev -s dualpipev -p 2 -m 4 --overlap serial "${four[@]}"
agrees zbv4 -s zbv -p 4 -m 8 --model layers=8,hidden=32,heads=2,seq=16
agrees 1f1b4 -s 1f1b -p 4 -m 8 "${four[@]}" --optimizer sgd --momentum 0.9 --lr 0.1

# only the last steps are traced: they are the run, and those before it are the ones without the profiler
run stagewright report 1f1b-own.stagewright --json
final=$(json loss 4)
run stagewright record -s 1f1b -p 2 -m 4 "${four[@]}" "${small[@]}" --trace-steps 1 --engine torch --python "$python" --job traced.job -o traced.stagewright
expect_code 0
run stagewright report traced.stagewright --json
expect_json 1 steps
expect_that "the last step's loss: $(json loss 0) and $final" awk -v a="$(json loss 0)" -v b="$final" -v most=$tolerance 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= most * b) }'
run stagewright report traced.stagewright
expect_out 'without the profiler .* median of 2 steps; .*; beside each, the profiler took .* more and writing its trace'

# an edited order: the second forward of rank 0 before the first backward of zb-h1's, and the messages by another rule
stagewright schedules zb-h1 -p 2 -m 4 --csv >zb.csv
sed 's/0F0,0F1,0I0/0F0,0F1,0F2,0I0/; s/\(0I0.*\)0F2,/\1/' zb.csv >edited.csv
expect_that 'it is edited' eval '! cmp -s zb.csv edited.csv'
agrees edited -s edited.csv "${four[@]}"
agrees eager -s 1f1b -p 2 -m 4 --lower eager-post:2 "${four[@]}"

# memory: weights, gradients and optimizer state are those of the model, to the byte
run stagewright report 1f1b.stagewright --json
parameters=$(grep -o '"parameters": [0-9]*' 1f1b.job/logs/rank0.log | grep -o '[0-9]*')
expect_json $((4 * parameters)) weight_bytes 0

# gradients against the undivided model, by hand in the job folder
for name in 1f1b zbv; do
    (cd $name.job && rm -rf traces && "$python" driver.py --check) >check.txt 2>&1 || true
    expect_that "gradients of $name agree" test "$(grep -c '"event": "check", "rank": [01], "worst": \(0.0\|[0-9.]*e-\)' check.txt)" = 2
    expect_that 'traces' test "$(ls $name.job/traces | wc -l)" = 2
done

# the user's own model
run stagewright record -s zbv -p 2 -m 4 "${small[@]}" --engine torch --python "$python" --model-file "$ROOT/docs/examples/pytorch/decoder.py:build" --job decoder.job -o decoder.stagewright
expect_code 0
run stagewright report decoder.stagewright --json
expect_that 'it learns' awk -v a="$(json loss 0)" -v b="$(json loss 2)" 'BEGIN { exit !(b < a) }'
run stagewright record -p 2 -m 4 "${small[@]}" --engine torch --python "$python" --model-file "$ROOT/docs/examples/pytorch/decoder.py:nothing" --job none.job -o none.stagewright
expect_code 5
expect_err 'it has no function nothing'

# models of other kinds: weights that stages share (on one rank and on several: the same losses), bfloat16 with a float32 loss,
# several tensors between stages; gradients against the undivided model. What would train wrong is refused by name, before training
of() { # NAME SCHEDULE RANKS FUNCTION
    run stagewright record -s "$2" -p "$3" -m 4 "${small[@]}" --engine torch --python "$python" --model-file "$ROOT/tests/data/torch_models.py:$4" --job "$1.job" -o "$1.stagewright"
}
trains() {
    of "$@"
    expect_code 0
    (cd "$1.job" && "$python" driver.py --check --no-profile) >check.txt 2>&1 || true
    expect_that "gradients of $1 agree" test "$(grep -c '"event": "check", "rank": [0-3], "worst": \(0.0\|[0-9.]*e-\)' check.txt)" = "$3"
    run stagewright report "$1.stagewright" --json
    losses=$(for step in 0 1 2; do json loss $step; done)
}
trains tied1 zbv 2 tied
together=$losses
trains tied2 1f1b 4 tied
expect_same "$together" "$losses"
trains bfloat 1f1b 2 half
trains pairs zbv 2 pairs
refuses() { # NAME SCHEDULE FUNCTION PATTERN
    of "$1" "$2" 2 "$3"
    expect_code 5
    expect_err "$4"
    expect_err 'no measured step was complete, nothing is kept'
    expect_that 'it did not train' eval "! grep -q '\"event\": \"step\"' $1.job/logs/*.log"
}
refuses masks 1f1b masks 'stage 0: output 1 is bool \[8\]; a stage gives the next one a tensor of float32 or bfloat16'
refuses keyed 1f1b keyed 'stage 0: its output is dict; '
refuses scaled 1f1b scaled 'is float16, which needs gradient scaling, and there is none here'
refuses many 1f1b many 'the loss is float32 \[2, 8, 64\], and one floating-point number is needed'
refuses copied zbv copied "stage 0's embedding.weight and stage 3's head.weight are one tensor of the whole model, but several on rank 0"

# a job of real size is kept, with operators left out of the traces; what a step takes without the profiler is known
run stagewright record -s 1f1b -p 2 -m 32 --model layers=16,hidden=64,heads=4,seq=32 --engine torch --python "$python" --steps 3 --job large.job -o large.stagewright
expect_code 0
run stagewright report large.stagewright --json
expect_json 3 steps
expect_that 'a step without the profiler' test "$(json step_time_without_profiler_ns)" -gt 0
expect_that 'no operators' eval '! gzip -cd large.job/traces/rank0.json.gz | grep -q aten::'

# a killed rank, a stopped one (no sign of life), and Ctrl+C
under() { # OPTIONS…: starts a long recording and waits for its second measured step
    rm -rf long.job long.stagewright progress.txt
    "$STAGEWRIGHT" record -p 2 -m 4 "${four[@]}" --warmup 1 --steps 100000 --engine torch --python "$python" --job long.job -o long.stagewright --progress jsonl "$@" </dev/null >out.txt 2>progress.txt &
    pid=$!
    local i
    for ((i = 0; i < 1200; ++i)); do grep -q '"done":3,' progress.txt && break; sleep 0.1; done
    victim=$(pgrep -P $pid | tail -n 1)
}
ended() {
    rc=0
    wait $pid || rc=$?
    out=$(cat out.txt)
    err=$(cat progress.txt)
    last="a long recording under PyTorch"
}
under
kill -9 "$victim"
ended
expect_code 5
expect_err 'rank 1 was ended by signal 9'
expect_err '[1-9][0-9]* complete steps? of 1 run (is|are) kept'
run stagewright runs long.stagewright --json
expect_json interrupted runs 1 state
under --timeout 5
kill -STOP "$victim"
begin=$SECONDS
ended
expect_that "within 15 s ($((SECONDS - begin)))" [ $((SECONDS - begin)) -le 15 ]
expect_code 5
expect_err 'rank 1 (gave no sign of life|made no progress) for [5-9] s'
under
kill -INT $pid
ended
expect_code 130
expect_err 'complete steps? of 1 run (is|are) kept'
run stagewright runs long.stagewright --json
expect_json interrupted runs 1 state
expect_that 'no rank is left' eval '! pgrep -P $pid >/dev/null'

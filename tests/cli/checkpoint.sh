# Checkpoints: a training that goes on is the uninterrupted one bit for bit, killed at any moment too; never half a file; K are kept; another training is
# refused; PyTorch reads and writes the file. MOMENTS: how many kills; SEED chooses them.
# shellcheck shell=bash
moments=${MOMENTS:-5}
RANDOM=$((${SEED:-20261127} % 32768))
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2 -m 4 --clock virtual)

# Who multiplies is measured where it is not named, and bits depend on it.
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 1 --warmup 0 --checkpoint-every 1 -o probe.stagewright
expect_code 0
products=$(head -c 3000 probe.step1.safetensors | grep -ao '"products":"[a-z]*"' | cut -d '"' -f 4)
tiny+=(--products "${products:-openblas}")

# losses FILE [RUN]: one a line, of every step
losses() { stagewright sql "$1" "SELECT printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1} ORDER BY step" --csv | tail -n +2; }
kept() { find . -maxdepth 1 -name "$1.step*" -printf '%f\n' | sort -V | tr '\n' ' '; }
files_are() { checks=$((checks + 1)); [ "$(kept "$1")" = "$2" ] || complain "files of $1 should be '$2', are '$(kept "$1")'"; }

# one that is not interrupted, and the same in two parts; K newest are kept, one JSON object names them
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 11 -o whole.stagewright
expect_code 0
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 7 --checkpoint-every 2 --keep 2 --progress jsonl --json -o first.stagewright
expect_code 0
expect_err '"event":"checkpoint","step":8,"file":"first.step8.safetensors","pause_ns":[0-9]+,"write_time_ns":[0-9]+'
files_are first 'first.step6.safetensors first.step8.safetensors '
expect_json first.step6.safetensors checkpoints 0
expect_json first.step8.safetensors checkpoints 1
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 3 --resume first.step8.safetensors -o first.stagewright
expect_code 0
expect_err 'goes on behind step 8 of first.step8.safetensors: bit for bit'
expect_same "$(losses first.stagewright; losses first.stagewright 2)" "$(losses whole.stagewright)"
run stagewright sql first.stagewright "SELECT key, value FROM run_text WHERE run=2 AND key IN ('resumed_from', 'steps_before')"
expect_out 'resumed_from +first.step8.safetensors'
expect_out 'steps_before +8'

# another schedule, other ranks, replicas and sharding, and what is said of them
rest=$(losses whole.stagewright | tail -n 4)
goes_on() { # SENTENCE WORDS…
    local sentence=$1
    shift
    rm -f on.stagewright
    run stagewright record "$@" --steps 3 --resume first.step8.safetensors -o on.stagewright
    expect_code 0
    expect_err "$sentence"
}
for schedule in gpipe zb-h1; do
    goes_on 'bit for bit' -s $schedule -p 2 "${tiny[@]}"
    expect_same "$(losses on.stagewright)" "$rest"
done
goes_on 'gradients are the same bit for bit, their norm but for rounding' -s 1f1b -p 4 "${tiny[@]}"
expect_same "$(losses on.stagewright)" "$rest"
half=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2 -m 2 --clock virtual)
goes_on 'losses are equal but for rounding: gradients are summed over other replicas' -s 1f1b -p 2 "${half[@]}" --replicas 2 --shard weights
expect_that 'losses are close' awk -v a="$(losses on.stagewright)" -v b="$rest" 'BEGIN { n = split(a, x, "\n"); if (split(b, y, "\n") != n || n != 4) exit 1
    for (i = 1; i <= n; ++i) { d = x[i] - y[i]; if (d < 0) d = -d; if (d > 1e-4 * y[i]) exit 1 } }'

# what is not the same training, and what can't be
refused() { # CODE MESSAGE WORDS…
    local code=$1 message=$2
    shift 2
    run stagewright record "$@" --steps 1 -o refused.stagewright
    expect_code "$code"
    expect_err "$message"
    expect_no_file refused.stagewright
}
again=(-p 2 --microbatch-size 2 --clock virtual --resume first.step8.safetensors)
model='layers=4,hidden=32,heads=2,seq=16'
refused 2 "with model '$model', and this one has 'layers=5" "${again[@]}" -s 1f1b -m 4 --model 'layers=5,hidden=32,heads=2,seq=16'
again+=(--model "$model")
refused 2 "with seed '1', and this one has '2'" "${again[@]}" -s 1f1b -m 4 --seed 2
refused 2 "with data 'built-in" "${again[@]}" -s 1f1b -m 4 --data "$SOURCE/checkpoint.sh"
refused 2 'with optimizer' "${again[@]}" -s 1f1b -m 4 --lr 0.1
refused 2 "with samples_per_step '8', and this one has '12'" "${again[@]}" -s 1f1b -m 6
refused 2 "with weights 'synchronous'" "${again[@]}" -s pipedream-2bw -m 4
refused 2 '2 schedules take turns' "${again[@]}" -s 1f1b,gpipe -m 4
refused 2 '2 schedules take turns' -s 1f1b,gpipe -p 2 "${tiny[@]}" --checkpoint-every 2
refused 3 'none.safetensors: No such file' -s 1f1b -p 2 "${tiny[@]}" --resume none.safetensors
refused 3 'not a safetensors file' -s 1f1b -p 2 "${tiny[@]}" --resume whole.stagewright
head -c 5000 first.step8.safetensors >cut.safetensors
refused 3 'cut.safetensors' -s 1f1b -p 2 "${tiny[@]}" --resume cut.safetensors
refused 2 'not fetched' -s 1f1b -p 2 "${tiny[@]}" --checkpoint-every 2 --host nowhere
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 1 --checkpoint-every 2 -o first.stagewright
expect_code 2
expect_err 'first.step8.safetensors: it is a checkpoint of an earlier training'
files_are first 'first.step6.safetensors first.step8.safetensors '

# weights that lag: the second version and the direction come along
for schedule in pipedream-2bw pipedream pipeoptim; do
    run stagewright record -s $schedule -p 2 "${tiny[@]}" --steps 4 --checkpoint-every 3 -o $schedule.stagewright
    expect_code 0
    run stagewright record -s $schedule -p 2 "${tiny[@]}" --warmup 0 --steps 2 --resume $schedule.step3.safetensors -o $schedule.stagewright
    expect_code 0
    expect_err 'bit for bit'
    expect_err 'the synchronous training beside it is left out'
    expect_same "$(losses $schedule.stagewright 2)" "$(losses $schedule.stagewright | tail -n 2)"
done
run stagewright record -s pipedream-2bw -p 4 "${tiny[@]}" --warmup 0 --steps 1 --resume pipedream-2bw.step3.safetensors -o lag.stagewright
expect_code 0
expect_err 'weights lag by the order of ops'

# killed at any moment, started again from the newest file until it is through: every step's loss is that of the whole
cp whole.stagewright uncut.stagewright
wanted=40
run stagewright record -s 1f1b -p 2 "${tiny[@]}" --warmup 0 --steps $wanted -o uncut.stagewright
expect_code 0
losses uncut.stagewright 2 >uncut.txt
killed=0 latest=0
rm -f killed.*
while [ "$killed" -lt "$moments" ]; do
    newest=$(find . -maxdepth 1 -name 'killed.step*.safetensors' -printf '%f\n' | sort -V | tail -n 1)
    before=0 more=()
    if [ -n "$newest" ]; then
        before=${newest#killed.step} before=${before%.safetensors} more=(--resume "$newest")
        [ "$before" -ge "$latest" ] || complain "step $before is older than step $latest, which was there"
        checks=$((checks + 1)) latest=$before
    fi
    if [ "$before" -ge $((wanted - 2)) ]; then
        rm -f killed.step*
        latest=0
        continue
    fi
    rm -f killed.stagewright* progress.txt
    "$STAGEWRIGHT" record -s 1f1b -p 2 "${tiny[@]}" --warmup 0 --steps $((wanted - before)) --checkpoint-every 1 --keep 3 "${more[@]}" --progress jsonl -o killed.stagewright </dev/null >out.txt 2>progress.txt &
    pid=$!
    for ((i = 0; i < 400; ++i)); do
        ! grep -q '"event":"run"' progress.txt 2>/dev/null || break
        sleep 0.02
    done
    sleep "0.$(printf '%03d' $((RANDOM % 250)))"
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    killed=$((killed + 1))
    [ -s killed.stagewright ] || continue
    losses killed.stagewright >ran.txt 2>/dev/null || continue
    checks=$((checks + 1))
    tail -n +$((before + 1)) uncut.txt | head -n "$(wc -l <ran.txt)" | cmp -s - ran.txt || complain "kill $killed behind step $before: losses are others"
    for file in killed.step*.safetensors; do
        [ -e "$file" ] || continue
        checks=$((checks + 1))
        [ "$(stat -c %s "$file")" = "$(stat -c %s first.step8.safetensors)" ] || [ "$(($(stat -c %s "$file") - $(stat -c %s first.step8.safetensors)))" -lt 100 ] || complain "$file is half a file"
    done
done
newest=$(find . -maxdepth 1 -name 'killed.step*.safetensors' -printf '%f\n' | sort -V | tail -n 1)
before=${newest#killed.step} before=${before%.safetensors}
if [ -n "$newest" ] && [ "$before" -lt "$wanted" ]; then # else the last kill came behind the last step
    rm -f killed.stagewright*
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --warmup 0 --steps $((wanted - before)) --checkpoint-every 1 --keep 3 --resume "$newest" -o killed.stagewright
    expect_code 0
    expect_same "$(losses killed.stagewright)" "$(tail -n +$((before + 1)) uncut.txt)"
    expect_that 'nothing half written is left' eval '[ -z "$(find . -name "killed*.part*")" ]'
    files_are killed "$(printf 'killed.step%s.safetensors ' $((wanted - 2)) $((wanted - 1)) $wanted)"
fi

# a disk with room for one: the next one is not there, not even half of it, training goes on, and the one before stays
mkdir disk
cat >on_disk.bash <<'END'
mount -t tmpfs -o size=1400k tmpfs disk || exit 77
cd disk
"$STAGEWRIGHT" record -s 1f1b -p 2 "$@" --warmup 0 --steps 3 --checkpoint-every 1 --keep 1 -o full.stagewright
code=$?
ls
exit $code
END
space=(unshare -m)
[ "$(id -u)" = 0 ] || space=(unshare -rm)
run "${space[@]}" bash on_disk.bash "${tiny[@]}"
if [ "$rc" = 5 ]; then
    expect_err 'the checkpoint after step 2 is not there: file full.step2.safetensors: the disk is full'
    expect_err '3 complete steps of 1 run are kept'
    expect_same "$(grep full <<<"$out" | tr '\n' ' ')" 'full.stagewright full.step1.safetensors '
else
    expect_err 'unshare|mount'
    echo 'a full disk: skipped (none of a given size can be mounted here)'
fi

# ranks as processes write and read the same file
module=$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so
if [ -f "$module" ] && command -v mpirun >/dev/null; then
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 7 --checkpoint-every 8 --processes -o processes.stagewright
    expect_code 0
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 3 --resume processes.step8.safetensors -o threads.stagewright
    expect_code 0
    expect_same "$(losses threads.stagewright)" "$rest"
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 3 --resume first.step8.safetensors --processes -o processes.stagewright
    expect_code 0
    expect_same "$(losses processes.stagewright 2)" "$rest"
else
    echo 'checkpoints of processes: skipped (no MPI module or mpirun)'
fi

# read and written again by plain Python, byte for byte; by PyTorch, to go on from
script=$ROOT/docs/examples/pytorch/checkpoint.py
if command -v python3 >/dev/null; then
    run python3 "$script" first.step8.safetensors --copy again.safetensors
    expect_code 0
    expect_out 'step 8 of layers=4,hidden=32,heads=2,seq=16 under 1f1b: [0-9]+ parameters in [0-9]+ tensors'
    expect_that 'the copy is the file' cmp -s first.step8.safetensors again.safetensors
else
    echo 'checkpoints read by Python: skipped (no python3)'
fi
if [ -n "${STAGEWRIGHT_TEST_TORCH_PYTHON:-}" ]; then
    python=$STAGEWRIGHT_TEST_TORCH_PYTHON
elif [ -n "${STAGEWRIGHT_TEST_TORCH_ROOT:-}" ]; then
    python=$ROOT/tests/support/torch_root_python.sh
else
    python=
fi
if [ -z "$python" ] || ! "$python" -c 'import torch' 2>/dev/null; then
    echo 'checkpoints and PyTorch: skipped (neither STAGEWRIGHT_TEST_TORCH_ROOT nor STAGEWRIGHT_TEST_TORCH_PYTHON has it)'
else
    cp "$script" checkpoint.py
    run "$python" checkpoint.py first.step8.safetensors --to weights.pt
    expect_code 0
    run "$python" checkpoint.py first.step6.safetensors --weights weights.pt --copy mixed.safetensors
    expect_code 0
    run "$python" checkpoint.py first.step8.safetensors --weights weights.pt --copy torch.safetensors
    expect_code 0
    expect_that 'PyTorch writes what it read' cmp -s first.step8.safetensors torch.safetensors
    goes_on 'bit for bit' -s 1f1b -p 2 "${tiny[@]}"
    rm -f on.stagewright
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 3 --resume torch.safetensors -o on.stagewright
    expect_code 0
    expect_same "$(losses on.stagewright)" "$rest"
    run stagewright record -s 1f1b -p 2 "${tiny[@]}" --steps 1 --resume mixed.safetensors -o mixed.stagewright
    expect_code 0
fi

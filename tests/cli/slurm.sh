# Slurm's queue, with real daemons on this computer: the script, queued, running, stopped, cancelled, failed; ranks as processes; through a login node.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)

# options are checked before anything else
for bad in 'no de=1' 'Nodes=2' '--nodes=2' '=2' 'wrap=echo' 'output=x' $'comment=a\nb' 'comment='; do
    run stagewright record "${tiny[@]}" --slurm "$bad" --script-only
    expect_code 2
    expect_err '--slurm'
done
run stagewright record "${tiny[@]}" --script-only
expect_code 2
run env PATH=/nowhere "$STAGEWRIGHT" record "${tiny[@]}" --slurm nodes=1 -o none.stagewright
expect_code 4
expect_err "Slurm's sbatch is not on PATH"
expect_no_file none.stagewright
run stagewright hosts jobs --json
expect_json 0 jobs

# a script that people can read; values can't leave their line or run anything
run stagewright record "${tiny[@]}" --steps 3 --slurm nodes=2 --slurm exclusive --slurm 'comment=it'"'"'s $(touch pwned) `touch pwned` "x"' --processes --script-only
expect_code 0
expect_out '^#SBATCH --nodes=2$'
expect_out '^#SBATCH --exclusive$'
expect_out "^#SBATCH --comment='it'\\\\''s"
expect_out '^#SBATCH --ntasks=2$'
expect_out '^srun --ntasks=2 --mpi=pmix .*stagewright record .*--steps=3 .*--ranks-per-process=1 --progress=jsonl'
cp out.txt script.sh
expect_that 'it is a shell script' bash -n script.sh
expect_no_file pwned

# options of srun are on its line
run stagewright record "${tiny[@]}" --slurm nodes=1 --srun 'container-image=/images/a b.sqsh' --srun container-mounts=/data:/data --script-only
expect_code 0
expect_out "^srun --ntasks=1 --mpi=none .*'--container-image=/images/a b.sqsh' --container-mounts=/data:/data [^ ]*stagewright record "
expect_no_out 'SBATCH.*container|record .*--srun'
run stagewright record "${tiny[@]}" --srun mpi=pmi2 -o none.stagewright
expect_code 2
expect_err '--srun is for .*there is no --slurm'
run stagewright record "${tiny[@]}" --slurm nodes=1 --srun ntasks=3 --script-only
expect_code 2
expect_err '--srun ntasks: the job sets it itself'

# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
trap daemons_stop EXIT
if ! why=$(daemons_fetch slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2) || ! slurm_start >start.log 2>&1; then
    echo "skipped: a queue needs Slurm's daemons: ${why:-$(cat start.log)}"
    [ $failures -eq 0 ] || finish
    exit 77
fi
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }

# in the queue as here
run stagewright record -s 1f1b,zb-h1 "${tiny[@]}" --steps 4 -o here.stagewright
expect_code 0
run stagewright record -s 1f1b,zb-h1 "${tiny[@]}" --steps 4 --slurm ntasks=1 --slurm 'job-name=x' -o none.stagewright
expect_code 2
run stagewright record -s 1f1b,zb-h1 "${tiny[@]}" --steps 4 --slurm cpus-per-task=2 -o queue.stagewright
expect_code 0
expect_err 'is job [0-9]+ in the queue'
expect_same "$(losses queue.stagewright)" "$(losses here.stagewright)"
expect_same "$(losses queue.stagewright 2)" "$(losses here.stagewright 2)"
run stagewright hosts jobs
expect_out 'this computer, Slurm .* ended +10/10'
run stagewright record "${tiny[@]}" --slurm partition=nothing -o none.stagewright
expect_code 5
expect_err 'sbatch refused the job: .*invalid partition'
expect_no_file none.stagewright

# one process under srun, for a container of it
run stagewright record -s 1f1b "${tiny[@]}" --steps 4 --slurm nodes=1 --srun cpu-bind=none -o one.stagewright
expect_code 0
expect_same "$(losses one.stagewright)" "$(losses here.stagewright)"

# ranks as processes, under srun
if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ]; then
    run stagewright record -s 1f1b,zb-h1 "${tiny[@]}" --steps 4 --processes --slurm ntasks=2 --slurm overcommit -o processes.stagewright
    expect_code 0
    expect_same "$(losses processes.stagewright)" "$(losses here.stagewright)"
    run stagewright report processes.stagewright
    expect_out 'processes +2 on '
    run stagewright record -s 1f1b "${tiny[@]}" --steps 4 --processes --slurm ntasks=2 --slurm overcommit --srun cpu-bind=none -o bound.stagewright
    expect_code 0
    expect_same "$(losses bound.stagewright)" "$(losses here.stagewright)"
fi

# waits, with its reason; stopped while it waits
"$STAGEWRIGHT" record "${tiny[@]}" --slurm hold -o held.stagewright </dev/null >out.txt 2>err.txt &
client=$!
for ((i = 0; i < 100; ++i)); do grep -q 'held; release it' err.txt && break; sleep 0.1; done
expect_that 'the reason is in words' grep -q 'queued: held; release it with scontrol release' err.txt
kill -INT $client
rc=0
wait $client || rc=$?
err=$(cat err.txt) last='record --slurm hold, then Ctrl+C'
expect_code 130
expect_err 'cancelled'
expect_no_file held.stagewright
expect_same "$(squeue -h -o %i | wc -l | tr -d ' ')" 0

# runs; stopped by Ctrl+C with its steps; by another's scancel
"$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --slurm nodes=1 -o stopped.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive while it runs' wait_for stopped.stagewright 5
run stagewright hosts jobs
expect_out 'running'
kill -INT $client
rc=0
wait $client || rc=$?
expect_same "$rc" 130
expect_that "its steps are here" [ "$(steps_in stopped.stagewright)" -ge 5 ]
"$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --slurm nodes=1 -o cancelled.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive while it runs' wait_for cancelled.stagewright 5
for ((i = 0; i < 100; ++i)); do grep -q 'running on' err.txt && break; sleep 0.1; done
expect_that 'where it runs' grep -q "running on $(hostname -s)" err.txt
scancel "$(squeue -h -o %i)"
rc=0
wait $client || rc=$?
err=$(cat err.txt) last='record --slurm, then scancel'
expect_that 'ended' [ "$rc" -ge 5 ]
expect_err 'cancelled|stopped|ended by signal'
expect_that 'its steps are here' [ "$(steps_in cancelled.stagewright)" -ge 5 ]

# its time limit; a minute is the least that Slurm knows
if [ -n "${LONG:-}" ]; then
    run stagewright record "${tiny[@]}" --steps 1000000 --slurm time=1 -o limit.stagewright
    expect_that 'ended' [ "$rc" -ge 5 ]
    expect_err 'ended at its time limit of (00:01|1):00'
    expect_that 'its steps are here' [ "$(steps_in limit.stagewright)" -ge 5 ]
fi

# through a login node
if command -v ssh >/dev/null && daemons_fetch openssh-server libwrap0 >/dev/null && sshd_start >start.log 2>&1; then
    run stagewright hosts add login test --scratch "$PWD/shared" --setup "export PATH='$PATH:$(dirname "$STAGEWRIGHT")' STAGEWRIGHT_PRODUCTS=table"
    run stagewright record -s 1f1b "${tiny[@]}" --steps 4 --host login --slurm nodes=1 --json -o login.stagewright
    expect_code 0
    expect_same "$(losses login.stagewright)" "$(losses here.stagewright)"
    expect_that 'the setup lines are in the script' grep -q 'STAGEWRIGHT_PRODUCTS=table' shared/*/job.sh
    id=$(stagewright record -s 1f1b "${tiny[@]}" --steps 1000000 --host login --slurm nodes=1 --detach -o later.stagewright 2>/dev/null)
    for ((i = 0; i < 200; ++i)); do [ "$(steps_in "shared/$id/run.stagewright" || echo 0)" -lt 4 ] 2>/dev/null || break; sleep 0.1; done
    run stagewright hosts stop "$id"
    expect_code 0
    expect_that 'its steps are here' [ "$(steps_in later.stagewright)" -ge 3 ]
    run stagewright hosts jobs --json
    expect_json ended jobs 0 state
else
    echo 'through a login node: skipped, there is no sshd'
fi

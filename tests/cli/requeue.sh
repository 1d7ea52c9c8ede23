# Jobs that Slurm takes back: preempted by another one and queued again, by hand queued again, waiting for another job. With real daemons on this computer.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home
# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
trap daemons_stop EXIT
node=$(hostname -s)
SLURM_CREDENTIALS=2
SLURM_MORE="PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=$node MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=off"
if ! why=$(daemons_fetch slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2) || ! slurm_start >start.log 2>&1; then
    echo "skipped: a queue needs Slurm's daemons: ${why:-$(cat start.log)}"
    exit 77
fi
tiny=(-s 1f1b --model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual)
said() { # said TEXT: within a minute on the client's standard error
    for ((i = 0; i < 600; ++i)); do grep -qE -- "$1" err.txt && return 0; sleep 0.1; done
    return 1
}

# preempted: said, followed, begun again; what the first start completed stays as a run of its own
"$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --slurm exclusive --slurm requeue -o again.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive while it runs' wait_for again.stagewright 5
number=$(squeue -h -o %i)
other=$(sbatch --parsable --partition=urgent --exclusive --output=/dev/null --wrap='sleep 3')
last='record --slurm requeue, preempted' out='' err=''
expect_that 'it is queued again' said "job .*: queued.*; start 2, since it was preempted"
expect_that 'the other one runs and ends' eval 'for ((i = 0; i < 300; ++i)); do [ -n "$(squeue -h -j '"$other"' 2>/dev/null)" ] || break; sleep 0.1; done; [ $i -lt 300 ]'
scontrol update jobid="$number" StartTime=now 2>/dev/null || true
expect_that 'it runs again' said "running on $node; start 2, since it was"
expect_that 'and its steps arrive' eval 'for ((i = 0; i < 600; ++i)); do [ "$(steps_in again.stagewright 2)" -ge 5 ] 2>/dev/null && break; sleep 0.1; done; [ $i -lt 600 ]'
kill -INT $client
rc=0
wait $client || rc=$?
err=$(cat err.txt)
expect_code 130
run stagewright runs again.stagewright --json
expect_json interrupted runs 0 state
expect_that 'the steps of the first start are here' [ "$(steps_in again.stagewright 1)" -ge 5 ]
expect_that 'those of the second, too' [ "$(steps_in again.stagewright 2)" -ge 5 ]
run stagewright hosts jobs --json
expect_json ended jobs 0 state

# without requeue a preempted job is over, and says so
"$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --slurm exclusive --slurm no-requeue -o lost.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive while it runs' wait_for lost.stagewright 5
other=$(sbatch --parsable --partition=urgent --exclusive --output=/dev/null --wrap='sleep 1')
rc=0
wait $client || rc=$?
err=$(cat err.txt) last='record --slurm no-requeue, preempted' out=''
expect_that 'it fails' [ "$rc" -ge 5 ]
expect_err 'preempted|PREEMPTION'
expect_that 'its steps are here' [ "$(steps_in lost.stagewright)" -ge 5 ]

# waits for another job, then for one that has failed
first=$(sbatch --parsable --output=/dev/null --wrap='sleep 2')
run stagewright record "${tiny[@]}" --steps 2 --slurm "dependency=afterok:$first" -o after.stagewright
expect_code 0
expect_err 'queued: waits for another job'
bad=$(sbatch --parsable --output=/dev/null --wrap='exit 3')
for ((i = 0; i < 100; ++i)); do [ -n "$(squeue -h -j "$bad" -t PENDING,RUNNING,COMPLETING 2>/dev/null)" ] || break; sleep 0.1; done
id=$("$STAGEWRIGHT" record "${tiny[@]}" --steps 2 --slurm "dependency=afterok:$bad" --detach -o never.stagewright 2>/dev/null) || true
run stagewright hosts fetch "$id"
run stagewright hosts jobs
expect_out 'waits for has failed, so it never starts|waits for another job'
run stagewright hosts stop "$id"

# a node that goes down: the job says so
"$STAGEWRIGHT" record "${tiny[@]}" --steps 1000000 --slurm no-requeue -o down.stagewright </dev/null >out.txt 2>err.txt &
client=$!
expect_that 'steps arrive while it runs' wait_for down.stagewright 5
scontrol update nodename="$node" state=down reason=test
rc=0
wait $client || rc=$?
err=$(cat err.txt) last='record --slurm, its node down' out=''
expect_that 'it fails' [ "$rc" -ge 5 ]
expect_err 'a node went down|NODE FAIL'
expect_that 'its steps are here' [ "$(steps_in down.stagewright)" -ge 5 ]

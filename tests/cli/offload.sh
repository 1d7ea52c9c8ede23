# simulate --offload: copies beside compute, the rules that place them, a plan under a cap, what a wait for a reload says, costs of copies.
# shellcheck shell=bash
run stagewright simulate -s 1f1b -p 4 -m 8 --offload all --costs F=100,B=200,COPY=50 --copies duplex=full --json
expect_code 0
expect_json 3.0 peak_activation 0
expect_json 2.0 peak_activation 2
expect_json 3.0 peak_on_host 0
expect_json 0.0 peak_on_host 3
expect_json 3300.0 makespan
run stagewright simulate -s 1f1b -p 4 -m 8 --offload all --costs F=100,B=200,COPY=50 --json
expect_json 2.0 peak_activation 0
run stagewright simulate -s 1f1b -p 4 -m 8 --offload all:ahead=0 --costs F=100,B=200,COPY=100 --json
expect_json 1.0 peak_activation 0
run stagewright simulate -s gpipe -p 1 -m 4 --offload cap=2 --costs F=100,B=200,COPY=100
expect_code 0
expect_err '[0-9] of 4 activations, a step as short as without them'
run stagewright simulate -s gpipe -p 1 -m 4 --offload cap=2 --costs F=100,B=200,COPY=130
expect_code 0
expect_err 'the shortest step of all [0-9]+ choices under the cap'
run stagewright simulate -s gpipe -p 1 -m 4 --offload cap=2 --costs F=100,B=200,COPY=100
expect_out 'peak activation .* 2$'
expect_out 'peak on the host +[23] microbatches'
run stagewright simulate -s gpipe -p 1 -m 4 --offload cap=2 --costs F=100,B=200,COPY=250
expect_code 1
expect_err '--offload: no offloading fits: rank 0 holds [0-9.]+ of activations at least, [0-9.]+ over its cap'
run stagewright simulate -s 1f1b -p 4 -m 8 --offload all:ahead=0 --costs F=1,B=2,COPY=1.5 --json
expect_that 'a wait for a reload is a cause' [ "$(json idle_by_cause reload_wait)" != 0 ]
run stagewright simulate -s 1f1b -p 4 -m 8 --offload all:ahead=0 --costs F=1,B=2,COPY=2
expect_out 'Waiting for reload'
expect_out '^no offloading +33 '
run stagewright simulate -s 1f1b -p 2 -m 4 --offload all --costs analytic:gpt-6.2b@a100:b=1 --json
expect_code 0
slow=$(json makespan)
run stagewright simulate -s 1f1b -p 2 -m 4 --offload all --costs analytic:gpt-6.2b@a100:b=1 --copies 1TB/s
expect_code 2
run stagewright simulate -s 1f1b -p 2 -m 4 --offload all --costs analytic:gpt-6.2b@a100:b=1 --copies 900GB/s,duplex=full --json
expect_code 0
expect_that 'faster copies, a shorter step' number_between "$(json makespan)" 0 "$slow"

# what can't be
run stagewright simulate --offload some
expect_code 2
expect_err 'all, longest, cap=3'
run stagewright simulate --offload all --copies 15GB/s
expect_code 2
expect_err 'write --costs COPY=0.5'

# for real: the same losses, copies on their lanes, less memory, what the host holds; drawn lists too
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2)
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }
run stagewright record -s gpipe -p 2 -m 4 "${tiny[@]}" --steps 2 -o plain.stagewright
expect_code 0
for rule in all all:ahead=0 longest cap=3; do
    for clock in virtual wall; do
        rm -f moved.stagewright
        run stagewright record -s gpipe -p 2 -m 4 "${tiny[@]}" --steps 2 --clock $clock --offload $rule -o moved.stagewright
        expect_code 0
        expect_err "copied to the host for real, as fast as this computer's memory is"
        expect_same "$(losses moved.stagewright)" "$(losses plain.stagewright)"
    done
done
run stagewright record -s gpipe -p 1 -m 6 "${tiny[@]}" --steps 2 --clock wall --offload all:ahead=0 --copies 50MB/s -o slow.stagewright
expect_code 0
expect_err 'as long as --copies says \(emulated\)'
run stagewright sql slow.stagewright "SELECT lane, count(*), min(duration_ns) > 100000 FROM spans WHERE lane IN ('copy out', 'copy in') AND step=2 GROUP BY lane ORDER BY lane"
expect_out 'copy in +6 +1'
expect_out 'copy out +6 +1'
run stagewright report slow.stagewright --json
expect_code 0
expect_that 'the host held some' [ "$(json peak_on_host 0)" -gt 0 ]
expect_that 'the wait for a reload is a cause' [ "$(json idle_by_cause reload_wait)" != 0 ]
run stagewright sql slow.stagewright "SELECT value FROM run_text WHERE run=1 AND key='copies'"
expect_out 'emulated'
run stagewright record -s gpipe -p 1 -m 6 "${tiny[@]}" --steps 1 --offload all --host-memory 1000B -o full.stagewright
expect_code 5
expect_err 'OFFLOAD.*over the limit of 1000'
stagewright schedules 1f1b -p 1 -m 2 --csv >plain.csv
printf '0F0,0OFFLOAD0,0F1,0RELOAD0,0B0,0B1\n' >drawn.csv
run stagewright record -s drawn.csv "${tiny[@]}" --steps 2 -o drawn.stagewright
expect_code 0
run stagewright record -s plain.csv "${tiny[@]}" --steps 2 -o drawn.stagewright
expect_code 0
expect_same "$(losses drawn.stagewright)" "$(losses drawn.stagewright 2)"
run stagewright record -s 1f1b -p 2 -m 4 --offload all --engine torch -o none.stagewright
expect_code 2
expect_err "can't honour --offload"
expect_no_file none.stagewright

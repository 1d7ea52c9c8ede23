# --fill: work that can wait in the gaps, simulated and trained, its steps, what a gap says, PipeFisher's profiles; record --optimizer kfac.
# shellcheck shell=bash
run stagewright simulate -s 1f1b -p 8 -m 8 --costs pipefisher:bert-large@p100 --fill kfac:pieces=12:cyclic --json
expect_code 0
expect_json 2 fill steps
expect_json 645795000 makespan_ns
expect_that 'ranks are busier' [ "$(json fill busy_after)" != "$(json fill busy_before)" ]
run stagewright simulate -s 1f1b -p 8 -m 8 --costs pipefisher:bert-large@p100 --fill kfac:pieces=2:step=3
expect_code 0
expect_out 'steps per refresh +3'
expect_out 'holds [0-9]+ of 18 pieces; [0-9.]+ ms stay idle because'
expect_out 'shows step 3 of 3'
expect_out 'V inversion of factors'
run stagewright simulate -s gpipe -p 8 -m 8 --costs pipefisher:bert-large@p100:b=8 --fill kfac
expect_code 0
expect_out 'INVERT.0 takes 63\.4 ms, longer than every gap'
run stagewright simulate -s 1f1b -p 4 -m 8 --costs F=1,B=2,FACTOR_A=0.2,FACTOR_G=0.2,INVERT=1 --fill kfac -o filled.stagewright
expect_code 0
run stagewright sql filled.stagewright "SELECT count(*) FROM spans WHERE kind IN ('FACTOR_A', 'FACTOR_G', 'INVERT')"
expect_out '[1-9]'
run stagewright report filled.stagewright
expect_code 0

# what can't be
run stagewright simulate --fill some
expect_code 2
expect_err 'write kfac'
run stagewright simulate --fill kfac
expect_code 2
expect_err 'FACTOR_A0 takes no time'
run stagewright simulate --costs pipefisher:bert --fill kfac
expect_code 2
expect_err 'bert-large@p100'
run stagewright simulate --costs F=1,B=2,FACTOR_A=0.2,FACTOR_G=0.2,INVERT=1 --fill kfac:step=99
expect_code 2
expect_err 'step 99 of a cycle of'
printf '0F0,0FACTOR_A0,0B0,0INVERT.0\n' >drawn.csv
run stagewright validate drawn.csv
expect_code 0
run stagewright record -s drawn.csv --steps 1 -o none.stagewright
expect_code 2
expect_err 'a cycle has 1 factors of the stage, not 2'

# trained at the end of a step: the same losses however the model is divided, others than with sgd
tiny=(--model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 2 --lr 0.1 --steps 3)
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss'"; }
run stagewright record -s gpipe -p 1 -m 4 "${tiny[@]}" --optimizer kfac -o one.stagewright
expect_code 0
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --optimizer kfac -o two.stagewright
expect_code 0
expect_same "$(losses one.stagewright)" "$(losses two.stagewright)"
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --optimizer sgd -o sgd.stagewright
expect_that 'other losses than sgd' [ "$(losses sgd.stagewright)" != "$(losses two.stagewright)" ]
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --optimizer kfac:refresh=2 --replicas 2 --shard optimizer:by=layer -o owners.stagewright
expect_code 0
run stagewright sql owners.stagewright "SELECT value FROM run_text WHERE run=1 AND key='optimizer'"
expect_out 'kfac, .*refreshed every 2 steps'
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --optimizer kfac --replicas 2 -o none.stagewright
expect_code 2
expect_err 'optimizer:by=layer'
run stagewright record -s 1f1b -p 2 -m 4 "${tiny[@]}" --optimizer kfac --checkpoint-every 1 -o none.stagewright
expect_code 2
expect_err "K-FAC's factors"
run stagewright record -s 1f1b -p 2 -m 4 --optimizer kfac:speed=2 -o none.stagewright
expect_code 2
expect_err 'kfac also with :refresh=N'
run stagewright record -s 1f1b -p 2 -m 4 --optimizer kfac --engine torch -o none.stagewright
expect_code 2
expect_err 'PyTorch has no K-FAC'
expect_no_file none.stagewright

# trained in gaps: the losses of the same work at the ends of the same steps, and lists of one's own
filled=(-s 1f1b -p 3 -m 6 "${tiny[@]:0:6}" --steps 6 --optimizer kfac)
run stagewright record "${filled[@]}" --fill kfac:pieces=4 -o filled_run.stagewright
expect_code 0
expect_err 'a refresh takes [0-9]+ steps?; as measured its pieces take'
run stagewright sql filled_run.stagewright "SELECT count(DISTINCT kind) FROM spans WHERE kind IN ('FACTOR_A', 'FACTOR_G', 'INVERT')"
expect_out '3'
run stagewright report filled_run.stagewright
expect_code 0
printf '0F0,0FACTOR_A0,0F1,0B0,0B1,0FACTOR_A1\n1F0,1B0,1F1,1B1,1FACTOR_A0,1FACTOR_G0\n' >gap1.csv
printf '0F0,0FACTOR_G0,0F1,0FACTOR_G1,0INVERT.0,0INVERT.1,0B0,0B1\n1F0,1B0,1FACTOR_A1,1F1,1FACTOR_G1,1INVERT.0,1INVERT.1,1B1\n' >gap2.csv
printf '0F0,0F1,0B0,0B1,0FACTOR_A0,0FACTOR_A1\n1F0,1B0,1F1,1B1,1FACTOR_A0,1FACTOR_G0\n' >end1.csv
printf '0F0,0F1,0B0,0B1,0FACTOR_G0,0FACTOR_G1,0INVERT.0,0INVERT.1\n1F0,1B0,1F1,1B1,1FACTOR_A1,1FACTOR_G1,1INVERT.0,1INVERT.1\n' >end2.csv
run stagewright record -s gap1.csv,gap2.csv --cycle "${tiny[@]:0:6}" --steps 5 --optimizer kfac -o gaps.stagewright
expect_code 0
run stagewright record -s end1.csv,end2.csv --cycle "${tiny[@]:0:6}" --steps 5 --optimizer kfac -o ends.stagewright
expect_code 0
expect_same "$(losses gaps.stagewright)" "$(losses ends.stagewright)"
run stagewright record -s gap1.csv,end1.csv --cycle "${tiny[@]}" --optimizer kfac -o none.stagewright
expect_code 2
expect_err 'it is there twice, or of a microbatch that the stage does not run'
run stagewright record "${filled[@]:0:12}" --fill kfac -o none.stagewright
expect_code 2
expect_err 'give --optimizer kfac'
run stagewright record "${filled[@]}" --fill kfac --recompute all -o none.stagewright
expect_code 2
expect_err 'recomputation drops their inputs'
expect_no_file none.stagewright

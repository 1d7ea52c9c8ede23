# lesson: lists, prints, grades with exit codes, grades a class, checks lessons, writes templates; its progress is in its own folder.
# shellcheck shell=bash
export XDG_DATA_HOME=$PWD/data
run stagewright lesson
expect_code 0
expect_out '^ *6  latency +What does a slow wire cost'
expect_out '0 of 21 done, 0 verified'
run stagewright lesson --json
expect_code 0
expect_json why-pipelines lessons 0 lesson
expect_json Basics lessons 0 shelf
expect_json none lessons 0 mark
expect_json 21 lessons 20 number

# Every statement of every lesson holds.
run stagewright lesson --check
expect_code 0
expect_out '^latency: sound; [0-9]+ statements'
expect_no_out 'fault|warning'
run stagewright lesson --check latency --json
expect_code 0
expect_json ON sound

# Printing: numbers computed, the picture, hints and solutions on request only.
run stagewright lesson 6
expect_code 0
expect_out 'Every unit of latency costs 1F1B 16 and GPipe 6'
expect_out 'rank 3 .*F'
expect_out 'Goal hide-it: Find the shortest step in which the ranks hold at most 7, 5, 3, 1'
expect_no_out 'Hint 1'
expect_no_out 'Solution'
run stagewright lesson latency --hints 2
expect_out 'Hint 2'
expect_no_out 'Hint 3'
run stagewright lesson latency --show
expect_out 'Solution'
run stagewright lesson nobody
expect_code 2
expect_err 'lessons are why-pipelines'

# Grading: the order to start with, a right answer, a wrong one, one that can't be read.
run stagewright lesson latency --start start.csv
expect_code 0
run stagewright lesson latency --answer start.csv
expect_code 1
expect_out 'fail check hide-it: 49 so far'
cat >right.csv <<'CSV'
0F0,0F1,0F2,0F3,0F4,0F5,0F6,0B0,0F7,0B1,0B2,0B3,0B4,0B5,0B6,0B7
1F0,1F1,1F2,1F3,1F4,1B0,1F5,1B1,1F6,1B2,1F7,1B3,1B4,1B5,1B6,1B7
2F0,2F1,2F2,2B0,2F3,2B1,2F4,2B2,2F5,2B3,2F6,2B4,2F7,2B5,2B6,2B7
3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
CSV
run stagewright lesson latency --answer right.csv
expect_code 0
expect_out 'pass check hide-it: Rank 0 holds 7 microbatches instead of 4'
run stagewright lesson latency --answer hide-it=right.csv --say limit=1.625 --json
expect_code 0
expect_json ON passed
expect_json pass checks 0 verdict
expect_json makespan checks 0 values 2 subject
expect_json 39.0 checks 0 values 2 value
expect_json pass checks 1 verdict
run stagewright lesson latency --answer right.csv --say limit=2
expect_code 1
expect_out 'fail quiz limit: It is slower even before'
printf '0F0,0X1\n' >garbage.csv
run stagewright lesson latency --answer garbage.csv
expect_code 3
expect_err 'garbage.csv'
run stagewright lesson latency --answer nobody.csv
expect_code 3
run stagewright lesson latency --answer other=right.csv
expect_code 2
expect_err 'checks are hide-it'
run stagewright lesson latency --say colour=red
expect_code 2
expect_err 'questions are limit'
run stagewright lesson slow-stage --set layers=4,4,3,1
expect_code 0
expect_out 'pass check balance: 40'
run stagewright lesson slow-stage --set layers=3,4,4,1
expect_code 1
printf '0F0,0B0\n1F0,1B0\n' >small.csv
run stagewright lesson latency --answer small.csv
expect_code 1
expect_out 'the answer has 2 ranks and 1 microbatch, the step has 4 and 8'

# Progress is kept, and forgotten on request.
expect_file data/stagewright/lessons.json
run stagewright lesson
expect_out 'latency .*begun|latency .*done'
run stagewright lesson latency --answer right.csv --say limit=1.625
run stagewright lesson --json
expect_json done lessons 5 mark
run stagewright lesson latency --start-over
run stagewright lesson --json
expect_json none lessons 5 mark
printf 'garbage' >data/stagewright/lessons.json
run stagewright lesson
expect_code 0
expect_err 'lessons.json: it is not a file of lesson progress'
rm data/stagewright/lessons.json

# A class.
mkdir class
cp right.csv class/alice.csv
cp start.csv class/bob.hide-it.csv
printf 'limit=1.625\n' >class/alice.txt
printf 'limit=9\n' >class/carol.txt
run stagewright lesson latency --answer-dir class --csv
expect_code 1
expect_out '^name,lesson,kind,id,verdict,grade,value,minutes,message$'
expect_out '^alice,latency,check,hide-it,pass,'
expect_out '^alice,latency,guess,worse,open,,,,not answered'
expect_out '^alice,,total,,2/2,'
expect_out '2 right, 0 not answered'
expect_out '^alice,latency,quiz,limit,pass,'
expect_out '^bob,latency,check,hide-it,fail,'
expect_out '^bob,latency,quiz,limit,open,,,,not answered'
expect_out '^carol,latency,quiz,limit,fail,'
rm class/bob* class/carol*
run stagewright lesson latency --answer-dir class
expect_code 0
run stagewright lesson latency --answer-dir nowhere
expect_code 3
# What the learner's own program kept: guesses, answers and when.
rm -r class
mkdir class
run stagewright lesson latency --answer right.csv --say limit=1.625 --say worse=GPipe
cp data/stagewright/lessons.json class/dave.json
run stagewright lesson latency --answer-dir class --csv
expect_code 0
expect_out '^dave,latency,check,hide-it,pass,'
expect_out '^dave,,total,,2/2,,,0,'

# A course is a folder of lessons with an order.
mkdir -p data/stagewright/lessons/week
stagewright lesson --new data/stagewright/lessons/week/zeta >/dev/null
stagewright lesson --new data/stagewright/lessons/week/alpha >/dev/null
printf 'One week\n# day 1\nzeta.md\nalpha.md\n' >data/stagewright/lessons/week/course.txt
run stagewright lesson data/stagewright/lessons/week
expect_code 0
expect_out '^One week: 2 lessons'
expect_out '^ *1 *zeta'
expect_out '^ *2 *alpha'
run stagewright lesson --check data/stagewright/lessons/week
expect_code 0
run stagewright lesson data/stagewright/lessons/week --answer-dir class --json
expect_json null lesson
run stagewright lesson
expect_out 'zeta'
printf 'One week\ngone.md\n' >data/stagewright/lessons/week/course.txt
run stagewright lesson data/stagewright/lessons/week
expect_code 3
expect_err 'gone.md can.t be opened'
expect_err 'correct its name in'
rm -r data/stagewright/lessons/week

# A teacher's own lesson: the template is sound and found in the learner's folder; a broken one names the place.
run stagewright lesson --new my-lesson
expect_code 0
run stagewright lesson --check ./my-lesson.md
expect_code 0
run stagewright lesson --new my-lesson
expect_code 2
mkdir -p data/stagewright/lessons
cp my-lesson.md data/stagewright/lessons/
run stagewright lesson
expect_out 'my-lesson'
sed 's/^goal: valid.*/goal: valid and (/' my-lesson.md >broken.md
run stagewright lesson --check ./broken.md
expect_code 3
expect_err 'broken.md:[0-9]+:[0-9]+: '
sed 's/^title: .*/title: T/; s/still holds 5/never said/' my-lesson.md >false.md
run stagewright lesson --check ./false.md
expect_code 1
expect_out 'false.md:[0-9]+:[0-9]+: fault \(wrong\)'

# Figures and the glossary.
run stagewright lesson latency --figures figures
expect_code 0
expect_file figures/fig-6.svg
expect_that "it is a picture" grep -qE '<path fill="none" stroke="#[0-9A-F]{6}" stroke-width="2" d="M[0-9]' figures/fig-6.svg
run stagewright lesson --glossary VPP
expect_code 0
expect_out '^Interleaving'
run stagewright lesson --glossary teapot
expect_code 2
run stagewright lesson --glossary --json
expect_json 1f1b terms 0 id

# Expressions know every figure of simulate --json, with the same values; not its origin, nor additional simulations.
run stagewright simulate -s zb-h1 --comm 0.5 --json
keys=$(grep -oE '^  "[a-z_]+"' out.txt | tr -d ' "' | grep -vxE 'sends|channels|links_shared|one_stream|replicas|shard|collectives|receives|lowering|what_if|model|microbatch_size|link_latency|straggler_sentence|step_time_without_profiler_ns|step_time_with_profiler_ns|perturb|emulated_links|contention_median|memory_cap|unknown|levers|levers_baseline|gain_by_cause|over_steps')
expect_that "there are keys" [ "$(wc -l <<<"$keys")" -gt 25 ]
stagewright lesson --new keys >/dev/null
{
    sed -n '1,/^---$/p' keys.md | head -1
    sed -n '2,6p' keys.md
    printf -- '---\n\n## Do\n\n```step\nshow: zb-h1\nset: comm=0.5\nallow: text\n```\n\n'
    for key in $keys; do printf '{{%s}}\n' "$key"; done
    printf '\n```fact\n'
    for key in makespan span bubble_fraction bubble_rate_span busy idle ranks stages microbatches; do
        printf 'that: %s == %s\n' "$key" "$(json "$key")"
    done
    printf 'that: idle_by_cause.warmup == %s\nthat: overlap.exposed_time == %s\nthat: peak_activation[1] == %s\n```\n' \
        "$(json idle_by_cause warmup)" "$(json overlap exposed_time)" "$(json peak_activation 1)"
} >all-keys.md
run stagewright lesson --check ./all-keys.md
expect_code 0
expect_no_out fault

# A hidden disturbance: only its text is stored and shown, unless it is asked for.
run stagewright record -s 1f1b -p 4 -m 4 --model layers=4,hidden=32,heads=2,seq=16 --microbatch-size 1 --steps 2 --perturb secret=5 -o secret.stagewright
expect_code 0
run stagewright report secret.stagewright
expect_out 'disturbance secret=5'
expect_no_out 'link=2-3|emulated links'
run stagewright report secret.stagewright --json
expect_json secret=5 perturb
expect_json null emulated_links
expect_no_out 'link=2-3'
run stagewright report secret.stagewright --reveal
expect_out '^the secret disturbance is link=2-3:1$'
run stagewright report secret.stagewright --reveal --json
expect_json link=2-3:1 revealed
# Nor does a simulated one keep the costs that it was timed with.
run stagewright simulate -s 1f1b -p 4 -m 4 --perturb secret=5 -o guess.stagewright
expect_out 'disturbance secret=5'
expect_no_out '2-3|link latency'
run stagewright report guess.stagewright
expect_no_out '2-3|link latency'
run stagewright report guess.stagewright --json
expect_json null link_latency
run stagewright sql guess.stagewright "select group_concat(value) from run_text"
expect_no_out '2-3'
run stagewright report guess.stagewright --reveal
expect_out '^the secret disturbance is link=2-3:1$'
run stagewright record -s 1f1b -p 2 -m 2 --model layers=2,hidden=32,heads=2,seq=16 --microbatch-size 1 --steps 1 -o plain.stagewright
run stagewright report plain.stagewright --reveal
expect_code 2
expect_err 'has no secret disturbance'
expect_err 'runs recorded with --perturb secret=SEED have one'

# What a learner or a host wrote is nested without end, endless, or a pipe: an error of that one, and the others are graded.
nested() { printf '%*s' "$1" '' | tr ' ' "$2"; }
mkdir -p deep
printf '{"format":%s%s,"version":1,"answers":[]}' "$(nested 100000 '[')" "$(nested 100000 ']')" >deep/eve.json
printf '{"format":"stagewright-lessons","version":%s%s,"answers":[]}' "$(nested 100000 '[')" "$(nested 100000 ']')" >deep/mallory.json
printf '{"format":"stagewright-lessons","version":1,"answers":[%s%s]}' "$(nested 100000 '{"a":')" "$(nested 100000 '}')" >deep/trent.json
cp right.csv deep/bob.csv
mkfifo deep/pat.csv deep/pip.txt deep/pop.json
run stagewright lesson latency --answer-dir deep
expect_code 1
for name in eve mallory trent; do expect_out "$name +file +fail +deep/$name.json: it is nested too deep"; done
for name in pat.csv pip.txt pop.json; do expect_out "${name%.*} +file +fail +deep/$name is not a file"; done
expect_out 'bob +latency +hide-it +pass'
mkdir -p damaged/stagewright
cp deep/eve.json damaged/stagewright/lessons.json
run env XDG_DATA_HOME="$PWD/damaged" "$STAGEWRIGHT" lesson
expect_code 0
expect_err 'lessons.json: it is nested too deep'
run stagewright lesson /dev/zero
expect_code 3
expect_err '/dev/zero: it has more than [0-9]+ bytes'
mkfifo pipe.md
run stagewright lesson ./pipe.md
expect_code 3
run stagewright lesson <(stagewright lesson --new made >/dev/null; cat made.md)
expect_code 0

# Answers that are given at the same time are all kept, and hosts as well.
export XDG_DATA_HOME=$PWD/together XDG_CONFIG_HOME=$PWD/together
for ((i = 0; i < 3; ++i)); do
    rm -rf together
    for call in 'latency --say limit=1.625' 'bubbles --say total=1' 'bubbles --say not-yet=1' 'deadlock --say circle-size=4' 'deadlock --say odd-ranks=GPipe'; do
        # shellcheck disable=SC2086
        "$STAGEWRIGHT" lesson $call >/dev/null 2>&1 &
    done
    for ((host = 0; host < 5; ++host)); do "$STAGEWRIGHT" hosts add h$host me@h$host >/dev/null 2>&1 & done
    wait
    expect_same "$(sed -n 's/.*"check": "\(.*\)".*/\1/p' together/stagewright/lessons.json | sort | xargs)" 'circle-size limit not-yet odd-ranks total'
    run stagewright hosts list
    expect_same "$(grep -c 'me@h' out.txt)" 5
done

// The template of a new lesson.
#include "traces/lessons/lesson_template.h"

#include "traces/lessons/lesson_file.h"

namespace stagewright::lessons {

std::string lessonTemplate(const std::string& id)
{
    return "---\nlesson: " + id + R"(
title: Which question does this lesson answer?
minutes: 10
uses: gpipe, 1f1b
set: ranks=4 microbatches=8 costs=F=1,I=1,W=1 comm=0   # settings of every step that does not change them
---

Two or three short sentences that lead to the question. Numbers are computed: GPipe needs {{sim("gpipe").makespan}} here.

## Guess

```predict
id: guess                   # kept and shown later, never graded
ask: How many microbatches does rank 0 hold under 1F1B?
number: microbatches
truth: sim("1f1b").peak_activation[0]
reveal: It holds {{sim("1f1b").peak_activation[0]}}, its distance from the last rank.
```

## Do

```step
show: gpipe                 # the canvas: a schedule's name, 'empty', or the id of an earlier check
allow: move, text, library  # the available tools
```

Say what to do. All backwards wait for all forwards here. Bring them forward, rank by rank.

```check
id: thrifty
goal: valid and makespan <= T*(m+p-1) and peak_activation <= p-r
say: Keep the step at {{value(goal,2)}} with at most {{value(goal,3)}} microbatches held.
pass: Yes: {{peak_activation}} instead of {{sim("gpipe").peak_activation}}.
fail: not valid -> {{explain(largest_gap)}}
fail: makespan > value(goal,2) -> {{makespan}} is slower. {{explain(largest_gap)}}.
fail: -> Rank 0 still holds {{peak_activation[0]}}.
```

```hint
1: Which rank could free a microbatch at once?
2: Warm-ups of 4, 3, 2, 1; then always one forward, one backward.
3: do warmup 4,3,2,1 -> Every rank now alternates.
```

```solution
schedule: 1f1b
```

```wrong                     # one wrong answer for each message
do: warmup 5,3,2,1
says: still holds 5
```

```wrong
do: warmup 4,2,2,1
says: slower
```

```wrong
do: swap 3F0 3B0
says: 3B0
```

```wrong
do: warmup 4,3,2,1; set comm=0.0625
says: slower
```

## Prove

```run
id: both
record: --schedule gpipe,1f1b
look: memory of both
goal: run("1f1b").peak_activation[1] < run("gpipe").peak_activation[1]
```

## Keep

```figure
file: )" + id +
           R"(.svg
of: memory gpipe, 1f1b
caption: Peak activation by rank, p={{p}}, m={{m}}.
```
)";
}

} // namespace stagewright::lessons

// A lesson for tests, small enough to complete with a real recording in a second.
#pragma once

namespace stagewright {

// Three pages: a guess, reorder GPipe to 1F1B's memory, one small real run.
inline constexpr const char* smallLesson = R"(---
lesson: small
title: Can two microbatches share the memory of one?
minutes: 3
uses: gpipe, 1f1b
set: ranks=2 microbatches=4 costs=F=1,I=1,W=1
---

A forward is a loan of **activation** memory.

## Guess

```predict
id: time
ask: How long will the step take?
number: units
truth: T*(m+p-1)
```

## Do

```step
show: gpipe
allow: move, warmup, split, settings
```

GPipe holds {{peak_activation[0]}} on rank 0 and takes {{makespan}}.

```check
id: low-memory
goal: valid and makespan <= T*(m+p-1) and peak_activation <= [2,1]
say: Hold at most {{value(goal,3)}} and take no longer than {{value(goal,2)}}.
pass: {{peak_activation[0]}} instead of four.
fail: not valid -> That order can't run.
fail: -> Rank 0 holds {{peak_activation[0]}}.
```

```hint
1: Look at the last rank.
2: Give back as early as you can.
3: do warmup 2,1 -> Done for you.
```

## Prove

```run
id: real
record: --schedule 1f1b --model layers=2,hidden=16,heads=2,seq=8 --microbatch-size 1 --steps 2 --warmup 1
look: memory
goal: run("1f1b").complete -> It ran through.
```

## Keep

```figure
file: fig.svg
of: timelines 1f1b
caption: 1F1B on two ranks
```

```solution
check: low-memory
schedule: 1f1b
```

```wrong
check: low-memory
schedule: gpipe
says: holds
```
)";

} // namespace stagewright
